// One price as a client writes it: in any of the good forms, or with one of the faults that clients have.
import AppStoreAuthority
import Base
import ProgramSupport

enum PriceFault: CaseIterable, Sendable {
  case localised, zero, currencyMissing, formsDisagree, currencyUnknown, negative, exponent
  case unknownForm, microsAsText, wrongKind

  /// How often each is met.
  static let weights = [30, 12, 18, 10, 8, 3, 5, 8, 4, 2]
}

/// How a client's code writes prices; one upload keeps to one way.
enum PriceStyle: CaseIterable, Sendable {
  case text, number, micros, milliunits
  /// A decimal number that was printed from a binary one.
  case artefact
  case decimalAndMicros

  /// How often each is met.
  static let weights = [44, 28, 14, 6, 5, 3]

  static func any(_ random: inout RandomSource) -> PriceStyle {
    allCases[random.index(weighted: weights)]
  }
}

struct PriceForm {
  let micros: Int64
  let currency: Currency
  let style: PriceStyle

  /// The price in decimals, with as many digits after the point as the currency has.
  private var decimal: String { Self.decimal(micros, digits: currency.digits) }

  static func decimal(_ micros: Int64, digits: Int) -> String {
    let whole = String(micros / 1_000_000)
    if digits == 0 { return whole }
    var divisor: Int64 = 1_000_000
    for _ in 0..<digits { divisor /= 10 }
    let fraction = String(micros % 1_000_000 / divisor)
    return whole + "." + String(repeating: "0", count: digits - fraction.utf8.count) + fraction
  }

  /// Writes the price and its currency as fields of the object that `json` is in.
  func write(fault: PriceFault?, random: inout RandomSource, to json: inout JSONWriter) {
    if let fault {
      writeFaulty(fault, random: &random, to: &json)
    } else {
      writeGood(random: &random, to: &json)
      writeCurrency(random: &random, to: &json)
    }
  }

  private func writeGood(random: inout RandomSource, to json: inout JSONWriter) {
    switch style {
    case .text: json.field("price", decimal)
    case .number: json.field("price", raw: decimal)
    case .micros: json.field("price_micros", raw: String(micros))
    case .milliunits: json.field("price_milliunits", raw: String(micros / 1000))
    case .artefact:
      let text = artefact(random: &random)
      if random.chance(500) { json.field("price", text) } else { json.field("price", raw: text) }
    case .decimalAndMicros:
      json.field("price", decimal)
      json.field("price_micros", raw: String(micros))
    }
  }

  /// A decimal number that went through a binary one: a tiny bit more or less than the price.
  private func artefact(random: inout RandomSource) -> String {
    let noise = String(random.within(100...989))
    if random.chance(500) {
      return Self.decimal(micros, digits: 2) + "000000000000000" + noise
    }
    return Self.decimal(micros - 1, digits: 6) + "9999999999" + noise
  }

  private func writeCurrency(random: inout RandomSource, to json: inout JSONWriter) {
    switch random.index(weighted: [955, 30, 15]) {
    case 0: json.field("currency", currency.code)
    case 1: json.field("currency", currency.code.lowercased())
    default: json.field("currency", " \(currency.code) ")
    }
  }

  private func writeFaulty(
    _ fault: PriceFault, random: inout RandomSource, to json: inout JSONWriter
  ) {
    switch fault {
    case .localised: json.field("price", localised)
    case .zero:
      if random.chance(500) {
        json.field("price", raw: "0")
      } else {
        json.field("price_micros", raw: "0")
      }
    case .currencyMissing:
      json.field("price", decimal)
      if random.chance(400) { json.field("currency", "") }
      return
    case .formsDisagree:
      json.field("price", decimal)
      let other = random.chance(500) ? micros / 1000 : micros + micros / 5
      json.field("price_micros", raw: String(other))
    case .currencyUnknown:
      json.field("price", decimal)
      json.field("currency", random.pick(["EURO", "US Dollar", "XTS", "???"]))
      return
    case .negative: json.field("price", "-" + decimal)
    case .exponent: json.field("price", raw: decimal + "e0")
    case .unknownForm:
      if random.chance(500) {
        json.field("price_amount_micros", raw: String(micros))
      } else {
        json.field("priceMicros", raw: String(micros))
      }
    case .microsAsText: json.field("price_micros", String(micros))
    case .wrongKind: json.field("price", raw: random.pick(["true", "[]", "{}"]))
    }
    writeCurrency(random: &random, to: &json)
  }

  /// As a shop window shows it.
  private var localised: String {
    switch currency.code {
    case "EUR", "PLN", "CZK", "HUF", "SEK", "NOK", "DKK", "TRY", "VND":
      String(decimal.map { $0 == "." ? "," : $0 }) + " " + currency.symbol
    default: currency.symbol + decimal
    }
  }
}

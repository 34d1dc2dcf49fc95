// Prices as clients write them, a price list that agrees with them, and exchange rates.
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
    case .text: json.member("price", decimal)
    case .number: json.member("price", raw: decimal)
    case .micros: json.member("price_micros", raw: String(micros))
    case .milliunits: json.member("price_milliunits", raw: String(micros / 1000))
    case .artefact:
      let text = artefact(random: &random)
      if random.chance(500) { json.member("price", text) } else { json.member("price", raw: text) }
    case .decimalAndMicros:
      json.member("price", decimal)
      json.member("price_micros", raw: String(micros))
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
    case 0: json.member("currency", currency.code)
    case 1: json.member("currency", currency.code.lowercased())
    default: json.member("currency", " \(currency.code) ")
    }
  }

  private func writeFaulty(
    _ fault: PriceFault, random: inout RandomSource, to json: inout JSONWriter
  ) {
    switch fault {
    case .localised: json.member("price", localised)
    case .zero:
      if random.chance(500) {
        json.member("price", raw: "0")
      } else {
        json.member("price_micros", raw: "0")
      }
    case .currencyMissing:
      json.member("price", decimal)
      if random.chance(400) { json.member("currency", "") }
      return
    case .formsDisagree:
      json.member("price", decimal)
      let other = random.chance(500) ? micros / 1000 : micros + micros / 5
      json.member("price_micros", raw: String(other))
    case .currencyUnknown:
      json.member("price", decimal)
      json.member("currency", random.pick(["EURO", "US Dollar", "XTS", "???"]))
      return
    case .negative: json.member("price", "-" + decimal)
    case .exponent: json.member("price", raw: decimal + "e0")
    case .unknownForm:
      if random.chance(500) {
        json.member("price_amount_micros", raw: String(micros))
      } else {
        json.member("priceMicros", raw: String(micros))
      }
    case .microsAsText: json.member("price_micros", String(micros))
    case .wrongKind: json.member("price", raw: random.pick(["true", "[]", "{}"]))
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

struct PriceListFile {
  let simulation: Simulation

  /// The list names these storefronts' prices; elsewhere its entries without a country hold.
  private static let storefronts = Storefronts.all.filter { $0.weight >= 8 }

  func write(to output: inout Output) throws(OutputError) {
    try output.write("product_id,country_code,currency,price,effective_from\n")
    let startMs = simulation.fromMs - 400 * dayMs
    for app in Catalogue.apps where app.isOnPriceList {
      for product in app.products {
        try write(product, sinceMs: startMs, to: &output)
        if product.raisedTierCents != product.tierCents {
          try write(product, sinceMs: simulation.priceRiseMs, to: &output)
        }
      }
    }
  }

  private func write(
    _ product: Product, sinceMs: Int64, to output: inout Output
  ) throws(OutputError) {
    let since = StoreTime.day(sinceMs).description
    func line(_ country: String, _ currency: Currency) -> String {
      let tierCents =
        sinceMs >= simulation.priceRiseMs ? product.raisedTierCents : product.tierCents
      let price = PriceForm.decimal(
        currency.priceMicros(tierCents: tierCents), digits: currency.digits)
      return "\(product.id),\(country),\(currency.code),\(price),\(since)\n"
    }
    for storefront in Self.storefronts {
      try output.write(line(storefront.countryCode, storefront.currency))
    }
    try output.write(line("", Storefronts.dollar))
  }
}

struct RatesFile {
  let simulation: Simulation

  func write(to output: inout Output) throws(OutputError) {
    try output.write("date,base,quote,rate\n")
    let currencies = Storefronts.currencies.filter { $0.code != Storefronts.euro.code }
    var random = RandomSource(seed: simulation.seed, 60)
    var rates = currencies.map(\.microsPerEuro)
    // Sales may lie months before the first upload.
    let first = StoreTime.day(simulation.fromMs - 125 * dayMs).dayNumber
    let last = StoreTime.day(simulation.toMs - 1).dayNumber
    for day in first...last {
      // 1970-01-01 was a Thursday; 2 and 3 are a Saturday and a Sunday.
      let weekday = day % 7
      if weekday == 2 || weekday == 3 { continue }
      let date = CivilDate(dayNumber: day).description
      for (index, currency) in currencies.enumerated() {
        let usual = currency.microsPerEuro
        let step = usual / 1000 * random.within(-5...5) / 2
        rates[index] += step + (usual - rates[index]) / 40
        let rate = PriceForm.decimal(
          Int64(rates[index]), digits: rates[index] < 100_000_000 ? 4 : 2)
        try output.write("\(date),EUR,\(currency.code),\(rate)\n")
      }
    }
  }
}

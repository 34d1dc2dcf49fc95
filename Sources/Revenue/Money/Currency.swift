// Currencies: the known ISO 4217 alphabetic codes and their minor digits.
import Base

/// A currency in the table (see `CurrencyTable`): three capital letters and a number of minor digits. Values
/// sort in the order of their codes, byte by byte.
package struct Currency:
  Hashable, Comparable, Sendable, BitwiseCopyable, CustomStringConvertible
{
  /// Index in the sorted table. It changes when the table grows, so the code is what gets stored.
  package let ordinal: UInt8

  package init(ordinal: UInt8) { self.ordinal = ordinal }

  /// Parses a code from UTF-8 text: ASCII white space around it is ignored, either case is accepted.
  /// - Returns: nil if the text is not a code in the table.
  package static func parse(_ text: UnsafeRawBufferPointer) -> Currency? {
    var start = 0
    var end = text.count
    while start < end, isWhiteSpace(text[start]) { start += 1 }
    while end > start, isWhiteSpace(text[end - 1]) { end -= 1 }
    guard end - start == 3 else { return nil }
    var index = 0
    for place in start..<end {
      guard let letter = letterIndex(text[place]) else { return nil }
      index = index * 26 + letter
    }
    let ordinal = CurrencyTable.shared.ordinals[index]
    return ordinal == CurrencyTable.noOrdinal ? nil : Currency(ordinal: ordinal)
  }

  /// Parses a code from a string; the same rules as for bytes.
  package static func parse(_ text: String) -> Currency? {
    var text = text
    return text.withUTF8 { parse(UnsafeRawBufferPointer($0)) }
  }

  /// Every currency in the table, in the order of the codes.
  package static var all: [Currency] {
    (0..<CurrencyTable.shared.minorDigits.count).map { Currency(ordinal: UInt8($0)) }
  }

  /// Digits after the decimal point according to ISO 4217 (0 to 4); 0 for "N.A.".
  package var minorDigits: Int { Int(CurrencyTable.shared.minorDigits[Int(ordinal)]) }

  /// The three capital letters.
  package var description: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Appends the three capital letters.
  package func append(to output: inout [UInt8]) {
    let start = Int(ordinal) * 3
    output.append(contentsOf: CurrencyTable.shared.letters[start..<start + 3])
  }

  package static func < (left: Currency, right: Currency) -> Bool { left.ordinal < right.ordinal }

  private static func isWhiteSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0D).contains(byte)
  }
}

// MARK: - Table of currencies

/// The currencies of revenue rule R7, which a price may name, grouped by their minor digits: list one of ISO 4217 up to
/// amendment 179, with its funds codes and bond market units, and the codes withdrawn since January 2008, with the
/// minor digits they had. Metals, the test code XTS and the no-currency code XXX are excluded.
struct CurrencyTable: Sendable {
  static let shared = CurrencyTable()
  static let noOrdinal: UInt8 = 0xFF

  /// Three capital letters per currency, in the order of the codes.
  let letters: [UInt8]
  /// Minor digits, indexed by ordinal.
  let minorDigits: [UInt8]
  /// Ordinals, indexed by the code as a number in base 26; `noOrdinal` if there is no such code.
  let ordinals: [UInt8]

  private init() {
    var digitsByIndex: [UInt8] = Array(repeating: Self.noOrdinal, count: 26 * 26 * 26)
    for (codes, digits) in Self.groups {
      var index = 0
      var letterCount = 0
      for byte in codes.utf8 {
        guard let letter = letterIndex(byte) else { continue }
        index = index * 26 + letter
        letterCount += 1
        if letterCount == 3 {
          digitsByIndex[index] = digits
          index = 0
          letterCount = 0
        }
      }
    }
    var letters: [UInt8] = []
    var minorDigits: [UInt8] = []
    var ordinals: [UInt8] = Array(repeating: Self.noOrdinal, count: digitsByIndex.count)
    for (index, digits) in digitsByIndex.enumerated() where digits != Self.noOrdinal {
      ordinals[index] = UInt8(minorDigits.count)
      minorDigits.append(digits)
      for letter in [index / 676, index / 26 % 26, index % 26] {
        letters.append(0x41 + UInt8(letter))
      }
    }
    self.letters = letters
    self.minorDigits = minorDigits
    self.ordinals = ordinals
  }

  private static let groups: [(codes: String, digits: UInt8)] = [
    (active2, 2), (active0, 0), (active3, 3), (active4, 4), (notApplicable, 0),
    (withdrawn2, 2), (withdrawn0, 0),
  ]

  private static let active2 = """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD
    CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP
    GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK
    LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO
    NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS
    SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST
    XAD XCD XCG YER ZAR ZMW ZWG
    """

  private static let active0 = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"

  private static let active3 = "BHD IQD JOD KWD LYD OMR TND"

  private static let active4 = "CLF UYW"

  /// Units without a minor unit in ISO 4217 ("N.A.").
  private static let notApplicable = "XBA XBB XBC XBD XDR XSU XUA"

  /// ZWN is included although one ISO list ends it in 2006: it was used until August 2008.
  private static let withdrawn2 = """
    ANG BGN CUC CYP EEK GHC HRK LTL LVL MRO MTL SKK SLL STD TMM USS VEB VEF ZMK ZWD ZWL ZWN ZWR
    """

  /// BYR had no minor unit; none was given for XFU.
  private static let withdrawn0 = "BYR XFU"
}

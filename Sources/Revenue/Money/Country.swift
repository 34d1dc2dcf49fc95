// Country: an ISO 3166-1 alpha-2 code, or XK.
import Base

/// A country code of ISO 3166-1 alpha-2, or `XK` (Kosovo), which the App Store uses. `UK` and the other
/// reserved codes are not accepted. Values sort in the order of their letters.
package struct Country: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The letters as a number in base 26.
  private let index: UInt16

  /// Parses a code from UTF-8 text: exactly two letters, in either case.
  /// - Returns: nil if the text is not a code in the table.
  package static func parse(_ text: UnsafeRawBufferPointer) -> Country? {
    guard text.count == 2, let first = letterIndex(text[0]), let second = letterIndex(text[1])
    else { return nil }
    let index = first * 26 + second
    return isAssigned[index] ? Country(index: UInt16(index)) : nil
  }

  /// Parses a code from a string; the same rules as for bytes.
  package static func parse(_ text: String) -> Country? {
    var text = text
    return text.withUTF8 { parse(UnsafeRawBufferPointer($0)) }
  }

  /// Every country in the table, in the order of the codes.
  package static var all: [Country] {
    isAssigned.indices.filter { isAssigned[$0] }.map { Country(index: UInt16($0)) }
  }

  /// The two capital letters.
  package var description: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Appends the two capital letters.
  package func append(to output: inout [UInt8]) {
    output.append(0x41 + UInt8(index / 26))
    output.append(0x41 + UInt8(index % 26))
  }

  package static func < (left: Country, right: Country) -> Bool { left.index < right.index }

  private static let isAssigned: [Bool] = {
    var isAssigned = Array(repeating: false, count: 26 * 26)
    var first: Int?
    for byte in codes.utf8 {
      guard let letter = letterIndex(byte) else { continue }
      if let start = first {
        isAssigned[start * 26 + letter] = true
        first = nil
      } else {
        first = letter
      }
    }
    return isAssigned
  }()

  private static let codes = """
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ
    BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM
    DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS
    GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN
    KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ
    MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM
    PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV
    SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI
    VN VU WF WS XK YE YT ZA ZM ZW
    """
}

// Country codes: ISO 3166-1 alpha-2 and alpha-3, and XK.
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

  /// The country of an alpha-3 code in capital letters, the form of storefronts; `XKS` is `XK`.
  /// - Returns: nil if the text is not a code in the table.
  package static func parse(alpha3 text: UnsafeRawBufferPointer) -> Country? {
    guard text.count == 3, !text.contains(where: { !(0x41...0x5A).contains($0) }) else {
      return nil
    }
    let packed = text.reduce(0) { $0 << 8 | UInt32($1) }
    return byAlpha3[packed]
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

  /// The countries by their alpha-3 codes, each packed into a number.
  private static let byAlpha3: [UInt32: Country] = {
    var result: [UInt32: Country] = [:]
    var packed: UInt32 = 0
    var letterCount = 0
    var places = isAssigned.indices.lazy.filter { isAssigned[$0] }.makeIterator()
    for byte in alpha3Codes.utf8 where letterIndex(byte) != nil {
      packed = packed << 8 | UInt32(byte)
      letterCount += 1
      guard letterCount == 3 else { continue }
      guard let place = places.next() else {
        preconditionFailure("more alpha-3 codes than countries")
      }
      result[packed] = Country(index: UInt16(place))
      (packed, letterCount) = (0, 0)
    }
    precondition(places.next() == nil, "a country without its alpha-3 code")
    return result
  }()

  /// The alpha-3 codes in the order of `codes`.
  private static let alpha3Codes = """
    AND ARE AFG ATG AIA ALB ARM AGO ATA ARG ASM AUT AUS ABW ALA AZE BIH BRB BGD BEL BFA BGR
    BHR BDI BEN BLM BMU BRN BOL BES BRA BHS BTN BVT BWA BLR BLZ CAN CCK COD CAF COG CHE CIV
    COK CHL CMR CHN COL CRI CUB CPV CUW CXR CYP CZE DEU DJI DNK DMA DOM DZA ECU EST EGY ESH
    ERI ESP ETH FIN FJI FLK FSM FRO FRA GAB GBR GRD GEO GUF GGY GHA GIB GRL GMB GIN GLP GNQ
    GRC SGS GTM GUM GNB GUY HKG HMD HND HRV HTI HUN IDN IRL ISR IMN IND IOT IRQ IRN ISL ITA
    JEY JAM JOR JPN KEN KGZ KHM KIR COM KNA PRK KOR KWT CYM KAZ LAO LBN LCA LIE LKA LBR LSO
    LTU LUX LVA LBY MAR MCO MDA MNE MAF MDG MHL MKD MLI MMR MNG MAC MNP MTQ MRT MSR MLT MUS
    MDV MWI MEX MYS MOZ NAM NCL NER NFK NGA NIC NLD NOR NPL NRU NIU NZL OMN PAN PER PYF PNG
    PHL PAK POL SPM PCN PRI PSE PRT PLW PRY QAT REU ROU SRB RUS RWA SAU SLB SYC SDN SWE SGP
    SHN SVN SJM SVK SLE SMR SEN SOM SUR SSD STP SLV SXM SYR SWZ TCA TCD ATF TGO THA TJK TKL
    TLS TKM TUN TON TUR TTO TUV TWN TZA UKR UGA UMI USA URY UZB VAT VCT VEN VGB VIR VNM VUT
    WLF WSM XKS YEM MYT ZAF ZMB ZWE
    """
}

// Apple's entities that sell in each country, from a day on (settlement rule S17).
import Base

/// The company of Apple's that sells to customers in a country. Sources: Schedule 2, Exhibit A of Apple's Developer
/// Program License Agreement; for Apple Services Pte. Ltd. Apple's notice of October 2024.
package enum Seller: String, CaseIterable, Sendable {
  case inc = "Apple Inc."
  case canada = "Apple Canada Inc."
  case australia = "Apple Pty Limited"
  case japan = "iTunes K.K."
  case latinAmerica = "Apple Services LATAM LLC"
  case asia = "Apple Services Pte. Ltd."
  case international = "Apple Distribution International Ltd."

  /// The first fiscal month that the table covers: FY2021-P01.
  private static let firstMonth = 2021 * 12
  /// 2024-10-26: since then Apple Services Pte. Ltd. stands for its countries.
  private static let asiaFirstDay = CivilDate.dayNumber(year: 2024, month: 10, day: 26)
  /// The region whose report has the countries of Apple Services Pte. Ltd.
  private static let asiaRegion = "AP"

  /// The seller of a row of a report that has no days.
  /// - Parameter region: of the report. In the month of the change the countries stand in two reports.
  package init?(country: Text, month: FiscalMonth, region: String?) {
    if region == Self.asiaRegion {
      guard Seller(country: country, month: month, day: month.firstDay) != nil else { return nil }
      self = .asia
      return
    }
    guard let first = Seller(country: country, month: month, day: month.firstDay),
      first == Seller(country: country, month: month, day: month.lastDay)
    else { return nil }
    self = first
  }

  /// The seller on a day, in days since 1970-01-01; nil outside the table.
  package init?(country: Text, month: FiscalMonth, day: Int) {
    guard month.ordinal >= Self.firstMonth,
      let found = Self.byCountry[String(decoding: country, as: UTF8.self)]
    else { return nil }
    self = found == .asia && day < Self.asiaFirstDay ? .international : found
  }

  private static let byCountry: [String: Seller] = {
    var result: [String: Seller] = [:]
    for (seller, codes) in countries {
      for code in codes.split(whereSeparator: \.isWhitespace) { result[String(code)] = seller }
    }
    return result
  }()

  private static let countries: [(Seller, String)] = [
    (.inc, "US"), (.canada, "CA"), (.australia, "AU NZ"), (.japan, "JP"),
    (
      .latinAmerica,
      """
      AG AI AR BB BM BO BR BS BZ CL CO CR DM DO EC GD GT GY HN JM KN KY LC MS MX NI PA PE PY SR SV
      TC TT UY VC VE VG
      """
    ),
    (.asia, "BT BN KH FM FJ KR LA MO MV MN MM NR NP PW PG SB LK TO VU"),
    (
      .international,
      """
      AE AF AL AM AO AT AZ BA BE BF BG BH BJ BW BY CD CG CH CI CM CN CV CY CZ DE DK DZ EE EG ES FI
      FR GA GB GE GH GM GR GW HK HR HU ID IE IL IN IQ IS IT JO KE KG KW KZ LB LR LT LU LV LY MA MD
      ME MG MK ML MR MT MU MW MY MZ NA NE NG NL NO OM PH PK PL PT QA RO RS RU RW SA SC SE SG SI SK
      SL SN ST SZ TD TH TJ TM TN TR TW TZ UA UG UZ VN XK YE ZA ZM ZW
      """
    ),
  ]
}

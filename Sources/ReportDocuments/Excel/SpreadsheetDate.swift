// Instants, days and months as the numbers that Excel shows as dates.
package import Base
package import Revenue

/// Days since 30 December 1899, as Excel counts them from 1 March 1900 on.
package enum SpreadsheetDate {
  private static let msPerDay: Int64 = 86_400_000
  /// 30 December 1899, in days since 1970.
  private static let epochDay = -25_569
  /// From 1 March 1900, before which Excel's calendar is wrong by a day, to 31 December 9999.
  private static let days = 61...2_958_465

  /// An instant in a zone's local time; nil if Excel has no number for it.
  package static func number(atMs epochMs: Int64, in zone: TimeZoneTable) -> Double? {
    let (localMs, overflow) = epochMs.addingReportingOverflow(
      Int64(zone.offsetSeconds(atMs: epochMs)) * 1000)
    if overflow { return nil }
    let day = Int(floorDivide(localMs, msPerDay))
    guard days.contains(day - epochDay) else { return nil }
    return Double(localMs - Int64(epochDay) * msPerDay) / Double(msPerDay)
  }

  /// A day since 1970; nil if Excel has no number for it.
  static func number(ofDay day: Int) -> Double? {
    days.contains(day - epochDay) ? Double(day - epochDay) : nil
  }

  /// `2026-03-14`, or the first day of `2026-03`; nil for any other text.
  package static func number(of period: UnsafeRawBufferPointer, _ granularity: Period.Granularity)
    -> Double?
  {
    var text = String(decoding: period, as: UTF8.self)
    switch granularity {
    case .day: break
    case .month: text += "-01"
    default: return nil
    }
    return (try? CivilDate(parsing: text)).flatMap { number(ofDay: $0.dayNumber) }
  }
}

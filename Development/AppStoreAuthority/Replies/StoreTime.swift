// Steps through the calendar, and dates as the App Store writes and names them.
package import Base

package let secondMs: Int64 = 1000
package let minuteMs: Int64 = 60_000
package let hourMs: Int64 = 3_600_000
package let dayMs: Int64 = 86_400_000

package enum StoreTime {
  package static func day(_ epochMs: Int64) -> CivilDate {
    CivilDate(dayNumber: Timestamp.utcDay(ms: epochMs))
  }

  /// The same time of day so many months later; a day that the month lacks becomes its last.
  package static func adding(months: Int, to epochMs: Int64) -> Int64 {
    let date = day(epochMs)
    let timeMs = epochMs - Int64(date.dayNumber) * dayMs
    let index = date.year * 12 + date.month - 1 + months
    var lastDay = date.day
    while lastDay > 28 {
      if let later = CivilDate(year: index / 12, month: index % 12 + 1, day: lastDay) {
        return Int64(later.dayNumber) * dayMs + timeMs
      }
      lastDay -= 1
    }
    let later = CivilDate(year: index / 12, month: index % 12 + 1, day: lastDay) ?? date
    return Int64(later.dayNumber) * dayMs + timeMs
  }

  /// The `ordinal`th Sunday of a month, in days since 1970.
  private static func sunday(_ ordinal: Int, year: Int, month: Int) -> Int {
    let first = CivilDate(year: year, month: month, day: 1)?.dayNumber ?? 0
    // 1970-01-01 was a Thursday: day 3 is the first Sunday.
    let untilSunday = ((3 - first) % 7 + 7) % 7
    return first + untilSunday + (ordinal - 1) * 7
  }

  /// Daylight saving in Los Angeles: from the second Sunday of March to the first of November, at 2:00 local
  /// time (the rule since 2007).
  package static func losAngelesOffsetMs(_ epochMs: Int64) -> Int64 {
    let year = day(epochMs).year
    let begin = Int64(sunday(2, year: year, month: 3)) * dayMs + 10 * hourMs
    let end = Int64(sunday(1, year: year, month: 11)) * dayMs + 9 * hourMs
    return (begin..<end).contains(epochMs) ? -7 * hourMs : -8 * hourMs
  }

  /// `2026-01-02 03:04:05`, of an instant that was moved to its zone already.
  private static func plain(_ localMs: Int64, _ zone: StaticString) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(40)
    Timestamp.append(ms: localMs, to: &text)
    text.removeLast(5)
    text[10] = UInt8(ascii: " ")
    text.append(
      contentsOf: UnsafeBufferPointer(start: zone.utf8Start, count: zone.utf8CodeUnitCount))
    return String(decoding: text, as: UTF8.self)
  }

  package static func greenwich(_ epochMs: Int64) -> String { plain(epochMs, " Etc/GMT") }

  package static func losAngeles(_ epochMs: Int64) -> String {
    plain(epochMs + losAngelesOffsetMs(epochMs), " America/Los_Angeles")
  }

  /// `2026-01-02T03:04:05Z`, as receipts write dates.
  package static func receiptDate(_ epochMs: Int64) -> String {
    String(Timestamp.text(ms: epochMs).prefix(19)) + "Z"
  }
}

extension DER {
  /// A date as a receipt's attribute has it; empty where there is none.
  package static func date(_ epochMs: Int64?) -> [UInt8] {
    ia5(epochMs.map(StoreTime.receiptDate) ?? "")
  }
}

/// The three names under which a reply gives a date.
package struct DateKeys: Sendable {
  package let greenwich: StaticString
  package let epoch: StaticString
  package let losAngeles: StaticString

  package static let purchase = DateKeys(
    greenwich: "purchase_date", epoch: "purchase_date_ms", losAngeles: "purchase_date_pst")
  package static let originalPurchase = DateKeys(
    greenwich: "original_purchase_date", epoch: "original_purchase_date_ms",
    losAngeles: "original_purchase_date_pst")
  package static let expires = DateKeys(
    greenwich: "expires_date", epoch: "expires_date_ms", losAngeles: "expires_date_pst")
  package static let cancellation = DateKeys(
    greenwich: "cancellation_date", epoch: "cancellation_date_ms",
    losAngeles: "cancellation_date_pst")
  package static let creation = DateKeys(
    greenwich: "receipt_creation_date", epoch: "receipt_creation_date_ms",
    losAngeles: "receipt_creation_date_pst")
  package static let request = DateKeys(
    greenwich: "request_date", epoch: "request_date_ms", losAngeles: "request_date_pst")
  package static let gracePeriod = DateKeys(
    greenwich: "grace_period_expires_date", epoch: "grace_period_expires_date_ms",
    losAngeles: "grace_period_expires_date_pst")
}

extension JSONWriter {
  /// Writes a member with a number or another value that is written already.
  package mutating func member(_ key: StaticString, raw value: String) {
    self.key(key)
    var value = value
    value.withUTF8 { raw(JSONBytes($0)) }
  }
}

// How config.json writes how long something is kept, and at which time of the day something is done.

/// A time for which something is kept: a whole number of days, weeks, months or years.
package struct RetentionPeriod: Equatable, Sendable {
  /// What a period is counted in. A month is 30 days and a year 365, so that a period is the same on every day.
  package enum Unit: Character, CaseIterable, Sendable {
    case days = "d"
    case weeks = "w"
    case months = "m"
    case years = "y"

    var dayCount: Int64 {
      switch self {
      case .days: 1
      case .weeks: 7
      case .months: 30
      case .years: 365
      }
    }
  }

  static let yearsMax: Int64 = 100
  static let requirement =
    "must be a whole number and d, w, m (30 days) or y (365 days), such as 90d: at most \(yearsMax) years"
  private static let dayMs: Int64 = 86_400_000

  private let count: Int64
  private let unit: Unit

  /// Nil for a text of another form, for none, and for more than 100 years.
  package init?(_ text: String) {
    let digits = text.utf8.dropLast()
    guard let last = text.last, let unit = Unit(rawValue: last), 1...5 ~= digits.count,
      digits.allSatisfy({ 0x30...0x39 ~= $0 }), digits.first != 0x30,
      let count = Int64(String(text.dropLast())),
      count * unit.dayCount <= Self.yearsMax * Unit.years.dayCount
    else { return nil }
    (self.count, self.unit) = (count, unit)
  }

  /// As it was written.
  package var text: String { "\(count)\(unit.rawValue)" }

  /// In milliseconds.
  package var milliseconds: Int64 { count * unit.dayCount * Self.dayMs }
}

/// A time of the day in UTC, to the minute.
package struct TimeOfDay: Equatable, Sendable {
  static let requirement = "must be a time of the day in UTC, such as 03:00"

  /// Minutes after midnight.
  private let minutes: Int

  package init(hour: Int, minute: Int) {
    precondition(0...23 ~= hour && 0...59 ~= minute, "a day has 24 hours of 60 minutes")
    minutes = hour * 60 + minute
  }

  /// Nil unless the text is two digits, a colon and two digits, of a time that exists.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count == 5, bytes[2] == UInt8(ascii: ":"),
      [0, 1, 3, 4].allSatisfy({ 0x30...0x39 ~= bytes[$0] })
    else { return nil }
    let hour = Int(bytes[0] - 0x30) * 10 + Int(bytes[1] - 0x30)
    let minute = Int(bytes[3] - 0x30) * 10 + Int(bytes[4] - 0x30)
    guard hour <= 23, minute <= 59 else { return nil }
    minutes = hour * 60 + minute
  }

  package var text: String {
    func digits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(digits(minutes / 60)):\(digits(minutes % 60))"
  }

  /// Milliseconds after midnight.
  package var milliseconds: Int64 { Int64(minutes) * 60_000 }
}

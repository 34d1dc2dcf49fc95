// The App Store's wall clock, Los Angeles, by fixed rules: no system's time zone data can change a figure.

/// Los Angeles since 2007: 8 hours behind UTC, and 7 hours behind from the second Sunday of March, 02:00, to the
/// first Sunday of November, 02:00 (Energy Policy Act of 2005). In-app purchases began in 2009; years before 2007 had
/// other rules.
package enum PacificTime {
  package static let firstYear = 2007
  private static let standardOffsetSeconds = -28_800
  private static let daylightOffsetSeconds = -25_200

  /// Seconds east of UTC at a wall-clock time; nil before 2007.
  ///
  /// The hour from 01:00 occurs twice in November and is read as the first occurrence, in daylight time. The hour
  /// from 02:00 that March skips is read in standard time, an hour before the clock time that it means.
  /// - Parameter secondOfDay: seconds since midnight on the wall clock.
  package static func offsetSeconds(
    year: Int, month: Int, day: Int, secondOfDay: Int
  ) -> Int? {
    guard year >= firstYear else { return nil }
    let isDaylight =
      switch month {
      case 3:
        isNotBefore(day, secondOfDay, sunday(2, year: year, month: 3), hour: 3)
      case 4...10: true
      case 11:
        !isNotBefore(day, secondOfDay, sunday(1, year: year, month: 11), hour: 2)
      default: false
      }
    return isDaylight ? daylightOffsetSeconds : standardOffsetSeconds
  }

  private static func isNotBefore(
    _ day: Int, _ secondOfDay: Int, _ changeDay: Int, hour: Int
  ) -> Bool {
    day > changeDay || day == changeDay && secondOfDay >= hour * 3_600
  }

  /// The day of the month of the month's first, second, ... Sunday.
  private static func sunday(_ ordinal: Int, year: Int, month: Int) -> Int {
    // 1970-01-01 was a Thursday, so day number 3 was a Sunday.
    let first = CivilDate.dayNumber(year: year, month: month, day: 1)
    let daysToSunday = (3 - first) - floorDivide(3 - first, 7) * 7
    return 1 + daysToSunday + (ordinal - 1) * 7
  }
}

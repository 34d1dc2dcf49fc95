// Civil dates: day numbers, ISO weeks, and which texts are dates.
import Base
import TestSupport
import Testing

@Suite struct CivilDateTests {
  @Test(arguments: [
    (0, "1970-01-01"), (-1, "1969-12-31"), (59, "1970-03-01"), (20_526, "2026-03-14"),
    (11_016, "2000-02-29"), (11_017, "2000-03-01"), (-719_162, "0001-01-01"),
    (2_932_896, "9999-12-31"), (-719_163, "0000-12-31"), (-719_528, "0000-01-01"),
    (-719_529, "-000001-12-31"), (2_932_897, "+010000-01-01"), (-25_508, "1900-03-01"),
  ])
  func dayNumberAndDateAgree(dayNumber: Int, text: String) throws {
    let date = CivilDate(dayNumber: dayNumber)
    expectEqual(date.description, text)
    expectEqual(date.dayNumber, dayNumber)
    if CivilDate.years.contains(date.year) { try expectEqual(CivilDate(parsing: text), date) }
  }

  @Test(
    arguments: [
      ("2026-1-02", .notDate), ("2026/01/02", .notDate), ("20260102", .notDate), ("", .notDate),
      ("2026-01-02 ", .notDate), ("2026-01-0x", .notDate), ("+026-01-02", .notDate),
      ("2026-00-01", .noSuchDay), ("2026-13-01", .noSuchDay), ("2026-01-00", .noSuchDay),
      ("2026-01-32", .noSuchDay), ("2026-02-29", .noSuchDay), ("1900-02-29", .noSuchDay),
      ("2026-04-31", .noSuchDay), ("0000-01-01", .noSuchDay),
    ] as [(String, DateError)])
  func otherTextIsRefused(text: String, error: DateError) {
    #expect(throws: error) { try CivilDate(parsing: text) }
  }

  @Test(arguments: ["2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31", "2026-04-30"])
  func dateThatExistsIsRead(text: String) throws {
    try expectEqual(CivilDate(parsing: text).description, text)
  }

  @Test func errorsSayWhy() {
    expectEqual(DateError.notDate.description, "not a date of the form YYYY-MM-DD")
    expectEqual(DateError.noSuchDay.description, "no such day in the years 0001 to 9999")
  }

  @Test(arguments: [
    ("2026-01-01", 2026, 1), ("2025-12-29", 2026, 1), ("2025-12-28", 2025, 52),
    ("2021-01-03", 2020, 53), ("2021-01-04", 2021, 1), ("2027-01-01", 2026, 53),
    ("2026-03-01", 2026, 9), ("2016-01-03", 2015, 53), ("2008-12-29", 2009, 1),
    ("1970-01-01", 1970, 1), ("0001-01-01", 1, 1), ("9999-12-31", 9999, 52),
    ("1969-12-28", 1969, 52),
  ])
  func isoWeekIsThatOfItsThursday(text: String, year: Int, week: Int) throws {
    let found = try CivilDate(parsing: text).isoWeek
    expectEqual(found.year, year)
    expectEqual(found.week, week)
  }

  /// An independent computation: a calendar followed day by day through 400 years and the days
  /// around them.
  @Test func everyDayOfFourCenturiesFollowsTheOneBefore() {
    var (year, month, day) = (1799, 1, 1)
    var dayNumber = CivilDate(dayNumber: -62_456).dayNumber
    // 1799-01-01 was a Tuesday of week 1.
    var weekday = 2
    var (weekYear, week) = (1799, 1)
    var mismatches: [String] = []
    while year < 2202 {
      let date = CivilDate(dayNumber: dayNumber)
      let isSame =
        date.year == year && date.month == month && date.day == day && date.dayNumber == dayNumber
        && date.isoWeek == (weekYear, week)
      if !isSame {
        mismatches.append("\(dayNumber): \(date) \(date.isoWeek) \(year)-\(month)-\(day)")
      }
      let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
      let isLeap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
      let length = month == 2 && isLeap ? 29 : lengths[month - 1]
      dayNumber += 1
      day += 1
      if day > length { (month, day) = (month + 1, 1) }
      if month > 12 { (year, month) = (year + 1, 1) }
      weekday = weekday % 7 + 1
      guard weekday == 1 else { continue }
      // Week 1 is the week that contains January 4.
      if (month == 12 && day >= 29) || (month == 1 && day <= 4) {
        (weekYear, week) = (month == 12 ? year + 1 : year, 1)
      } else {
        week += 1
      }
    }
    #expect(mismatches.isEmpty, "\(mismatches.count) days, first \(mismatches.first ?? "")")
  }

  @Test(arguments: [
    ("1970-01-01", 0), ("1969-12-31", -1), ("2000-02-29", 11_016), ("2000-03-01", 11_017),
    ("2026-03-14", 20_526), ("0001-01-01", -719_162), ("9999-12-31", 2_932_896),
    ("1600-02-29", -135_081),
    ("1900-03-01", -25_508), ("2100-02-28", 47_540), ("2100-03-01", 47_541),
  ]) func dayIsReadCountedAndWritten(_ text: String, _ days: Int) throws {
    let date = try CivilDate(parsing: text)
    expectEqual(date.dayNumber, days)
    expectEqual(CivilDate(dayNumber: days), date)
    expectEqual(date.description, text)
  }

  @Test(arguments: [
    "", "2026", "2026-3-14", "2026-03-1", "2026-03-140", "2026-03-14 ", " 2026-03-14", "2026/03/14",
    "20260314", "2026-02-29", "1900-02-29", "2100-02-29", "2026-04-31", "2026-06-31", "2026-09-31",
    "2026-11-31", "2026-01-32", "2026-13-01", "2026-00-01", "2026-01-00", "0000-01-01",
    "-001-01-01",
    "２０２６-03-14", "2026-03-1x", "today",
  ]) func textThatIsNoDayIsRefused(_ text: String) {
    #expect(throws: DateError.self) { try CivilDate(parsing: text) }
  }

  @Test(arguments: [
    (2000, true), (1900, false), (2100, false), (2024, true), (2023, false), (4, true), (400, true),
    (100, false), (9996, true),
  ]) func leapYearsFollowTheGregorianRule(_ year: Int, _ isLeap: Bool) {
    expectEqual(CivilDate.isLeap(year: year), isLeap)
    expectEqual((CivilDate(year: year, month: 2, day: 29) != nil), isLeap)
  }

  /// The calendar walked day by day, using only the lengths of months.
  @Test func everyDayFromTheFirstToTheLastYearFollowsTheOneBefore() {
    let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    var days = -719_162
    for year in 1...9999 {
      let isLeap = year % 400 == 0 || year % 4 == 0 && year % 100 != 0
      for month in 1...12 {
        let length = lengths[month - 1] + (month == 2 && isLeap ? 1 : 0)
        // The first and the last day of each month: between them only the day number increases.
        for day in [1, length] {
          let date = CivilDate(year: year, month: month, day: day)
          guard date?.dayNumber == days + day - 1,
            CivilDate(dayNumber: days + day - 1) == date
          else {
            Issue.record("\(year)-\(month)-\(day)")
            return
          }
        }
        #expect(CivilDate(year: year, month: month, day: length + 1) == nil)
        days += length
      }
    }
    expectEqual(days, 2_932_897)
  }

  @Test func daysAreOrderedAsTheyFollow() throws {
    let days = ["0001-12-31", "1999-12-31", "2000-01-01", "2000-01-31", "2000-02-01", "2001-01-01"]
    let dates = try days.map { try CivilDate(parsing: $0) }
    for (earlier, later) in zip(dates, dates.dropFirst()) {
      #expect(earlier < later)
      #expect(!(later < earlier))
    }
  }
}

/// Day numbers of years that `CivilDate` excludes, as data from elsewhere may have them.
@Suite struct DayNumberTests {
  @Test(arguments: [(0, 1, 1, -719_528), (0, 12, 31, -719_163), (0, 2, 29, -719_469)])
  func dayOfTheYearZeroIsCounted(year: Int, month: Int, day: Int, dayNumber: Int) {
    expectEqual(CivilDate.dayNumber(year: year, month: month, day: day), dayNumber)
    #expect(CivilDate(year: year, month: month, day: day) == nil)
  }
}

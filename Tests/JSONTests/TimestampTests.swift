// Instants and days: RFC 3339 in and out, the calendar's corners.
import Testing
import Time

@Suite struct TimestampTests {
  @Test(arguments: [
    ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00.001Z", 1), ("1969-12-31T23:59:59.999Z", -1),
    ("2026-01-02T03:04:05.678Z", 1_767_323_045_678),
    ("2018-02-26T10:35:47.834Z", 1_519_641_347_834),
    ("2000-02-29T12:00:00Z", 951_825_600_000), ("2038-01-19T03:14:08Z", 2_147_483_648_000),
    ("0001-01-01T00:00:00Z", -62_135_596_800_000),
    ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
    // One to three digits of a fraction.
    ("1970-01-01T00:00:00.5Z", 500), ("1970-01-01T00:00:00.05Z", 50),
    ("1970-01-01T00:00:00.005Z", 5),
    ("1970-01-01T00:00:00.10Z", 100),
    // Offsets, and the letters in lower case, as the RFC allows.
    ("1970-01-01T01:00:00+01:00", 0), ("1969-12-31T19:00:00-05:00", 0),
    ("1970-01-01T05:45:00+05:45", 0),
    ("1970-01-01T00:00:00+00:00", 0), ("1970-01-01T00:00:00-00:00", 0), ("1970-01-01t00:00:00z", 0),
    ("1970-01-01T23:59:00+23:59", 0), ("0001-01-01T01:00:00+01:00", -62_135_596_800_000),
    ("1970-01-01T00:00:00.250-00:30", 1_800_250),
  ]) func timeOfTheRFCIsRead(_ text: String, _ expectedMs: Int64) {
    #expect(Timestamp.parse(text) == expectedMs)
  }

  @Test(arguments: [
    "", "2026", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02T03:04Z", "2026-01-02 03:04:05Z",
    "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.1234Z", "2026-01-02T03:04:05,5Z",
    "2026-01-02T03:04:05ZZ",
    "2026-01-02T03:04:05Z ", " 2026-01-02T03:04:05Z", "2026-01-02T03:04:05+1",
    "2026-01-02T03:04:05+0100",
    "2026-01-02T03:04:05+01", "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05+01:60",
    "2026-01-02T24:00:00Z", "2026-01-02T03:60:00Z", "2026-01-02T03:04:60Z", "2016-12-31T23:59:60Z",
    "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z",
    "-026-01-02T03:04:05Z", "+026-01-02T03:04:05Z", "2026-1-2T3:4:5Z.......",
    "２０２６-01-02T03:04:05Z",
    "2026/01/02T03:04:05Z", "2026-01-02T03-04-05Z", "2026-01-02X03:04:05Z", "2026-01-02T03:04:05X",
    // Within the text's form, but outside the years 0001 to 9999.
    "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
  ]) func otherTextIsNoTime(_ text: String) {
    #expect(Timestamp.parse(text) == nil)
  }

  @Test func everyPrefixOfATimeIsNoTime() {
    for full in ["2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05+01:00"] {
      #expect(Timestamp.parse(full) != nil)
      for count in 0..<full.count { #expect(Timestamp.parse(String(full.prefix(count))) == nil) }
    }
  }

  @Test func anyByteInAnyPlaceIsReadWithoutHarm() {
    let full = Array("2026-01-02T03:04:05.678+01:00".utf8)
    for place in full.indices {
      for byte in UInt8(0)...255 {
        var changed = full
        changed[place] = byte
        let value = changed.withUnsafeBytes { Timestamp.parse($0) }
        if let value { #expect(Timestamp.range.contains(value)) }
      }
    }
  }

  @Test func writtenTimeIsReadBack() {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    let bounds = [Timestamp.range.lowerBound, Timestamp.range.upperBound, 0, -1, -86_400_000]
    let others = (0..<5000).map { _ in Int64.random(in: Timestamp.range, using: &random) }
    for epochMs in bounds + others {
      let text = Timestamp.text(epochMs)
      #expect(text.utf8.count == 24, "seed \(seed)")
      #expect(Timestamp.parse(text) == epochMs, "seed \(seed)")
    }
  }

  @Test func writtenTimesAreInTheOrderOfTheInstants() {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    let instants = (0..<1000).map { _ in Int64.random(in: Timestamp.range, using: &random) }
      .sorted()
    let texts = instants.map { Array(Timestamp.text($0).utf8) }
    for (earlier, later) in zip(texts, texts.dropFirst()) {
      #expect(!later.lexicographicallyPrecedes(earlier), "seed \(seed)")
    }
  }

  @Test(
    arguments: [
      (0, 10, 0), (9, 10, 0), (10, 10, 1), (-1, 10, -1), (-10, 10, -1), (-11, 10, -2),
      (Int64.min, 86_400_000, -106_751_991_168), (Int64.max, 86_400_000, 106_751_991_167),
    ] as [(Int64, Int64, Int64)]) func quotientIsRoundedDown(
      _ value: Int64, _ divisor: Int64, _ expected: Int64
    )
  {
    #expect(Timestamp.floorDivide(value, by: divisor) == expected)
  }

  @Test func clockStandsAfterThisTestWasWritten() {
    #expect(Timestamp.now() > 1_700_000_000_000)
    #expect(Timestamp.range.contains(Timestamp.now()))
  }
}

@Suite struct CivilDateTests {
  @Test(arguments: [
    ("1970-01-01", 0), ("1969-12-31", -1), ("2000-02-29", 11_016), ("2000-03-01", 11_017),
    ("2026-03-14", 20_526), ("0001-01-01", -719_162), ("9999-12-31", 2_932_896),
    ("1600-02-29", -135_081),
    ("1900-03-01", -25_508), ("2100-02-28", 47_540), ("2100-03-01", 47_541),
  ]) func dayIsReadCountedAndWritten(_ text: String, _ days: Int) throws {
    let date = try #require(CivilDate(text))
    #expect(date.daysSince1970 == days)
    #expect(CivilDate(daysSince1970: days) == date)
    #expect(date.text == text)
  }

  @Test(arguments: [
    "", "2026", "2026-3-14", "2026-03-1", "2026-03-140", "2026-03-14 ", " 2026-03-14", "2026/03/14",
    "20260314", "2026-02-29", "1900-02-29", "2100-02-29", "2026-04-31", "2026-06-31", "2026-09-31",
    "2026-11-31", "2026-01-32", "2026-13-01", "2026-00-01", "2026-01-00", "0000-01-01",
    "-001-01-01",
    "２０２６-03-14", "2026-03-1x", "today",
  ]) func textThatIsNoDayIsRefused(_ text: String) {
    #expect(CivilDate(text) == nil)
  }

  @Test(arguments: [
    (2000, true), (1900, false), (2100, false), (2024, true), (2023, false), (4, true), (400, true),
    (100, false), (9996, true),
  ]) func leapYearsFollowTheGregorianRule(_ year: Int, _ isLeap: Bool) {
    #expect(CivilDate.isLeap(year) == isLeap)
    #expect((CivilDate(year: year, month: 2, day: 29) != nil) == isLeap)
  }

  /// The calendar walked day by day, by nothing but the lengths of months.
  @Test func everyDayFromTheFirstToTheLastYearFollowsTheOneBefore() {
    let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    var days = -719_162
    for year in 1...9999 {
      let isLeap = year % 400 == 0 || year % 4 == 0 && year % 100 != 0
      for month in 1...12 {
        let length = lengths[month - 1] + (month == 2 && isLeap ? 1 : 0)
        // The first and the last day of each month: between them only the day's number counts on.
        for day in [1, length] {
          let date = CivilDate(year: year, month: month, day: day)
          guard date?.daysSince1970 == days + day - 1,
            CivilDate(daysSince1970: days + day - 1) == date
          else {
            Issue.record("\(year)-\(month)-\(day)")
            return
          }
        }
        #expect(CivilDate(year: year, month: month, day: length + 1) == nil)
        days += length
      }
    }
    #expect(days == 2_932_897)
  }

  @Test func daysAreOrderedAsTheyFollow() throws {
    let days = ["0001-12-31", "1999-12-31", "2000-01-01", "2000-01-31", "2000-02-01", "2001-01-01"]
    let dates = try days.map { try #require(CivilDate($0)) }
    for (earlier, later) in zip(dates, dates.dropFirst()) {
      #expect(earlier < later)
      #expect(!(later < earlier))
    }
  }
}

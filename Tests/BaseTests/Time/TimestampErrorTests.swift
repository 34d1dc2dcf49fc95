// Timestamps: why a text is refused, and every form in which an instant is written.
import Base
import TestSupport
import Testing

@Suite struct TimestampErrorTests {
  @Test(
    arguments: [
      ("1970-01-01T00:00:00Z", 0), ("2026-01-02T03:04:05.678Z", 1_767_323_045_678),
      ("2026-01-02t03:04:05.678z", 1_767_323_045_678),
      ("2026-01-02T03:04:05.6Z", 1_767_323_045_600),
      ("2026-01-02T03:04:05.67Z", 1_767_323_045_670), ("2026-01-02T03:04:05Z", 1_767_323_045_000),
      ("2026-01-02T05:04:05+02:00", 1_767_323_045_000),
      ("2026-01-01T21:34:05-05:30", 1_767_323_045_000),
      ("1970-01-01T00:00:00-00:00", 0), ("1969-12-31T23:59:59.999Z", -1),
      ("0001-01-01T00:00:00Z", -62_135_596_800_000),
      ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
      ("2018-02-26T10:35:47.834Z", 1_519_641_347_834),
      ("2024-02-29T23:59:59+23:59", 1_709_164_859_000),
    ] as [(String, Int64)])
  func timestampIsRead(text: String, ms: Int64) throws {
    try expectEqual(Timestamp.parse(text), ms)
  }

  @Test(
    arguments: [
      ("", .notTimestamp), ("2026-01-02", .notTimestamp), ("2026-01-02T03:04:05", .notTimestamp),
      ("2026-01-02 03:04:05Z", .notTimestamp), ("2026-01-02T03:04Z", .notTimestamp),
      ("2026-01-02T03:04:05,5Z", .notTimestamp), ("2026-01-02T03:04:05.Z", .notTimestamp),
      ("2026-01-02T03:04:05+0200", .notTimestamp), ("2026-01-02T03:04:05+02", .notTimestamp),
      ("2026-01-02T03:04:05Zx", .notTimestamp), ("2026-01-02T03:04:05.5", .notTimestamp),
      ("2026-01-02T03:04:05 +02:00", .notTimestamp), ("2026-01-02T03:04:05*02:00", .notTimestamp),
      ("2026-01-02T03:04:05.1234Z", .tooManyDecimals), ("2026-02-30T03:04:05Z", .noSuchDay),
      ("2026-13-02T03:04:05Z", .noSuchDay), ("0000-01-01T00:00:00Z", .noSuchDay),
      ("2026-01-02T24:00:00Z", .noSuchTime), ("2026-01-02T03:60:05Z", .noSuchTime),
      ("2026-01-02T03:04:61Z", .noSuchTime), ("2016-12-31T23:59:60Z", .leapSecond),
      ("2026-01-02T03:04:05+24:00", .noSuchTime), ("2026-01-02T03:04:05+02:60", .noSuchTime),
      ("0001-01-01T00:00:00+00:01", .outsideYears), ("9999-12-31T23:59:59-00:01", .outsideYears),
      ("２026-01-02T03:04:05Z", .notTimestamp), ("2026-01-02T-3:04:05Z", .notTimestamp),
    ] as [(String, TimestampError)])
  func otherTextIsRefused(text: String, error: TimestampError) {
    #expect(throws: error) { try Timestamp.parse(text) }
  }

  @Test(
    arguments: [
      ("2026-01-02T03:04:05.6789Z", 1_767_323_045_678),
      ("2026-01-02T03:04:05.092000Z", 1_767_323_045_092),
      ("2026-01-02T05:04:05.678999999+02:00", 1_767_323_045_678),
      ("2026-01-02T03:04:05.\(String(repeating: "9", count: 400))Z", 1_767_323_045_999),
      ("1969-12-31T23:59:59.9985Z", -2), ("2026-01-02T03:04:05.6Z", 1_767_323_045_600),
    ] as [(String, Int64)])
  func furtherDecimalsAreCutWhereThatIsAskedFor(text: String, ms: Int64) throws {
    try expectEqual(Timestamp.parse(text, cutsDecimals: true), ms)
  }

  @Test(arguments: [
    "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.1234", "2026-01-02T03:04:05.12x4Z",
  ])
  func whatIsNoFractionIsRefusedAlsoThere(text: String) {
    #expect(throws: TimestampError.notTimestamp) { try Timestamp.parse(text, cutsDecimals: true) }
  }

  @Test(
    arguments: [
      (.notTimestamp, "not a time of the form 2026-01-02T03:04:05.678Z (RFC 3339)"),
      (.tooManyDecimals, "more than three decimals of a second"),
      (.noSuchDay, "no such day in the years 0001 to 9999"),
      (.noSuchTime, "no such time of day or offset"),
      (.leapSecond, "a leap second, which timestamps do not support"),
      (.outsideYears, "outside the years 0001 to 9999 in UTC"),
    ] as [(TimestampError, String)])
  func errorSaysWhy(error: TimestampError, text: String) {
    expectEqual(error.description, text)
  }

  @Test(
    arguments: [
      (0, "1970-01-01T00:00:00.000Z", "1970-01-01 00:00:00 UTC"),
      (-1, "1969-12-31T23:59:59.999Z", "1969-12-31 23:59:59 UTC"),
      (1_519_641_347_834, "2018-02-26T10:35:47.834Z", "2018-02-26 10:35:47 UTC"),
      (-62_135_596_800_000, "0001-01-01T00:00:00.000Z", "0001-01-01 00:00:00 UTC"),
      (253_402_300_799_999, "9999-12-31T23:59:59.999Z", "9999-12-31 23:59:59 UTC"),
      (253_402_300_800_000, "+010000-01-01T00:00:00.000Z", "+010000-01-01 00:00:00 UTC"),
      (Int64.max, "+292278994-08-17T07:12:55.807Z", "+292278994-08-17 07:12:55 UTC"),
      (Int64.min, "-292275055-05-16T16:47:04.192Z", "-292275055-05-16 16:47:04 UTC"),
    ] as [(Int64, String, String)])
  func instantIsWritten(ms: Int64, text: String, appStoreText: String) {
    expectEqual(Timestamp.text(ms: ms), text)
    var bytes: [UInt8] = []
    Timestamp.appendAppStore(ms: ms, to: &bytes)
    expectEqual(String(decoding: bytes, as: UTF8.self), appStoreText)
  }

  @Test(arguments: [(0, 0), (-1, -1), (86_399_999, 0), (86_400_000, 1), (-86_400_001, -2)])
  func utcDayRoundsDown(ms: Int64, day: Int) {
    expectEqual(Timestamp.utcDay(ms: ms), day)
  }

  @Test(arguments: [UInt64(21), 22])
  func writtenTimestampReadsBack(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var previous: (ms: Int64, text: String)?
    for _ in 0..<5000 {
      let ms = Int64.random(in: Timestamp.rangeMs, using: &random)
      let text = Timestamp.text(ms: ms)
      try expectEqual(Timestamp.parse(text), ms, "seed \(seed): \(ms)")
      if let previous {
        expectEqual((previous.ms < ms), (previous.text < text), "seed \(seed): \(ms)")
      }
      previous = (ms, text)
    }
  }
}

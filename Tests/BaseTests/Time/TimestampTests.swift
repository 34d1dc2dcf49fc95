// Instants: RFC 3339 in and out, and the clock.
import Base
import TestSupport
import Testing

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
    expectEqual((try? Timestamp.parse(text)), expectedMs)
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
    // Well formed, but outside the years 0001 to 9999.
    "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
  ]) func otherTextIsNoTime(_ text: String) {
    #expect((try? Timestamp.parse(text)) == nil)
  }

  @Test func everyPrefixOfATimeIsNoTime() {
    for full in ["2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05+01:00"] {
      #expect((try? Timestamp.parse(full)) != nil)
      for count in 0..<full.count {
        #expect(throws: TimestampError.self) { try Timestamp.parse(String(full.prefix(count))) }
      }
    }
  }

  @Test func anyByteInAnyPlaceIsReadWithoutHarm() {
    let full = Array("2026-01-02T03:04:05.678+01:00".utf8)
    for place in full.indices {
      for byte in UInt8(0)...255 {
        var changed = full
        changed[place] = byte
        let value = changed.withUnsafeBytes { try? Timestamp.parse($0) }
        if let value { #expect(Timestamp.rangeMs.contains(value)) }
      }
    }
  }

  @Test func writtenTimeIsReadBack() {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    let bounds = [Timestamp.rangeMs.lowerBound, Timestamp.rangeMs.upperBound, 0, -1, -86_400_000]
    let others = (0..<5000).map { _ in Int64.random(in: Timestamp.rangeMs, using: &random) }
    for epochMs in bounds + others {
      let text = Timestamp.text(ms: epochMs)
      expectEqual(text.utf8.count, 24, "seed \(seed)")
      expectEqual((try? Timestamp.parse(text)), epochMs, "seed \(seed)")
    }
  }

  @Test func writtenTimesAreInTheOrderOfTheInstants() {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    let instants = (0..<1000).map { _ in Int64.random(in: Timestamp.rangeMs, using: &random) }
      .sorted()
    let texts = instants.map { Array(Timestamp.text(ms: $0).utf8) }
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
    expectEqual(floorDivide(value, divisor), expected)
    expectEqual(floorDivide(Int(value), Int(divisor)), Int(expected))
  }

  @Test func clockStandsAfterThisTestWasWritten() {
    #expect(Timestamp.now() > 1_700_000_000_000)
    #expect(Timestamp.rangeMs.contains(Timestamp.now()))
  }
}

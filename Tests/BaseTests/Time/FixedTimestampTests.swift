// The fixed form of event times: read, written, clamped and refused.
import Base
import TestSupport
import Testing

@Suite struct FixedTimestampTests {
  private func parsed(_ text: String) -> Int64? {
    Array(text.utf8).withUnsafeBytes { Timestamp.parseFixed($0) }
  }

  @Test(
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
      (951_868_799_999, "2000-02-29T23:59:59.999Z"),
      (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
      (1_767_323_045_678, "2026-01-02T03:04:05.678Z"),
      (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ] as [(Int64, String)])
  func timeIsWrittenAndReadAlike(ms: Int64, text: String) {
    expectEqual(Timestamp.fixedText(ms: ms), text)
    expectEqual(parsed(text), ms)
  }

  @Test(
    arguments: [
      (-1, "1970-01-01T00:00:00.000Z"), (Int64.min, "1970-01-01T00:00:00.000Z"),
      (253_402_300_800_000, "9999-12-31T23:59:59.999Z"), (.max, "9999-12-31T23:59:59.999Z"),
    ] as [(Int64, String)])
  func timeOutsideTheFixedRangeIsClamped(ms: Int64, text: String) {
    expectEqual(Timestamp.fixedText(ms: ms), text)
  }

  @Test(arguments: [
    "", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z", "2026-01-02t03:04:05.678Z",
    "2026-01-02T03:04:05.678z", "2026-01-02T03:04:05.678+", "2026-01-02 03:04:05.678Z",
    "2026-01-02T03:04:05,678Z", "2026-02-29T03:04:05.678Z", "2026-13-02T03:04:05.678Z",
    "2026-00-02T03:04:05.678Z", "2026-01-00T03:04:05.678Z", "2026-01-02T24:04:05.678Z",
    "2026-01-02T03:60:05.678Z", "2026-01-02T03:04:60.678Z", "2026-01-02T03:04:05.67xZ",
    "2026-01-02T03:04:05.6789Z", "2026-01-02T03:04:05.678ZZ", "-026-01-02T03:04:05.678Z",
  ])
  func otherTextIsRefused(text: String) {
    #expect(parsed(text) == nil)
  }

  @Test func writtenTimeIsReadBackAndIsTheGeneralForm() throws {
    let seed: UInt64 = 11
    var random = SeededRandom(seed: seed)
    for _ in 0..<2000 {
      let ms = Int64.random(in: Timestamp.fixedRangeMs, using: &random)
      let text = Timestamp.fixedText(ms: ms)
      expectEqual(parsed(text), ms, "seed \(seed): \(ms)")
      expectEqual(text, Timestamp.text(ms: ms), "seed \(seed): \(ms)")
    }
  }

  @Test func textReadInTheFixedFormIsReadAlikeInTheGeneralOne() {
    let full = Array("2026-01-02T03:04:05.678Z".utf8)
    for place in full.indices {
      for byte in UInt8.min ... .max {
        var changed = full
        changed[place] = byte
        changed.withUnsafeBytes { bytes in
          guard let ms = Timestamp.parseFixed(bytes) else { return }
          expectEqual((try? Timestamp.parse(bytes)), ms, "place \(place), byte \(byte)")
        }
      }
    }
  }
}

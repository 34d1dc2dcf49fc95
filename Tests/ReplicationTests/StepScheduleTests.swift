// When steps are due, and how long the replication thread waits: by the clock alone.
import Replication
import TestSupport
import Testing

@Suite struct StepScheduleTests {
  private static let limits = StepSchedule.Limits(
    delayMs: 1_000, pollMs: 100, waitingByteCount: 5_000, retryMsMax: 30_000)

  @Test(
    "Events are due once they have waited for the delay less one look, or are enough",
    arguments: [
      (waited: 0, bytes: 4_999, isDue: false), (899, 4_999, false), (900, 1, true),
      (0, 5_000, true), (Int64(1) << 40, 0, true),
    ])
  func frames(waitedMs: Int64, byteCount: Int, isDue: Bool) {
    var schedule = StepSchedule(Self.limits)
    schedule.observed(waitingEvents: true, atMs: 7)
    // A later look does not begin the wait again.
    schedule.observed(waitingEvents: true, atMs: 7 + waitedMs)
    expectEqual(schedule.framesAreDue(lagByteCount: byteCount, 7 + waitedMs), isDue)
  }

  @Test(
    "What waits after a step began to wait when it was seen; without waiting events nothing is due")
  func waitBeginsAgain() {
    var schedule = StepSchedule(Self.limits)
    schedule.observed(waitingEvents: true, atMs: 0)
    schedule.confirmed(waitingEvents: true, seenAtMs: 500)
    #expect(!schedule.framesAreDue(lagByteCount: 0, 1_399))
    #expect(schedule.framesAreDue(lagByteCount: 0, 1_400))
    schedule.observed(waitingEvents: false, atMs: 1_500)
    #expect(!schedule.framesAreDue(lagByteCount: 0, 9_000))
  }

  @Test("Content waits half the delay, from when it could first be named")
  func content() {
    var schedule = StepSchedule(Self.limits)
    for (hasContent, nowMs, isDue) in [
      (false, 0, false), (true, 100, false), (true, 599, false), (true, 600, true),
    ] {
      expectEqual(schedule.contentIsDue(hasContent: hasContent, Int64(nowMs)), isDue)
    }
    schedule.confirmed(waitingEvents: false, seenAtMs: 600)
    for (hasContent, nowMs) in [(true, 700), (false, 1_150), (true, 1_200)] {
      expectEqual(schedule.contentIsDue(hasContent: hasContent, Int64(nowMs)), false)
    }
  }

  @Test(
    "After a failure nothing is tried for a while, at most for the limit; success ends the pause")
  func failures() {
    var schedule = StepSchedule(Self.limits)
    expectEqual(schedule.pauseMs(0), 100)
    schedule.hasMore = true
    expectEqual(schedule.pauseMs(0), 0)
    schedule.failed(retryAfterMs: 86_400_000, 1_000)
    #expect(!schedule.hasMore && !schedule.mayTry(30_999) && schedule.mayTry(31_000))
    expectEqual(schedule.pauseMs(1_000), 100)
    expectEqual(schedule.pauseMs(30_999), 1)
    schedule.succeeded()
    #expect(schedule.mayTry(1_001))
    var last: Int64 = 0
    for _ in 0..<64 {
      schedule.failed(retryAfterMs: nil, last)
      var first = last
      while !schedule.mayTry(first) { first += 1 }
      #expect((1...30_000).contains(first - last))
      last = first
    }
  }

  @Test("The record is written once a second, or at once for whoever waits for all")
  func record() {
    var schedule = StepSchedule(Self.limits)
    #expect(!schedule.mustWriteRecord(isAwaited: true, 5_000))
    schedule.recordChanged()
    schedule.recordBegins(5_000)
    #expect(!schedule.mustWriteRecord(isAwaited: false, 5_999))
    #expect(schedule.mustWriteRecord(isAwaited: true, 5_999))
    #expect(schedule.mustWriteRecord(isAwaited: false, 6_000))
    schedule.recordIsWritten()
    #expect(!schedule.mustWriteRecord(isAwaited: true, 9_000))
  }
}

// When a pass is due.
import Base
import Erasure
import Server
import TestSupport
import Testing

@Suite("erasure schedule") struct ErasureScheduleTests {
  private static let three = TimeOfDay(hour: 3, minute: 0)
  private static let hourMs: Int64 = 3_600_000

  private static func request(_ at: String, urgent: Bool = false) -> ErasureRecord {
    ErasureRecord(
      .user("alice", appFamily: nil), reason: "user_request", requestedAtMs: ms(at),
      isUrgent: urgent)
  }

  private static func due(
    _ schedule: inout ErasureSchedule, _ open: [ErasureRecord], _ now: String,
    retention: Bool = false, at time: TimeOfDay = three
  ) -> ErasureSchedule.Pass? {
    schedule.due(open, hasRetention: retention, dailyAt: time, nowMs: ms(now))
  }

  @Test func aRequestWaitsForTheTimeOfTheDay() {
    var schedule = ErasureSchedule(startMs: ms("2026-01-05T10:00:00Z"))
    let open = [Self.request("2026-01-05T10:30:00Z")]
    #expect(Self.due(&schedule, open, "2026-01-05T23:00:00Z") == nil)
    #expect(Self.due(&schedule, open, "2026-01-06T02:59:59Z") == nil)
    expectEqual(Self.due(&schedule, open, "2026-01-06T03:00:00Z"), .daily)
    // A pass that failed stays due.
    expectEqual(Self.due(&schedule, open, "2026-01-06T03:01:00Z"), .daily)
    schedule.end(.daily, nowMs: ms("2026-01-06T03:01:00Z"))
    #expect(Self.due(&schedule, open, "2026-01-06T03:02:00Z") == nil)
    expectEqual(Self.due(&schedule, open, "2026-01-07T03:00:00Z"), .daily)
  }

  @Test func anUrgentRequestIsDueAtOnceAndDoesNotReplaceTheDailyPass() {
    var schedule = ErasureSchedule(startMs: ms("2026-01-05T10:00:00Z"))
    let open = [Self.request("2026-01-05T10:30:00Z", urgent: true)]
    expectEqual(Self.due(&schedule, open, "2026-01-05T10:30:01Z"), .requests)
    schedule.end(.requests, nowMs: ms("2026-01-05T10:30:02Z"))
    expectEqual(Self.due(&schedule, [], "2026-01-06T03:00:00Z", retention: true), .daily)
  }

  @Test func retentionAloneIsDueOnceADayAndNothingAloneIsNot() {
    var schedule = ErasureSchedule(startMs: ms("2026-01-05T10:00:00Z"))
    expectEqual(Self.due(&schedule, [], "2026-01-06T03:00:00Z", retention: true), .daily)
    schedule.end(.daily, nowMs: ms("2026-01-06T03:00:00Z"))
    #expect(Self.due(&schedule, [], "2026-01-07T03:00:00Z") == nil)
    // The daily pass has run: later requests wait for the next.
    let open = [Self.request("2026-01-07T03:00:30Z")]
    #expect(Self.due(&schedule, open, "2026-01-07T04:00:00Z") == nil)
  }

  @Test func aStartMakesUpForAPassThatWasMissedAndForNoOther() {
    var schedule = ErasureSchedule(startMs: ms("2026-01-05T10:00:00Z"))
    let old = [Self.request("2026-01-04T09:00:00Z")]
    expectEqual(Self.due(&schedule, old, "2026-01-05T10:00:01Z"), .daily)
    var other = ErasureSchedule(startMs: ms("2026-01-05T10:00:00Z"))
    let young = [Self.request("2026-01-04T11:00:00Z")]
    #expect(Self.due(&other, young, "2026-01-05T10:00:01Z") == nil)
    #expect(Self.due(&other, young, "2026-01-06T02:00:00Z") == nil)
  }

  @Test func aClockThatRanAheadPutsOffNothing() {
    var schedule = ErasureSchedule(startMs: ms("2030-01-01T00:00:00Z"))
    let open = [Self.request("2026-01-05T10:30:00Z")]
    #expect(Self.due(&schedule, open, "2026-01-05T11:00:00Z") == nil)
    expectEqual(Self.due(&schedule, open, "2026-01-06T03:00:00Z"), .daily)
  }

  @Test func anotherTimeOfTheDayTakesEffect() {
    var schedule = ErasureSchedule(startMs: ms("2026-01-05T10:00:00Z"))
    let open = [Self.request("2026-01-05T10:30:00Z")]
    #expect(Self.due(&schedule, open, "2026-01-05T15:00:00Z") == nil)
    let time = TimeOfDay(hour: 15, minute: 0)
    expectEqual(Self.due(&schedule, open, "2026-01-05T15:00:01Z", at: time), .daily)
  }
}

// Probes of a running workflow, and heartbeats.
import Foundation
import Ledger
import Server
import Synchronization
import TestSupport
import Testing

@Suite("liveness", .bounded) struct LivenessTests {
  @Test("a probe passes while uploads are answered, and while they are refused or fail")
  func passes() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    try fixture.upload("1")
    let probe = try fixture.workflow.beginProbe()
    #expect(eventually { probe.hasPassed() })
    fixture.foldFault.set(true)
    let second = try fixture.workflow.beginProbe()
    #expect(eventually { second.hasPassed() })
    try fixture.writer.refuseAppends(
      LedgerError(.inputOutput, operation: "write", object: "log", cause: "broken"))
    let third = try fixture.workflow.beginProbe()
    #expect(eventually { third.hasPassed() })
  }

  @Test("a probe does not pass while a fold hangs, and passes once it ends")
  func hangingFold() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    fixture.foldFault.hold()
    let probe = try fixture.workflow.beginProbe()
    #expect(eventually { fixture.foldFault.heldCount > 0 })
    usleep(50_000)
    #expect(!probe.hasPassed())
    fixture.foldFault.release()
    #expect(eventually { probe.hasPassed() })
  }

  @Test("after a stop no probe passes")
  func stopped() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    let workflow = try fixture.workflow
    fixture.stop()
    #expect(!workflow.beginProbe().hasPassed())
  }

  /// At a moment: whether the probe has passed, and whether a heartbeat is due.
  struct Turn: Sendable {
    let nowMs: Int64
    let hasPassed: Bool
    let isDue: Bool
  }

  @Test(
    "a heartbeat is due at half of the limit, and only when a probe has passed since",
    arguments: [
      (
        0,
        [
          Turn(nowMs: 29_999, hasPassed: true, isDue: false),
          Turn(nowMs: 30_000, hasPassed: true, isDue: true),
          Turn(nowMs: 30_100, hasPassed: true, isDue: false),
          Turn(nowMs: 60_000, hasPassed: false, isDue: false),
          Turn(nowMs: 60_100, hasPassed: false, isDue: false),
          Turn(nowMs: 75_000, hasPassed: true, isDue: true),
          Turn(nowMs: 104_999, hasPassed: true, isDue: false),
          Turn(nowMs: 105_000, hasPassed: true, isDue: true),
        ]
      ),
      // Appends may wait for the copy for 20 s.
      (
        20_000,
        [
          Turn(nowMs: 30_000, hasPassed: false, isDue: true),
          Turn(nowMs: 60_000, hasPassed: false, isDue: false),
          Turn(nowMs: 60_100, hasPassed: true, isDue: true),
          Turn(nowMs: 90_100, hasPassed: false, isDue: true),
          Turn(nowMs: 120_100, hasPassed: true, isDue: true),
        ]
      ),
    ])
  func schedule(patienceMs: Int, turns: [Turn]) {
    var heartbeat = Heartbeat(limitMs: 60_000, patienceMs: Int64(patienceMs), nowMs: 0)
    let hasPassed = Mutex(false)
    for turn in turns {
      hasPassed.withLock { $0 = turn.hasPassed }
      let isDue = heartbeat.isDue(nowMs: turn.nowMs) {
        LivenessProbe { hasPassed.withLock { $0 } }
      }
      expectEqual(isDue, turn.isDue, "at \(turn.nowMs) ms")
    }
  }
}

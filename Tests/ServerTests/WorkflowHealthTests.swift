// Whether an upload would be accepted: what makes the server unready, and what makes it ready
// again.
import Foundation
import Ledger
import Server
import TestSupport
import Testing

@Suite("workflow health", .bounded) struct WorkflowHealthTests {
  private static func full() -> LedgerError {
    LedgerError(
      .inputOutput, operation: "write", object: "log/tail", cause: "No space left on device")
  }

  @Test("while folds fail no upload is accepted, and readiness returns by itself")
  func folds() throws {
    let clock = MovableClock()
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))), clock: clock.clock)
    #expect(try fixture.workflow.refusal == nil)
    fixture.foldFault.set(true)
    try expectEqual(fixture.upload("1").status, 503)
    try expectEqual(fixture.workflow.refusal, .foldsFail)
    // The log is whole, and accepts events.
    #expect(try fixture.workflow.canAppend)
    fixture.foldFault.set(false)
    clock.set(aheadMs: 10_000)
    try waitUntil { try fixture.workflow.refusal == nil }
    try expectEqual(fixture.upload("1").status, 200)
  }

  @Test("a failed append of another command counts, and the end of a full disk is noticed")
  func foreign() throws {
    let clock = MovableClock()
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))), clock: clock.clock)
    try fixture.workflow.recordForeignAppend(Self.full())
    try expectEqual(fixture.workflow.refusal, .appendsFail)
    #expect(try !fixture.workflow.canAppend)
    #expect(fixture.notes.lines.contains { $0.contains("No space left on device") })
    clock.set(aheadMs: 10_000)
    try waitUntil { try fixture.workflow.refusal == nil }
    #expect(try fixture.workflow.canAppend)
    // What the probe wrote is removed.
    let names = try FileManager.default.contentsOfDirectory(
      atPath: fixture.directory.fullPath("log"))
    #expect(names.allSatisfy { !$0.hasPrefix("probe") })
  }

  @Test("a successful append of another command ends the alarm")
  func foreignSuccess() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    try fixture.workflow.recordForeignAppend(Self.full())
    try expectEqual(fixture.workflow.refusal, .appendsFail)
    try fixture.workflow.recordForeignAppend(nil)
    #expect(try fixture.workflow.refusal == nil)
  }

  @Test("a submission that is itself at fault does not count against the log")
  func invalid() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    try fixture.workflow.recordForeignAppend(
      LedgerError(.invalidInput, operation: "append", object: "event", cause: "too large"))
    #expect(try fixture.workflow.refusal == nil)
  }

  @Test("the maximum of uploads in progress makes the server busy, its end makes it stopping")
  func busy() throws {
    let appStore = ScriptedAppStore { _, _ in nil }
    let fixture = try WorkflowFixture(appStore, uploadsMax: 1)
    let answer = try fixture.send(WorkflowFixture.file("1"))
    try expectEqual(fixture.workflow.refusal, .busy)
    #expect(try fixture.workflow.canAppend)
    try waitUntil { appStore.heldCount == 1 }
    appStore.release(.reply(row("1")))
    try expectEqual(answer.wait().status, 200)
    #expect(try fixture.workflow.refusal == nil)
    try fixture.workflow.beginStopping()
    try expectEqual(fixture.workflow.refusal, .stopping)
  }

  @Test("a message has the level of its kind")
  func levels() throws {
    let fixture = try WorkflowFixture(.saying(.status(21004))) {
      $0.verification.retryFirstMs = 60_000
      $0.verification.retryCeilingMs = 60_000
    }
    try fixture.upload("1")
    expectEqual(fixture.notes.levels("app family"), [.warning])
    fixture.foldFault.set(true)
    try fixture.upload("2")
    expectEqual(fixture.notes.levels("bring the projections up to date"), [.error])
  }
}

// Questions about users in a workflow: answered as far as events are folded, with a limit of their own.
import Base
import Foundation
import Ledger
import Projections
import Server
import TestSupport
import Testing

@Suite("workflow: questions about users") struct WorkflowQuestionTests {
  private func ask(
    _ fixture: WorkflowFixture, _ user: String,
    _ question: OwnershipQuestion = .purchases(after: nil, limit: 10)
  ) throws -> ClientResponse {
    let answer = AwaitedResponse()
    try fixture.workflow.answer(
      UserQuestion(question, user: user, appFamily: fixture.family)
    ) { answer.set($0) }
    return try answer.wait()
  }

  @Test("a client that was answered about an upload finds its purchases, at the server's time")
  func uploads() throws {
    let clock = MovableClock()
    let fixture = try WorkflowFixture(
      .saying(.reply(row("1"), row("2", on: "2026-01-07"))), clock: clock.clock)
    try expectEqual(fixture.upload("1", user: "alice").status, 200)
    let answer = try ask(fixture, "alice")
    expectEqual(answer.status, 200)
    let ids = answer.body?["purchases"]?.arrayValue?.map { $0["transaction_id"]?.stringValue }
    expectEqual(ids, ["2", "1"])
    expectEqual(answer.body?["position"]?.integerValue, Int64(try fixture.events().count - 1))
    let before = try #require(answer.body?["at"]?.stringValue)
    clock.set(aheadMs: 3_600_000)
    let after = try #require(try ask(fixture, "alice").body?["at"]?.stringValue)
    #expect(try Timestamp.parse(after) - Timestamp.parse(before) >= 3_600_000)
    try expectEqual(ask(fixture, "bob").body?["purchases"], .array([]))
  }

  @Test("an entitlement ends by the server's clock")
  func clock() throws {
    let clock = MovableClock()
    let fixture = try WorkflowFixture(
      ScriptedAppStore { _, _ in
        let end = String(Int64(Date().timeIntervalSince1970 * 1000) + 3_600_000)
        return .reply(
          row(
            "1", line: "w1", product: "pro.month",
            ["expires_date_ms": JSONText(stringLiteral: end)]))
      }, entitlements: [Entitlement(name: "pro", patterns: ["pro.*"])], clock: clock.clock)
    try expectEqual(fixture.upload("1", user: "alice").status, 200)
    func pro() throws -> [String?]? {
      try ask(fixture, "alice", .entitlements).body?["entitlements"]?.arrayValue?.first.map {
        [$0["name"]?.stringValue, $0["reason"]?.stringValue]
      }
    }
    try expectEqual(pro(), ["pro", "subscription_active"])
    // Both responses are as docs/openapi.json describes them.
    let api = try OpenAPIDocument()
    for (question, schema) in [
      (OwnershipQuestion.entitlements, "EntitlementAnswer"),
      (.purchases(after: nil, limit: 1), "PurchaseList"),
    ] {
      let body = try #require(try ask(fixture, "alice", question).body)
      let described = try #require(api.document["components"]?["schemas"]?[schema])
      expectEqual(api.checker.problems(body, described), [])
    }
    clock.set(aheadMs: 3_700_000)
    try expectEqual(pro(), ["pro", "expired"])
  }

  @Test("questions over their limit are told to retry, and take no room from uploads")
  func limit() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))), questionsMax: 0)
    try expectEqual(ask(fixture, "alice").status, 503)
    let metrics = String(decoding: fixture.metrics.exposition(), as: UTF8.self)
    #expect(metrics.contains("receipt_ledger_questions_total{result=\"unavailable\"} 1\n"))
    #expect(metrics.contains("receipt_ledger_questions_total{result=\"answered\"} 0\n"))
    #expect(try fixture.workflow.refusal == nil)
    try expectEqual(fixture.upload("1", user: "alice").status, 200)
  }

  @Test("while no upload is accepted, questions are answered")
  func fullUploads() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))), uploadsMax: 0)
    try expectEqual(fixture.workflow.refusal, .busy)
    try expectEqual(ask(fixture, "alice").status, 200)
  }

  @Test("while folds fail, questions are answered as of the last fold")
  func foldsFail() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    try expectEqual(fixture.upload("1", user: "alice").status, 200)
    let before = try ask(fixture, "alice").body?["position"]
    fixture.foldFault.set(true)
    try expectEqual(fixture.upload("2", user: "alice").status, 503)
    let answer = try ask(fixture, "alice")
    #expect(answer.status == 200 && answer.body?["position"] == before)
  }
}

// R13 in the client API: what the response to an upload of signed transactions has about the subscription.
import Foundation
import TestSupport
import Testing

import Projections

@Suite struct SubscriptionResponseTests {
  private static let app = LiveProjectionsTests.app([])

  private static func month(
    _ number: String, from start: String, to end: String, type: JSONText = .absent
  ) -> JSONText {
    signed(
      number, of: "1", line: "w\(number)", product: "pass", on: start, signed: start,
      ["expiresDate": instant(end), "type": type])
  }

  private static func renewal(_ day: String, _ members: Members) -> TestEvent {
    .notification(
      "DID_CHANGE_RENEWAL_STATUS", uuid: day, nil,
      renewal: .object(
        [("originalTransactionId", "1"), ("signedDate", instant(day))]
          + members.map { ($0.key, $0.value) }))
  }

  /// `is_auto_renewing in_grace_period start…end` of each purchase of the upload at position 1.
  private static func answer(_ events: [TestEvent]) throws -> [String] {
    let fixture = try LedgerFixture()
    try fixture.append([app] + events)
    let live = try LiveProjections(fixture.directory)
    let purchases = try LiveProjectionsTests.purchases(try live.answer(upload: 1))
    func word(_ value: Any?) -> String { (value as? Bool).map { "\($0)" } ?? "-" }
    func day(_ value: Any?) -> String {
      ((value as? [String: Any])?["utc"] as? String).map { String($0.prefix(10)) } ?? "-"
    }
    return purchases.map {
      "\(word($0["is_auto_renewing"])) \(word($0["in_grace_period"])) "
        + "\(day($0["current_period_start_at"]))…\(day($0["current_period_end_at"]))"
    }
  }

  private static let upload = TestEvent.signedUpload(
    month("1", from: "2026-01-05", to: "2026-02-05"), user: "u1")

  @Test func withoutRenewalInformationNothingIsSaidOfIt() throws {
    try expectEqual(Self.answer([Self.upload]), ["- - 2026-01-05…2026-02-05"])
  }

  @Test func aNotificationTellsOfTheRenewal() throws {
    try expectEqual(
      Self.answer([Self.upload, Self.renewal("2026-01-20", ["autoRenewStatus": 0])]),
      ["false false 2026-01-05…2026-02-05"])
    try expectEqual(
      Self.answer([
        Self.upload, Self.renewal("2026-01-20", ["gracePeriodExpiresDate": instant("2026-02-20")]),
      ]), ["- false 2026-01-05…2026-02-05"], "its period is not over at that time")
    try expectEqual(
      Self.answer([
        Self.upload,
        Self.renewal(
          "2026-02-06",
          ["autoRenewStatus": 1, "gracePeriodExpiresDate": instant("2026-02-20")]),
      ]), ["true true 2026-01-05…2026-02-05"])
  }

  @Test func aLaterPeriodIsTheCurrentOne() throws {
    try expectEqual(
      Self.answer([
        Self.upload,
        .notification(
          "DID_RENEW", uuid: "n1", Self.month("2", from: "2026-02-05", to: "2026-03-05")),
      ]), ["- - 2026-02-05…2026-03-05"])
  }

  @Test func whatIsNoSubscriptionDoesNotRenew() throws {
    let upload = TestEvent.signedUpload(
      Self.month("1", from: "2026-01-05", to: "2026-02-05", type: "Non-Renewing Subscription"))
    try expectEqual(
      Self.answer([upload, Self.renewal("2026-01-20", ["autoRenewStatus": 1])]),
      ["false false 2026-01-05…2026-02-05"])
  }
}

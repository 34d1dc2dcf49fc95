// Numbers at the limits in what clients and the App Store send: each gets its response, and the server keeps running.
import AppStore
import Base
import HTTPClient
import Intake
import Ledger
import Projections
import Server
import TestSupport
import Testing

@Suite("The server: boundary numbers") struct ServerBoundaryNumberTests {
  private static let numbers = JSONText.boundaryNumbers.map(\.text)
  private let sign = SignedSample()
  private let sample = SignedSample()

  /// Whether a number, or a text of digits, is a time that signed objects may have.
  private static func isInstant(_ number: String) -> Bool {
    let digits = number.hasPrefix("\"-") ? "" : number.replacing("\"", with: "")
    return Int64(digits).map { Timestamp.rangeMs.contains($0) } ?? false
  }

  @Test(
    "signed transactions are accepted with any number but signedDate, and fold alike twice")
  func transactions() throws {
    let fixture = try WorkflowFixture.signed()
    let fields = [
      "transactionId", "originalTransactionId", "webOrderLineItemId", "productId", "purchaseDate",
      "originalPurchaseDate", "expiresDate", "revocationDate", "revocationReason",
      "revocationPercentage", "quantity", "price", "offerType", "isUpgraded", "refundDate",
      "refundAmount",
    ]
    var texts: [String] = []
    for field in fields {
      for number in Self.numbers {
        var changes: [String: String?] = ["type": "\"Auto-Renewable Subscription\""]
        if field.hasPrefix("refund") {
          changes["advancedCommerceInfo"] =
            #"{"items":[{"refunds":[{"refundDate":1,"refundAmount":1},{"\#(field)":\#(number)}]}]}"#
        } else {
          changes[field] = number
        }
        // Some refunds are partial, some are full.
        if texts.count % 2 == 0 { changes["revocationDate", default: "1780000000000"] = number }
        texts.append(try sign.transaction("\(texts.count)", changes))
      }
    }
    for first in stride(from: 0, to: texts.count, by: 100) {
      let list = Array(texts[first..<min(first + 100, texts.count)])
      let prices = Self.numbers.map {
        #"{"product_id":"coins","price":\#($0),"price_micros":\#($0)}"#
      }
      let answer = try fixture.sendTransactions(
        list, #""metadata":{"prices":[\#(prices.joined(separator: ","))]}"#)
      expectEqual(answer.status, 200, "\(answer)")
    }
    for number in Self.numbers {
      for environment in ["\"Production\"", "\"Xcode\""] {
        let text = try sign.transaction(
          "1", ["signedDate": number, "environment": environment])
        try expectEqual(fixture.sendTransactions([text]).status, 422)
      }
      let app = try sign.sign(
        #"{"receiptType":"Production","bundleId":"app","appAppleId":\#(number),"receiptCreationDate":1779000000000}"#
      )
      let answer = try fixture.sendTransactions(
        [try sign.transaction()], #""app_transaction":"\#(app)""#)
      expectEqual(answer.status, 200)
    }
    try expectEqual(fixture.waitingAfterRebuild(), 0)
  }

  @Test("notifications with any number are recorded, refused or requested again")
  func notifications() throws {
    let fixture = try WorkflowFixture.signed()
    for (index, number) in Self.numbers.enumerated() {
      let dated =
        #"{"notificationType":"TEST","notificationUUID":"\#(index)","signedDate":\#(number),"#
      for environment in ["Production", "Xcode"] {
        let text = try sign.sign(
          dated + #""data":{"bundleId":"app","environment":"\#(environment)"}}"#)
        switch try fixture.notify(text) {
        case .refused?: #expect(environment == "Xcode" || !Self.isInstant(number), "\(number)")
        case .retry?: #expect(environment == "Production" && Self.isInstant(number), "\(number)")
        case let answer: Issue.record("\(String(describing: answer)) for \(number)")
        }
      }
      let members = [
        "autoRenewStatus", "expirationIntent", "isInBillingRetryPeriod", "gracePeriodExpiresDate",
        "autoRenewProductId",
      ].map { "\"\($0)\":\(number)" }
      let renewal = try sign.sign(
        #"{"originalTransactionId":"\#(index)","environment":"Production","signedDate":\#(ms("2026-01-05")),\#(members.joined(separator: ","))}"#
      )
      let transaction = try sign.transaction(
        "\(index)", ["expiresDate": number, "webOrderLineItemId": "\"\(index)\""])
      let text = try sample.notification(
        uuid: SignedSample.uuid(index),
        [
          "appAppleId": number, "signedRenewalInfo": "\"\(renewal)\"",
          "signedTransactionInfo": "\"\(transaction)\"",
        ])
      try expectEqual(fixture.notify(text), .recorded)
    }
    try expectEqual(fixture.waitingAfterRebuild(), 0)
  }

  @Test("replies about receipts with any number are answered and folded")
  func replies() throws {
    let appStore = ScriptedAppStore.saying(.reply(row("1")))
    // On a busy machine, second attempts and the queue's pauses would interfere.
    let fixture = try WorkflowFixture(appStore) {
      $0.verification.retryFirstMs = 3_600_000
      $0.verification.retryCeilingMs = 3_600_000
    }
    let fields = [
      "quantity", "transaction_id", "original_transaction_id", "web_order_line_item_id",
      "purchase_date_ms", "original_purchase_date_ms", "expires_date_ms", "expires_date",
      "cancellation_date_ms", "cancellation_date", "cancellation_reason", "is_trial_period",
      "product_id",
    ]
    var rows = [row("1")]
    for field in fields {
      for number in JSONText.boundaryNumbers {
        rows.append(row("\(rows.count + 1)", line: "\(rows.count)", merging: [(field, number)]))
      }
    }
    let whole = reply(rows: rows).bytes
    appStore.follow { _, _ in .json(whole) }
    try expectEqual(fixture.upload("1").status, 200)
    for number in JSONText.boundaryNumbers {
      let renewal: JSONText = .array([
        .object([
          ("original_transaction_id", "1"), ("auto_renew_status", number),
          ("expiration_intent", number), ("grace_period_expires_date_ms", number),
        ])
      ])
      let dated = reply(
        row("1"), receipt: ["request_date_ms": number, "receipt_creation_date_ms": number],
        also: ["pending_renewal_info": renewal]
      ).bytes
      appStore.follow { _, _ in .json(dated) }
      try expectEqual(fixture.upload("1").status, 200)
      let unknown = reply(row("1"), status: number).bytes
      appStore.follow { _, _ in .json(unknown) }
      #expect([200, 206, 402].contains(try fixture.upload("1").status))
    }
    appStore.follow { _, _ in .json(whole) }
    try fixture.workflow.retryNow()
    _ = try fixture.waitingAfterRebuild()
  }
}

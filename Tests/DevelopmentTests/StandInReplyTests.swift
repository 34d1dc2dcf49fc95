// The stand-in's replies to receipts: every status that follows from one, every shape.
import AppStore
import AppStoreAuthority
import AppStoreStandIn
import Base
import TestSupport
import Testing

@Suite("Replies of the stand-in")
struct StandInReplyTests {
  @Test("a unified receipt's purchases come back, a subscription in latest_receipt_info too")
  func unified() throws {
    let shop = try StandInShop()
    let reply = try shop.reply(try shop.unified(StandInShop.coins, StandInShop.plus))
    #expect(reply.status == 0 && !reply.isLegacy)
    expectEqual(reply.rows, ["0:plus:2001", "1:coins:1001", "1:plus:2001"])
    expectEqual(reply.json["environment"], .string("Production"))
    expectEqual(reply.json["receipt"]?["bundle_id"], .string("com.example.game"))
    expectEqual(reply.json["pending_renewal_info"]?.arrayValue?.count, 1)
    #expect(reply.json["latest_receipt"]?.stringValue != nil)
  }

  @Test("without a subscription there is neither latest_receipt_info nor latest_receipt")
  func consumablesAlone() throws {
    let shop = try StandInShop()
    let reply = try shop.reply(try shop.unified(StandInShop.coins))
    expectEqual(reply.rows, ["1:coins:1001"])
    for key in ["latest_receipt_info", "latest_receipt", "pending_renewal_info"] {
      #expect(reply.json[key] == nil)
    }
    try expectEqual(shop.reply(try shop.unified()).rows, [])
  }

  @Test("integers are where the App Store has them, strings everywhere else")
  func fieldTypes() throws {
    let shop = try StandInShop()
    let reply = try shop.reply(try shop.unified(StandInShop.coins, StandInShop.plus)).json
    let receipt = try #require(reply["receipt"])
    for key in ["adam_id", "app_item_id", "version_external_identifier"] {
      #expect(receipt[key]?.integerValue != nil, "\(key)")
    }
    #expect(receipt["download_id"] == .null || receipt["download_id"]?.integerValue != nil)
    let rows =
      (receipt["in_app"]?.arrayValue ?? []) + (reply["latest_receipt_info"]?.arrayValue ?? [])
    expectEqual(rows.count, 3)
    for row in rows {
      guard case .object(let members) = row else {
        Issue.record("no object")
        continue
      }
      for member in members { #expect(member.value.stringValue != nil, "\(member.key)") }
    }
  }

  @Test("numbers and booleans written as such decode to the same purchases")
  func typed() throws {
    let shop = try StandInShop()
    let text = try shop.unified(StandInShop.coins, StandInShop.plus)
    let plain = try shop.reply(text)
    try shop.server.control(#"{"behaviour":"typed"}"#)
    let typed = try shop.reply(text)
    expectEqual(typed.rows, plain.rows)
    let row = typed.json["receipt"]?["in_app"]?.arrayValue?.first
    expectEqual(row?["quantity"], .number("1"))
    expectEqual(row?["is_trial_period"], .boolean(false))
  }

  @Test(
    "the environment refers to the other endpoint",
    arguments: [
      ("Production", "/verifyReceipt", 0), ("Production", "/sandbox/verifyReceipt", 21008),
      ("ProductionSandbox", "/verifyReceipt", 21007),
      ("ProductionSandbox", "/sandbox/verifyReceipt", 0),
    ] as [(String, String, Int64)])
  func environments(environment: String, path: String, status: Int64) throws {
    let shop = try StandInShop()
    let unified = try shop.unified(StandInShop.coins, environment: environment)
    try expectEqual(shop.reply(unified, to: path).status, status)
    let transaction = try shop.transaction(StandInShop.coins, environment: environment)
    try expectEqual(shop.reply(transaction, to: path).status, status)
  }

  @Test(
    "an invalid request, an invalid receipt and a stranger's receipt are refused with their status")
  func refusals() throws {
    let shop = try StandInShop()
    let stranger = try ReceiptSigner(authority: TestAuthority.stranger.get())
    let foreign = Base64.text(try stranger.unified(StandInShop.receipt([StandInShop.coins])))
    let foreignTransaction = Base64.text(
      try stranger.transaction(StandInShop.receipt([StandInShop.coins])))
    try expectEqual(shop.reply("").status, 21002)
    try expectEqual(shop.reply("AAAA").status, 21002)
    try expectEqual(shop.reply("not base64!").status, 21002)
    try expectEqual(shop.reply(foreign).status, 21003)
    try expectEqual(shop.reply(foreignTransaction).status, 21003)
    let client = try HTTPClient(port: shop.server.port)
    for (method, body, status) in [("POST", "x", 21000), ("POST", "[]", 21000), ("GET", "", 21000)]
    {
      let answer = try client.exchange(method, "/verifyReceipt", Array(body.utf8))
      expectEqual(answer?.text, "{\"status\":\(status)}")
    }
    try expectEqual(
      client.exchange("POST", "/verifyReceipt", Array("{}".utf8))?.text, #"{"status":21002}"#)
    try expectEqual(client.exchange("GET", "/elsewhere")?.status, 404)
  }

  @Test("a subscription needs the shared secret, other purchases do not")
  func sharedSecret() throws {
    let shop = try StandInShop(sharedSecret: "hush")
    let plus = try shop.unified(StandInShop.plus)
    try expectEqual(shop.reply(plus).status, 21004)
    try expectEqual(shop.reply(plus, password: "wrong").status, 21004)
    try expectEqual(shop.reply(plus, password: "hush").status, 0)
    try expectEqual(shop.reply(shop.unified(StandInShop.coins)).status, 0)
    try expectEqual(shop.reply(shop.transaction(StandInShop.plus)).status, 21004)
  }

  @Test("renewals appear as time passes, the newest first, under ids of their own")
  func renewals() throws {
    let shop = try StandInShop()
    let text = try shop.unified(StandInShop.past("3001"))
    let rows = try shop.reply(text).rows
    expectEqual(rows.count, 6)
    expectEqual(Set(rows.dropLast()).count, 5)
    #expect(rows.last == "1:daily:3001" && rows[4] == "0:daily:3001")
    try shop.server.control(#"{"advance_ms":86400000}"#)
    let later = try shop.reply(text)
    expectEqual(later.rows.count, 7)
    expectEqual(Array(later.rows.dropFirst()), rows)
    let latest = try Base64.decode(
      Array((later.json["latest_receipt"]?.stringValue ?? "").utf8))
    let receipt = try ReceiptFile.decode(latest)
    expectEqual(receipt.purchases.count, 2)
    try expectEqual(shop.authority.verifier().verify(latest, receipt: receipt), .valid)
  }

  @Test("renewals come on request, and end where the subscription lapsed")
  func renewalsOnRequest() throws {
    let shop = try StandInShop()
    let plus = try shop.unified(StandInShop.plus)
    try shop.server.control(#"{"renew":"2001","count":2}"#)
    try expectEqual(shop.reply(plus).rows.count, 4)
    let past = try shop.unified(StandInShop.past("3001"))
    try shop.server.control(#"{"lapse":"3001","cause":"billing"}"#)
    let reply = try shop.reply(past)
    expectEqual(reply.rows, ["0:daily:3001", "1:daily:3001"])
    let pending = reply.json["pending_renewal_info"]?.arrayValue?.first
    expectEqual(pending?["expiration_intent"], .string("2"))
    expectEqual(pending?["is_in_billing_retry_period"], .string("1"))
    #expect(pending?["grace_period_expires_date_ms"] != nil)
  }

  @Test("refunds and family sharing show on their transaction alone")
  func refundsAndSharing() throws {
    let shop = try StandInShop(controls: [
      #"[{"refund":"1001","reason":"1"},{"family_share":"2001"}]"#
    ])
    let text = try shop.unified(StandInShop.coins, StandInShop.plus)
    try expectEqual(shop.reply(text).marks, ["f", "+1", "f"])
    let transaction = try shop.transaction(StandInShop.coins)
    try expectEqual(shop.reply(transaction).marks, ["+1"])
    try shop.server.control(#"{"undo_refund":"1001"}"#)
    try expectEqual(shop.reply(text).marks, ["f", "", "f"])
  }

  @Test("a second device shows a renewal under another id with the same line item")
  func secondDevice() throws {
    let shop = try StandInShop(controls: [#"{"second_device":"2001"}"#])
    let reply = try shop.reply(try shop.unified(StandInShop.plus))
    let latest = reply.json["latest_receipt_info"]?.arrayValue ?? []
    expectEqual(latest.count, 2)
    expectEqual(Set(latest.compactMap { $0["transaction_id"]?.stringValue }).count, 2)
    expectEqual(Set(latest.compactMap { $0["web_order_line_item_id"]?.stringValue }), ["772001"])
  }

  @Test("consumables are in latest_receipt_info on request")
  func mixedLatest() throws {
    let shop = try StandInShop(controls: [#"{"latest_holds_consumables":true}"#])
    let rows = try shop.reply(try shop.unified(StandInShop.coins, StandInShop.plus)).rows
    expectEqual(Set(rows.prefix(2)), ["0:coins:1001", "0:plus:2001"])
    expectEqual(rows.count, 4)
  }

  @Test("a transaction receipt gets the flat shape: latest as a dictionary, no environment")
  func transaction() throws {
    let shop = try StandInShop()
    let coins = try shop.reply(try shop.transaction(StandInShop.coins))
    #expect(coins.status == 0 && coins.isLegacy)
    expectEqual(coins.rows, ["2:coins:1001"])
    let plus = try shop.reply(try shop.transaction(StandInShop.plus))
    expectEqual(plus.rows, ["0:plus:2001", "2:plus:2001"])
    #expect(plus.json["environment"] == nil)
    expectEqual(plus.json["auto_renew_status"], .number("1"))
    let latest = plus.json["latest_receipt_info"]
    expectEqual(latest?["bid"], .string("com.example.game"))
    expectEqual(latest?["expires_date"], .string(String(StandInShop.plus.expiresDateMs ?? 0)))
  }

  @Test("an expired transaction receipt gets 21006 and latest_expired_receipt_info")
  func expiredTransaction() throws {
    let shop = try StandInShop(controls: [#"{"renewals":false}"#])
    let reply = try shop.reply(try shop.transaction(StandInShop.past("3001")))
    #expect(reply.status == 21006 && reply.isLegacy)
    expectEqual(reply.rows, ["2:daily:3001", "3:daily:3001"])
    #expect(reply.json["latest_receipt_info"] == nil)
    expectEqual(reply.json["auto_renew_status"], .number("0"))
    try shop.server.control(#"{"renewals":true}"#)
    let renewed = try shop.reply(try shop.transaction(StandInShop.past("3001")))
    #expect(renewed.status == 0 && renewed.rows.count == 2)
    #expect(renewed.rows[0].hasPrefix("0:daily:") && renewed.rows[0] != "0:daily:3001")
  }

  @Test("every status of a call decodes, alone or with its advice about retrying")
  func statusesOnRequest() throws {
    let shop = try StandInShop()
    let text = try shop.unified(StandInShop.coins)
    let statuses = [0, 21010] + Array(21000...21009) + [21100, 21150, 21199]
    for status in statuses {
      try shop.server.control(#"{"behaviour":"status","status":\#(status),"count":1}"#)
      let reply = try shop.reply(text)
      #expect(reply.status == Int64(status) && reply.rows == [])
    }
    for (member, value) in [
      ("is_retryable", "false"), ("is-retryable", "0"), ("is_retryable", "\"true\""),
    ] {
      try shop.server.control(
        #"{"behaviour":"status","status":21100,"\#(member)":\#(value),"count":1}"#)
      try expectEqual(shop.post(text)?.text, #"{"status":21100,"\#(member)":\#(value)}"#)
    }
    try expectEqual(shop.reply(text).rows, ["1:coins:1001"])
  }
}

// Requested misbehaviour for a number of calls; the counters; control requests.
import AppStoreStandIn
import Base
import Dispatch
import Foundation
import Glibc
import TestSupport
import Testing

@Suite("Misbehaviour of the stand-in", .bounded)
struct StandInMisbehaviourTests {
  let shop: StandInShop
  let text: String

  init() throws {
    shop = try StandInShop()
    text = try shop.unified(StandInShop.coins)
  }

  func counts() throws -> JSONValue { try JSONValue(shop.server.counts) }

  @Test("it misbehaves for the requested number of calls, then not")
  func count() throws {
    try shop.server.control(#"{"behaviour":"http_status","status":502,"count":2}"#)
    var statuses: [Int?] = []
    for _ in 0..<3 { statuses.append(try shop.post(text)?.status) }
    expectEqual(statuses, [502, 502, 200])
  }

  @Test("it misbehaves at one endpoint alone, and for a share of the calls")
  func endpointAndShare() throws {
    try shop.server.control(#"{"behaviour":"not_json","endpoint":"sandbox"}"#)
    try expectEqual(shop.reply(text).status, 0)
    #expect(try shop.post(text, to: "/sandbox/verifyReceipt")?.text.hasPrefix("<html>") == true)
    try shop.server.control(#"[{"reset":true},{"behaviour":"empty","percent":30}]"#)
    var emptyCount = 0
    for _ in 0..<100 where try shop.post(text)?.body == [] { emptyCount += 1 }
    expectEqual(emptyCount, 30)
  }

  @Test("the connection ends before a byte, in the middle of the body, or after hanging")
  func cuts() throws {
    try shop.server.control(#"{"behaviour":"cut","count":1}"#)
    #expect(try shop.post(text) == nil)
    let whole = try #require(try shop.post(text)).body.count
    try shop.server.control(#"{"behaviour":"cut_body","count":1}"#)
    let cut = try #require(try shop.post(text))
    #expect(cut.isCut && cut.status == 200)
    #expect(cut.body.count > 0 && cut.body.count < whole)
    try shop.server.control(#"{"behaviour":"hang","ms":100,"count":1}"#)
    let start = ContinuousClock.now
    #expect(try shop.post(text) == nil)
    #expect(start.duration(to: .now) >= .milliseconds(100))
  }

  @Test("a delayed and a slow response come whole, not earlier than requested")
  func slow() throws {
    for name in ["delay", "slow_body"] {
      try shop.server.control(#"{"behaviour":"\#(name)","ms":120,"count":1}"#)
      let start = ContinuousClock.now
      try expectEqual(shop.reply(text).rows, ["1:coins:1001"])
      #expect(start.duration(to: .now) >= .milliseconds(100), "\(name)")
    }
  }

  @Test("a delay and another behaviour hold together")
  func delayAndStatus() throws {
    try shop.server.control(
      #"[{"behaviour":"delay","ms":60,"count":1},{"behaviour":"status","status":21005,"count":1}]"#)
    let start = ContinuousClock.now
    try expectEqual(shop.reply(text).status, 21005)
    #expect(start.duration(to: .now) >= .milliseconds(50))
    try expectEqual(shop.reply(text).status, 0)
  }

  @Test("a reset releases hanging calls")
  func resetReleases() throws {
    try shop.server.control(#"{"behaviour":"hang","ms":3600000}"#)
    let outcome = Monitor<Bool?>(nil)
    let ended = DispatchSemaphore(value: 0)
    // A thread of its own, since this one blocks and the tests' own threads are few.
    let thread = Thread { [shop, text] in
      do {
        let isCut = try shop.post(text) == nil
        outcome.withLock { $0 = isCut }
      } catch { Issue.record(error) }
      ended.signal()
    }
    thread.start()
    #expect(try eventually { try counts()["in_flight"]?.integerValue == 1 })
    try shop.server.control(#"{"reset":true}"#)
    expectEqual(ended.wait(timeout: .now() + .seconds(300)), .success)
    #expect(outcome.withLock { $0 } == true)
    try expectEqual(shop.reply(text).status, 0)
  }

  @Test("a huge response is JSON of exactly the requested size")
  func huge() throws {
    for bytes in [64, 65, 100_000, 3_000_001] {
      try shop.server.control(#"{"behaviour":"huge","bytes":\#(bytes),"count":1}"#)
      let answer = try #require(try shop.post(text))
      expectEqual(answer.body.count, bytes)
      try expectEqual(JSONValue(answer.body)["status"], .number("0"))
    }
  }

  @Test("wrong types are JSON without a readable status")
  func wrongTypes() throws {
    try shop.server.control(#"{"behaviour":"wrong_types"}"#)
    let reply = try shop.reply(text)
    #expect(reply.status == nil && reply.rows == [])
  }

  @Test("calls are counted by endpoint, status and behaviour; connections too")
  func counters() throws {
    try shop.server.control(#"{"behaviour":"cut","count":1}"#)
    _ = try shop.post(text)
    _ = try shop.reply(text)
    _ = try shop.reply(text, to: "/sandbox/verifyReceipt")
    let client = try HTTPClient(port: shop.server.port)
    let body = Array("{\"receipt-data\":\"\(text)\"}".utf8)
    for _ in 0..<3 { try expectEqual(client.exchange("POST", "/verifyReceipt", body)?.status, 200) }
    let answer = try #require(try client.exchange("GET", "/control"))
    let counts = try JSONValue(answer.body)
    let production = counts["calls"]?["production"]
    expectEqual(production?["total"], .number("5"))
    expectEqual(production?["by_status"], .object([.init("0", .number("4"))]))
    expectEqual(production?["misbehaved"], .object([.init("cut", .number("1"))]))
    expectEqual(counts["calls"]?["sandbox"]?["by_status"], .object([.init("21008", .number("1"))]))
    expectEqual(counts["connections"], .number("4"))
    expectEqual(counts["in_flight"], .number("0"))
  }

  @Test(
    "a control request without anything known is refused and changes nothing",
    arguments: [
      ("x", "not JSON"), ("[]x", "not JSON"),
      ("7", "not an object with an operation as its first member"),
      ("{}", "not an object with an operation as its first member"),
      (#"{"behavior":"cut"}"#, "there is no operation \"behavior\""),
      (#"{"behaviour":"explode"}"#, "there is no behaviour \"explode\""),
      (#"{"behaviour":"delay"}"#, "ms is missing"),
      (#"{"behaviour":"delay","ms":-1}"#, "ms must be an integer from 0 to 3600000"),
      (#"{"behaviour":"cut","count":0}"#, "count must be an integer from 1 to 1000000000"),
      (
        #"{"behaviour":"cut","endpoint":"both"}"#,
        "endpoint must be one of \"production\", \"sandbox\", \"server_api\""
      ),
      (
        #"{"notifications_url":"https://127.0.0.1/"}"#,
        "notifications_url is not an http:// address of this machine"
      ),
      (#"{"refund":7}"#, "refund must be text"),
      (#"{"refund":"1","reason":"2"}"#, "reason is neither 0 nor 1"),
      (#"[{"behaviour":"cut"},{"renewals":"no"}]"#, "renewals is neither true nor false"),
    ])
  func controlErrors(request: String, cause: String) throws {
    let client = try HTTPClient(port: shop.server.port)
    let answer = try #require(try client.exchange("POST", "/control", Array(request.utf8)))
    expectEqual(answer.status, 400)
    try expectEqual(JSONValue(answer.body)["error"], .string(cause))
    try expectEqual(counts()["rules"], .number("0"))
  }

  @Test("a request's body beyond the limit is refused")
  func tooLarge() throws {
    let client = try HTTPClient(port: shop.server.port)
    let body = [UInt8](repeating: 0x20, count: (8 << 20) + 1)
    try expectEqual(client.exchange("POST", "/verifyReceipt", body)?.status, 413)
  }
}

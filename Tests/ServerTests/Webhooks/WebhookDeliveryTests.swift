// Webhooks against a receiver on loopback: order, retries, restarts, ends, addresses.
import Base
import Foundation
import Ledger
import Projections
import Server
import TestSupport
import Testing

@Suite(.bounded) struct WebhookDeliveryTests {
  @Test("what follows the setting of the webhook is delivered, signed, with a stable id")
  func signed() throws {
    let fixture = try WebhookFixture()
    fixture.source.add("early")
    let receiver = try ScriptedServer.answering(204)
    let secret = WebhookSecret.make()
    fixture.start(receiver.url("hook"), secret: secret)
    try waitUntil { try fixture.state != nil }
    fixture.source.add("a")
    try waitUntil { fixture.count("delivered") == 1 }
    let request = try #require(receiver.requests.first)
    expectEqual(request.path, "/hook")
    let id = try #require(request.values("webhook-id").first)
    let seconds = try #require(request.values("webhook-timestamp").first.flatMap { Int64($0) })
    expectEqual(
      request.values("webhook-signature"),
      [secret.signature(id: id, timestampSeconds: seconds, body: request.body)])
    expectEqual(request.values("content-type"), ["application/json"])
    try expectEqual(receiver.deliveries.map(\.sale), ["a 1"])
    try expectEqual(receiver.deliveries.first?.body["type"]?.stringValue, "purchase")
  }

  @Test("an event that one app's webhook cannot read delays no other webhook")
  func unreadableForOne() throws {
    let fixture = try WebhookFixture()
    let other = "0e7c2f4a-9a0b-4c5d-8e6f-112233445577"
    let receiver = try ScriptedServer.answering(200)
    fixture.source.add("a")
    fixture.source.add("b", family: other)
    fixture.source.failReading(from: 0)
    try fixture.files.store(WebhookState(next: ChangePoint(0)), of: WebhookFixture.family)
    try fixture.files.store(WebhookState(next: ChangePoint(1)), of: other)
    var app = Configuration.App()
    app.webhook = Configuration.Webhook(url: receiver.url("other"), secret: .make(), previous: nil)
    fixture.configuration.apps[other] = app
    fixture.start(receiver.url("hook"))
    try waitUntil { fixture.count("delivered") == 1 }
    expectEqual(receiver.requests.map(\.path), ["/other"])
    fixture.source.failReading(from: nil)
    fixture.clock.set(aheadMs: 1_100)
    try waitUntil { fixture.count("delivered") == 2 }
    try expectEqual(receiver.deliveries.map(\.sale), ["b 1", "a 0"])
  }

  @Test("a failing sale delays only its own deliveries, which stay in order")
  func order() throws {
    let fixture = try WebhookFixture()
    let failures = Monitor(2)
    let receiver = try ScriptedServer { request in
      let isFirst = (try? ReceivedDelivery(request).sale) == "a 0"
      let fails =
        isFirst
        && failures.withLock { left in
          left -= 1
          return left >= 0
        }
      return .respond(fails ? 500 : 200, [])
    }
    fixture.start(receiver.url("hook"))
    try waitUntil { try fixture.state != nil }
    fixture.source.add("a", "a", "b", "b", "a")
    try waitUntil { fixture.count("delivered") == 2 && fixture.count("failed") == 1 }
    expectEqual(Set(try receiver.deliveries.map(\.sale)), ["a 0", "b 2", "b 3"])
    fixture.clock.set(aheadMs: 5_100)
    try waitUntil { fixture.count("failed") == 2 }
    fixture.clock.set(aheadMs: 5_100 + 300_100)
    try waitUntil { fixture.count("delivered") == 5 }
    let sales = try receiver.deliveries.map(\.sale)
    expectEqual(sales.filter { $0.hasPrefix("a") }, ["a 0", "a 0", "a 0", "a 1", "a 4"])
    expectEqual(sales.filter { $0.hasPrefix("b") }, ["b 2", "b 3"])
    let ids = try receiver.deliveries.filter { $0.sale == "a 0" }.map(\.id)
    expectEqual(Set(ids).count, 1)
  }

  @Test("after a restart, undelivered events are delivered, and delivered ones are not sent again")
  func restart() throws {
    let fixture = try WebhookFixture()
    let isUp = Monitor(false)
    let receiver = try ScriptedServer { request in
      let isA = (try? ReceivedDelivery(request).sale.hasPrefix("a")) ?? false
      return .respond(isUp.withLock { $0 } || !isA ? 200 : 503, [])
    }
    let secret = WebhookSecret.make()
    fixture.start(receiver.url("hook"), secret: secret)
    try waitUntil { try fixture.state != nil }
    fixture.source.add("a", "b", "a", "c")
    try waitUntil { fixture.count("delivered") == 2 && fixture.count("failed") == 1 }
    fixture.stop()
    let kept = try #require(try fixture.state)
    expectEqual(kept.waiting.map(\.point), [ChangePoint(0), ChangePoint(2)])
    #expect(kept.waiting.map(\.attempts) == [1, 0] && kept.next == ChangePoint(4))
    expectEqual(kept.lastFailure, "HTTP status 503")
    fixture.source.add("d")
    isUp.withLock { $0 = true }
    fixture.start(receiver.url("hook"), secret: secret)
    try waitUntil { fixture.count("delivered") == 3 }
    fixture.clock.set(aheadMs: 5_100)
    try waitUntil { fixture.count("delivered") == 5 }
    try expectEqual(
      receiver.deliveries.map(\.sale).sorted(), ["a 0", "a 0", "a 2", "b 1", "c 3", "d 4"])
  }

  @Test("a long outage of the receiver leaves a window of a thousand, in memory and on disk")
  func window() throws {
    let fixture = try WebhookFixture()
    let receiver = try ScriptedServer.answering(500)
    fixture.start(receiver.url("hook"))
    try waitUntil { try fixture.state != nil }
    for number in 0..<3000 { fixture.source.add("s\(number)") }
    try waitUntil { try fixture.state?.waiting.count == 1000 }
    try expectEqual(fixture.state?.next, ChangePoint(1000))
    #expect(receiver.mostActiveCount <= 16)
  }

  @Test("410 disables a webhook; another secret enables it, and it continues from the cursor")
  func gone() throws {
    let fixture = try WebhookFixture()
    let first = try ScriptedServer.answering(410)
    fixture.start(first.url("hook"))
    try waitUntil { try fixture.state != nil }
    fixture.source.add("a")
    try waitUntil { try fixture.state?.disabled != nil }
    fixture.source.add("b")
    try expectEqual(fixture.state?.disabled?.cause, .gone)
    #expect(fixture.notes.lines.contains { $0.contains("webhook_disabled") })
    let second = try ScriptedServer.answering(200)
    fixture.start(second.url("hook"))
    try waitUntil { fixture.count("delivered") == 2 }
    try expectEqual(second.deliveries.map(\.sale).sorted(), ["a 0", "b 1"])
    expectEqual(first.requests.count, 1)
    expectEqual(fixture.count("gone"), 1)
  }

  @Test("days without a success disable a webhook, even across a restart with the same secret")
  func disabled() throws {
    let fixture = try WebhookFixture()
    fixture.configuration.webhooks.disableAfterDays = 1
    let receiver = try ScriptedServer.answering(500)
    let secret = WebhookSecret.make()
    fixture.start(receiver.url("hook"), secret: secret)
    try waitUntil { try fixture.state != nil }
    fixture.source.add("a")
    try waitUntil { fixture.count("failed") == 1 }
    fixture.clock.set(aheadMs: 86_400_000)
    try waitUntil { try fixture.state?.disabled != nil }
    try expectEqual(fixture.state?.disabled?.cause, .failures)
    fixture.stop()
    fixture.source.add("b")
    fixture.start(receiver.url("hook"), secret: secret)
    try waitUntil {
      String(decoding: fixture.metrics.exposition(), as: UTF8.self)
        .contains("receipt_ledger_webhooks_disabled 1\n")
    }
    expectEqual(receiver.requests.count, 2)
  }

  @Test("a replay starts again at its position, and enables the webhook")
  func replay() throws {
    let fixture = try WebhookFixture()
    let status = Monitor(200)
    let receiver = try ScriptedServer { _ in .respond(status.withLock { $0 }, []) }
    fixture.start(receiver.url("hook"))
    try waitUntil { try fixture.state != nil }
    fixture.source.add("a", "b", "c")
    try waitUntil { fixture.count("delivered") == 3 }
    status.withLock { $0 = 410 }
    fixture.source.add("d")
    try waitUntil { try fixture.state?.disabled != nil }
    status.withLock { $0 = 200 }
    try fixture.files.put(.begin(from: 1), of: WebhookFixture.family)
    fixture.clock.set(aheadMs: 1_100)
    try waitUntil { fixture.count("delivered") == 6 }
    let sales = try receiver.deliveries.map(\.sale)
    expectEqual(sales.prefix(4).sorted(), ["a 0", "b 1", "c 2", "d 3"])
    expectEqual(sales.dropFirst(4).sorted(), ["b 1", "c 2", "d 3"])
    try waitUntil { try fixture.files.request(of: WebhookFixture.family) == nil }
  }

  @Test("a state that no server wrote stops the webhook until a replay, and is reported")
  func damaged() throws {
    let fixture = try WebhookFixture()
    try fixture.files.put(.begin(from: 0), of: "another")
    try Data("{}".utf8).write(
      to: URL(fileURLWithPath: fixture.directory.fullPath("webhooks/\(WebhookFixture.family).json"))
    )
    let receiver = try ScriptedServer.answering(200)
    fixture.source.add("a")
    fixture.start(receiver.url("hook"))
    try waitUntil {
      fixture.notes.lines.contains { $0.contains("it is not the state of a webhook") }
    }
    try fixture.files.put(.begin(from: 0), of: WebhookFixture.family)
    fixture.clock.set(aheadMs: 1_100)
    try waitUntil { fixture.count("delivered") == 1 }
  }

  @Test("a webhook without a cursor stops until a replay and is reported, whatever was configured")
  func withoutCursor() throws {
    let fixture = try WebhookFixture()
    fixture.writesCursor = false
    let receiver = try ScriptedServer.answering(200)
    fixture.source.add("a", "b")
    fixture.start(receiver.url("hook"))
    try waitUntil {
      fixture.notes.lines.contains {
        $0.contains("webhook_cursor_missing") && $0.contains("webhook replay --from")
      }
    }
    fixture.source.add("c")
    fixture.clock.set(aheadMs: 5_000)
    try waitUntil {
      String(decoding: fixture.metrics.exposition(), as: UTF8.self)
        .contains("receipt_ledger_webhooks_disabled 1\n")
    }
    #expect(try fixture.state == nil && receiver.requests.isEmpty)
    expectEqual(fixture.notes.lines.count { $0.contains("webhook_cursor_missing") }, 1)
    try fixture.files.put(.begin(from: 1), of: WebhookFixture.family)
    fixture.clock.set(aheadMs: 10_000)
    try waitUntil { fixture.count("delivered") == 2 }
    try expectEqual(receiver.deliveries.map(\.sale).sorted(), ["b 1", "c 2"])
  }

  @Test("a cursor beyond the log, as after a restore, is set to its end")
  func cursorBeyondTheLog() throws {
    let fixture = try WebhookFixture()
    let receiver = try ScriptedServer.answering(200)
    fixture.source.add("a", "b")
    var state = WebhookState(next: ChangePoint(9))
    state.waiting = [1, 7].map { .init(point: ChangePoint($0), attempts: 0, dueMs: 0) }
    try fixture.files.store(state, of: WebhookFixture.family)
    fixture.start(receiver.url("hook"))
    try waitUntil { fixture.count("delivered") == 1 }
    fixture.source.add("c")
    try waitUntil { fixture.count("delivered") == 2 }
    try expectEqual(receiver.deliveries.map(\.sale), ["b 1", "c 2"])
  }

  @Test("a disabled webhook is enabled unchanged, with its secret, at once or at the next start")
  func enabled() throws {
    let fixture = try WebhookFixture()
    let status = Monitor(410)
    let receiver = try ScriptedServer { _ in .respond(status.withLock { $0 }, []) }
    let secret = WebhookSecret.make()
    fixture.start(receiver.url("hook"), secret: secret)
    for restarts in [false, true] {
      status.withLock { $0 = 410 }
      fixture.source.add("a")
      try waitUntil { try fixture.state?.disabled != nil }
      status.withLock { $0 = 200 }
      if restarts { fixture.stop() }
      try fixture.files.put(.enable, of: WebhookFixture.family)
      if restarts { fixture.start(receiver.url("hook"), secret: secret) }
      fixture.clock.set(aheadMs: restarts ? 4_000 : 2_000)
      try waitUntil { fixture.count("delivered") == (restarts ? 2 : 1) }
      try waitUntil { try fixture.files.request(of: WebhookFixture.family) == nil }
      try waitUntil { try fixture.state.map { $0.disabled == nil && $0.waiting.isEmpty } == true }
    }
    try expectEqual(receiver.deliveries.map(\.sale), ["a 0", "a 0", "a 1", "a 1"])
    // Beginning again outranks continuing.
    try fixture.files.put(.begin(from: 1), of: "other")
    try fixture.files.put(.enable, of: "other")
    try expectEqual(fixture.files.request(of: "other"), .begin(from: 1))
  }

  @Test("a replaced secret signs too for a day")
  func twoSecrets() throws {
    let fixture = try WebhookFixture()
    let receiver = try ScriptedServer.answering(200)
    let (new, old) = (WebhookSecret.make(), WebhookSecret.make())
    fixture.start(
      receiver.url("hook"), secret: new,
      previous: .init(secret: old, untilMs: fixture.clock.clock.nowMs() + 3_600_000))
    fixture.source.add("a")
    try waitUntil { fixture.count("delivered") == 1 }
    fixture.clock.set(aheadMs: 3_600_000)
    fixture.source.add("b")
    try waitUntil { fixture.count("delivered") == 2 }
    for (request, secrets) in zip(receiver.requests, [[new, old], [new]]) {
      let id = try #require(request.values("webhook-id").first)
      let seconds = try #require(request.values("webhook-timestamp").first.flatMap { Int64($0) })
      let signatures = secrets.map {
        $0.signature(id: id, timestampSeconds: seconds, body: request.body)
      }
      expectEqual(request.values("webhook-signature"), [signatures.joined(separator: " ")])
    }
  }

  @Test("a redirect is a failure, and is not followed")
  func redirect() throws {
    let fixture = try WebhookFixture()
    let target = try ScriptedServer.answering(200)
    let receiver = try ScriptedServer { _ in
      .respond(302, [], headers: ["Location: \(target.url("elsewhere"))"])
    }
    fixture.start(receiver.url("hook"))
    try waitUntil { try fixture.state != nil }
    fixture.source.add("a")
    try waitUntil { fixture.count("failed") == 1 }
    #expect(target.requests.isEmpty)
    try waitUntil {
      try fixture.state?.lastFailure == "HTTP status 302: redirects are not followed"
    }
  }

  @Test("an endless response is not read, but its status counts")
  func flood() throws {
    let fixture = try WebhookFixture()
    let receiver = try ScriptedServer { _ in
      .flood(
        Array("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n".utf8),
        thenAgain: [UInt8](repeating: 0x41, count: 4096))
    }
    fixture.start(receiver.url("hook"))
    try waitUntil { try fixture.state != nil }
    fixture.source.add("a")
    try waitUntil { fixture.count("delivered") == 1 }
  }

  @Test(
    "an address that is not public is never connected to",
    arguments: [
      "https://10.0.0.1/", "https://169.254.169.254/latest", "https://0.0.0.0/", "https://127.1/",
      "https://2130706433/", "https://0x7f000001/", "https://[::ffff:10.0.0.1]/",
      "https://[fd00::1]/",
      "https://[fe80::1]/", "https://100.64.0.1/",
    ])
  func privateAddresses(url: String) throws {
    let webhook = Configuration.Webhook(url: url, secret: .make())
    let fixture = try WebhookFixture()
    let outcome = WebhookProbe.send(
      to: webhook, of: WebhookFixture.family, Configuration.Webhooks(), fixture.directory.identity)
    expectEqual(outcome, .failed("the host has an address that is not public"))
  }

  @Test("a private network that the configuration names is connected to")
  func namedNetwork() throws {
    // Nothing listens there, so the attempted connection fails.
    let (descriptor, port) = try ScriptedServer.listen(backlog: nil)
    defer { close(descriptor) }
    var settings = Configuration.Webhooks()
    settings.privateNetworks = ["127.0.0.1"]
    let fixture = try WebhookFixture()
    let outcome = WebhookProbe.send(
      to: Configuration.Webhook(url: "https://2130706433:\(port)/", secret: .make()),
      of: WebhookFixture.family, settings, fixture.directory.identity)
    expectEqual(outcome, .failed("cannot connect"))
  }

  @Test("messages to operators have no user, URL or secret")
  func secrets() throws {
    let fixture = try WebhookFixture()
    let receiver = try ScriptedServer.answering(500)
    let secret = WebhookSecret.make()
    fixture.start(receiver.url("hook-path"), secret: secret)
    try waitUntil { try fixture.state != nil }
    fixture.source.addSale("a", user: "anna@example.com")
    try waitUntil { fixture.count("failed") == 1 }
    fixture.stop()
    let kept = String(decoding: try #require(try fixture.state).bytes, as: UTF8.self)
    for text in fixture.notes.lines + [kept] {
      for hidden in ["anna", "hook-path", secret.text] { #expect(!text.contains(hidden)) }
    }
  }
}

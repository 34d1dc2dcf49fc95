// The path of the App Store's notifications: which requests it accepts, and the responses to the others.
import Base
import Foundation
import Intake
import Ledger
import Server
import TestSupport
import Testing

@Suite("HTTP: notifications", .bounded) struct HTTPNotificationTests {
  private func post(
    _ body: String = SignedSample.body("a.b.c"), path: String = "/app_store/notifications"
  ) -> String {
    [
      "POST \(path) HTTP/1.1", "Host: localhost", "Content-Type: application/json",
      "Content-Length: \(body.utf8.count)", "", body,
    ].joined(separator: "\r\n")
  }

  @Test("the payload reaches the service without a token, and each verdict has its status")
  func answers()
    throws
  {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let api = try OpenAPIDocument()
    let problem = FieldProblem("signedPayload", .bundleNotRegistered, "is about another app")
    let cases: [(NotificationResponse, Int, [String]?, String?)] = [
      (.recorded, 200, nil, nil), (.known, 200, nil, nil),
      (.refused([problem]), 422, ["bundle_not_registered"], nil),
      (.forged([problem]), 403, ["bundle_not_registered"], nil),
      (.retry(problem, afterSeconds: 600), 503, ["bundle_not_registered"], "600"),
      (.retry(nil, afterSeconds: 0), 503, ["unavailable"], "1"),
    ]
    for (answer, status, codes, retryAfter) in cases {
      fixture.service.setNotificationAnswer(answer)
      let got = try #require(try fixture.exchange(post()))
      expectEqual(got.status, status)
      expectEqual(got.errorCodes, codes)
      expectEqual(got.header("retry-after"), retryAfter)
      #expect(api.problems(got, to: "POST", "/app_store/notifications").isEmpty)
    }
    expectEqual(fixture.service.notifications.count, cases.count)
    expectEqual(fixture.service.notifications.first?.text, Array("a.b.c".utf8))
    // White space, escapes and unknown members change nothing.
    _ = try fixture.exchange(post(" { \"x\" : [ 1 ] ,\n \"signedPayload\" : \"\\u0061.b\" } "))
    expectEqual(fixture.service.notifications.last?.text, Array("a.b".utf8))
  }

  @Test("a request whose head or body makes it no notification does not reach the service")
  func bad() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let api = try OpenAPIDocument()
    let cases: [(String, Int, String)] = [
      (post(""), 400, "not_json"), (post("{"), 400, "not_json"),
      (post(#"{"signedPayload":"a","signedPayload":"b"}"#), 400, "not_json"),
      (post("[]"), 422, "wrong_type"), (post("{}"), 422, "missing"),
      (post(#"{"signedPayload":7}"#), 422, "wrong_type"),
      (post(#"{"signedPayload":null}"#), 422, "wrong_type"),
      (
        post(SignedSample.body(String(repeating: "a", count: 256 << 10))), 413, "body_too_large"
      ),
      (
        post().replacing("application/json", with: "text/plain"), 415, "unsupported_media_type"
      ),
      (
        post().replacing("notifications HTTP", with: "notifications?a HTTP"), 400,
        "unexpected_query"
      ),
      (post().replacing("POST", with: "PUT"), 405, "method_not_allowed"),
    ]
    for (request, status, code) in cases {
      let answer = try #require(try fixture.exchange(request))
      expectEqual(answer.status, status)
      expectEqual(answer.errorCodes, [code])
      let method = request.hasPrefix("PUT") ? "PUT" : "POST"
      #expect(api.problems(answer, to: method, "/app_store/notifications").isEmpty, "\(status)")
    }
    let largest = SignedSample.body(String(repeating: "a", count: (256 << 10) - 20))
    expectEqual(largest.utf8.count, 256 << 10)
    try expectEqual(fixture.exchange(post(largest))?.status, 200)
    expectEqual(fixture.service.notifications.count, 1)
    let counted = String(decoding: fixture.metrics.exposition(), as: UTF8.self)
    #expect(
      eventually {
        String(decoding: fixture.metrics.exposition(), as: UTF8.self).contains(
          "receipt_ledger_notifications_total{result=\"bad_request\"} \(cases.count)\n")
      }, "\(counted)")
  }

  @Test("a body that arrives too slowly gets 408, and takes nothing from others") func slow() throws
  {
    let fixture = try ServerFixture { $0.requestMs = 3_000 }
    defer { fixture.server.shutdown(graceMs: 0) }
    let slow = try fixture.connect()
    slow.send(String(post().dropLast(5)))
    try expectEqual(fixture.exchange(post())?.status, 200)
    try expectEqual(slow.answer()?.status, 408)
    expectEqual(fixture.service.notifications.count, 1)
  }

  @Test("bodies of uploads take no room from notifications, nor the reverse") func rooms() throws {
    let fixture = try ServerFixture {
      $0.bodiesBytesMax = 1000
      $0.notificationBodiesBytesMax = 1000
      $0.requestMs = 1_800_000
    }
    defer { fixture.server.shutdown(graceMs: 0) }
    let upload = try fixture.connect()
    let text = ServerFixture.upload(#"{"receipt":"\#(String(repeating: "A", count: 900))"}"#)
    upload.send(String(text.dropLast(1)))
    #expect(
      eventually {
        (try? fixture.exchange(
          ServerFixture.upload(#"{"receipt":"\#(String(repeating: "A", count: 900))"}"#)))??.status
          == 503
      })
    let body = SignedSample.body(String(repeating: "a", count: 900))
    try expectEqual(fixture.exchange(post(body))?.status, 200)
    let notification = try fixture.connect()
    notification.send(String(post(body).dropLast(1)))
    #expect(eventually { (try? fixture.exchange(post(body)))??.status == 503 })
    upload.send("}")
    try expectEqual(upload.answer()?.status, 200)
  }

  @Test("another path takes effect at once; the access log names the route alone") func path()
    throws
  {
    let lines = try ServerFixture.accessLog {
      $0.notificationsPath = "/hooks/one"
    } during: { fixture throws in
      try expectEqual(fixture.exchange(post())?.status, 404)
      try expectEqual(fixture.exchange(post(path: "/hooks/one"))?.status, 200)
      fixture.server.replaceNotificationsPath("/hooks/two")
      try expectEqual(fixture.exchange(post(path: "/hooks/one"))?.status, 404)
      try expectEqual(fixture.exchange(post(path: "/hooks/two"))?.status, 200)
    }
    expectEqual(
      lines.map { $0["route"]?.stringValue },
      [
        nil, "/app_store/notifications", nil, "/app_store/notifications",
      ])
    let text = lines.map { String(decoding: $0.bytes, as: UTF8.self) }.joined()
    #expect(!text.contains("hooks") && !text.contains("a.b.c"))
  }
}

// The paths for erasure requests: whose token they accept, which bodies, and what they tell about a request.
import Base
import Server
import TestSupport
import Testing

@Suite("HTTP: erasure requests", .bounded) struct HTTPErasureTests {
  private static let body = #"{"user_identifier":"alice","reason":"user_request"}"#

  private static func request(
    _ body: String, token: String? = ServerFixture.eraseToken
  ) -> String {
    ServerFixture.question(body, path: "/v1/erasures", token: token)
  }

  private static func get(_ id: String, token: String = ServerFixture.eraseToken) -> String {
    ServerFixture.get("/v1/erasures/\(id)", headers: ["Authorization: Bearer \(token)"])
  }

  @Test("the user, the reason and the token's app reach the service, and 202 names the request")
  func taken() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    for (members, isUrgent) in [
      ("", false), (#","urgent":null"#, false), (#","urgent":true"#, true),
    ] {
      let body = #"{"user_identifier":"alice","reason":"user_request"\#(members),"other":1}"#
      let answer = try fixture.exchange(Self.request(body))
      expectEqual(answer?.status, 202)
      expectEqual(answer?.header("location"), "/v1/erasures/\(ScriptedService.knownErasure)")
      expectEqual(answer?.json?["state"]?.stringValue, "waiting")
      let order = try #require(fixture.service.orders.last)
      #expect(order.user == "alice" && order.reason == "user_request")
      #expect(order.isUrgent == isUrgent && order.appFamily.description == ServerFixture.family)
    }
  }

  @Test("a request is looked up by its id, in one spelling")
  func lookedUp() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    try expectEqual(fixture.exchange(Self.get(ScriptedService.knownErasure))?.status, 200)
    for id in [
      "00000000-0000-4000-8000-00000000000f", ScriptedService.knownErasure.uppercased(), "x",
    ] {
      let answer = try fixture.exchange(Self.get(id))
      expectEqual(answer?.status, 404)
      expectEqual(answer?.errorCodes, ["not_found"])
    }
  }

  @Test(
    "a bad body gets all its problems reported, and nothing is requested",
    arguments: [
      (
        #"{}"#,
        [["user_identifier", "missing", "is missing"], ["reason", "missing", "is missing"]]
      ),
      (
        #"{"user_identifier":7,"reason":7,"urgent":"yes"}"#,
        [
          ["user_identifier", "wrong_type", "is not a string"],
          ["reason", "wrong_type", "is not a string"],
          ["urgent", "wrong_type", "is neither true nor false"],
        ]
      ),
      (#"[]"#, [["", "wrong_type", "is not a JSON object"]]),
    ])
  func problems(_ body: String, _ problems: [[String]]) throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let answer = try fixture.exchange(Self.request(body))
    expectEqual(answer?.status, 422)
    let told = answer?.json?["errors"]?.arrayValue?.map { error in
      ["field", "code", "message"].map { error[$0]?.stringValue ?? "" }
    }
    expectEqual(told, problems)
    #expect(fixture.service.orders.isEmpty)
  }

  @Test(
    "a reason that could name someone is refused",
    arguments: [
      "Alice", "alice@example.com", "user request", "1", String(repeating: "a", count: 33),
    ])
  func reasons(_ reason: String) throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let answer = try fixture.exchange(
      Self.request(#"{"user_identifier":"alice","reason":"\#(reason)"}"#))
    expectEqual(answer?.status, 422)
    expectEqual(answer?.errorCodes, ["invalid_value"])
    #expect(fixture.service.orders.isEmpty)
  }

  @Test("the paths accept tokens of one scope, and have the checks of the others")
  func head() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let space = String(repeating: " ", count: 16_384)
    let cases: [(String, Int, String)] = [
      (Self.request(Self.body, token: ServerFixture.readToken), 403, "insufficient_scope"),
      (Self.request(Self.body, token: ServerFixture.token), 403, "insufficient_scope"),
      (Self.request(Self.body, token: nil), 401, "unauthorized"),
      (Self.request(""), 400, "not_json"), (Self.request("{"), 400, "not_json"),
      (Self.request(Self.body + space), 413, "body_too_large"),
      (
        ServerFixture.get(
          "/v1/erasures", headers: ["Authorization: Bearer \(ServerFixture.eraseToken)"]), 405,
        "method_not_allowed"
      ),
      (
        Self.get(ScriptedService.knownErasure, token: ServerFixture.readToken), 403,
        "insufficient_scope"
      ),
      (
        ServerFixture.question(
          #"{"user_identifier":"a"}"#, token: ServerFixture.eraseToken), 403, "insufficient_scope"
      ),
      (
        Self.request(Self.body).replacing(" HTTP/1.1", with: "?user=a HTTP/1.1"), 400,
        "unexpected_query"
      ),
    ]
    for (request, status, code) in cases {
      let answer = try fixture.exchange(request)
      expectEqual(answer?.status, status)
      expectEqual(answer?.errorCodes, [code])
    }
    #expect(fixture.service.orders.isEmpty)
  }
}

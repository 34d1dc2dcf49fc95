// The paths for a company's own back ends: whose token they accept, and which bodies.
import Base
import Projections
import Server
import TestSupport
import Testing

@Suite("HTTP: questions about users", .bounded) struct HTTPQuestionTests {
  private static let cursor = "00000193a1b2c3d40000000000000007"

  @Test("the user, the place in the list and the token's app reach the service")
  func purchases() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let answer = try fixture.exchange(
      ServerFixture.question(
        #"{"user_identifier":"alice","after":"\#(Self.cursor)","limit":7,"other":[]}"#))
    expectEqual(answer?.status, 200)
    expectEqual(answer?.header("cache-control"), "no-store")
    let asked = try #require(fixture.service.questions.first)
    #expect(asked.user == "alice" && asked.appFamily.description == ServerFixture.family)
    guard case .purchases(let after, let limit) = asked.question else {
      Issue.record("another question")
      return
    }
    #expect(after?.text == Self.cursor && limit == 7)
  }

  @Test("an entitlement is asked for by the user alone")
  func entitlements() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let answer = try fixture.exchange(
      ServerFixture.question(#"{"user_identifier":"alice"}"#, path: "/v1/entitlements"))
    expectEqual(answer?.status, 200)
    let asked = try #require(fixture.service.questions.first)
    #expect(asked.user == "alice" && asked.appFamily.description == ServerFixture.family)
    guard case .entitlements = asked.question else {
      Issue.record("another question")
      return
    }
  }

  @Test("a list starts at its beginning and has 20 purchases unless the request says otherwise")
  func defaults() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    for body in [
      #"{"user_identifier":"a"}"#, #"{"user_identifier":"a","after":null,"limit":null}"#,
    ] {
      try expectEqual(fixture.exchange(ServerFixture.question(body))?.status, 200)
    }
    for asked in fixture.service.questions {
      guard case .purchases(nil, 20) = asked.question else {
        Issue.record("\(asked.question)")
        continue
      }
    }
    expectEqual(fixture.service.questions.count, 2)
  }

  private static let long = String(repeating: "é", count: 256)

  @Test(
    "a bad body gets every problem reported",
    arguments: [
      (#"{}"#, [["user_identifier", "missing", "is missing"]]),
      (#"{"user_identifier":null}"#, [["user_identifier", "missing", "is missing"]]),
      (#"{"user_identifier":""}"#, [["user_identifier", "missing", "is missing"]]),
      (#"{"user_identifier":7}"#, [["user_identifier", "wrong_type", "is not a string"]]),
      (
        #"{"user_identifier":"\#(long)"}"#,
        [["user_identifier", "too_long", "is longer than 255 characters"]]
      ),
      (
        #"{"user_identifier":"a","after":"x"}"#,
        [["after", "invalid_value", "is not the `next` of a response"]]
      ),
      (#"{"user_identifier":"a","after":1}"#, [["after", "wrong_type", "is not a string"]]),
      (
        #"{"user_identifier":"a","limit":0}"#,
        [["limit", "invalid_value", "is not an integer from 1 to 100"]]
      ),
      (
        #"{"user_identifier":"a","limit":101}"#,
        [["limit", "invalid_value", "is not an integer from 1 to 100"]]
      ),
      (
        #"{"user_identifier":"a","limit":1.0}"#,
        [["limit", "invalid_value", "is not an integer from 1 to 100"]]
      ),
      (#"{"user_identifier":"a","limit":"5"}"#, [["limit", "wrong_type", "is not a number"]]),
      (#"[]"#, [["", "wrong_type", "is not a JSON object"]]),
      (
        #"{"after":1,"limit":0}"#,
        [
          ["user_identifier", "missing", "is missing"], ["after", "wrong_type", "is not a string"],
          ["limit", "invalid_value", "is not an integer from 1 to 100"],
        ]
      ),
    ])
  func problems(_ body: String, _ problems: [[String]]) throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let answer = try fixture.exchange(ServerFixture.question(body))
    expectEqual(answer?.status, 422)
    let told = answer?.json?["errors"]?.arrayValue?.map { error in
      ["field", "code", "message"].map { error[$0]?.stringValue ?? "" }
    }
    expectEqual(told, problems)
    #expect(fixture.service.questions.isEmpty)
  }

  @Test("255 characters of any size are a valid user")
  func longUser() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let user = String(repeating: "\u{1F600}", count: 255)
    let answer = try fixture.exchange(
      ServerFixture.question(#"{"user_identifier":"\#(user)"}"#))
    expectEqual(answer?.status, 200)
    expectEqual(fixture.service.questions.map(\.user), [user])
  }

  private static let body = #"{"user_identifier":"a"}"#

  @Test(
    "each path accepts tokens of one scope, and has the checks of the others",
    arguments: ["/v1/purchases", "/v1/entitlements"])
  func head(_ path: String) throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    func ask(_ body: String, token: String? = ServerFixture.readToken) -> String {
      ServerFixture.question(body, path: path, token: token)
    }
    let cases: [(String, Int, String)] = [
      (ask(Self.body, token: ServerFixture.token), 403, "insufficient_scope"),
      (ask(Self.body, token: nil), 401, "unauthorized"),
      (ask(Self.body, token: "other"), 401, "unauthorized"),
      (ask(""), 400, "not_json"), (ask("{"), 400, "not_json"),
      (ask(#"{"user_identifier":"a","user_identifier":"b"}"#), 400, "not_json"),
      (
        ask(#"{"user_identifier":"a","more":"\#(String(repeating: " ", count: 16384))"}"#), 413,
        "body_too_large"
      ),
      (ServerFixture.get(path), 405, "method_not_allowed"),
      (
        ServerFixture.get(
          path + "/alice", headers: ["Authorization: Bearer \(ServerFixture.readToken)"]), 404,
        "not_found"
      ),
      (ask(Self.body).replacing(" HTTP/1.1", with: "?user=a HTTP/1.1"), 400, "unexpected_query"),
      (
        ask(Self.body).replacing("application/json", with: "text/plain"), 415,
        "unsupported_media_type"
      ),
    ]
    for (request, status, code) in cases {
      let answer = try fixture.exchange(request)
      expectEqual(answer?.status, status)
      expectEqual(answer?.errorCodes, [code])
    }
    #expect(fixture.service.questions.isEmpty)
    let refused = try fixture.exchange(ask(Self.body, token: ServerFixture.token))
    expectEqual(
      refused?.header("www-authenticate"),
      #"Bearer realm="receipt-ledger", error="insufficient_scope", scope="read""#)
  }
}

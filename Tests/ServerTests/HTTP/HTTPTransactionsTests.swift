// The path for signed transactions: which bodies it accepts, and the responses to the others.
import AppStore
import AppStoreAuthority
import Base
import HTTPClient
import Intake
import Server
import TestSupport
import Testing

@Suite("HTTP: signed transactions", .bounded) struct HTTPTransactionsTests {
  private let sign = SignedSample()

  /// Field, code and message of each problem; nil for another body.
  private func problems(_ answer: WireResponse?) -> [[String]]? {
    answer?.json?["errors"]?.arrayValue?.map { error in
      ["field", "code", "message"].map { error[$0]?.stringValue ?? "" }
    }
  }

  @Test("a list, its fields, the token and the address reach the service") func fields() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let (one, two) = (try sign.transaction(), try sign.transaction("2"))
    let answer = try fixture.exchange(
      ServerFixture.transactions(
        SignedSample.body(
          [one, two], #""app_transaction":"\#(one)","country_code":"de","other":7"#)))
    expectEqual(answer?.status, 200)
    let upload = try #require(fixture.service.transactions.first)
    expectEqual(upload.appFamily.description, ServerFixture.family)
    expectEqual(upload.peerAddress, "127.0.0.1")
    expectEqual(upload.fields.transactions.map(\.text), [one, two].map { Array($0.utf8) })
    expectEqual(upload.fields.appTransaction?.text, Array(one.utf8))
    expectEqual(upload.fields.client.countryCode, "DE")
  }

  @Test("a hundred transactions are accepted") func hundred() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let list = Array(repeating: try sign.transaction(), count: 100)
    try expectEqual(
      fixture.exchange(ServerFixture.transactions(SignedSample.body(list)))?.status, 200)
    expectEqual(fixture.service.transactions.first?.fields.transactions.count, 100)
  }

  @Test("a bad body gets every problem reported, and does not reach the service") func bad() throws
  {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let good = try sign.transaction()
    let parts = good.split(separator: ".").map(String.init)
    func form(_ change: (inout SignedObjectForm) -> Void) throws -> String {
      var form = SignedObjectForm()
      change(&form)
      return try sign.sign(sign.payload(), form)
    }
    let chain = try SignedSample.authority.get().chain
    let malformed: [(String, String)] = [
      (parts[0] + "." + parts[1], "not_three_parts"), (good + ".AAAA", "not_three_parts"),
      ("", "not_three_parts"), (good + "=", "not_base64url"), (good + " ", "not_base64url"),
      (try form { $0.algorithm = "none" }, "wrong_algorithm"),
      (try form { $0.algorithm = "HS256" }, "wrong_algorithm"),
      (try form { $0.algorithm = "RS256" }, "wrong_algorithm"),
      (try form { $0.algorithm = "ES384" }, "wrong_algorithm"),
      (try form { $0.algorithm = nil }, "wrong_algorithm"),
      (try form { $0.certificates = [] }, "missing_certificates"),
      (try form { $0.certificates = chain + chain }, "unexpected_certificates"),
      (try form { $0.signature = .der }, "malformed_signature"),
      (try form { $0.header = Array("[]".utf8) }, "header_not_json"),
      (try sign.sign("7"), "payload_not_json"),
      (try sign.sign(#"{"a":1,"a":1}"#), "payload_not_json"),
      (String(repeating: "A", count: 1 << 20), "too_large"),
    ]
    for (text, word) in malformed {
      let answer = try fixture.exchange(
        ServerFixture.transactions(SignedSample.body([good, text])))
      expectEqual(answer?.status, 422)
      let problem = try #require(problems(answer)?.first)
      expectEqual(problems(answer)?.count, 1)
      expectEqual(problem[0], "signed_transactions[1]")
      expectEqual(problem[1], "signed_object_malformed")
      #expect(problem[2].hasSuffix("(\(word))"), "\(problem[2])")
      let shown = String(decoding: answer?.body ?? [], as: UTF8.self)
      #expect(!shown.contains(parts[1]))
    }
    let bodies: [(String, [[String]])] = [
      ("{}", [["signed_transactions", "missing", "is missing"]]),
      (#"{"signed_transactions":null}"#, [["signed_transactions", "missing", "is missing"]]),
      (#"{"signed_transactions":[]}"#, [["signed_transactions", "missing", "is empty"]]),
      (
        #"{"signed_transactions":"\#(good)"}"#,
        [["signed_transactions", "wrong_type", "is not an array"]]
      ),
      (
        SignedSample.body(Array(repeating: good, count: 101)),
        [["signed_transactions", "too_large", "has more than 100 entries"]]
      ),
      (
        #"{"signed_transactions":[7,null],"app_transaction":[],"country_code":"ZZ","metadata":7}"#,
        [
          ["signed_transactions[0]", "wrong_type", "is not a string"],
          ["signed_transactions[1]", "wrong_type", "is not a string"],
          ["app_transaction", "wrong_type", "is not a string"],
          ["country_code", "unknown_country", "is neither an ISO 3166-1 alpha-2 code nor XK"],
          ["metadata", "wrong_type", "is not an object"],
        ]
      ),
      ("[]", [["", "wrong_type", "is not a JSON object"]]),
    ]
    for (body, expected) in bodies {
      let answer = try fixture.exchange(ServerFixture.transactions(body))
      expectEqual(answer?.status, 422)
      expectEqual(problems(answer), expected)
    }
    #expect(fixture.service.transactions.isEmpty)
  }

  @Test("a signed transaction in place of a receipt is pointed to the right path") func inReceipt()
    throws
  {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let answer = try fixture.exchange(
      ServerFixture.upload(#"{"receipt":"\#(try sign.transaction())"}"#))
    expectEqual(answer?.status, 422)
    expectEqual(
      problems(answer),
      [
        [
          "receipt", "signed_object",
          "is a signed object (JWS), not a receipt: send it to /client/app_store/transactions, in "
            + "signed_transactions",
        ]
      ])
  }

  @Test("the path has the checks of the receipts' path") func head() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let body = SignedSample.body([try sign.transaction()])
    let cases: [(String, Int, String)] = [
      (ServerFixture.transactions(body, token: nil), 401, "unauthorized"),
      (ServerFixture.transactions(body, token: "other"), 401, "unauthorized"),
      (ServerFixture.transactions(""), 400, "not_json"),
      (ServerFixture.transactions("{"), 400, "not_json"),
      (ServerFixture.get("/client/app_store/transactions"), 405, "method_not_allowed"),
      (
        ServerFixture.transactions(body).replacing(
          "transactions HTTP", with: "transactions/1 HTTP"),
        404, "not_found"
      ),
      (
        ServerFixture.transactions(body).replacing(
          "transactions HTTP", with: "transactions?a HTTP"),
        400, "unexpected_query"
      ),
      (
        ServerFixture.transactions(body).replacing("application/json", with: "text/plain"), 415,
        "unsupported_media_type"
      ),
    ]
    for (request, status, code) in cases {
      let answer = try fixture.exchange(request)
      expectEqual(answer?.status, status)
      expectEqual(answer?.errorCodes, [code])
    }
    #expect(fixture.service.transactions.isEmpty)
  }
}

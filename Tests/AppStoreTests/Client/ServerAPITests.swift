// The App Store Server API: keys, tokens, paths, and the meaning of responses.
import AppStore
import AppStoreAuthority
import Base
import CCrypto
import Foundation
import HTTPClient
import TestSupport
import Testing

@Suite(.bounded) struct ServerAPITests {
  private static let id = "2000000123456789"

  private static func account(_ key: SigningKey) throws -> ServerAPIAccount {
    ServerAPIAccount(
      issuerID: "57246542-96fe-1a63-e053-0824d011072a", keyID: "2X9R4HXF34",
      key: try ServerAPIKey(pem: try key.pem()), bundleID: "com.example.app")
  }

  private static func client(_ server: ScriptedServer) throws -> ServerAPIClient {
    var options = ServerAPIOptions()
    options.productionURL = server.url("production/")
    options.sandboxURL = server.url("sandbox")
    options.connectTimeoutMs = 300_000
    options.timeoutMs = 300_000
    return try ServerAPIClient(options, nowMs: { 1_800_000_000_000 })
  }

  private static func ask(
    _ client: ServerAPIClient, _ call: ServerAPICall, _ account: ServerAPIAccount,
    _ endpoint: AppStoreEndpoint = .production
  ) -> ServerAPIResponse {
    let answer = Monitor<ServerAPIResponse?>(nil, conditionCount: 1)
    client.send(call, as: account, to: endpoint) { given in
      answer.withLock { $0 = given }
      answer.signal(0)
    }
    return answer.wait(on: 0) { $0 }
  }

  // MARK: Keys and tokens

  @Test func aKeyOfAnotherKindOrNoKeyIsRefused() throws {
    let other = try SigningKey(curve: .p384).pem()
    #expect(throws: ServerAPIKeyError.notP256) { try ServerAPIKey(pem: other) }
    let rsa = try SigningKey(bits: 2048).pem()
    #expect(throws: ServerAPIKeyError.notP256) { try ServerAPIKey(pem: rsa) }
    let good = String(decoding: try SigningKey(curve: .p256).pem(), as: UTF8.self)
    let encrypted = good.replacingOccurrences(of: "PRIVATE", with: "ENCRYPTED PRIVATE")
    let cut = String(good.prefix(good.count / 2))
    for text in [
      "", "-----BEGIN PRIVATE KEY-----", encrypted, cut, good + String(repeating: " ", count: 8192),
    ] {
      #expect(throws: ServerAPIKeyError.notPKCS8) { try ServerAPIKey(pem: Array(text.utf8)) }
    }
  }

  @Test func aTokenSaysWhoAsksAndIsSignedWithTheKey() throws {
    let key = try SigningKey(curve: .p256)
    let account = try Self.account(key)
    let nowMs: Int64 = 1_800_000_000_000
    let token = try #require(account.token(nowMs: nowMs))
    let parts = token.split(separator: ".").map { Array($0.utf8) }
    try #require(parts.count == 3)
    let texts = try parts.prefix(2).map {
      String(decoding: try Base64.decode($0, .url), as: UTF8.self)
    }
    expectEqual(texts[0], #"{"alg":"ES256","kid":"2X9R4HXF34","typ":"JWT"}"#)
    expectEqual(
      texts[1],
      #"{"iss":"57246542-96fe-1a63-e053-0824d011072a","iat":1800000000,"exp":1800001200,"#
        + #""aud":"appstoreconnect-v1","bid":"com.example.app"}"#)
    #expect(
      Self.verifies(
        parts[0] + [0x2E] + parts[1], signature: try Base64.decode(parts[2], .url),
        publicKeyInfo: try key.publicKeyInfo()))
  }

  private static func verifies(
    _ content: [UInt8], signature: [UInt8], publicKeyInfo: [UInt8]
  ) -> Bool {
    guard signature.count == 64 else { return false }
    let signed = ECDSA_SIG_new()
    defer { ECDSA_SIG_free(signed) }
    ECDSA_SIG_set0(
      signed, BN_bin2bn(Array(signature[..<32]), 32, nil),
      BN_bin2bn(Array(signature[32...]), 32, nil))
    var der: UnsafeMutablePointer<UInt8>?
    let count = i2d_ECDSA_SIG(signed, &der)
    defer { CRYPTO_free(der, "", 0) }
    let key = publicKeyInfo.withUnsafeBufferPointer { bytes in
      var start = bytes.baseAddress
      return d2i_PUBKEY(nil, &start, bytes.count)
    }
    defer { EVP_PKEY_free(key) }
    let context = EVP_MD_CTX_new()
    defer { EVP_MD_CTX_free(context) }
    return EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1
      && EVP_DigestVerify(context, der, Int(count), content, content.count) == 1
  }

  @Test func aTokenIsUsedAgainUntilFiveMinutesBeforeItsEnd() throws {
    let account = try Self.account(try SigningKey(curve: .p256))
    account.discardToken()
    let refused = account.token(nowMs: 0)
    account.discardToken()
    let first = account.token(nowMs: 0)
    #expect(first != refused)
    expectEqual(account.token(nowMs: 15 * 60_000 - 1), first)
    let second = account.token(nowMs: 15 * 60_000)
    #expect(second != first)
    #expect(account.token(nowMs: 14 * 60_000) != second, "the clock was set back")
  }

  // MARK: Calls

  @Test(arguments: [
    (
      ServerAPICall.history(transactionID: id, revision: nil),
      "GET /production/inApps/v2/history/2000000123456789?sort=ASCENDING", ""
    ),
    (
      .history(transactionID: "a/../b?c", revision: "r+=&"),
      "GET /production/inApps/v2/history/a%2F%2E%2E%2Fb%3Fc?sort=ASCENDING&revision=r%2B%3D%26", ""
    ),
    (
      .transaction(transactionID: id), "GET /production/inApps/v1/transactions/2000000123456789", ""
    ),
    (.statuses(transactionID: id), "GET /production/inApps/v1/subscriptions/2000000123456789", ""),
    (
      .refundLookup(transactionID: id, revision: "r"),
      "GET /production/inApps/v2/refund/lookup/2000000123456789?revision=r", ""
    ),
    (
      .notificationHistory(fromMs: 1, toMs: 2, paginationToken: "p"),
      "POST /production/inApps/v1/notifications/history?paginationToken=p",
      #"{"startDate":1,"endDate":2}"#
    ),
    (.requestTestNotification, "POST /production/inApps/v1/notifications/test", ""),
    (.testNotification(token: "t_1"), "GET /production/inApps/v1/notifications/test/t_1", ""),
  ])
  func aCallHasItsPathAndTheToken(_ call: ServerAPICall, _ line: String, _ body: String) throws {
    let server = try ScriptedServer { _ in .json("{}") }
    let client = try Self.client(server)
    defer { client.shutDown() }
    let account = try Self.account(try SigningKey(curve: .p256))
    _ = Self.ask(client, call, account)
    let request = try #require(server.requests.first)
    expectEqual(request.head[0], line + " HTTP/1.1")
    expectEqual(String(decoding: request.body, as: UTF8.self), body)
    let token = try #require(account.token(nowMs: 1_800_000_000_000))
    expectEqual(request.values("authorization"), ["Bearer \(token)"])
  }

  @Test func aGetAfterAPostAndTheOtherEndpoint() throws {
    let server = try ScriptedServer { request in
      .json(#"{"signedTransactionInfo":"\#(request.body.count)"}"#)
    }
    let client = try Self.client(server)
    defer { client.shutDown() }
    let account = try Self.account(try SigningKey(curve: .p256))
    let history = ServerAPICall.notificationHistory(fromMs: 1, toMs: 2, paginationToken: nil)
    for call in [
      history, .transaction(transactionID: "1"), history, .transaction(transactionID: "1"),
    ] {
      _ = Self.ask(client, call, account, .sandbox)
    }
    expectEqual(
      server.requests.map { $0.head[0].prefix(13) },
      [
        "POST /sandbox", "GET /sandbox/", "POST /sandbox", "GET /sandbox/",
      ])
    expectEqual(server.requests.map(\.body.count), [27, 0, 27, 0])
    expectEqual(server.connectionCount, 1)
  }

  // MARK: Responses

  private static let history = ServerAPICall.history(transactionID: id, revision: nil)
  private static let notifications = ServerAPICall.notificationHistory(
    fromMs: 0, toMs: 1, paginationToken: nil)

  private static func page(_ change: (inout ServerAPIPage) -> Void) -> ServerAPIResponse {
    var page = ServerAPIPage()
    change(&page)
    return .page(page)
  }

  @Test(arguments: [
    (
      history,
      #"{"revision":"r","hasMore":true,"bundleId":"b","environment":"Sandbox","signedTransactions":["a","b"]}"#,
      page {
        $0.bundleID = "b"
        $0.environment = "Sandbox"
        $0.revision = "r"
        $0.hasMore = true
        $0.transactions = [[0x61], [0x62]]
      }
    ),
    (history, #"{"hasMore":true,"signedTransactions":[]}"#, .failure(.malformedAnswer)),
    (history, #"{"hasMore":false}"#, .failure(.malformedAnswer)),
    (
      history,
      #"{"hasMore":true,"signedTransactions":[],"revision":"\#(String(repeating: "r", count: 4_097))"}"#,
      .failure(.malformedAnswer)
    ),
    (history, #"{"hasMore":false,"signedTransactions":[1]}"#, .failure(.malformedAnswer)),
    (history, "[]", .failure(.malformedAnswer)), (history, "no", .failure(.malformedAnswer)),
    (
      .transaction(transactionID: "1"), #"{"signedTransactionInfo":"a"}"#,
      page { $0.transactions = [[0x61]] }
    ),
    (
      .statuses(transactionID: "1"),
      #"{"data":[{"lastTransactions":[{"signedTransactionInfo":"a","signedRenewalInfo":"b"}]},{}]}"#,
      page {
        $0.transactions = [[0x61]]
        $0.renewals = [[0x62]]
      }
    ),
    (
      notifications,
      #"{"notificationHistory":[{"signedPayload":"a","sendAttempts":[]}],"hasMore":false,"paginationToken":""}"#,
      page { $0.notifications = [[0x61]] }
    ),
    (notifications, #"{"notificationHistory":[{}]}"#, .failure(.malformedAnswer)),
    (.requestTestNotification, #"{"testNotificationToken":"t"}"#, .testToken("t")),
    (
      .testNotification(token: "t"),
      #"{"signedPayload":"a","sendAttempts":[{"attemptDate":5,"sendAttemptResult":"SUCCESS"}]}"#,
      .testResult(
        TestNotificationResult(payload: [0x61], attempts: [.init(atMs: 5, result: "SUCCESS")]))
    ),
  ])
  func anAnswerIsRead(_ call: ServerAPICall, _ text: String, _ expected: ServerAPIResponse) throws {
    let server = try ScriptedServer { _ in .json(text) }
    let client = try Self.client(server)
    defer { client.shutDown() }
    let account = try Self.account(try SigningKey(curve: .p256))
    expectEqual(Self.ask(client, call, account), expected)
  }

  @Test(
    arguments: [
      (
        404, #"{"errorCode":4040010,"errorMessage":"Transaction id not found."}"#, nil,
        ServerAPIResponse.settled(errorCode: 4_040_010), false
      ),
      (400, #"{"errorCode":4000006}"#, nil, .settled(errorCode: 4_000_006), false),
      (400, #"{"errorCode":4000002}"#, nil, .failure(.status(400, errorCode: 4_000_002)), false),
      (404, #"{"errorCode":4040002}"#, nil, .failure(.status(404, errorCode: 4_040_002)), true),
      (404, "not found", nil, .failure(.status(404, errorCode: nil)), false),
      (401, "", nil, .unauthorized, false),
      (429, #"{"errorCode":4290000}"#, nil, .rateLimited(pauseMs: 60_000), false),
      (429, "", "Retry-After: 7", .rateLimited(pauseMs: 7_000), false),
      (429, "", "retry-after:1800000030000", .rateLimited(pauseMs: 30_000), false),
      (429, "", "Retry-After: 1700000000000", .rateLimited(pauseMs: 1_000), false),
      (429, "", "Retry-After: 999999", .rateLimited(pauseMs: 3_600_000), false),
      (429, "", "Retry-After: 9223372036854775807", .rateLimited(pauseMs: 3_600_000), false),
      (429, "", "Retry-After: -9223372036854775808", .rateLimited(pauseMs: 60_000), false),
      (429, "", "Retry-After: 99999999999999999999", .rateLimited(pauseMs: 60_000), false),
      (429, "", "Retry-After: soon", .rateLimited(pauseMs: 60_000), false),
      (500, #"{"errorCode":5000000}"#, nil, .failure(.status(500, errorCode: 5_000_000)), true),
      (302, "", "Location: https://example.com/", .failure(.status(302, errorCode: nil)), false),
    ] as [(Int, String, String?, ServerAPIResponse, Bool)])
  func anErrorSaysWhatToDo(
    _ status: Int, _ body: String, _ header: String?, _ expected: ServerAPIResponse,
    _ isRetryable: Bool
  ) throws {
    let server = try ScriptedServer { _ in
      .respond(status, Array(body.utf8), headers: header.map { [$0] } ?? [])
    }
    let client = try Self.client(server)
    defer { client.shutDown() }
    let answer = Self.ask(client, Self.history, try Self.account(try SigningKey(curve: .p256)))
    expectEqual(answer, expected)
    if case .failure(let failure) = answer { expectEqual(failure.isRetryable, isRetryable) }
  }

  @Test func aCutAnswerIsNoPageAndAClientThatIsShutDownCancels() throws {
    let server = try ScriptedServer { _ in
      .all([.text("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), .close])
    }
    let client = try Self.client(server)
    let account = try Self.account(try SigningKey(curve: .p256))
    expectEqual(Self.ask(client, Self.history, account), .failure(.transport(.connectionFailed)))
    client.shutDown()
    expectEqual(Self.ask(client, Self.history, account), .failure(.transport(.cancelled)))
  }
}

// docs/openapi.json against the server: every response is described, and every example fits its schema.
import Base
import Foundation
import Glibc
import Intake
import Projections
import Server
import TestSupport
import Testing

struct OpenAPIDocument: Sendable {
  let document: JSONValue

  init() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
      path: "../../../docs/openapi.json")
    document = try JSONValue(Array(try Data(contentsOf: file)))
  }

  var checker: SchemaChecker { SchemaChecker(document: document) }

  /// The described responses to a request; for a request that is not an operation, those of other
  /// requests.
  func responses(method: String, path: String) -> JSONValue? {
    let family = "/client/itunes_connect/receipts"
    if path.hasPrefix("/v1/erasures/"), path.count > "/v1/erasures/".count {
      return responses(method: method, template: "/v1/erasures/{id}")
    }
    let isReceipt = path.hasPrefix(family + "/") && !path.dropFirst(family.count + 1).contains("/")
    let template = isReceipt && path.count > family.count + 1 ? family + "/{id}" : path
    return responses(method: method, template: template)
  }

  private func responses(method: String, template: String) -> JSONValue? {
    // Methods are case-sensitive; the document has them in lower case.
    let isUpper = method == method.uppercased()
    let operation = isUpper ? document["paths"]?[template]?[method.lowercased()] : nil
    return (operation ?? document["x-other-requests"])?["responses"]
  }

  /// What is wrong with the body of a webhook.
  func problems(webhook body: [UInt8]) throws -> [String] {
    let body = try JSONValue(body)
    let type = body["type"]?.stringValue ?? ""
    let content = document["webhooks"]?[type]?["post"]?["requestBody"]?["content"]
    guard let schema = content?["application/json"]?["schema"] else {
      return ["no webhook \(type)"]
    }
    return checker.problems(body, schema)
  }

  /// What is wrong with a response: an undescribed status, header or body.
  func problems(_ answer: WireResponse, to method: String, _ path: String) -> [String] {
    guard let response = responses(method: method, path: path)?[String(answer.status)] else {
      return ["\(answer.status) is not described for \(method) \(path)"]
    }
    let resolved = checker.resolved(response)
    var problems: [String] = []
    if case .object(let headers)? = resolved["headers"] {
      for header in headers where header.value["required"] == .boolean(true) {
        if answer.header(header.key.lowercased()) == nil { problems.append("no \(header.key)") }
      }
    }
    guard method != "HEAD", let schema = resolved["content"]?["application/json"]?["schema"] else {
      return problems
    }
    guard let body = answer.json else { return problems + ["the body is not JSON"] }
    return problems + checker.problems(body, schema)
  }
}

@Suite("HTTP against OpenAPI", .bounded) struct HTTPOpenAPITests {
  @Test("every example fits its schema")
  func examples() throws {
    let api = try OpenAPIDocument()
    var count = 0
    func visit(_ value: JSONValue, _ path: String) {
      if let schema = value["schema"] {
        var examples = [value["example"]].compactMap(\.self)
        if case .object(let members)? = value["examples"] {
          examples += members.compactMap { $0.value["value"] }
        }
        count += examples.count
        for example in examples {
          #expect(api.checker.problems(example, schema).isEmpty, "\(path)")
        }
      }
      if case .object(let members) = value {
        for member in members { visit(member.value, path + "/" + member.key) }
      }
    }
    visit(api.document, "")
    #expect(count > 15)
  }

  @Test("every instant has the format that client generators know")
  func instants() throws {
    var count = 0
    func visit(_ value: JSONValue) {
      if value["pattern"]?.stringValue?.contains("{2}T[0-9]") == true {
        count += 1
        expectEqual(value["format"], .string("date-time"))
      }
      switch value {
      case .object(let members): for member in members { visit(member.value) }
      case .array(let elements): for element in elements { visit(element) }
      default: break
      }
    }
    visit(try OpenAPIDocument().document)
    #expect(count > 15)
  }

  @Test("the limits of `limit` are those of the server")
  func limits() throws {
    let schema = try #require(
      try OpenAPIDocument().document["components"]?["schemas"]?["PurchaseQuestion"]?["properties"]?[
        "limit"])
    let least = try #require(schema["minimum"]?.integerValue)
    let most = try #require(schema["maximum"]?.integerValue)
    let service = ScriptedService(knownBody: [], transactionsBody: [])
    service.setBodies(purchases: Self.purchases, entitlements: Self.entitlements)
    let fixture = try ServerFixture(service: service)
    defer { fixture.server.shutdown(graceMs: 0) }
    for (limit, status) in [(least - 1, 422), (least, 200), (most, 200), (most + 1, 422)] {
      let body = #"{"user_identifier":"a","limit":\#(limit)}"#
      let client = try fixture.connect()
      client.send(
        """
        POST /v1/purchases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r
        Authorization: Bearer \(ServerFixture.readToken)\r\nContent-Length: \(body.utf8.count)\r
        \r
        \(body)
        """)
      try expectEqual(client.answer()?.status, status, "\(limit)")
    }
  }

  @Test("every type of webhook is described")
  func webhooks() throws {
    guard case .object(let described)? = try OpenAPIDocument().document["webhooks"] else {
      Issue.record("no webhooks")
      return
    }
    expectEqual(described.map(\.key), WebhookType.allCases.map(\.rawValue))
  }

  @Test("every reference resolves")
  func referencesResolve() throws {
    let api = try OpenAPIDocument()
    func visit(_ value: JSONValue) {
      if value["$ref"] != nil { #expect(api.checker.resolved(value) != .null) }
      switch value {
      case .object(let members): for member in members { visit(member.value) }
      case .array(let elements): for element in elements { visit(element) }
      default: break
      }
    }
    visit(api.document)
  }

  @Test("the checker finds a violated schema")
  func checker() throws {
    let api = try OpenAPIDocument()
    let schemas = try #require(api.document["components"]?["schemas"])
    let errors = try #require(schemas["Errors"])
    for text in [
      "{}", "{\"errors\":[]}", "{\"errors\":[{\"field\":\"\",\"code\":\"x\"}]}", "[]",
      "{\"errors\":[{\"field\":\"\",\"code\":\"x\",\"message\":\"\"}]}",
      "{\"errors\":[{\"field\":1,\"code\":\"x\",\"message\":\"m\"}]}",
      "{\"errors\":[{\"field\":\"\",\"code\":\"x\",\"message\":\"m\",\"more\":1}]}",
    ] {
      #expect(!api.checker.problems(try JSONValue(Array(text.utf8)), errors).isEmpty, "\(text)")
    }
  }

  private static let receipt = example("/client/itunes_connect/receipts")
  private static let transactions = example("/client/app_store/transactions")
  private static let purchases = example("/v1/purchases")
  private static let entitlements = example("/v1/entitlements")

  private static let erasure = example("/v1/erasures/{id}", method: "get")

  private static func example(_ path: String, method: String = "post") -> [UInt8] {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
      path: "../../../docs/openapi.json")
    let document = (try? Data(contentsOf: file)).flatMap { try? JSONValue(Array($0)) }
    let post = document?["paths"]?[path]?[method]
    let content = post?["responses"]?["200"]?["content"]?["application/json"]
    return content?["example"]?.bytes ?? []
  }

  @Test("every response to a generated request is described", arguments: [1, 2, 3, 4] as [UInt64])
  func generated(_ seed: UInt64) throws {
    let api = try OpenAPIDocument()
    let random = Randomness(seed)
    let service = ScriptedService(
      knownBody: Self.receipt, transactionsBody: Self.transactions
    ) { _, completion in
      switch random.below(20) {
      case 0: completion(.unavailable(retryAfterSeconds: 1))
      case 1: completion(.refused([FieldProblem("receipt", .receiptMalformed, "is no receipt")]))
      case 2..<6: completion(.receipt(status: 402, body: .init(Self.receipt)))
      case 6..<12: completion(.receipt(status: 206, body: .init(Self.receipt)))
      default: completion(.receipt(status: 200, body: .init(Self.receipt)))
      }
    }
    service.setErasureBody(Self.erasure)
    service.setBodies(purchases: Self.purchases, entitlements: Self.entitlements)
    let fixture = try ServerFixture(service: service) { $0.requestMs = 20_000 }
    defer { fixture.server.shutdown(graceMs: 0) }
    var statuses: [Int: Int] = [:]
    for _ in 0..<300 {
      let request = GeneratedRequest(random)
      let client = try fixture.connect()
      client.send(request.bytes)
      client.endSending()
      guard let answer = try client.answer(isHead: request.method == "HEAD") else {
        Issue.record("no answer, seed \(seed): \(request.shown)")
        continue
      }
      statuses[answer.status, default: 0] += 1
      let problems = api.problems(answer, to: request.method, request.path)
      #expect(problems.isEmpty, "seed \(seed): \(request.shown)")
      if answer.status >= 500 { #expect(answer.status == 503 && request.reachesService) }
    }
    for status in [200, 206, 400, 401, 402, 403, 404, 405, 415, 422] {
      #expect(statuses[status, default: 0] > 0, "\(status) never came: \(statuses)")
    }
  }
}

/// Random numbers shared by the test's and the service's threads.
private final class Randomness: @unchecked Sendable {
  private let lock = NSLock()
  private var source: SeededRandom

  init(_ seed: UInt64) { source = SeededRandom(seed: seed) }

  func below(_ bound: Int) -> Int { lock.withLock { source.below(bound) } }
  func chance(percent: Int) -> Bool { below(100) < percent }
  func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
}

/// A valid upload, in most cases with something changed.
private struct GeneratedRequest {
  private(set) var method = "POST"
  private(set) var path = "/client/itunes_connect/receipts"
  private var headers = ["Host: localhost", "Content-Type: application/json"]
  private var authorization = ["Authorization: Bearer \(ServerFixture.token)"]
  private var body = ""

  private static let methods = ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "post", "BREW"]
  private static let paths = [
    "/", "/healthz", "/readyz", "/metrics", "/client", "/client/itunes_connect/receipts/",
    "/client/itunes_connect/receipts/\(ScriptedService.knownReceipt)",
    "/client/itunes_connect/receipts/00000000-0000-4000-8000-00000000000f",
    "/client/itunes_connect/receipts/x/y", "/client/../healthz", "/%68ealthz",
    "/client/itunes_connect/receipts/%00", "//client/itunes_connect/receipts",
    "/client/app_store/transactions", "/client/app_store/transactions/", "/v1/purchases",
    "/v1/purchases", "/v1/purchases/", "/v1/entitlements", "/v1/entitlements", "/v1/erasures",
    "/v1/erasures", "/v1/erasures/", "/v1/erasures/x",
    "/v1/erasures/\(ScriptedService.knownErasure)",
    "/v1/erasures/00000000-0000-4000-8000-00000000000f",
  ]
  private static let oddHeaders = [
    "Content-Type: text/plain", "Content-Encoding: gzip", "Host: other", "X-Odd : 1",
    "X-Odd: \u{1}",
    "Transfer-Encoding: gzip", "Expect: 200-maybe", "X-Forwarded-For: 1.2.3.4",
    "Authorization: Basic YTpi", "Connection: close", "Accept: image/png", "Range: bytes=0-1",
    "If-None-Match: *", "Upgrade: h2c", "Content-Length: 5",
  ]
  private static let values = [
    "null", "true", "0", "-1e400", "\"\"", "\"NULL\"", "\"AAAA\"", "\"DE\"", "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"", "[]", "{}", "{\"a\":[[[]]]}", "\"<script>\"", "\"=1+1\"", "\"\\u0000\"", "01",
    "",
  ]
  private static let names = [
    "receipt", "signed_transactions", "after", "limit", "app_transaction", "country_code",
    "identifier_for_vendor",
    "user_identifier", "ip_address", "metadata", "reason", "urgent",
    "other",
  ]

  init(_ random: Randomness) {
    if random.chance(percent: 12) { method = random.pick(Self.methods) }
    if random.chance(percent: 20) {
      path = random.pick(Self.paths)
      if random.chance(percent: 60) { method = random.pick(["GET", "HEAD"]) }
    }
    if random.chance(percent: 12) {
      authorization = random.pick([
        [], ["Authorization: Bearer x"], authorization + authorization,
        ["Authorization: Bearer \(ServerFixture.readToken)"],
      ])
    }
    if path.hasPrefix("/v1/erasures"), random.chance(percent: 80) {
      authorization = ["Authorization: Bearer \(ServerFixture.eraseToken)"]
      // GET is the method of all paths but this one.
      if path == "/v1/erasures", random.chance(percent: 70) { method = "POST" }
    } else if path.hasPrefix("/v1/"), random.chance(percent: 80) {
      authorization = ["Authorization: Bearer \(ServerFixture.readToken)"]
    }
    if random.chance(percent: 15) { headers.append(random.pick(Self.oddHeaders)) }
    if random.chance(percent: 5) { headers.remove(at: random.below(headers.count)) }
    guard method != "GET", method != "HEAD" else { return }
    body = Self.body(random)
    headers.append("Content-Length: \(body.utf8.count)")
  }

  private static func body(_ random: Randomness) -> String {
    var members = [
      "\"receipt\":\"AAAA\"", "\"user_identifier\":\"a\"", "\"reason\":\"user_request\"",
    ]
    if random.chance(percent: 40) {
      for _ in 0..<(1 + random.below(3)) {
        members.append("\"\(random.pick(names))\":\(random.pick(values))")
      }
    }
    if random.chance(percent: 8) { members.remove(at: random.below(3)) }
    var body = "{\(members.joined(separator: ","))}"
    if random.chance(percent: 8) { body = String(body.prefix(random.below(body.count))) }
    if random.chance(percent: 4) { body += String(repeating: " ", count: random.below(300_000)) }
    if random.chance(percent: 3) { body = String(repeating: "{\"a\":", count: random.below(2_000)) }
    return body
  }

  var bytes: [UInt8] {
    Array(
      ((["\(method) \(path) HTTP/1.1"] + headers + authorization + ["", ""]).joined(
        separator: "\r\n") + body).utf8)
  }

  var reachesService: Bool { method == "POST" && path == "/client/itunes_connect/receipts" }

  var shown: String { "\(method) \(path) \(headers) \(authorization) \(body.prefix(300))" }
}

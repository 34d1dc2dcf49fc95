// A stand-in that answers the App Store Server API, and a caller with a key.
import AppStore
import AppStoreAuthority
import AppStoreStandIn
import Base
import Glibc
import TestSupport
import Testing

struct ServerAPIShop {
  /// When the customers' receipts were made: an hour ago, so that all their events are in the past.
  static let atMs = Int64(time(nil)) * 1000 - 3_600_000

  let server: StandInServer
  let sales: CustomerTransactions
  let key: SigningKey
  let customerCount: Int

  init(
    customers: Int = 24, transactions: Int? = nil,
    environment: CustomerReceipts.Environment = .production, callsPerSecond: Int? = nil,
    notifications: NotificationTarget? = nil, controls: [String] = []
  ) throws {
    customerCount = customers
    sales = CustomerTransactions(
      customers: CustomerReceipts(
        seed: 5, bundleID: "com.example.game", environment: environment, atMs: Self.atMs))
    key = try SigningKey(curve: .p256)
    var serverAPI = ServerAPIOptions(
      authority: try SignedObjectAuthority.shared.get(), customers: sales.customers,
      customerCount: customers, bundleID: "com.example.game", key: key)
    serverAPI.transactionCount = transactions
    serverAPI.callsPerSecond = callsPerSecond
    serverAPI.notifications = notifications
    var options = StandInOptions()
    options.serverAPI = serverAPI
    options.controls = controls.map { Array($0.utf8) }
    server = try StandInServer(authority: try TestAuthority.shared.get(), options: options)
  }

  // MARK: Tokens

  static let header = ["alg": "ES256", "kid": "2X9R4HXF34", "typ": "JWT"]

  static func claims(nowSeconds: Int = time(nil)) -> [String: Any] {
    [
      "iss": "57246542-96fe-1a63-e053-0824d011072a", "iat": nowSeconds, "exp": nowSeconds + 1_200,
      "aud": "appstoreconnect-v1", "bid": "com.example.game",
    ]
  }

  func token(
    header: [String: Any] = header, claims: [String: Any] = claims(), by other: SigningKey? = nil
  ) throws -> String {
    let text = [header, claims].map { members in
      let fields = members.sorted { $0.key < $1.key }.map { name, value in
        (value as? Int).map { "\"\(name)\":\($0)" } ?? "\"\(name)\":\"\(value)\""
      }
      return String(
        decoding: Base64.encode(Array("{\(fields.joined(separator: ","))}".utf8), .url),
        as: UTF8.self)
    }.joined(separator: ".")
    let signature = try (other ?? key).signES256(Array(text.utf8))
    return text + "." + String(decoding: Base64.encode(signature, .url), as: UTF8.self)
  }

  // MARK: Calls

  func answer(
    _ path: String, body: String? = nil, authorization: String? = nil
  ) throws -> HTTPClient.Answer {
    let header = try authorization ?? "Bearer \(token())"
    let answer = try HTTPClient(port: server.port).exchange(
      body == nil ? "GET" : "POST", path, Array((body ?? "").utf8),
      headers: ["Authorization: \(header)"])
    return try #require(answer)
  }

  func call(_ path: String, body: String? = nil) throws -> JSONValue {
    let answer = try answer(path, body: body)
    expectEqual(answer.status, 200, "\(path): \(answer.text)")
    return try JSONValue(answer.body)
  }

  /// The code of an error, with its HTTP status.
  func errorCode(_ path: String, body: String? = nil) throws -> Int64? {
    let answer = try answer(path, body: body)
    let code = try JSONValue(answer.body)["errorCode"]?.integerValue
    expectEqual(code.map { $0 / 10_000 }, Int64(answer.status))
    return code
  }

  static func payload(_ object: JSONValue?) throws -> JSONValue {
    let parts = try #require(object?.stringValue).split(separator: ".")
    try #require(parts.count == 3)
    return try JSONValue(Base64.decode(Array(parts[1].utf8), .url))
  }

  /// Follows the pages of a customer's history from a revision.
  func history(
    _ id: String, from revision: String? = nil, call name: String = "v2/history"
  ) throws -> (pages: [[JSONValue]], revision: String) {
    var pages: [[JSONValue]] = []
    var revision = revision
    while true {
      let query = revision.map { "?sort=ASCENDING&revision=\($0)" } ?? ""
      let page = try call("/inApps/\(name)/\(id)\(query)")
      pages.append(
        try #require(page["signedTransactions"]?.arrayValue).map { try Self.payload($0) })
      let next = try #require(page["revision"]?.stringValue)
      revision = next
      if page["hasMore"] == .boolean(false) { return (pages, next) }
      try #require(pages.count < 10)
    }
  }
}

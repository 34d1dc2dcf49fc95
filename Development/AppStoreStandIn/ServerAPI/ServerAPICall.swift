// Calls of the App Store Server API: their paths, tokens, rate and errors.
import AppStore
import AppStoreAuthority
import Base

/// A call with what stands in its path.
enum ServerAPICall: Sendable, Equatable {
  case history(String)
  case transaction(String)
  case statuses(String)
  case refundLookup(String)
  case notificationHistory
  case requestTest
  case testStatus(String)

  /// As counters and notes name it.
  var name: String {
    switch self {
    case .history: "history"
    case .transaction: "transaction"
    case .statuses: "statuses"
    case .refundLookup: "refund_lookup"
    case .notificationHistory: "notification_history"
    case .requestTest: "test"
    case .testStatus: "test_status"
    }
  }

  /// The environment and the call that a path names; nil where it names none.
  static func at(_ method: String, _ path: String) -> (AppStoreEndpoint, ServerAPICall)? {
    let sandboxPrefix = "/sandbox/"
    let isSandbox = path.hasPrefix(sandboxPrefix)
    let rest = isSandbox ? String(path.dropFirst(sandboxPrefix.count - 1)) : path
    guard let call = ServerAPICall(method, rest) else { return nil }
    return (isSandbox ? .sandbox : .production, call)
  }

  private init?(_ method: String, _ path: String) {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count >= 4, parts[0] == "", parts[1] == "inApps" else { return nil }
    switch (method, parts.dropFirst(2).dropLast().joined(separator: "/"), parts[parts.count - 1]) {
    case ("GET", "v2/history", let id): self = .history(id)
    case ("GET", "v1/transactions", let id): self = .transaction(id)
    case ("GET", "v1/subscriptions", let id): self = .statuses(id)
    case ("GET", "v2/refund/lookup", let id): self = .refundLookup(id)
    case ("POST", "v1/notifications", "history"): self = .notificationHistory
    case ("POST", "v1/notifications", "test"): self = .requestTest
    case ("GET", "v1/notifications/test", let token): self = .testStatus(token)
    default: return nil
    }
  }
}

/// Checks tokens (JWT, ES256) as the App Store does.
struct BearerToken: Sendable {
  let key: SigningKey
  let bundleID: String

  private static let lengthMax = 4_096
  private static let lifetimeMaxSeconds: Int64 = 3_600
  /// By how much clocks may differ.
  private static let skewSeconds: Int64 = 60

  /// Whether the value of the header `Authorization` lets its sender in.
  /// - Parameter nowSeconds: epoch seconds.
  func isGood(_ authorization: String?, nowSeconds: Int64) -> Bool {
    guard let authorization, authorization.hasPrefix("Bearer "),
      authorization.utf8.count <= Self.lengthMax
    else { return false }
    let parts = authorization.utf8.dropFirst(7)
      .split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map { Array($0) }
    guard parts.count == 3, let header = Self.object(parts[0]), let claims = Self.object(parts[1]),
      let signature = try? Base64.decode(parts[2], .url)
    else { return false }
    return header["alg"]?.stringValue == "ES256" && header["typ"]?.stringValue == "JWT"
      && header["kid"]?.stringValue?.isEmpty == false
      && isGood(claims: claims, nowSeconds: nowSeconds)
      && key.verifies(es256: signature, of: parts[0] + [UInt8(ascii: ".")] + parts[1])
  }

  private func isGood(claims: JSONValue, nowSeconds: Int64) -> Bool {
    guard let expires = claims["exp"]?.integerValue, claims["iss"]?.stringValue?.isEmpty == false
    else { return false }
    // Apple's own libraries leave it out.
    let issued = claims["iat"].map { $0.integerValue ?? .max } ?? nowSeconds
    return claims["aud"]?.stringValue == "appstoreconnect-v1"
      && claims["bid"]?.stringValue == bundleID && issued <= nowSeconds + Self.skewSeconds
      && expires > nowSeconds
      && expires.subtractingReportingOverflow(issued).partialValue <= Self.lifetimeMaxSeconds
  }

  private static func object(_ part: [UInt8]) -> JSONValue? {
    // `try?`: the App Store gives no cause either.
    (try? Base64.decode(part, .url)).flatMap { try? JSONValue($0) }
  }
}

/// A bucket that holds the calls of a second, for one environment.
struct CallRate: Sendable {
  let callsPerSecond: Int
  /// Thousandths of a call.
  private var held: Int64
  private var lastMs: Int64

  init(callsPerSecond: Int, nowMs: Int64) {
    self.callsPerSecond = callsPerSecond
    held = Int64(callsPerSecond) * 1000
    lastMs = nowMs
  }

  /// Takes a call out; nil if there was one, else the time from which on there is, in epoch milliseconds.
  mutating func take(nowMs: Int64) -> Int64? {
    let rate = Int64(callsPerSecond)
    held = min(rate * 1000, held + min(max(0, nowMs - lastMs), 1000) * rate)
    lastMs = nowMs
    guard held < 1000 else {
      held -= 1000
      return nil
    }
    return nowMs + (1000 - held + rate - 1) / rate
  }
}

/// An error as the App Store tells it; the first three digits are the HTTP status.
struct ServerAPIError: Error, Equatable {
  let code: Int
  let message: String

  init(_ code: Int, _ message: String) {
    self.code = code
    self.message = message
  }

  static let revision = ServerAPIError(4_000_005, "Invalid request revision.")
  static let transactionID = ServerAPIError(4_000_006, "Invalid transaction id.")
  static let startTooEarly = ServerAPIError(
    4_000_012, "Invalid request. The start date is earlier than the allowed start date.")
  static let startAfterEnd = ServerAPIError(
    4_000_013, "Invalid request. The end date precedes the start date or the dates are the same.")
  static let paginationToken = ServerAPIError(
    4_000_014, "Invalid request. The pagination token is invalid.")
  static let startDate = ServerAPIError(
    4_000_015, "Invalid request. The start date is invalid or missing.")
  static let endDate = ServerAPIError(
    4_000_016, "Invalid request. The end date is invalid or missing.")
  static let testToken = ServerAPIError(
    4_000_020, "Invalid request. The test notification token is invalid.")
  static let sort = ServerAPIError(4_000_021, "Invalid request. The sort parameter is invalid.")
  static let status = ServerAPIError(
    4_000_031, "Invalid request. The status parameter is invalid.")
  static let noNotificationURL = ServerAPIError(
    4_040_007, "No App Store Server Notification URL found for provided app.")
  static let noTest = ServerAPIError(
    4_040_008, "Either the test notification token is expired or it was never issued.")
  static let noTransaction = ServerAPIError(4_040_010, "Transaction id not found.")
  static let rate = ServerAPIError(4_290_000, "Rate limit exceeded.")
  static let unknown = ServerAPIError(5_000_000, "An unknown error occurred.")

  private static let known = [
    revision, transactionID, startTooEarly, startAfterEnd, paginationToken, startDate, endDate,
    testToken, sort, status, noNotificationURL, noTest, noTransaction, rate, unknown,
  ]

  /// An error by its code, which may be none that the stand-in has itself.
  init(code: Int) {
    self = Self.known.first { $0.code == code } ?? ServerAPIError(code, "An error.")
  }

  var httpStatus: Int { code / 10_000 }

  var body: [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    json.member("errorCode", code)
    json.member("errorMessage", message)
    json.endObject()
    return json.bytes
  }
}

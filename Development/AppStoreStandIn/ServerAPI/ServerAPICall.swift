// The calls of the App Store Server API, by their paths.
import AppStore

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

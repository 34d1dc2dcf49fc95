// The calls of the App Store Server API: their paths and bodies.
private import JSON

/// One call.
package enum ServerAPICall: Sendable, Equatable {
  /// All transactions of the customer who made this one, 20 a page, the oldest change first.
  case history(transactionID: String, revision: String?)
  case transaction(transactionID: String)
  /// The customer's subscriptions, with their renewal information.
  case statuses(transactionID: String)
  /// The customer's refunded transactions.
  case refundLookup(transactionID: String, revision: String?)
  /// The notifications that the App Store sent, or tried to, from `fromMs` to `toMs` (epoch milliseconds).
  case notificationHistory(fromMs: Int64, toMs: Int64, paginationToken: String?)
  case requestTestNotification
  /// What became of a TEST notification.
  case testNotification(token: String)

  var method: HTTPRequest.Method {
    switch self {
    case .notificationHistory, .requestTestNotification: .post
    case .history, .transaction, .statuses, .refundLookup, .testNotification: .get
    }
  }

  /// The path with its query.
  var path: String {
    switch self {
    case .history(let id, let revision):
      "/inApps/v2/history/\(Self.encoded(id))?sort=ASCENDING" + Self.query("&revision", revision)
    case .transaction(let id): "/inApps/v1/transactions/\(Self.encoded(id))"
    case .statuses(let id): "/inApps/v1/subscriptions/\(Self.encoded(id))"
    case .refundLookup(let id, let revision):
      "/inApps/v2/refund/lookup/\(Self.encoded(id))" + Self.query("?revision", revision)
    case .notificationHistory(_, _, let token):
      "/inApps/v1/notifications/history" + Self.query("?paginationToken", token)
    case .requestTestNotification: "/inApps/v1/notifications/test"
    case .testNotification(let token): "/inApps/v1/notifications/test/\(Self.encoded(token))"
    }
  }

  var body: [UInt8] {
    guard case .notificationHistory(let fromMs, let toMs, _) = self else { return [] }
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("startDate", fromMs)
    writer.member("endDate", toMs)
    writer.endObject()
    return writer.bytes
  }

  private static func query(_ name: String, _ value: String?) -> String {
    value.map { "\(name)=\(encoded($0))" } ?? ""
  }

  /// Percent-encoded but for what RFC 3986 leaves alone everywhere; a lone point would be a path of its own.
  private static func encoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        bytes.append(byte)
      default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

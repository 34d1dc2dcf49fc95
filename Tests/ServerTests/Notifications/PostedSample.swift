// Notifications of a test chain, and how tests post them to a workflow.
import AppStore
import AppStoreAuthority
import Base
import Foundation
import HTTPClient
import Server
import TestSupport
import Testing

/// Makes notifications about the app that `WorkflowFixture` registers.
enum PostedSample {
  static let uuid = "002e14d5-51f5-4503-b5a8-c3a1af68eb20"

  /// A payload whose subject is `data` unless another is named; `members` by name, values as JSON.
  static func payload(
    uuid: String? = uuid, type: String? = "DID_RENEW", subject: String = "data",
    signedMs: Int64 = ms("2026-01-05"), _ changes: [String: String?] = [:]
  ) -> String {
    var members: [String: String?] = ["bundleId": "\"app\"", "environment": "\"Production\""]
    members.merge(changes) { $1 }
    let inner = members.compactMap { name, value in value.map { "\"\(name)\":\($0)" } }
    let texts = [
      type.map { "\"notificationType\":\"\($0)\"" }, uuid.map { "\"notificationUUID\":\"\($0)\"" },
      "\"version\":\"2.0\"", "\"signedDate\":\(signedMs)",
      "\"\(subject)\":{\(inner.sorted().joined(separator: ","))}",
    ]
    return "{\(texts.compactMap(\.self).joined(separator: ","))}"
  }

  static func signed(
    uuid: String? = uuid, type: String? = "DID_RENEW", subject: String = "data",
    _ changes: [String: String?] = [:]
  ) throws -> String {
    try SignedUpload.sign(payload(uuid: uuid, type: type, subject: subject, changes))
  }

  /// A UUID made from a number.
  static func uuid(_ number: Int) -> String {
    let digits = String(number)
    return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
  }

  static func body(_ text: String) -> String { #"{"signedPayload":"\#(text)"}"# }
}

extension WorkflowFixture {
  /// Posts a notification without waiting.
  func post(_ text: String) throws -> AwaitedResponse {
    let answer = AwaitedResponse()
    try workflow.notification(
      PostedNotification(text: Array(text.utf8), receivedAtMs: ms("2026-01-06"))
    ) { answer.set($0) }
    return answer
  }

  /// Posts a notification and returns the response to the App Store.
  func notify(_ text: String) throws -> NotificationResponse? {
    if case .notification(let answer) = try post(text).wait() { answer } else { nil }
  }

  /// The UUIDs of the notifications in the log, in order.
  func notificationUUIDs() throws -> [String] {
    try events().filter { $0.type == "notification.received" }.map {
      $0.data["notification_uuid"]?.stringValue ?? ""
    }
  }

  /// How often notifications had each result; results that never occurred are left out.
  var notificationCounts: [String: Int] {
    var counts: [String: Int] = [:]
    let prefix = "receipt_ledger_notifications_total{result=\""
    for line in String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n") {
      guard line.hasPrefix(prefix) else { continue }
      let parts = line.dropFirst(prefix.count).split(separator: "\"")
      let count = Int(parts.last?.split(separator: " ").last ?? "") ?? 0
      if count > 0 { counts[String(parts[0])] = count }
    }
    return counts
  }
}

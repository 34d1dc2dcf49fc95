// Notifications of a test chain, and how tests post them to a workflow.
import AppStore
import AppStoreAuthority
import Base
import Foundation
import HTTPClient
import Server
import TestSupport
import Testing

extension SignedSample {
  /// The body of a notification.
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

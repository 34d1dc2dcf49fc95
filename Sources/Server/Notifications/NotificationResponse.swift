// A posted notification of the App Store, its response and result, and messages for the operator.
import Base
package import Intake
package import Ledger
package import Projections
import Revenue

/// One notification as received. Nothing of it is checked.
package struct PostedNotification: Sendable {
  /// `signedPayload`, as sent.
  package let text: [UInt8]
  /// Epoch milliseconds.
  package let receivedAtMs: Int64

  package init(text: [UInt8], receivedAtMs: Int64) {
    self.text = text
    self.receivedAtMs = receivedAtMs
  }
}

/// The response to the App Store, which treats any 2xx as success; after anything else it sends the notification again,
/// hours later.
package enum NotificationResponse: Equatable, Sendable {
  /// 200: the notification is durable.
  case recorded
  /// 200: a notification with this UUID is already durable.
  case known
  /// 422: it is not a notification of Production or the Sandbox.
  case refused([FieldProblem])
  /// 403: the App Store did not sign it, or not all of it.
  case forged([FieldProblem])
  /// 503: it may be good, and must be sent again.
  /// - Parameters:
  ///   - problem: what must change until then; nil if the server is busy or at fault.
  ///   - afterSeconds: at least 1.
  case retry(FieldProblem?, afterSeconds: Int)
}

/// The result of a notification, for counting.
package enum NotificationResult: String, CaseIterable, Sendable {
  case recorded
  case known
  /// Rejected by its head or its body: too large, too slow, invalid JSON.
  case badRequest = "bad_request"
  case malformed
  /// Of Xcode, of a local test, or of a Sandbox that the app does not accept.
  case environment
  case forged
  case outOfTime = "out_of_time"
  case unknownBundle = "unknown_bundle"
  case wrongApp = "wrong_app"
  /// More than a bundle's Sandbox may send.
  case sandboxLimit = "sandbox_limit"
  case busy
  /// It could not be appended, or not be looked up.
  case failed
}

/// Claims on notifications that commands hand over: the same notification may arrive another way at the same time.
package struct HandedOverClaims: Sendable {
  /// False if the ledger has it, nil while it is being appended.
  package var claim: @Sendable (_ uuid: String) throws -> Bool?
  /// Ends claims once their submission is decided; each with its index in it.
  package var record: @Sendable ([(index: Int, uuid: String)], AppendTicket) -> Void
  /// Ends a claim on what was not submitted.
  package var abandon: @Sendable (_ uuid: String) -> Void
  /// The position of a folded notification.
  package var position: @Sendable (_ uuid: String) throws -> Position?

  package init(_ workflow: UploadWorkflow, _ projections: LiveProjections) {
    claim = { try workflow.claim(handedOver: $0) }
    record = { workflow.record(handedOver: $0, $1) }
    abandon = { workflow.release(notification: $0, .failed) }
    position = { uuid in
      let rows = try projections.readingConnection().prepare(
        "SELECT position FROM notifications WHERE uuid_hash = ? AND notification_uuid = ?")
      rows.bind(1, withText(uuid) { $0.indexHash })
      rows.bind(2, text: uuid)
      return try rows.step() ? rows.ordinal(0) : nil
    }
  }
}

/// How a synchronization's claim on a notification ended.
package enum NotificationClaimEnd: Equatable, Sendable {
  case durable(Position)
  /// The projections had it: nothing was appended.
  case known
  case failed
}

// MARK: - Messages for the operator

extension OperatorNotes {
  /// How many different bundle ids are reported per pause. Anyone who sells an app can have the App Store send its
  /// notifications here: texts are few, and none from a sender is unescaped.
  private static let bundleSlots: UInt64 = 16

  /// Reports that the App Store did not sign what was sent.
  func forgedNotification(_ problem: FieldProblem) {
    report(
      "a forged notification: \(problem)",
      key: "forged notification \(problem.field) \(problem.message)")
  }

  /// Reports a notification whose signature is good except for the time.
  func notificationOutOfTime(_ problem: FieldProblem) {
    report(
      "a notification is out of time: \(problem); is this machine's clock right?",
      key: "notification out of time \(problem.message)")
  }

  /// Reports a notification about an app that is not registered.
  func unregisteredNotification(bundleID: String) {
    let shown = PrintableText.shortened(bundleID)
    report(
      "a notification was put off: its bundle id \(shellQuoted(shown)) is not registered: "
        + "'ledgerctl app add' or 'app edit --bundle-id' registers it",
      key: "unregistered notification \(Self.slot(of: bundleID))")
  }

  /// Reports a notification that names another `appAppleId` than its app declares.
  func wrongAppNotification(appFamily: UUID16) {
    report(
      "app family \(appFamily): a notification was put off: its appAppleId is not the one that the app "
        + "declares: 'ledgerctl app edit --app-apple-id' corrects it",
      key: "wrong app notification \(appFamily)")
  }

  /// Reports that a bundle's Sandbox sends more than is accepted.
  func sandboxLimit(appFamily: UUID16) {
    report(
      "app family \(appFamily): notifications of the Sandbox come faster than "
        + "notifications.sandbox_per_second allows, and some are put off",
      key: "sandbox limit \(appFamily)")
  }

  private static func slot(of bundleID: String) -> UInt64 {
    Array(bundleID.utf8).withUnsafeBytes { SHA256.hash($0) }.withUnsafeBytes {
      $0.loadUnaligned(as: UInt64.self) % bundleSlots
    }
  }
}

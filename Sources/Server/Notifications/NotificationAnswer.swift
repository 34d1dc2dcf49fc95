// A notification of the App Store as it was posted, and what came of it.
package import Intake
package import Ledger

/// One notification as it came over the network. Nothing of it is checked.
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

/// What the App Store is told. It takes any 2xx for success; after anything else it sends the notification again,
/// hours later.
package enum NotificationAnswer: Equatable, Sendable {
  /// 200: the notification is durable.
  case recorded
  /// 200: a notification with this UUID is durable already.
  case known
  /// 422: it is no notification of Production or the Sandbox.
  case refused([FieldProblem])
  /// 403: the App Store did not sign it, or not all of it.
  case forged([FieldProblem])
  /// 503: it may be good, and is to be sent again.
  /// - Parameters:
  ///   - problem: what is to change until then; nil where the server is busy or at fault.
  ///   - afterSeconds: at least 1.
  case retry(FieldProblem?, afterSeconds: Int)
}

/// What became of a notification, as it is counted.
package enum NotificationResult: String, CaseIterable, Sendable {
  case recorded
  case known
  /// Refused by its head or its body: too large, too slow, no JSON.
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

/// How the claim of a synchronization on a notification ended.
package enum NotificationClaimEnd: Equatable, Sendable {
  case durable(Position)
  /// The projections had it: nothing was appended.
  case known
  case failed
}

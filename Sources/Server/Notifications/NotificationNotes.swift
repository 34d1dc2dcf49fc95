// What an operator is told about notifications. A stranger may send them: texts are few, and none is theirs unescaped.
import Base
import Intake

extension OperatorNotes {
  /// How many different bundle ids are reported in a pause. Anyone who sells an app can have the App Store send its
  /// notifications here.
  private static let bundleSlots: UInt64 = 16

  /// Reports that the App Store did not sign what was sent.
  func forgedNotification(_ problem: FieldProblem) {
    say(
      "a forged notification: \(problem)",
      key: "forged notification \(problem.field) \(problem.message)")
  }

  /// Reports a notification whose signature is good, but for the time.
  func notificationOutOfTime(_ problem: FieldProblem) {
    say(
      "a notification is out of time: \(problem); is this machine's clock right?",
      key: "notification out of time \(problem.message)")
  }

  /// Reports a notification about an app that is not registered.
  func unregisteredNotification(bundleID: String) {
    let shown = PrintableText.shortened(bundleID)
    say(
      "a notification was put off: its bundle id \(shellQuoted(shown)) is not registered: "
        + "'ledgerctl app add' or 'app edit --bundle-id' registers it",
      key: "unregistered notification \(Self.slot(of: bundleID))")
  }

  /// Reports a notification that names another `appAppleId` than its app declares.
  func wrongAppNotification(appFamily: UUID16) {
    say(
      "app family \(appFamily): a notification was put off: its appAppleId is not the one that the app "
        + "declares: 'ledgerctl app edit --app-apple-id' corrects it",
      key: "wrong app notification \(appFamily)")
  }

  /// Reports that a bundle's Sandbox sends more than is taken.
  func sandboxLimit(appFamily: UUID16) {
    say(
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

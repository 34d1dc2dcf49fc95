// The types of a synchronization with the App Store Server API: apps, ledger, options, summary.
import AppStore
package import Base
package import HTTPClient
import Intake
package import Ledger
package import Projections

/// An app whose team has a key.
package struct SyncApp: Sendable {
  package var family: UUID16
  /// By bundle id, sorted.
  package var accounts: [ServerAPIAccount]
  /// The App Store's number of the app; nil if it is not declared.
  package var appAppleID: Int64?

  package init(family: UUID16, accounts: [ServerAPIAccount], appAppleID: Int64?) {
    self.family = family
    self.accounts = accounts
    self.appAppleID = appAppleID
  }

  /// Nil if the app has no key.
  package init?(_ app: AppFamily, _ configuration: Configuration) {
    guard let keys = configuration.apps[app.id.description]?.serverAPI else { return nil }
    self.init(
      family: app.id,
      accounts: app.bundleIDs.map { keys.account(bundleID: $0) }, appAppleID: app.appAppleID)
  }
}

/// A synchronization's view of the ledger. Used by one thread.
package protocol SyncLedger: AnyObject {
  /// Appends events as one frame; they are durable when it returns.
  func append(_ drafts: [EventDraft]) throws -> Range<Position>
  /// Folds what was appended, and returns queries of the folded state.
  func folded() throws -> SyncQueries
  /// Whether stored events have lost data since `folded()`: its queries keep the replaced projections open.
  var isOutdated: Bool { get }
  /// Claims a notification before it is looked up and appended; false if another caller is appending it, or has.
  func claim(notification uuid: String) -> Bool
  /// Ends a claim.
  func release(notification uuid: String, _ end: NotificationClaimEnd)
}

extension SyncLedger {
  package var isOutdated: Bool { false }

  /// Grants every claim: for a ledger to which no other process appends notifications.
  package func claim(notification uuid: String) -> Bool { true }
  package func release(notification uuid: String, _ end: NotificationClaimEnd) {}
}

/// Queries of the projections.
package struct SyncQueries {
  package var fetches: FetchQueries
  package var intake: IntakeLookup

  package init(
    _ database: Database, readEvent: @escaping (Position) throws -> [UInt8]
  ) throws {
    fetches = try FetchQueries(database, readEvent: readEvent)
    intake = try IntakeLookup(database)
  }
}

/// The options of a synchronization.
package struct SyncOptions: Sendable {
  /// The most calls at once.
  package var callsMax = 16
  /// In each environment.
  package var callsPerSecond = 50
  /// Histories last fetched before this are checked for anything new, and notifications are fetched from this moment
  /// on; nil for none. Epoch milliseconds.
  package var sinceMs: Int64?
  /// Whether everything is fetched from its beginning, whatever was fetched before.
  package var isAgain = false
  /// Whether notification histories are fetched.
  package var fetchesNotifications = true
  /// Customers are those of the sales after this number.
  package var afterSale: Int64 = -1
  /// How often a call is made if it fails and may succeed later.
  package var attemptsMax = 4
  package var retry = RetrySchedule(firstMs: 1_000, ceilingMs: 30_000)
  /// How many failures in a row end the calls to an environment.
  package var failuresMax = 12
  package var clock = WorkflowClock()

  package init() {}
}

/// Notifications that the ledger did not have.
package struct SyncGap: Equatable, Sendable {
  package var bundleID: String
  package var environment: String
  package var notifications: Int
  /// When the App Store signed the first and the last, in epoch milliseconds.
  package var firstMs: Int64
  package var lastMs: Int64
}

/// The result of a synchronization. The counts cover what is on disk.
package struct SyncSummary: Equatable, Sendable {
  package var calls = 0
  package var pages = 0
  /// Notifications in the histories that the ledger already had.
  package var knownNotifications = 0
  /// Notifications that the ledger did not have and now has.
  package var newNotifications = 0
  /// Notifications with invalid signatures or content, or of another app.
  package var refusedNotifications = 0
  /// Transactions in histories with invalid signatures or content.
  package var refusedTransactions = 0
  /// Signed objects in the log that were rejected before, and count from now on.
  package var acceptedObjects = 0
  /// Histories that were fetched to their end, and those that already were.
  package var histories = 0
  package var knownHistories = 0
  /// Transactions that the App Store does not know.
  package var unknownTransactions = 0
  /// Histories that could not be fetched to their end.
  package var failures = 0
  /// Sales that the ledger did not know.
  package var newSales = 0
  package var gaps: [SyncGap] = []
  /// Messages for the operator, without secrets and users.
  package var problems: [String] = []
  package var isInterrupted = false
  /// The number of the newest sale that was visited.
  package var newestSale: Int64 = -1
  package var positions: ClosedRange<Position>?

  package init() {}

  /// Whether something remains to be fetched.
  package var isWhole: Bool {
    failures == 0 && problems.isEmpty && refusedNotifications == 0 && !isInterrupted
  }
}

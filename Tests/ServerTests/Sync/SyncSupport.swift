// Shared by tests of synchronizations: a scripted App Store Server API, and a ledger.
import AppStore
import AppStoreAuthority
import Base
import Foundation
import HTTPClient
import Intake
import Ledger
import Projections
import Server
import TestSupport
import Testing

/// Answers calls by a script, at once.
final class ScriptedServerAPI: ServerAPIService {
  typealias Script = @Sendable (ServerAPICall, AppStoreEndpoint, Int) -> ServerAPIResponse

  private let state = Monitor<[String]>([])
  private let script: Script

  init(_ script: @escaping Script) { self.script = script }

  /// `production history 1 r1`, in the order of the calls.
  var calls: [String] { state.withLock { $0 } }

  func send(
    _ call: ServerAPICall, as account: ServerAPIAccount, to endpoint: AppStoreEndpoint,
    completion: @escaping @Sendable (ServerAPIResponse) -> Void
  ) {
    let index = state.withLock { calls in
      calls.append("\(endpoint.rawValue) \(Self.text(call))")
      return calls.count - 1
    }
    completion(script(call, endpoint, index))
  }

  private static func text(_ call: ServerAPICall) -> String {
    switch call {
    case .history(let id, let revision): "history \(id) \(revision ?? "-")"
    case .notificationHistory(_, _, let token): "notifications \(token ?? "-")"
    default: "other"
    }
  }

  func host(of endpoint: AppStoreEndpoint) -> String { "\(endpoint.rawValue).example" }
  func shutDown() {}
}

extension ServerAPIResponse {
  /// A page of a history.
  static func page(
    _ transactions: [String], revision: String? = nil, hasMore: Bool = false
  ) -> ServerAPIResponse {
    var page = ServerAPIPage()
    page.transactions = transactions.map { Array($0.utf8) }
    page.revision = revision
    page.hasMore = hasMore
    return .page(page)
  }

  /// A page of a notification history.
  static func told(
    _ notifications: [String], token: String? = nil, hasMore: Bool = false
  ) -> ServerAPIResponse {
    var page = ServerAPIPage()
    page.notifications = notifications.map { Array($0.utf8) }
    page.revision = token
    page.hasMore = hasMore
    return .page(page)
  }

  static let notFound = ServerAPIResponse.settled(errorCode: 4_040_010)
}

/// A ledger with an app that has a key, and its synchronizations.
final class SyncFixture: SyncLedger {
  let ledger: LedgerFixture
  let apps: [SyncApp]
  var verifier: SignedObjectVerifier
  var options = SyncOptions()
  /// Notifications that another task is appending.
  var foreignUUIDs: Set<String> = []
  /// How claims on notifications ended.
  private(set) var ends: [String: NotificationClaimEnd] = [:]
  /// The pauses that hosts asked for.
  private(set) var pauses: [String] = []

  init(_ events: [TestEvent], appAppleID: Int64? = nil) throws {
    ledger = try LedgerFixture()
    let key = try ServerAPIKey(pem: try SigningKey(curve: .p256).pem())
    let account = ServerAPIAccount(issuerID: "i", keyID: "KEY1", key: key, bundleID: "app")
    let family = try #require(UUID16(TestEvent.signedFamily))
    apps = [SyncApp(family: family, accounts: [account], appAppleID: appAppleID)]
    verifier = SignedObjectVerifier(
      pinnedRoots: [try SignedSample.authority.get().root.fingerprint])
    options.callsPerSecond = 10_000
    options.fetchesNotifications = false
    options.retry = RetrySchedule(firstMs: 1, ceilingMs: 1)
    let app = AppRegistered(
      appFamilyID: TestEvent.signedFamily, name: "App", bundleIDs: ["app"], products: [])
    try ledger.append([.app(app)] + events)
  }

  func append(_ drafts: [EventDraft]) throws -> Range<Position> {
    let first = try ledger.append(drafts: drafts)
    return first..<first + drafts.count
  }

  func claim(notification uuid: String) -> Bool { !foreignUUIDs.contains(uuid) }

  func release(notification uuid: String, _ end: NotificationClaimEnd) { ends[uuid] = end }

  func folded() throws -> SyncQueries {
    let reader = try LogReader(ledger.directory)
    return try SyncQueries(try ledger.current()) { try reader.event(at: $0) }
  }

  @discardableResult
  func run(_ service: ScriptedServerAPI, stop: StopFlag = StopFlag()) throws -> SyncSummary {
    try AppStoreSync(
      apps, service: service, ledger: self, verifier: verifier, options: options, stop: stop,
      onPause: { self.pauses.append("\($0) \($1)") }
    ).run()
  }

  /// The first column of each row.
  func texts(_ sql: String) throws -> [String] {
    let rows = try ledger.current().prepare(sql)
    var result: [String] = []
    while try rows.step() { result.append(rows.optionalText(0) ?? "-") }
    return result
  }

  /// Each fetched page: what was requested, the revision, the error, and whether more follows.
  var pages: [String] {
    get throws {
      try texts(
        """
        SELECT environment || ' ' || call || ' ' || ifnull(transaction_id, '-') || ' '
        || ifnull(revision, '-') || ' ' || ifnull(error_code, '-') || ' ' || has_more
        FROM fetch_view ORDER BY position
        """)
    }
  }
}

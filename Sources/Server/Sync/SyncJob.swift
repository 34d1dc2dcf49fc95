// One question to the App Store Server API, about a customer or for notifications; and the customers to ask about.
import AppStore
import Base
import HTTPClient
import Projections

/// A call to be made, and whom it concerns.
struct SyncJob: Sendable {
  enum Subject: Sendable, Equatable {
    /// - Parameter isFallback: whether the other environment did not know the transaction.
    case history(transactionID: String, revision: String?, isFallback: Bool)
    case notifications(fromMs: Int64, toMs: Int64, token: String?)
  }

  let app: SyncApp
  let account: ServerAPIAccount
  let endpoint: AppStoreEndpoint
  var subject: Subject
  /// How often it failed.
  var failures = 0
  /// Whether the call was rejected once, with a token that was then given up.
  var wasUnauthorized = false
  /// The number of pages fetched before it.
  var pages = 0
  /// What the previous pages showed, as hashes of ids, and how many in a row showed nothing new.
  private var shown: Set<Int> = []
  private(set) var pagesWithoutNews = 0
  /// Set by the first page with a rejected object.
  var hold: Hold?

  /// The most pages of one customer or range, and the most in a row that show nothing new: otherwise a fetch might
  /// never end.
  static let pagesMax = 50_000
  static let pagesWithoutNewsMax = 100
  private static let shownMax = 65_536

  /// What must be requested again, because something in it was rejected.
  enum Hold: Sendable, Equatable {
    /// The revision with which the first such page of a history was requested; nil for the first page.
    case history(revision: String?)
    /// When the first and the last rejected notification were signed.
    case notifications(ClosedRange<Int64>)
  }

  init(
    app: SyncApp, account: ServerAPIAccount, endpoint: AppStoreEndpoint, subject: Subject
  ) {
    self.app = app
    self.account = account
    self.endpoint = endpoint
    self.subject = subject
  }

  /// Records what a page showed.
  mutating func record(shown ids: [String]) {
    let known = shown
    if shown.count + ids.count > Self.shownMax { shown = [] }
    shown.formUnion(ids.map(\.hashValue))
    pagesWithoutNews = shown.isSubset(of: known) ? pagesWithoutNews + 1 : 0
  }

  /// In the form of events and reports.
  var environment: String { endpoint == .production ? "Production" : "Sandbox" }

  var call: ServerAPICall {
    switch subject {
    case .history(let id, let revision, _): .history(transactionID: id, revision: revision)
    case .notifications(let fromMs, let toMs, let token):
      .notificationHistory(fromMs: fromMs, toMs: toMs, paginationToken: token)
    }
  }

  /// The text with which the page was requested; nil for the first.
  var revision: String? {
    switch subject {
    case .history(_, let revision, _): revision
    case .notifications(_, _, let token): token
    }
  }

  /// The same question with another revision: the next page, or, without a revision, from the start.
  func asked(with revision: String?) -> SyncJob {
    var next = self
    next.failures = 0
    next.wasUnauthorized = false
    next.pages += 1
    switch subject {
    case .history(let id, _, let isFallback):
      next.subject = .history(transactionID: id, revision: revision, isFallback: isFallback)
    case .notifications(let fromMs, let toMs, _):
      next.subject = .notifications(fromMs: fromMs, toMs: toMs, token: revision)
    }
    return next
  }
}

extension AppStoreEndpoint {
  /// The endpoint of an environment; nil if Apple has none for it.
  init?(environment: String) {
    switch environment {
    case "Production": self = .production
    case "Sandbox": self = .sandbox
    default: return nil
    }
  }
}

/// The ledger's customers to ask about, read page by page.
struct SyncCustomers {
  /// How many sales are read at once.
  private static let batchMax = 256
  /// How many customers are remembered, so that their other sales do not cause another question.
  private static let askedMax = 65_536

  private let apps: [SyncApp]
  private let sinceMs: Int64?
  private let isAgain: Bool
  /// The sale that was read last.
  private(set) var sale: Int64
  private var batch: ArraySlice<FetchCustomer> = []
  private var asked: Set<String> = []
  private(set) var knownHistories = 0
  private var hasEnded = false

  init(_ apps: [SyncApp], _ options: SyncOptions) {
    self.apps = apps
    sinceMs = options.sinceMs
    isAgain = options.isAgain
    sale = options.afterSale
  }

  /// The next question; nil once every customer was visited.
  mutating func next(_ queries: SyncQueries) throws -> SyncJob? {
    while true {
      if batch.isEmpty {
        if hasEnded { return nil }
        try read(queries)
        continue
      }
      if let job = try job(batch.removeFirst(), queries) { return job }
    }
  }

  private mutating func read(_ queries: SyncQueries) throws {
    let found = try queries.fetches.customers(afterSale: sale, limit: Self.batchMax)
    if let last = found.last { sale = last.sale } else { hasEnded = true }
    batch = ArraySlice(Self.spread(found))
  }

  /// The sales that one event showed first are mostly of one customer: they are spread, so that the reply about the
  /// first arrives before the others' turn.
  private static func spread(_ customers: [FetchCustomer]) -> [FetchCustomer] {
    var counts: [Int: Int] = [:]
    return customers.enumerated().map { offset, customer in
      let turn = counts[customer.firstPosition, default: 0]
      counts[customer.firstPosition] = turn + 1
      return (turn: turn, offset: offset, customer: customer)
    }.sorted { ($0.turn, $0.offset) < ($1.turn, $1.offset) }.map(\.customer)
  }

  /// Records what a page of a history shows: its customer need not be asked about again.
  mutating func record(
    shown originalTransactionIDs: Set<String>, environment: String, bundleID: String
  ) {
    for id in originalTransactionIDs { record("\(environment)\n\(bundleID)\n\(id)") }
  }

  private mutating func job(
    _ customer: FetchCustomer, _ queries: SyncQueries
  ) throws -> SyncJob? {
    guard let endpoint = AppStoreEndpoint(environment: customer.environment),
      let (app, account) = account(ofBundle: customer.bundleID), !wasAsked(customer, nil)
    else { return nil }
    let history = try queries.fetches.history(of: customer)
    if let history {
      if wasAsked(customer, history.transactionID) { return nil }
      let isOld = sinceMs.map { history.atMs < $0 } ?? false
      if history.isComplete, !isOld, !isAgain {
        knownHistories += 1
        record(customer, customer.originalTransactionID)
        return nil
      }
    }
    let id = history?.transactionID ?? customer.originalTransactionID
    record(customer, customer.originalTransactionID)
    record(customer, id)
    return SyncJob(
      app: app, account: account, endpoint: endpoint,
      subject: .history(
        transactionID: id, revision: isAgain ? nil : history?.revision, isFallback: false))
  }

  private func account(ofBundle bundleID: String) -> (SyncApp, ServerAPIAccount)? {
    for app in apps {
      if let account = app.accounts.first(where: { $0.bundleID == bundleID }) {
        return (app, account)
      }
    }
    return nil
  }

  private func key(_ customer: FetchCustomer, _ id: String) -> String {
    "\(customer.environment)\n\(customer.bundleID)\n\(id)"
  }

  private func wasAsked(_ customer: FetchCustomer, _ id: String?) -> Bool {
    asked.contains(key(customer, id ?? customer.originalTransactionID))
  }

  private mutating func record(_ customer: FetchCustomer, _ id: String) {
    record(key(customer, id))
  }

  private mutating func record(_ key: String) {
    if asked.count >= Self.askedMax { asked.removeAll(keepingCapacity: true) }
    asked.insert(key)
  }
}

// Turns answers of the App Store Server API into events, and counts what was new in them.
import AppStore
import AppStoreClient
import Base
import Intake
import JSON
import Ledger
import Projections

/// Appends pages. Used by one thread.
final class SyncRecorder {
  private let ledger: any SyncLedger
  private let verifier: SignedObjectVerifier
  private let clock: WorkflowClock
  private let keeper = TextKeeper()
  /// Positions that were appended since the last fold, in order.
  private var unfolded: [Range<Position>] = []
  /// The UUIDs of notifications that are not folded yet.
  private var newUUIDs: Set<String> = []
  private var newestSale: Int64

  init(
    _ ledger: any SyncLedger, _ verifier: SignedObjectVerifier, clock: WorkflowClock,
    newestSale: Int64
  ) {
    self.ledger = ledger
    self.verifier = verifier
    self.clock = clock
    self.newestSale = newestSale
  }

  /// How many events were appended since the last fold.
  private(set) var unfoldedCount = 0

  // MARK: Histories

  /// Appends a page of a history; nil, and nothing, if it holds what is no signed object, or more than an event can.
  /// - Returns: the original transaction ids of its valid transactions.
  func record(
    _ page: ServerAPIPage, of job: SyncJob, host: String, _ summary: inout SyncSummary
  ) throws -> Set<String>? {
    let nowMs = clock.nowMs()
    var records: [SignedObjectRecord] = []
    var shown: Set<String> = []
    guard page.transactions.count <= TransactionsFetched.objectCountMax else { return nil }
    for (index, text) in page.transactions.enumerated() {
      guard let object = try? SignedObject(text) else { return nil }
      let checked = CheckedSignedObject(
        object, .transaction(index), verifier, keeper, nowMs: nowMs)
      guard let record = try? checked.record() else { return nil }
      records.append(record)
      if checked.fault == nil, let id = originalTransactionID(object) { shown.insert(id) }
    }
    var event = event(page, job, host: host, nowMs: nowMs)
    event.transactions = records
    let data = event.data
    guard data.count <= EventLimits.dataBytes else { return nil }
    try append([EventDraft(.transactionsFetched, data)], &summary)
    return shown
  }

  private func originalTransactionID(_ object: SignedObject) -> String? {
    keeper.removeAll()
    return object.payload.withUnsafeBytes { payload in
      let row = (try? SignedTransaction(payload: payload, keeper))?.row
      return (row?.originalTransactionID ?? row?.transactionID).map {
        String(decoding: $0, as: UTF8.self)
      }
    }
  }

  /// Appends an error that settles a question about a transaction.
  func record(
    errorCode: Int64, of job: SyncJob, host: String, _ summary: inout SyncSummary
  ) throws {
    var event = event(ServerAPIPage(), job, host: host, nowMs: clock.nowMs())
    event.errorCode = errorCode
    try append([EventDraft(.transactionsFetched, event.data)], &summary)
  }

  private func event(
    _ page: ServerAPIPage, _ job: SyncJob, host: String, nowMs: Int64
  ) -> TransactionsFetched {
    var event = TransactionsFetched(
      appFamilyID: job.app.family.description, bundleID: job.account.bundleID,
      environment: job.environment, occurredAtMs: nowMs, call: .history, host: host,
      hasMore: page.hasMore)
    event.revision = page.revision
    switch job.subject {
    case .history(let transactionID, _, _): event.transactionID = transactionID
    case .notifications(let fromMs, let toMs, _):
      event.call = .notificationHistory
      (event.fromMs, event.toMs) = (fromMs, toMs)
    }
    return event
  }

  // MARK: Notifications

  /// Appends a page of a notification history, with the notifications that the ledger does not have; false, and
  /// nothing, if it holds what is no signed object.
  func recordNotifications(
    _ page: ServerAPIPage, of job: SyncJob, host: String, _ queries: SyncQueries,
    _ summary: inout SyncSummary
  ) throws -> Bool {
    let nowMs = clock.nowMs()
    var drafts = [
      EventDraft(.transactionsFetched, event(page, job, host: host, nowMs: nowMs).data)
    ]
    var added: [(uuid: String, signedAtMs: Int64)] = []
    var isAppended = false
    defer {
      if !isAppended { for one in added { ledger.release(notification: one.uuid, .failed) } }
    }
    var (knownCount, refusedCount) = (0, 0)
    for text in page.notifications {
      guard let object = try? SignedObject(text) else { return false }
      let checked = CheckedNotification(object, verifier, nowMs: nowMs)
      guard isGood(checked, of: job) else {
        refusedCount += 1
        continue
      }
      let uuid = checked.uuid
      let isNew = try !added.contains { $0.uuid == uuid } && claim(uuid, queries)
      guard isNew else {
        knownCount += 1
        continue
      }
      added.append((uuid, object.signedDateMs ?? nowMs))
      guard
        let draft = try? checked.draft(
          appFamily: job.app.family, occurredAtMs: nowMs, origin: .fetch)
      else { return false }
      drafts.append(draft)
    }
    let first = try append(drafts, &summary).lowerBound
    isAppended = true
    for (index, one) in added.enumerated() {
      ledger.release(notification: one.uuid, .durable(first + 1 + index))
    }
    newUUIDs.formUnion(added.map(\.uuid))
    summary.knownNotifications += knownCount
    summary.refusedNotifications += refusedCount
    summary.newNotifications += added.count
    for one in added { note(one.signedAtMs, job, &summary) }
    return true
  }

  /// Claims a notification that the ledger does not have; false if it has it, or is about to.
  private func claim(_ uuid: String, _ queries: SyncQueries) throws -> Bool {
    if newUUIDs.contains(uuid) { return false }
    guard ledger.claim(notification: uuid) else { return false }
    do {
      guard try queries.intake.containsNotification(uuid) else { return true }
    } catch {
      ledger.release(notification: uuid, .failed)
      throw error
    }
    ledger.release(notification: uuid, .known)
    return false
  }

  /// Whether a notification and what lies in it are signed, and of the app that was asked about.
  private func isGood(_ checked: CheckedNotification, of job: SyncJob) -> Bool {
    checked.problems.isEmpty && !checked.uuid.isEmpty
      && checked.objects.allSatisfy { object in
        object.fault == nil && !object.isLocal && object.names(appAppleID: job.app.appAppleID)
          && (object.place == .notifiedRenewal || object.bundleID == job.account.bundleID)
      }
  }

  private func note(_ atMs: Int64, _ job: SyncJob, _ summary: inout SyncSummary) {
    let place = summary.gaps.firstIndex {
      $0.bundleID == job.account.bundleID && $0.environment == job.environment
    }
    guard let place else {
      return summary.gaps.append(
        SyncGap(
          bundleID: job.account.bundleID, environment: job.environment, notifications: 1,
          firstMs: atMs, lastMs: atMs))
    }
    summary.gaps[place].notifications += 1
    summary.gaps[place].firstMs = min(summary.gaps[place].firstMs, atMs)
    summary.gaps[place].lastMs = max(summary.gaps[place].lastMs, atMs)
  }

  // MARK: Appending

  @discardableResult
  private func append(
    _ drafts: [EventDraft], _ summary: inout SyncSummary
  ) throws -> Range<Position> {
    let positions = try ledger.append(drafts)
    summary.pages += 1
    summary.positions =
      min(
        summary.positions?.lowerBound ?? .max, positions.lowerBound)...max(
        summary.positions?.upperBound ?? 0, positions.upperBound - 1)
    unfoldedCount += drafts.count
    if let last = unfolded.last, last.upperBound == positions.lowerBound {
      unfolded[unfolded.count - 1] = last.lowerBound..<positions.upperBound
    } else {
      unfolded.append(positions)
    }
    return positions
  }

  /// Counts the sales that the appended pages showed first; they are folded now.
  func countSales(_ queries: SyncQueries, _ summary: inout SyncSummary) throws {
    let ranges = unfolded
    if !ranges.isEmpty {
      summary.newSales += try queries.fetches.sales(after: newestSale) { position in
        // The first range that ends after it.
        var (low, high) = (0, ranges.count)
        while low < high {
          let middle = (low + high) / 2
          if ranges[middle].upperBound > position { high = middle } else { low = middle + 1 }
        }
        return low < ranges.count && ranges[low].contains(position)
      }
    }
    newestSale = try queries.fetches.newestSale()
    unfolded = []
    unfoldedCount = 0
    newUUIDs = []
  }
}

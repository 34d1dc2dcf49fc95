// Turns replies of the App Store Server API into events, and counts what was new in them.
import AppStore
import Base
import HTTPClient
import Intake
import Ledger
import Projections

/// Appends pages. Used by one thread.
final class SyncRecorder {
  private let ledger: any SyncLedger
  private let verifier: SignedObjectVerifier
  private let clock: WorkflowClock
  private let keeper = TextKeeper()
  /// The positions appended since the last fold, in order.
  private var unfolded: [Range<Position>] = []
  /// The UUIDs of notifications that are not folded yet.
  private var newUUIDs: Set<String> = []
  private var newestSale: Int64

  /// How many pages are read, with their objects accepted, in one append: at most 15 MB.
  private static let pagesAtOnce = 64

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

  /// Appends a page of a history; appends nothing and returns nil if it exceeds an event's limit.
  ///
  /// From the first page with a rejected object on, the events record that the history must be requested again from
  /// that page. Such a page is appended once: a later request mostly returns the same.
  func record(
    _ page: ServerAPIPage, of job: SyncJob, host: String, _ queries: SyncQueries,
    _ summary: inout SyncSummary
  ) throws -> RecordedPage? {
    let nowMs = clock.nowMs()
    var recorded = RecordedPage(hold: job.hold)
    var records: [SignedObjectRecord] = []
    guard page.transactions.count <= TransactionsFetched.objectCountMax else { return nil }
    for (index, text) in page.transactions.enumerated() {
      let checked: CheckedSignedObject
      do throws(SignedObjectFault) {
        checked = CheckedSignedObject(
          try SignedObject(text), .transaction(index), verifier, keeper, nowMs: nowMs,
          environment: job.environment)
      } catch {
        recorded.refusals.insert(error.description)
        continue
      }
      guard let record = try? checked.record() else {
        recorded.refusals.insert(SignedObjectFault.payloadNotJSON.description)
        continue
      }
      records.append(record)
      if let fault = checked.fault {
        recorded.refusals.insert(fault.description)
        summary.refusedTransactions += 1
      } else if let row = ids(checked.object) {
        recorded.ids.append(row.own)
        recorded.originals.insert(row.original)
      }
    }
    if !recorded.refusals.isEmpty, recorded.hold == nil {
      recorded.hold = .history(revision: job.revision)
    }
    var event = event(page, job, host: host, nowMs: nowMs)
    event.transactions = records
    if case .history(let revision)? = recorded.hold {
      (event.revision, event.hasMore) = (revision, true)
    }
    guard event.data.count <= EventLimits.dataBytes else { return nil }
    if recorded.hold != nil, try queries.fetches.containsHistoryPage(event) { return recorded }
    summary.pages += 1
    try append([EventDraft(.transactionsFetched, event.data)], &summary)
    return recorded
  }

  private func ids(_ object: SignedObject) -> (own: String, original: String)? {
    keeper.removeAll()
    return object.payload.withUnsafeBytes { payload in
      guard let row = (try? SignedTransaction(payload: payload, keeper))?.row,
        let any = row.transactionID ?? row.originalTransactionID
      else { return nil }
      return (
        String(decoding: any, as: UTF8.self),
        String(decoding: row.originalTransactionID ?? any, as: UTF8.self)
      )
    }
  }

  /// Appends an error that makes further calls about a transaction pointless.
  func record(
    errorCode: Int64, of job: SyncJob, host: String, _ summary: inout SyncSummary
  ) throws {
    var event = event(ServerAPIPage(), job, host: host, nowMs: clock.nowMs())
    event.errorCode = errorCode
    summary.pages += 1
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

  // MARK: Rejected objects

  /// Appends, page by page, which objects of earlier pages are good now.
  func acceptRefusedObjects(
    ofBundles bundleIDs: Set<String>, _ queries: SyncQueries, _ stop: StopFlag,
    _ summary: inout SyncSummary
  ) throws {
    let refused = RefusedObjects(
      bundleIDs: bundleIDs, verifier: verifier, nowMs: clock.nowMs())
    var last: Position? = -1
    while let position = last, !stop.isSet {
      var drafts: [EventDraft] = []
      last = try queries.fetches.forEachRefusedPage(after: position, limit: Self.pagesAtOnce) {
        page, line, accepted in
        guard let good = refused.goodNow(of: line, at: page, accepted: accepted) else { return }
        drafts.append(EventDraft(.signaturesAccepted, good.data))
        summary.acceptedObjects += good.transactions.count + good.renewals.count
      }
      if !drafts.isEmpty { try append(drafts, &summary) }
    }
  }

  // MARK: Notifications

  /// Appends a page of a notification history, with the notifications that the ledger does not have.
  ///
  /// A rejected notification leaves a gap in the ranges that are fetched to their end. A later page alone would not
  /// show it, so a range that was interrupted after a rejection begins again.
  func recordNotifications(
    _ page: ServerAPIPage, of job: SyncJob, host: String, _ queries: SyncQueries,
    _ summary: inout SyncSummary
  ) throws -> RecordedPage {
    let nowMs = clock.nowMs()
    var recorded = RecordedPage(hold: job.hold)
    var drafts: [EventDraft] = []
    var added: [(uuid: String, signedAtMs: Int64)] = []
    var isAppended = false
    defer {
      if !isAppended { for one in added { ledger.release(notification: one.uuid, .failed) } }
    }
    var (knownCount, refusedCount) = (0, 0)
    for text in page.notifications {
      let object: SignedObject
      do throws(SignedObjectFault) { object = try SignedObject(text) } catch {
        recorded.refuse(error.description, signedAtMs: nil, job)
        refusedCount += 1
        continue
      }
      let checked = CheckedNotification(object, verifier, nowMs: nowMs)
      if let reason = reasonToRefuse(checked, job) {
        recorded.refuse(reason, signedAtMs: object.signedDateMs, job)
        refusedCount += 1
        continue
      }
      let uuid = checked.uuid
      recorded.ids.append(uuid)
      let isNew = try !added.contains { $0.uuid == uuid } && claim(uuid, queries)
      guard isNew else {
        knownCount += 1
        continue
      }
      guard
        let draft = try? checked.draft(
          appFamily: job.app.family, occurredAtMs: nowMs, origin: .fetch)
      else {
        ledger.release(notification: uuid, .failed)
        recorded.refuse(
          SignedObjectFault.payloadNotJSON.description, signedAtMs: object.signedDateMs, job)
        refusedCount += 1
        continue
      }
      added.append((uuid, object.signedDateMs ?? nowMs))
      drafts.append(draft)
    }
    let pages = pageEvents(page, job, recorded.hold, host: host, nowMs: nowMs)
    summary.pages += 1
    let first = try append([pages[0]] + drafts + pages.dropFirst(), &summary).lowerBound
    isAppended = true
    for (index, one) in added.enumerated() {
      ledger.release(notification: one.uuid, .durable(first + 1 + index))
    }
    newUUIDs.formUnion(added.map(\.uuid))
    summary.knownNotifications += knownCount
    summary.refusedNotifications += refusedCount
    summary.newNotifications += added.count
    for one in added { recordGap(one.signedAtMs, job, &summary) }
    return recorded
  }

  /// The events of a page of a notification history: one; for the last page, two around what was rejected.
  private func pageEvents(
    _ page: ServerAPIPage, _ job: SyncJob, _ hold: SyncJob.Hold?, host: String, nowMs: Int64
  ) -> [EventDraft] {
    var event = event(page, job, host: host, nowMs: nowMs)
    guard case .notifications(let refused)? = hold, let fromMs = event.fromMs, let toMs = event.toMs
    else { return [EventDraft(.transactionsFetched, event.data)] }
    event.revision = nil
    if page.hasMore { return [EventDraft(.transactionsFetched, event.data)] }
    let endMs = max(fromMs, refused.lowerBound - 1)
    event.toMs = endMs
    let before = event.data
    event.fromMs = min(toMs, max(refused.upperBound + 1, endMs + 2))
    event.toMs = toMs
    return [before, event.data].map { EventDraft(.transactionsFetched, $0) }
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

  /// Why a notification is rejected; nil if it and its objects are signed and of the app that was asked about.
  private func reasonToRefuse(_ checked: CheckedNotification, _ job: SyncJob) -> String? {
    for object in checked.objects {
      if let fault = object.fault { return fault.description }
      if object.isLocal { return SignedObjectFault.localTestingEnvironment.description }
      let isOfBundle =
        object.place == .notifiedRenewal || object.bundleID == job.account.bundleID
      if !isOfBundle || !object.names(appAppleID: job.app.appAppleID) { return "of another app" }
    }
    if let problem = checked.problems.first { return problem.message }
    return checked.uuid.isEmpty ? SignedObjectFault.missingNotificationUUID.description : nil
  }

  private func recordGap(_ atMs: Int64, _ job: SyncJob, _ summary: inout SyncSummary) {
    let index = summary.gaps.firstIndex {
      $0.bundleID == job.account.bundleID && $0.environment == job.environment
    }
    guard let index else {
      return summary.gaps.append(
        SyncGap(
          bundleID: job.account.bundleID, environment: job.environment, notifications: 1,
          firstMs: atMs, lastMs: atMs))
    }
    summary.gaps[index].notifications += 1
    summary.gaps[index].firstMs = min(summary.gaps[index].firstMs, atMs)
    summary.gaps[index].lastMs = max(summary.gaps[index].lastMs, atMs)
  }

  // MARK: Appending

  @discardableResult
  private func append(
    _ drafts: [EventDraft], _ summary: inout SyncSummary
  ) throws -> Range<Position> {
    let positions = try ledger.append(drafts)
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

  /// Counts the sales that the appended pages, now folded, showed first.
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

/// What a page showed, and what of it was rejected.
struct RecordedPage {
  /// The ids of good objects: transaction ids, or UUIDs of notifications.
  var ids: [String] = []
  /// The original transaction ids of a history's good transactions.
  var originals: Set<String> = []
  /// Why objects were rejected, each reason once.
  var refusals: Set<String> = []
  /// What must be requested again, for this page and those before it.
  var hold: SyncJob.Hold?

  init(hold: SyncJob.Hold?) { self.hold = hold }

  /// Records that a notification was rejected.
  /// - Parameter signedAtMs: as it claims, which may be anything; nil if it has none.
  fileprivate mutating func refuse(_ reason: String, signedAtMs: Int64?, _ job: SyncJob) {
    refusals.insert(reason)
    guard case .notifications(let fromMs, let toMs, _) = job.subject else { return }
    let atMs = min(max(signedAtMs ?? fromMs, fromMs), toMs)
    if case .notifications(let range)? = hold {
      hold = .notifications(min(range.lowerBound, atMs)...max(range.upperBound, atMs))
    } else {
      hold = .notifications(atMs...atMs)
    }
  }
}

// MARK: - Rejected objects that are good now

/// Checks again the signed objects of an app's fetched pages that were rejected for a reason of time or trust.
struct RefusedObjects {
  /// Whose pages are looked at.
  let bundleIDs: Set<String>
  let verifier: SignedObjectVerifier
  /// The clock, in epoch milliseconds.
  let nowMs: Int64

  /// The objects of a page that are good now; nil if there are none, or none that were not accepted already.
  /// - Parameters:
  ///   - line: the page's event, without its line feed.
  ///   - accepted: what earlier events accepted of it.
  func goodNow(
    of line: [UInt8], at page: Position, accepted: [SignaturesAccepted]
  ) -> SignaturesAccepted? {
    line.withUnsafeBytes { line in
      guard let event = EventLine(line), EventType(event.type) == .transactionsFetched,
        event.version == EventType.transactionsFetched.currentVersion,
        let view = try? TransactionsFetchedView(data: event.data, isRedacted: event.isRedacted),
        view.bundleID.map({ bundleIDs.contains($0.string) }) ?? false
      else { return nil }
      let keeper = TextKeeper()
      func good(
        _ objects: [SignedObjectView], _ known: [[SignaturesAccepted.Object]],
        _ place: (Int) -> SignedObjectPlace
      ) -> [SignaturesAccepted.Object] {
        let knownIndexes = Set(known.joined().map(\.index))
        return objects.indices.compactMap { index in
          let object = objects[index]
          // An object that a redaction reduced has nothing left to check.
          guard object.mayBecomeGood, !object.isReduced, !knownIndexes.contains(index),
            let signed = try? SignedObject(object.text),
            case .valid(let root) = CheckedSignedObject(
              signed, place(index), verifier, keeper, nowMs: nowMs,
              environment: view.environment?.string
            ).verdict
          else { return nil }
          return SignaturesAccepted.Object(index: index, root: root)
        }
      }
      let transactions = good(view.transactions, accepted.map(\.transactions)) { .transaction($0) }
      let renewals = good(view.renewals, accepted.map(\.renewals)) { _ in .notifiedRenewal }
      if transactions.isEmpty, renewals.isEmpty { return nil }
      return SignaturesAccepted(
        page: page, occurredAtMs: nowMs, transactions: transactions, renewals: renewals)
    }
  }
}

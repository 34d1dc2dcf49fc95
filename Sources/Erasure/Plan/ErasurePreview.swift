// What an erasure would do, without doing it.
import Base
package import Ledger
package import Projections

extension ErasurePreview {
  /// What a request would redact now.
  ///
  /// Throws `refused` for what can't be erased.
  /// - Parameter isExact: whether to read the events, to count those that lose data, and the log, to look for the
  ///   identifier in data of others. The log is searched in any case if nothing would be redacted.
  package static func of(
    _ subject: ErasureSubject, _ reader: LogReader, _ database: Database, isExact: Bool,
    isCancelled: () -> Bool = { false }
  ) throws(ErasureError) -> ErasurePreview {
    try of(reader, database, isExact, isCancelled) {
      try $0.plan(subject, requestedAtMs: Timestamp.now())
    }
  }

  /// What retention would redact now.
  package static func of(
    _ rules: RetentionRules, nowMs: Int64, _ reader: LogReader, _ database: Database,
    isCancelled: () -> Bool = { false }
  ) throws(ErasureError) -> ErasurePreview {
    var pass: RetentionPass?
    var preview = try of(reader, database, true, isCancelled) { planner in
      let plan = try planner.plan(rules, nowMs: nowMs)
      pass = try planner.pass(of: plan)
      return plan
    }
    preview.retention = pass
    return preview
  }

  private static func of(
    _ reader: LogReader, _ database: Database, _ isExact: Bool, _ isCancelled: () -> Bool,
    _ makePlan: (ErasurePlanner) throws -> ErasurePlan
  ) throws(ErasureError) -> ErasurePreview {
    do {
      var preview = ErasurePreview()
      let end = reader.head.size
      let plan = try withoutActuallyEscaping(isCancelled) { isCancelled in
        try makePlan(
          try ErasurePlanner(database, reader, before: end, isCancelled: isCancelled))
      }
      (preview.plan, preview.frontier) = (plan, reader.head.frontier)
      preview.receipts = plan.receiptCount
      (preview.waitingReceipts, preview.waitsUntilMs) = (
        plan.waitingReceiptCount, plan.waitsUntilMs
      )
      preview.sharedUploads = plan.targets.count { $0.extent == .names }
      preview.withoutUser = plan.withoutUser.sorted { $0.key < $1.key }
        .map { (position: $0.key, reason: $0.value) }
      preview.snapshots = SnapshotStore(reader.directory).snapshots.count
      guard isExact || plan.isEmpty else {
        preview.targetCount = plan.targets.count
        return preview
      }
      // The digest of a line is of no matter here: nothing is written.
      var reduction = try LineReduction([(end, plan)], database) { $0 }
      try reduction.run(reader, isCancelled: isCancelled) { _ in }
      preview.events = reduction.events(of: 0)
      preview.targetCount = preview.eventCount
      let search = IdentifierSearch(plan.identifiers)
      try search.run(
        reader, before: end, excluding: Set(plan.targets.map(\.position)),
        isCancelled: isCancelled)
      (preview.remaining, preview.remainingPositions) = search.result
      if search.isPartial { preview.notSearched = [.shortIdentifiers] }
      return preview
    } catch { throw Eraser.erasureError(error) }
  }
}

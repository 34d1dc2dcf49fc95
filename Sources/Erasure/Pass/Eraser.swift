// Carries out erasures: plans, redacts, rebuilds, rewrites, and finishes interrupted passes.
package import Base
package import Ledger
package import Projections

/// Carries out erasures with the ledger's writer, which the caller still owns. Used by one thread.
///
/// The order makes every step repeatable: a request is durable before it begins; the redacted lines are durable, and
/// projections without the data are complete, before either is put in use; from then on every reader sees the redacted
/// lines, and the remaining steps can be repeated from them.
package final class Eraser {
  let writer: LedgerWriter
  var directory: LedgerDirectory
  private let projections: ProjectionSet
  let observer: Projector.Observer
  let onProjectionsReplaced: () throws -> Void
  let queue: ErasureQueue
  /// How many events lost data that no request named: by retention, and late replies.
  package private(set) var redactedEventCount = 0
  /// What retention would have erased in the last pass; nil unless it was so much that an operator must confirm it.
  package private(set) var heldRetention: RetentionPass?

  /// - Parameters:
  ///   - projections: those that the ledger's database holds.
  ///   - observer: receives progress; its `isCancelled` ends a pass before it is committed, and between segments.
  ///   - onProjectionsReplaced: called when projections without what was redacted are in use, and when events were
  ///     appended.
  package init(
    _ directory: LedgerDirectory, _ writer: LedgerWriter, projections: ProjectionSet,
    observer: Projector.Observer = Projector.Observer(),
    onProjectionsReplaced: @escaping () throws -> Void = {}
  ) {
    self.directory = directory
    self.writer = writer
    self.projections = projections
    self.observer = observer
    self.onProjectionsReplaced = onProjectionsReplaced
    queue = ErasureQueue(directory)
  }

  /// A request of a pass.
  struct Item {
    /// Nil for retention.
    var record: ErasureRecord?
    var scope: DataRedacted.Scope
    var reason: String
    var request: UUID16
    var erasure: Position = -1
    var plan = ErasurePlan()
    /// The number of events that the plan covers; -1 if requests before this one were planned and dropped.
    var plannedEnd: Position = -1
    var certificate = ErasureCertificate()
    /// Searches for the identifiers while the projections are built.
    var search: IdentifierSearch?

    init(_ record: ErasureRecord) {
      self.record = record
      (scope, reason, request) = (record.scope, record.reason, record.id)
    }

    init(_ opening: DataRedacted.Opening) {
      (scope, reason, request) = (opening.scope, opening.reason, opening.request)
    }
  }

  // MARK: Pass

  /// Carries out all open requests and retention in one pass over the log.
  /// - Parameters:
  ///   - isRetentionConfirmed: whether an operator has confirmed retention, however much it erases.
  ///   - preview: what one of the requests would redact, so that it is not planned again.
  /// - Returns: the records of the requests as they are now.
  package func run(
    retention: RetentionRules? = nil, nowMs: Int64 = Timestamp.now(),
    isRetentionConfirmed: Bool = false, preview: (request: UUID16, ErasurePreview)? = nil
  ) throws(ErasureError) -> [ErasureRecord] {
    heldRetention = nil
    do {
      _ = try finishInterrupted()
      let open = try queue.open()
      var items = try wanted(open, retention, nowMs, isRetentionConfirmed, preview)
      if !items.isEmpty {
        // A ledger that allows redactions had a key; fail if it is lost.
        _ = try LineHMACKey.made(writer.directory)
        directory = try writer.directory.allowingRedactions()
        try begin(&items)
        try redact(&items, retention, nowMs)
      }
      try queue.tidy()
      return try open.compactMap { try queue.record($0.id) }
    } catch { throw Self.erasureError(error) }
  }

  static func erasureError(_ error: any Error) -> ErasureError {
    switch error {
    case let error as ErasureError: return error
    case let error as LedgerError: return .ledger(error)
    case let error as ProjectionError:
      if case .interrupted = error { return .interrupted }
      return .projections(error)
    case let error as DatabaseError: return .projections(.database(error))
    default: return .projections(.output(error))
    }
  }

  func projector(_ reader: LogReader) -> Projector {
    Projector(reader, observer: observer, projections: projections)
  }

  /// The requests that have something to redact. The others are finished here.
  private func wanted(
    _ open: [ErasureRecord], _ retention: RetentionRules?, _ nowMs: Int64,
    _ isRetentionConfirmed: Bool, _ preview: (request: UUID16, ErasurePreview)?
  ) throws -> [Item] {
    let rules = retention.flatMap { $0.isEmpty ? nil : $0 }
    directory = try writer.directory.reread()
    let hadErasures = directory.identity.formatVersion >= Format.versionWithRedactions
    if open.isEmpty, rules == nil, !hadErasures { return [] }
    let reader = try LogReader(directory, .durable)
    let database = try projector(reader).current()
    let planner = try planner(database, reader, before: reader.head.size)
    var items: [Item] = []
    var ended: [(record: ErasureRecord, search: IdentifierSearch)] = []
    for (record, result) in try plans(of: open, planner, hasRules: rules != nil, preview) {
      do throws(ErasureError) {
        let plan = try result.get()
        guard plan.isEmpty else {
          var item = Item(record)
          item.plan = plan
          items.append(item)
          continue
        }
        ended.append((record, IdentifierSearch(plan.identifiers)))
      } catch {
        guard case .refused = error else { throw error }
        try queue.finish(record, .failure(error))
      }
    }
    try IdentifierSearch.run(
      ended.map(\.search), reader, before: reader.head.size, isCancelled: observer.isCancelled)
    for (record, search) in ended {
      try end(record, search, reader, database, nowMs: nowMs)
    }
    if let rules {
      var item = Item(
        DataRedacted.Opening(request: .random(), scope: .retention, reason: "retention"))
      item.plan = try planner.plan(rules, nowMs: nowMs)
      if let pass = try planner.pass(of: item.plan) {
        if pass.isUnusual, !isRetentionConfirmed {
          heldRetention = pass
        } else {
          items.append(item)
        }
      }
    }
    if hadErasures {
      var item = Item(DataRedacted.Opening(ofNoRequest: DataRedacted.lateReason))
      item.plan = try planner.planAnswered(nowMs: nowMs)
      if !item.plan.isEmpty { items.append(item) }
    }
    if items.count(where: { $0.record != nil }) == open.count {
      for index in items.indices { items[index].plannedEnd = reader.head.size }
    }
    return items
  }

  /// Finishes a request that has nothing to redact. An interrupted pass may have opened its erasure.
  private func end(
    _ record: ErasureRecord, _ search: IdentifierSearch, _ reader: LogReader,
    _ database: Database, nowMs: Int64
  ) throws {
    var certificate = ErasureCertificate()
    certificate.record(search)
    certificate.erasure = try opening(of: record.id, database)
    if let erasure = certificate.erasure {
      var item = Item(record)
      item.erasure = erasure
      try list(item, nil)
      try reader.refresh()
      try onProjectionsReplaced()
    }
    (certificate.size, certificate.root) = (reader.head.size, reader.head.root)
    certificate.finishedAtMs = nowMs
    try queue.finish(record, .success(certificate))
  }

  /// The position of the event that opened a request's erasure, if there is one.
  func opening(of request: UUID16, _ database: Database) throws -> Position? {
    let known = try database.prepare("SELECT position FROM redactions WHERE request = ?")
    known.bind(1, text: request.description)
    return try known.step() ? try known.ordinal(0) : nil
  }

  /// Plans the requests, or takes the plan of the only one from its preview.
  private func plans(
    of open: [ErasureRecord], _ planner: ErasurePlanner, hasRules: Bool,
    _ preview: (request: UUID16, ErasurePreview)?
  ) throws -> [(ErasureRecord, Result<ErasurePlan, ErasureError>)] {
    let records = open.filter { $0.subject != nil }
    // If there are other requests, the plan depends on those before it.
    if let preview, records.count == 1, !hasRules, preview.request == records[0].id,
      preview.1.frontier == planner.reader.head.frontier, let plan = preview.1.plan
    {
      return [(records[0], .success(plan))]
    }
    return Array(
      zip(
        records,
        try planner.plan(
          records.compactMap(\.subject), requestedAtMs: records.map(\.requestedAtMs))))
  }

  private func planner(
    _ database: Database, _ reader: LogReader, before end: Position
  ) throws -> ErasurePlanner {
    try ErasurePlanner(database, reader, before: end, isCancelled: observer.isCancelled)
  }

  /// Appends the events that open the erasures, unless an interrupted pass already did.
  private func begin(_ items: inout [Item]) throws {
    let reader = try LogReader(directory, .durable)
    let database = try projector(reader).current()
    for index in items.indices {
      items[index].erasure = try opening(of: items[index].request, database) ?? -1
    }
    let new = items.indices.filter { items[$0].erasure < 0 }
    if !new.isEmpty {
      let appended = try writer.append(
        new.map { index in
          let item = items[index]
          let opening = DataRedacted.Opening(
            request: item.request, scope: item.scope, reason: item.reason)
          return EventDraft(.dataRedacted, DataRedacted.opening(opening).data)
        })
      for (offset, index) in new.enumerated() {
        items[index].erasure = appended.firstPosition + offset
      }
    }
    for index in items.indices {
      guard var record = items[index].record else { continue }
      record.state = .running
      try queue.update(record)
      items[index].record = record
    }
  }

  private func redact(
    _ items: inout [Item], _ retention: RetentionRules?, _ nowMs: Int64
  ) throws {
    _ = try writer.sealAll()
    let reader = try LogReader(directory, .durable)
    let database = try projector(reader).current()
    // One planner: users of earlier requests count as erased for later ones.
    let planner = try planner(database, reader, before: 0)
    // Only the erasures' own events were appended after planning.
    let isPlanned = items.indices.allSatisfy {
      items[$0].plannedEnd >= 0 && items[$0].erasure == items[$0].plannedEnd + $0
    }
    if !isPlanned { try planAgain(&items, planner, retention, nowMs) }
    for index in items.indices {
      items[index].certificate.erasure = items[index].erasure
      items[index].certificate.receipts = items[index].plan.receiptCount
      let waitingCount = items[index].plan.waitingReceiptCount
      items[index].certificate.waitingReceipts = waitingCount
      items[index].certificate.waitsUntilMs =
        waitingCount > 0 ? items[index].plan.waitsUntilMs : nil
    }
    try apply(&items, reader, database)
  }

  /// Plans erasures that were opened together, in one pass over the log.
  private func planAgain(
    _ items: inout [Item], _ planner: ErasurePlanner, _ retention: RetentionRules?, _ nowMs: Int64
  ) throws {
    var first = 0
    while first < items.count {
      var end = first + 1
      while end < items.count, items[end].erasure == items[end - 1].erasure + 1 { end += 1 }
      planner.end = items[first].erasure
      let asked = (first..<end).filter { items[$0].record?.subject != nil }
      let plans = try planner.plan(
        asked.compactMap { items[$0].record?.subject },
        requestedAtMs: asked.compactMap { items[$0].record?.requestedAtMs })
      for (index, plan) in zip(asked, plans) { items[index].plan = try plan.get() }
      for index in first..<end where items[index].record == nil {
        if items[index].scope != .retention {
          items[index].plan = try planner.planAnswered(nowMs: nowMs)
        } else if let retention {
          items[index].plan = try planner.plan(retention, nowMs: nowMs)
        }
      }
      first = end
    }
  }

  /// Redacts what the plans name. All of it must be in blocks.
  private func apply(_ items: inout [Item], _ reader: LogReader, _ database: Database) throws {
    let file = try RedactionFileWriter(directory, pass: .random())
    do {
      guard try write(&items, to: file, reader, database) > 0 else {
        try? file.discard()
        for item in items { try list(item, nil) }
        try onProjectionsReplaced()
        return try finish(items)
      }
      for index in items.indices {
        guard var record = items[index].record else { continue }
        record.certificate = items[index].certificate
        try queue.update(record)
        items[index].record = record
      }
      if observer.isCancelled() { throw ErasureError.interrupted }
    } catch {
      try? file.discard()
      throw error
    }
    for index in items.indices { items[index].search = search(for: items[index]) }
    let rewritten = try putInUse(file, items)
    for index in items.indices {
      if let search = items[index].search { items[index].certificate.record(search) }
    }
    try complete(items, rewritten)
  }

  private func search(for item: Item) -> IdentifierSearch? {
    item.plan.identifiers.isEmpty ? nil : IdentifierSearch(item.plan.identifiers)
  }

  /// Builds projections with the redacted lines next to those in use, then puts both in use.
  /// - Returns: new files of segments, filled with the blocks that were read for the projections.
  func putInUse(
    _ file: RedactionFileWriter, _ items: [Item] = []
  ) throws -> RewrittenSegments {
    var isCommitted = false
    defer { if !isCommitted { try? file.discard() } }
    try file.finish()
    let lines = try RedactedLines.uncommitted(directory)
    let rewritten = try writer.prepareRewriting(lines)
    let reader = try LogReader(directory, .durable, redactedLines: lines)
    reader.rewritten = rewritten
    let projector = projector(reader)
    let searches = items.compactMap { item in item.search.map { ($0, item.erasure) } }
    projector.inspection = { bytes, first, _ in
      for (search, erasure) in searches where first < erasure {
        search.scan(bytes, first: first)
      }
    }
    try projector.rebuild {
      try file.commit()
      isCommitted = true
    }
    return rewritten
  }

  /// Writes the redacted lines; returns how many.
  private func write(
    _ items: inout [Item], to file: RedactionFileWriter, _ reader: LogReader,
    _ database: Database
  ) throws -> Int {
    let key = try LineHMACKey.made(directory)
    var reduction = try LineRedaction(
      items.map { ($0.erasure, $0.plan) }, database, lineDigest: { key.digest(of: $0) })
    var count = 0
    try reduction.run(reader, isCancelled: observer.isCancelled) { line in
      try file.append(line: line)
      count += 1
    }
    for index in items.indices { items[index].certificate.events = reduction.events(of: index) }
    return count
  }

  // MARK: After the commit

  /// Finishes a pass that was interrupted after its redacted lines were committed; returns whether there was one.
  package func finishInterrupted() throws(ErasureError) -> Bool {
    do {
      guard let lines = try RedactedLines.ifPresent(directory) else { return false }
      try finish(lines)
      return true
    } catch { throw Self.erasureError(error) }
  }

  /// Completes the remaining steps after the commit of these redacted lines.
  /// - Parameter rewritten: new files of segments with them.
  func finish(_ lines: RedactedLines, _ rewritten: RewrittenSegments? = nil) throws {
    directory = try writer.directory.allowingRedactions()
    let reader = try LogReader(directory, .durable)
    _ = try projector(reader).current()
    var items: [Item] = []
    for erasure in try Self.erasures(in: lines) {
      let opening = try reader.event(at: erasure).withUnsafeBytes { bytes in
        EventLine(bytes).flatMap { try? DataRedacted(data: $0.data) }
      }
      guard case .opening(let opening)? = opening else {
        throw ErasureError.damagedFile(
          name: RedactionFile.name, cause: "no erasure begins at position \(erasure)")
      }
      var item = Item(opening)
      item.record = try queue.record(opening.request)
      item.erasure = erasure
      item.certificate = item.record?.certificate ?? ErasureCertificate()
      item.certificate.erasure = erasure
      items.append(item)
    }
    // Requests of the pass that share all their lines with other requests.
    for record in try queue.open() where record.state == .running {
      guard record.certificate != nil, !items.contains(where: { $0.request == record.id }) else {
        continue
      }
      var item = Item(record)
      item.certificate = record.certificate ?? item.certificate
      item.erasure = item.certificate.erasure ?? -1
      items.append(item)
    }
    try complete(items, rewritten)
  }

  private static func erasures(in lines: RedactedLines) throws -> [Position] {
    var erasures: Set<Position> = []
    var reader = try lines.reader()
    while let line = try reader.next() {
      if let erasure = line.redactedBy { erasures.insert(erasure) }
    }
    return erasures.sorted()
  }

  /// Completes the steps that follow once the redacted lines are in use. Each may have been done before.
  private func complete(_ items: [Item], _ rewritten: RewrittenSegments?) throws {
    guard let lines = try RedactedLines.ifPresent(directory) else {
      throw ErasureError.damagedFile(name: RedactionFile.name, cause: "it was removed meanwhile")
    }
    try onProjectionsReplaced()
    for item in items { try list(item, lines) }
    try writer.rewriteSegments(lines, rewritten: rewritten, isCancelled: observer.isCancelled)
    let reader = try LogReader(directory, .durable)
    let projector = projector(reader)
    let removed = try projector.snapshots.prune(isCancelled: observer.isCancelled) { _ in [] }
      .removed
    var items = items
    for index in items.indices { items[index].certificate.removedSnapshots = removed.count }
    // While the file exists, the next writer finishes an interrupted pass; without it, the identifiers would stay in
    // the requests.
    try finish(items)
    try RedactionFile.remove(from: directory)
    // Readers release the segments that were replaced.
    try onProjectionsReplaced()
    if !removed.isEmpty {
      try reader.refresh()
      _ = try projector.createSnapshot { try writer.append([$0]).firstPosition }
      try onProjectionsReplaced()
    }
    try redactLate(items, uploads: lines.positions)
  }

  /// Redacts replies about redacted uploads that arrived during the pass: calls of the App Store take time.
  private func redactLate(_ items: [Item], uploads: [Position]) throws {
    guard let erasure = items.map(\.erasure).min() else { return }
    let reader = try LogReader(directory, .durable)
    let database = try projector(reader).current()
    // Usually there is no such reply, and nothing to plan.
    guard try ErasurePlanner.hasReplies(after: erasure, database) else { return }
    let planner = try planner(database, reader, before: reader.head.size)
    var item = Item(DataRedacted.Opening(ofNoRequest: DataRedacted.lateReason))
    item.plan = try planner.plan(repliesAfter: erasure, about: uploads)
    if item.plan.isEmpty { return }
    var late = [item]
    try begin(&late)
    _ = try writer.sealAll()
    let sealed = try LogReader(directory, .durable)
    try apply(&late, sealed, try projector(sealed).current())
  }

  /// Appends the events that list an erasure's lines, except lines that the log already lists in this form. A request
  /// that redacted nothing, or nothing more, gets an empty list if its last list is missing, which marks it as
  /// finished.
  /// - Parameter lines: nil if the pass redacted nothing.
  private func list(_ item: Item, _ lines: RedactedLines?) throws {
    var known = try KnownLists(item.erasure, reader: try LogReader(directory, .durable), projector)
    let hasher = SHA256()
    var listed: [DataRedacted.Line] = []
    var reading = try lines?.reader()
    while let line = try reading?.next() {
      guard line.redactedBy == item.erasure else { continue }
      let digest = line.contentDigest(hasher)
      if known.digests[line.position] != digest {
        listed.append(.init(position: line.position, digest: digest))
      }
    }
    if listed.isEmpty, known.isFinished || item.record?.subject == nil { return }
    let lineCountMax = DataRedacted.lineCountMax
    let partCount = known.lastPart + max(1, (listed.count + lineCountMax - 1) / lineCountMax)
    while known.lastPart < partCount {
      known.lastPart += 1
      let listing = DataRedacted.Listing(
        erasure: item.erasure, part: known.lastPart, partCount: partCount, reason: item.reason,
        lines: Array(listed.prefix(lineCountMax)))
      listed.removeFirst(listing.lines.count)
      _ = try writer.append([EventDraft(.dataRedacted, DataRedacted.listing(listing).data)])
    }
  }

  /// What the log lists for an erasure.
  private struct KnownLists {
    var digests: [Position: SHA256Digest] = [:]
    var lastPart = 0
    var isFinished = false

    init(
      _ erasure: Position, reader: LogReader, _ projector: (LogReader) -> Projector
    ) throws {
      let rows = try projector(reader).current().prepare(
        """
        SELECT position, part, parts FROM redactions WHERE erasure = ? AND part IS NOT NULL
        ORDER BY position
        """)
      rows.bind(1, erasure)
      while try rows.step() {
        let part = try rows.ordinal(1)
        lastPart = max(lastPart, part)
        if try rows.ordinal(2) == part { isFinished = true }
        let line = try reader.event(at: try rows.ordinal(0))
        let event = try line.withUnsafeBytes { bytes in
          try EventLine(bytes).map { try DataRedacted(data: $0.data) }
        }
        guard case .listing(let listing)? = event else { continue }
        for line in listing.lines { digests[line.position] = line.digest }
      }
    }
  }

  /// Writes the certificates.
  private func finish(_ items: [Item]) throws {
    let reader = try LogReader(directory, .durable)
    for item in items {
      redactedEventCount += item.record == nil ? item.certificate.eventCount : 0
      guard let record = item.record, record.subject != nil else { continue }
      var certificate = item.certificate
      if item.search == nil, case .user(let identifier, _)? = record.subject {
        // The pass was interrupted, and the result of its search is lost.
        let identifiers = item.plan.identifiers
        let search = IdentifierSearch(
          identifiers.isEmpty
            ? [PlannedUser(identifier, nil, requestedAtMs: 0).searched] : identifiers)
        try search.run(
          reader, before: max(0, item.erasure), isCancelled: observer.isCancelled)
        certificate.record(search)
        if identifiers.isEmpty { certificate.notSearched.append(.appAccountTokens) }
      }
      (certificate.size, certificate.root) = (reader.head.size, reader.head.root)
      certificate.finishedAtMs = Timestamp.now()
      try queue.finish(record, .success(certificate))
    }
  }
}

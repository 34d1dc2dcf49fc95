// Restores again into a standby: it follows the copy, and erases here what was erased there.
import Base
import Ledger

extension CopyRestore {
  /// Continues an earlier restore; nil if there is no restored ledger at the path.
  func followed(_ store: RetryingStore, _ path: String) throws -> Report? {
    guard let root = try? Folder(path: path, storage: storage),
      try root.status(Format.identityName) != nil
    else { return nil }
    let directory = try LedgerDirectory.open(path: path)
    // Any other ledger is rejected with its own error.
    guard try Standby(of: directory)?.reason == .restored else { return nil }
    func refusal(_ cause: String) -> CopyError { .refused(object: path, cause: cause) }
    guard size == nil, untilMs == nil, !isPartial else {
      throw refusal("it was restored before and follows the copy; choose an empty directory")
    }
    guard try ReplicationRecord(of: directory) == nil else {
      throw refusal("a promotion was begun here; 'ledgerctl promote' finishes it")
    }
    let turn = try ReplicationTurn(directory)
    defer { turn.end() }
    var promotion = Promotion()
    let progress = progress
    promotion.threadCount = threadCount
    promotion.progress = { progress(.fetching, $0, $1) }
    promotion.checkCancelled = checkCancelled
    promotion.boundedWebhook = boundedWebhook
    promotion.nowMs = nowMs
    return try PromotionRun(promotion, directory, store).follow(self)
  }
}

extension PromotionRun {
  /// Makes the ledger equal to the copy without taking over.
  func follow(_ restore: CopyRestore) throws -> CopyRestore.Report {
    let heads = try restore.givenHeads(directory)
    var forgets = false
    if let marker = try PromotionMarker(of: replication) {
      // An interrupted run may have installed files that hold less than those before.
      forgets = true
      if try marker.isOfHistory(source) { (localSize, isCompared) = (marker.localSize, true) }
    } else if heads.isEmpty, try Standby(of: directory)?.step == source.state.newest.number {
      var report = CopyRestore.Report(
        step: source.state.newest, size: source.state.size, root: source.state.root)
      report.continuedFrom = report.size
      return report
    }
    let tail = try log.names().compactMap { Format.tailFirst($0) }.min()
    willInstall = { [unowned self] plan in if try isRewritten(by: plan) { forgets = true } }
    try installContents()
    // The published durable size is the one from before, and readers read no further.
    try whileWriting()
    try adoptIdentity()
    try adoptHeads()
    if let tail, try holdsRedacted(tail, localSize) { forgets = true }
    if forgets { try restore.forgetProjections(directory) }
    try (try source.work() ?? OpenWork()).replaceAll(
      in: directory.root, size: source.state.size, bounded: restore.boundedWebhook)
    let report = try audited(restore, heads)
    try Standby(
      reason: .restored, step: report.step.number, epoch: report.step.epoch, atMs: restore.nowMs()
    ).write(to: directory)
    try PromotionMarker.remove(from: replication)
    return report
  }

  /// Whether a segment of the plan does not continue the installed one because an erasure rewrote it.
  private func isRewritten(by plan: CopyPlan) throws -> Bool {
    let names = Set(plan.logFiles.map(\.name))
    // A log of frames alone has a segment without blocks, which no copy contains.
    let empty = CopiedLogFile.emptyLog(of: directory.identity.id)
    for name in try log.names() where Format.segmentFirst(name) != nil {
      let temporary = name + Format.temporarySuffix
      let isNamed = names.contains(name)
      if isNamed, try log.status(temporary) == nil { continue }
      let old = try log.openFile(name, .readOnly)
      let range = 0..<(try old.sizeBytes())
      let digest = try FileHash.sha256(old, range)
      if digest == empty.withUnsafeBytes({ SHA256.hash($0) }) { continue }
      guard isNamed else { return true }
      if try FileHash.sha256(try log.openFile(temporary, .readOnly), range) != digest {
        return true
      }
    }
    return false
  }

  /// Whether events that were complete here, in tails, are redacted now.
  private func holdsRedacted(_ first: Position, _ end: Position) throws -> Bool {
    var isFound = false
    try wholeReader().read(from: min(first, end), to: end) { chunk in
      try chunk.forEachEvent { if $0.isRedacted { isFound = true } }
      return !isFound
    }
    return isFound
  }

  private func audited(
    _ restore: CopyRestore, _ heads: [GivenHead]
  ) throws -> CopyRestore.Report {
    let ledger = try directory.reread()
    let sizes = try CheckpointStore(ledger).sizes()
    let audit = LogAudit(ledger, rootsAt: sizes + heads.map(\.checkpoint.size))
    var report = try audit.run { done, total in
      try restore.checkCancelled()
      restore.progress(.checking, done, total)
    }
    report.check(CheckpointStore(ledger), sizes: sizes)
    for head in heads { report.check(head.checkpoint, name: head.name) }
    guard report.isWhole else { throw CopyError.audit(report.findings) }
    var result = CopyRestore.Report(
      step: source.state.newest, size: report.size,
      root: report.frontier?.root ?? source.state.root)
    result.checkpointCount = sizes.count
    result.fetched = fetch.total
    result.notes = report.notes
    result.unredactedCount = report.unredactedCount
    result.unfinishedErasures = report.unfinishedErasures
    result.continuedFrom = localSize
    return result
  }
}

extension OpenWork {
  /// Writes the files, and removes those that are no longer part of the open work: a request that was carried out names
  /// a user.
  func replaceAll(
    in root: Folder, size: Int, bounded: ([UInt8], Int) -> [UInt8]
  ) throws(LedgerError) {
    try write(to: root, size: size, bounded: bounded)
    if let folder = try root.folderIfPresent(Self.webhooksFolder) {
      for name in try folder.names() where Self.isWebhookFile(name) && webhooks[name] == nil {
        try folder.unlink(name)
      }
    }
    guard let folder = try root.folderIfPresent(Self.erasuresFolder) else { return }
    for name in try folder.names() where Self.isRequestFile(name) && erasures[name] == nil {
      try folder.unlink(name)
    }
  }
}

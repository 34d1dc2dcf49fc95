// Redacts again what a restored backup brought back, and finishes what was interrupted.
import Base
import Ledger
import Projections

extension Eraser {
  /// Removes redacted lines that can't be read, and the projections that were made with them. What they were to redact
  /// is listed in the log, or its request still waits.
  private func dropDamagedFile() throws {
    do throws(LedgerError) { _ = try RedactedLines.ifPresent(directory) } catch {
      guard error.kind == .corruption else { throw error }
      observer.notice("\(RedactionFile.name) is damaged and removed: \(error.cause)")
      try RedactionFile.remove(from: directory)
      try projector(try LogReader(directory, .durable)).rebuild()
      try onProjectionsReplaced()
    }
  }

  /// Finishes what was interrupted, and redacts again the events that erasures name and that hold their data, as after
  /// a restored backup.
  /// - Returns: whether a pass was interrupted, and how many events were redacted again.
  package func redactAgain() throws(ErasureError) -> (wasInterrupted: Bool, count: Int) {
    do {
      try dropDamagedFile()
      let wasInterrupted = try finishInterrupted()
      // Requests whose pass did not come to its commit, here or where this log was copied from. Before the others: a
      // pass lists its lines as it redacts them, whatever lists of an earlier one hold.
      let isRunning = try hasBegunRequests()
      if isRunning { _ = try run() }
      return (wasInterrupted || isRunning, try redactRestored())
    } catch { throw Self.erasureError(error) }
  }

  private func hasBegunRequests() throws -> Bool {
    let open = try queue.open()
    if open.isEmpty { return false }
    if open.contains(where: { $0.state == .running }) { return true }
    let database = try projector(try LogReader(directory, .durable)).current()
    return try open.contains { try opening(of: $0.id, database) != nil }
  }

  private func redactRestored() throws -> Int {
    directory = try writer.directory.reread()
    guard directory.identity.formatVersion >= Format.versionWithRedactions else { return 0 }
    _ = try writer.sealAll()
    let reader = try LogReader(directory, .durable)
    let database = try projector(reader).current()
    let restored = try RestoredLines(reader, database, isCancelled: observer.isCancelled)
    if restored.isEmpty { return 0 }
    let opening = DataRedacted.Opening(ofNoRequest: DataRedacted.restoredReason)
    var item = Item(opening)
    let key = try LineHMACKey.made(directory)
    let otherCount = try restored.redact(
      by: nil, reader, database, lineDigest: { key.digest(of: $0) }
    ) { _ in
    }
    if otherCount > 0 {
      item.erasure = try writer.append([
        EventDraft(.dataRedacted, DataRedacted.opening(opening).data)
      ]).firstPosition
    }
    let file = try RedactionFileWriter(directory, pass: .random())
    do {
      try restored.redact(by: item.erasure, reader, database, lineDigest: { key.digest(of: $0) }) {
        try file.append(line: $0)
      }
    } catch {
      try? file.discard()
      throw error
    }
    let rewritten = try putInUse(file)
    if let lines = try RedactedLines.ifPresent(directory) { try finish(lines, rewritten) }
    return restored.count
  }
}

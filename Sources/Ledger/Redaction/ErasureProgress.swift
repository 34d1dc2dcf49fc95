// Finds unfinished erasures in a log, and watches the file of redacted lines.
package import Base

/// An erasure that was opened and whose lists are not all in the log: data that it was to redact may still be there.
package struct UnfinishedErasure: Equatable, Sendable {
  /// The position of the event that opened it.
  package let position: Position
  /// The request that it carries out.
  package let request: UUID16
  package let scope: DataRedacted.Scope
  package let reason: String
}

/// Follows the events of erasures, in order.
package struct ErasureProgress {
  private struct Entry {
    var erasure: UnfinishedErasure
    /// Lists come in the order of their numbers, so the last number shows whether any is missing.
    var lastPart = 0
  }

  private var open: [Position: Entry] = [:]

  package init() {}

  /// Reads a log from a position to its end. A ledger without redacted lines is not read.
  package mutating func read(_ reader: LogReader, from position: Position = 0) throws {
    let identity = try reader.directory.reread().identity
    guard identity.formatVersion >= Format.versionWithRedactions, position < reader.head.size else {
      return
    }
    var progress = self
    try reader.read(from: position, to: reader.head.size) { chunk in
      try chunk.forEachEvent { line in
        guard EventType(line.type) == .dataRedacted, let event = try? DataRedacted(data: line.data)
        else { return }
        progress.add(event, at: line.position)
      }
      return true
    }
    self = progress
  }

  /// Adds the event at a position.
  package mutating func add(_ event: DataRedacted, at position: Position) {
    switch event {
    case .opening(let opening): add(opening, at: position)
    case .listing(let listing):
      add(part: listing.part, of: listing.partCount, erasure: listing.erasure)
    }
  }

  /// Adds the event that opens an erasure. Erasures without a request are searched for again in each pass.
  package mutating func add(_ opening: DataRedacted.Opening, at position: Position) {
    if opening.isOfNoRequest { return }
    open[position] = Entry(
      erasure: UnfinishedErasure(
        position: position, request: opening.request, scope: opening.scope, reason: opening.reason))
  }

  /// Adds a list of an erasure.
  package mutating func add(part: Int, of partCount: Int, erasure: Position) {
    guard let entry = open[erasure], part == entry.lastPart + 1 else { return }
    open[erasure]?.lastPart = part
    if part == partCount { open[erasure] = nil }
  }

  /// The unfinished erasures, by position.
  package var unfinished: [UnfinishedErasure] {
    open.values.map(\.erasure).sorted { $0.position < $1.position }
  }
}

// MARK: - Watch

/// The current redacted lines of a ledger, shared by all its readers. Thread-safe.
final class RedactionWatch: Sendable {
  private struct State {
    /// The folder of erasures, once it exists: a check then costs one call.
    var folder: Folder?
    var lines: RedactedLines?
  }

  private let monitor = Monitor(State())

  /// The lines of `erasures/lines`; nil if there is no such file. A known file is not read again.
  func current(_ directory: LedgerDirectory) throws(LedgerError) -> RedactedLines? {
    try monitor.withLock { state throws(LedgerError) in
      let name = RedactionFile.directoryName
      if state.folder == nil, try directory.root.status(name) != nil {
        state.folder = try directory.root.folderIfPresent(name)
      }
      guard let status = try state.folder?.status(RedactionFile.leafName) else {
        state.lines = nil
        return nil
      }
      if let lines = state.lines, lines.isOf(status) { return lines }
      state.lines = try RedactedLines.ifPresent(directory)
      return state.lines
    }
  }
}

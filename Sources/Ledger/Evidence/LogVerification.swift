// Checks a whole log as it is read for another purpose, and records how far a log was checked.
package import Base

/// Checks events in order from the first one: digests, times, the tree, and that erasures list what lost its data.
package struct LogVerification {
  private let hasher = SHA256()
  /// The tree of the events so far.
  private var frontier = Frontier()
  private var lastEventAtMs: Int64 = 0
  private var redactions = RedactionAudit()

  package init() {}

  /// Checks the next run of lines.
  /// - Parameter expected: the tree that the log has after them.
  package mutating func add(
    _ lines: AuditedLines, expecting expected: Frontier
  ) throws(LedgerError) {
    if let (position, cause) = lines.faults.first ?? lines.breach {
      throw Self.tampered(position, cause)
    }
    if !lines.leafHashes.isEmpty {
      guard lines.firstEventAtMs >= lastEventAtMs else {
        throw Self.tampered(
          frontier.size, "the event's time is earlier than the previous event's")
      }
      lastEventAtMs = lines.lastEventAtMs
    }
    for leaf in lines.leafHashes { frontier.append(leafHash: leaf, hasher) }
    guard frontier == expected else {
      throw Self.tampered(frontier.size - 1, "the tree of the events is not that of the log")
    }
    redactions.add(lines, file: Format.logDirectoryName)
  }

  /// Checks what only the whole log shows, and returns what was verified.
  package mutating func finish(_ reader: LogReader) throws(LedgerError) -> VerifiedHead {
    redactions.addPending(reader.redactedLines)
    if let position = redactions.firstUnlisted(reader.directory, readTo: frontier.size) {
      throw Self.tampered(
        position, "the event's data is missing, and no data.redacted event lists it so")
    }
    return VerifiedHead(size: frontier.size, root: frontier.root)
  }

  private static func tampered(_ position: Position, _ cause: String) -> LedgerError {
    LedgerError(
      .init(verdict: .tampered, file: Format.logDirectoryName, position: position),
      operation: "verify", cause: cause)
  }
}

/// The first events of a log, as the last `rebuild` or `audit` found them intact. Information for the operator, never
/// evidence.
package struct VerifiedHead: Equatable, Sendable {
  /// The file's name in the ledger.
  package static let fileName = "verified"
  private static let byteCountMax = 4096

  /// The number of events.
  package let size: Int
  package let root: SHA256Digest

  package init(size: Int, root: SHA256Digest) { (self.size, self.root) = (size, root) }

  /// Reads the ledger's file; nil if it is missing, unreadable, or about another log.
  package init?(_ reader: LogReader) {
    guard
      let bytes = try? reader.directory.readSmallFile(
        Self.fileName, byteCountMax: Self.byteCountMax),
      let value = try? JSONValue(bytes), let size = value.count("size"),
      let root = value.root("root"), size <= reader.head.size,
      let frontier = try? reader.frontier(at: size), frontier.root == root
    else { return nil }
    self.init(size: size, root: root)
  }

  /// Replaces the file, durably.
  package func write(to directory: LedgerDirectory) throws(LedgerError) {
    var lines = JSONLines()
    lines.add("size") { $0.integer(size) }
    lines.add("root") { $0.string(Base64.text(root.bytes)) }
    try directory.replaceFile(Self.fileName, with: lines.bytes)
  }

  /// Removes the file, durably, because its content no longer holds.
  package static func remove(_ directory: LedgerDirectory) throws(LedgerError) {
    guard try directory.root.status(fileName) != nil else { return }
    try directory.root.unlink(fileName)
    try directory.root.sync()
  }
}

// MARK: - Signed heads and the computed roots

extension AuditReport {
  /// Checks the signatures and roots of kept checkpoints.
  /// - Parameter sizes: the checkpoints that existed when the audit began; it was given the same sizes.
  package mutating func check(_ store: CheckpointStore, sizes: [Int]) {
    for size in sizes {
      let name = CheckpointStore.fileName(size: size)
      do throws(LedgerError) {
        guard let checkpoint = try store.checkpoint(size: size) else { continue }
        check(checkpoint, name: name)
      } catch {
        add(AuditFinding(error, file: name, at: nil))
      }
    }
  }

  /// Checks that the log begins with the events of a signed head.
  /// - Parameter name: the name of the head in findings.
  package mutating func check(_ checkpoint: Checkpoint, name: String) {
    checkpointCount += 1
    guard checkpoint.size <= size else {
      add(
        AuditFinding(
          .missing, name, at: size, to: checkpoint.size,
          "it signs \(checkpoint.size) events, but the log ends at \(size)"))
      return
    }
    guard let root = roots[checkpoint.size] else {
      add(
        AuditFinding(
          .unreadable, name, at: checkpoint.size,
          "the events that it signs cannot be hashed: some of them are damaged"))
      return
    }
    if root != checkpoint.root {
      add(
        AuditFinding(
          .tampered, name, at: checkpoint.size,
          "the first \(checkpoint.size) events are not those that it signs"))
    }
  }
}

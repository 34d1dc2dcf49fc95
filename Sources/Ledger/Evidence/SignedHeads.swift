// The number of signed heads and the newest one, recorded apart from the checkpoints so that a loss is noticed.
package import Base

/// What a ledger records about its checkpoints.
package struct SignedHeads: Equatable, Sendable {
  /// The file's name in the ledger.
  package static let fileName = "heads"
  private static let byteCountMax = 4096

  /// The number of checkpoints created.
  package let count: Int
  /// The number of events in the newest signed head.
  package let size: Int
  package let root: SHA256Digest

  package init(count: Int, size: Int, root: SHA256Digest) {
    (self.count, self.size, self.root) = (count, size, root)
  }

  /// Both records combined: the larger count and the head with more events.
  package func merged(with other: SignedHeads?) -> SignedHeads {
    guard let other else { return self }
    let newest = other.size > size ? other : self
    return SignedHeads(count: max(count, other.count), size: newest.size, root: newest.root)
  }

  // MARK: File

  /// The content of a ledger's file; nil if there is none.
  ///
  /// Throws `corruption` if this program would not write such a file.
  package init?(of directory: LedgerDirectory) throws(LedgerError) {
    guard
      let bytes = try directory.readSmallFile(Self.fileName, byteCountMax: Self.byteCountMax)
    else { return nil }
    guard let value = try? JSONValue(bytes), let count = value.count("checkpoints"),
      let size = value.count("size"), let root = value.root("root")
    else {
      throw LedgerError(
        .init(verdict: .corrupt, file: Self.fileName, position: nil),
        operation: "read signed heads", cause: "it does not contain a count and a head")
    }
    self.init(count: count, size: size, root: root)
  }

  private var bytes: [UInt8] {
    var lines = JSONLines()
    lines.add("checkpoints") { $0.integer(count) }
    lines.add("size") { $0.integer(size) }
    lines.add("root") { $0.string(Base64.text(root.bytes)) }
    return lines.bytes
  }

  /// Replaces the file, durably.
  package func write(to directory: LedgerDirectory) throws(LedgerError) {
    try directory.replaceFile(Self.fileName, with: bytes)
  }

  /// Throws `corruption` unless the newest head is a prefix of the log.
  func check(_ reader: LogReader, operation: String) throws(LedgerError) {
    guard size <= reader.head.size else {
      throw LedgerError(
        .init(
          verdict: .missing, file: Format.logDirectoryName, position: reader.head.size),
        operation: operation,
        cause: "\(Self.fileName) names a signed head of \(size) events, but the log holds "
          + "\(reader.head.size)")
    }
    guard try reader.frontier(at: size).root == root else {
      throw LedgerError(
        .init(verdict: .tampered, file: Self.fileName, position: nil), operation: operation,
        cause: "the log does not extend the signed head that it names")
    }
  }
}

extension AuditReport {
  /// Checks that no checkpoint is missing and that the newest head is a prefix of the log.
  /// - Parameters:
  ///   - name: the name of the record in findings.
  ///   - keptCount: how many checkpoints are kept.
  package mutating func check(_ heads: SignedHeads, name: String, keptCount: Int) {
    func add(_ verdict: LedgerError.Verdict, at position: Position?, _ cause: String) {
      self.add(AuditFinding(verdict, name, at: position, cause))
    }
    if heads.count > keptCount {
      add(
        .missing, at: nil,
        "\(heads.count) checkpoint\(heads.count == 1 ? " was" : "s were") made, but \(keptCount) "
          + "\(keptCount == 1 ? "is" : "are") kept")
    }
    guard heads.size <= size else {
      return add(
        .missing, at: size,
        "it names a signed head of \(heads.size) events, but the log ends at \(size)")
    }
    guard let root = roots[heads.size] else {
      return add(
        .unreadable, at: heads.size,
        "the events of the signed head that it names cannot be hashed: some of them are damaged")
    }
    if root != heads.root {
      add(
        .tampered, at: heads.size,
        "the first \(heads.size) events are not those of the signed head that it names")
    }
  }
}

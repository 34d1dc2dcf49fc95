// What a ledger records about its copy: its writer and what is confirmed; and the check of a store's mark.
package import Base
package import Ledger

/// The file `replication/state.json`. Its contents stay true: a confirmed step remains. It may lag behind the copy.
package struct ReplicationRecord: Sendable, Equatable {
  package static let folderName = "replication"
  package static let fileName = "state.json"
  private static let byteCountMax = 4096

  /// Who writes the copy as this ledger: one writer for each epoch.
  package var writer: UUID16
  package var epoch: Int
  /// The newest step that is confirmed, and the SHA-256 of its header; nil before the first.
  package var step: Int?
  package var sha256: SHA256Digest
  /// How many events the copy holds, and the root of their tree.
  package var size: Int
  package var root: SHA256Digest
  /// All superseded frames of the steps before this one are deleted; nil if that is not known.
  package var emptiedBefore: Int?
  /// When the copy was last found complete, in epoch milliseconds; nil before that.
  package var wholeAtMs: Int64?
  /// The mark of the copy's directory; nil for other stores, and before it is known.
  package var copy: UUID16?

  package init(
    writer: UUID16, epoch: Int, step: Int?, sha256: SHA256Digest, size: Int, root: SHA256Digest
  ) {
    (self.writer, self.epoch, self.step) = (writer, epoch, step)
    (self.sha256, self.size, self.root) = (sha256, size, root)
  }

  /// The record after a step.
  package init(_ step: Step, sha256: SHA256Digest) {
    self.init(
      writer: step.writer, epoch: step.epoch, step: step.number, sha256: sha256, size: step.size,
      root: step.root)
  }

  /// Advances to a later step; the other members stay.
  package mutating func advance(to step: Step, sha256: SHA256Digest) {
    var next = ReplicationRecord(step, sha256: sha256)
    (next.emptiedBefore, next.wholeAtMs, next.copy) = (emptiedBefore, wholeAtMs, copy)
    self = next
  }

  /// The record of a ledger; nil if it was never replicated.
  ///
  /// Throws `corruption` if this program would not write such a file.
  package init?(of directory: LedgerDirectory) throws(LedgerError) {
    guard let folder = try directory.folderIfPresent(Self.folderName),
      try folder.status(Self.fileName) != nil
    else { return nil }
    let bytes = try folder.openFile(Self.fileName, .readOnly).readSmall(
      byteCountMax: Self.byteCountMax)
    guard let value = try? JSONValue(bytes),
      let writer = value["writer"]?.stringValue.flatMap({ UUID16($0) }),
      let epoch = value.count("epoch"), let sha256 = value.digest("sha256"),
      let size = value.count("size"), let root = value.digest("root")
    else {
      throw LedgerError(
        .init(verdict: .corrupt, file: folder.label(Self.fileName), position: nil),
        operation: "read replication", cause: "it does not say what is confirmed")
    }
    self.init(
      writer: writer, epoch: epoch, step: value.count("step"), sha256: sha256, size: size,
      root: root)
    emptiedBefore = value.count("emptied_before")
    wholeAtMs = value.count("whole_at").map { Int64($0) }
    copy = value["copy"]?.stringValue.flatMap { UUID16($0) }
  }

  /// Replaces the record, durably.
  package func write(to directory: LedgerDirectory) throws(LedgerError) {
    let isNew = try directory.folderIfPresent(Self.folderName) == nil
    let folder = try directory.root.madeFolder(Self.folderName)
    if isNew {
      try directory.root.giveNewFolderToOwner(folder)
      try directory.root.sync()
    }
    var lines = JSONLines()
    lines.add("writer") { $0.string(writer.description) }
    lines.add("epoch") { $0.integer(epoch) }
    if let step { lines.add("step") { $0.integer(step) } }
    lines.add("sha256") { $0.string(Hex.text(sha256)) }
    lines.add("size") { $0.integer(size) }
    lines.add("root") { $0.string(Hex.text(root)) }
    if let emptiedBefore { lines.add("emptied_before") { $0.integer(emptiedBefore) } }
    if let copy { lines.add("copy") { $0.string(copy.description) } }
    if let wholeAtMs { lines.add("whole_at") { $0.integer(Int(wholeAtMs)) } }
    try folder.replaceFile(Self.fileName, with: lines.bytes)
  }
}

// MARK: - Marks of directories

enum CopyMark {
  /// From now on a store that bears marks is used only while it bears the copy's: a directory may be empty because its
  /// disk is not mounted.
  ///
  /// Throws `unavailable` if it seems to be another one, or empty.
  /// - Parameter record: what the ledger knows of its copy.
  /// - Returns: the copy's mark; nil for a store without marks.
  static func require(
    of store: any ObjectStore, for record: ReplicationRecord?
  ) throws(ObjectStoreError) -> UUID16? {
    guard let store = store as? any MarkedStore else { return nil }
    store.require(mark: nil)
    let found = try store.mark()
    if let found, let known = record?.copy, found != known {
      throw away(store, "the directory holds another copy than this ledger's")
    }
    if found == nil {
      // Reading the steps decides whose they are.
      let isEmpty = try store.list(prefix: CopyLayout.stepsPrefix, after: nil).isEmpty
      if isEmpty, record?.step != nil {
        throw away(
          store,
          "the directory is empty, but this ledger has a copy there; to begin a new one, remove the folder "
            + "'\(ReplicationRecord.folderName)' of the ledger")
      }
    }
    let mark = record?.copy ?? found ?? .random()
    if found == nil { try store.setMark(mark) }
    store.require(mark: mark)
    return mark
  }

  private static func away(_ store: any ObjectStore, _ cause: String) -> ObjectStoreError {
    ObjectStoreError(
      .unavailable, operation: "open copy", object: store.name,
      cause: "is its disk mounted? \(cause)")
  }
}

// The snapshots of a ledger: listing, creating and removing them.
package import Base
package import Ledger

/// The content of the folder `snapshots`.
package struct SnapshotStore {
  /// A header that cannot be read, by its file's name.
  package struct Unreadable: Sendable {
    package let file: String
    package let cause: String
    /// Whether the system failed to read it, so that it may be valid.
    let isOfSystem: Bool
    /// Whether an earlier version of this program made the snapshot.
    package let isEarlier: Bool
    /// The number of events in the file's name; nil if the name has none.
    package let size: Int?

    init(file: String, _ refusal: SnapshotHeader.Refusal) {
      (self.file, cause) = (file, refusal.cause)
      (isOfSystem, isEarlier) = (refusal.isOfSystem, refusal.isEarlier)
      size = Int(file.dropLast(".json".count)).flatMap { number in
        number >= 0 && SnapshotHeader.headerName(size: number) == file ? number : nil
      }
    }

    /// The name for users.
    package var name: String { size.map { "\($0)" } ?? file }
  }

  private static let folderName = "snapshots"
  private let ledger: LedgerDirectory
  /// From the oldest position to the newest.
  package private(set) var snapshots: [Snapshot] = []
  package private(set) var unreadable: [Unreadable] = []

  /// Lists the folder. A missing folder counts as empty.
  package init(_ ledger: LedgerDirectory) {
    self.ledger = ledger
    // A folder that must not be used is rejected when the ledger is opened and when something is created in the folder.
    guard let folder = (try? ledger.folderIfPresent(Self.folderName)) ?? nil else { return }
    list((try? folder.names()) ?? [], in: folder)
  }

  private mutating func list(_ names: [String], in folder: Folder) {
    (snapshots, unreadable) = ([], [])
    for name in names.sorted() where name.hasSuffix(".json") {
      do throws(SnapshotHeader.Refusal) {
        let header = try SnapshotHeader(try Self.read(name, in: folder))
        guard SnapshotHeader.headerName(size: header.size) == name
        else { throw SnapshotHeader.Refusal(cause: "its header's size does not match its name") }
        snapshots.append(Snapshot(header: header, folder: folder))
      } catch { unreadable.append(Unreadable(file: name, error)) }
    }
  }

  /// The store with only the snapshot at exactly this size.
  package func only(_ size: Int) -> SnapshotStore {
    var store = self
    store.snapshots = snapshots.filter { $0.header.size == size }
    store.unreadable = unreadable.filter { $0.size == size }
    return store
  }

  private static func read(
    _ name: String, in folder: Folder
  ) throws(SnapshotHeader.Refusal) -> [UInt8] {
    let file: StorageFile
    do throws(LedgerError) { file = try folder.openFile(name, .readOnly) } catch {
      throw SnapshotHeader.Refusal(
        cause: "its header cannot be opened: \(error.cause)", isOfSystem: error.code != 0)
    }
    do throws(LedgerError) {
      return try file.readSmall(byteCountMax: SnapshotHeader.byteCountMax)
    } catch {
      if error.kind == .corruption {
        throw SnapshotHeader.Refusal(cause: "its header is too long")
      }
      throw SnapshotHeader.Refusal(
        cause: "its header cannot be read: \(error.cause)", isOfSystem: true)
    }
  }

  // MARK: Writing

  /// Performs work on one file; its errors name the operation.
  private static func attempt<Result>(
    _ operation: String, _ name: String, _ body: () throws(LedgerError) -> Result
  ) throws(ProjectionError) -> Result {
    do throws(LedgerError) { return try body() } catch {
      throw .file(operation: operation, name: name, cause: error.cause)
    }
  }

  /// Holds the lock for changing the folder while `body` runs.
  private func withLock<Result>(
    isCancelled: () -> Bool, _ body: (Folder) throws(ProjectionError) -> Result
  ) throws(ProjectionError) -> Result {
    try withFolderLock(ledger, Self.folderName, isCancelled: isCancelled) {
      (folder) throws(ProjectionError) in
      for name in (try? folder.names()) ?? [] where name.hasSuffix(".building") {
        try? folder.unlink(name)
      }
      return try body(folder)
    }
  }

  /// Saves a database that is not changing. Replaces a snapshot at the same position, which stays usable until then.
  /// - Parameters:
  ///   - content: the digest of its rows.
  ///   - append: makes the event that vouches for the snapshot durable and returns its position. If it throws, no
  ///     snapshot is created.
  package func save(
    _ database: StorageFile, _ progress: Progress, _ projections: [ProjectionIdentity],
    content: SHA256Digest, isCancelled: () -> Bool,
    append: (EventDraft) throws(ProjectionError) -> Position
  ) throws(ProjectionError) -> Snapshot {
    try withLock(isCancelled: isCancelled) { (folder) throws(ProjectionError) in
      let headerFile = SnapshotHeader.headerName(size: progress.position)
      let files = SnapshotHeader.fileNames(size: progress.position)
      let old = try? SnapshotHeader(try Self.read(headerFile, in: folder))
      let file = files.first { $0 != old?.file } ?? files[0]
      defer { for name in [file, headerFile] { try? folder.unlink(Self.buildingName(name)) } }
      let written = try write(file, in: folder) { (sink) throws(ProjectionError) in
        try Self.copy(database, isCancelled, sink)
      }
      if isCancelled() { throw .interrupted }
      let salt = SnapshotSalt()
      let created = SnapshotCreated(
        size: progress.position, root: progress.root,
        projections: projections.map {
          SnapshotCreated.Version(name: $0.name, version: $0.version)
        },
        contentSHA256: salt.conceal(content), fileSHA256: salt.conceal(written.sha256))
      let event = try append(EventDraft(.snapshotCreated, created.data))
      let header = SnapshotHeader(
        ledger.identity, progress, projections, createdAtMs: Timestamp.now(),
        file: file, byteCount: written.byteCount, sha256: written.sha256, salt: salt, event: event)
      let writtenHeader = try write(headerFile, in: folder) { (sink) throws(ProjectionError) in
        try Self.send(header.bytes, sink)
      }
      try inLedger { () throws(LedgerError) in
        // The file is never read unless a header names it.
        try folder.rename(Self.buildingName(file), to: file, of: written.file)
        do throws(LedgerError) {
          try folder.sync()
          try folder.rename(
            Self.buildingName(headerFile), to: headerFile, of: writtenHeader.file)
        } catch {
          try? folder.unlink(file)
          throw error
        }
        try folder.sync()
      }
      for name in files where name != file { try? folder.unlink(name) }
      return Snapshot(header: header, folder: folder)
    }
  }

  /// The name of a file that is still being written.
  private static func buildingName(_ name: String) -> String { name + ".building" }

  private typealias Sink = (UnsafeRawBufferPointer) throws(ProjectionError) -> Void
  private typealias Written = (file: StorageFile, byteCount: Int, sha256: SHA256Digest)

  /// Writes a file under its temporary name and syncs it.
  private func write(
    _ name: String, in folder: Folder, _ body: (Sink) throws(ProjectionError) -> Void
  ) throws(ProjectionError) -> Written {
    let file = try inLedger { () throws(LedgerError) in
      try folder.openFile(Self.buildingName(name), .create)
    }
    let hasher = SHA256()
    var byteCount = 0
    try body { (bytes) throws(ProjectionError) in
      try Self.attempt("writing", "snapshots/\(name)") { () throws(LedgerError) in
        try file.write(bytes, offsetBytes: byteCount)
      }
      hasher.update(bytes)
      byteCount += bytes.count
    }
    // The event that vouches for the file comes between its sync and its rename; `Folder.putInPlace` has no such
    // pause.
    try Self.attempt("syncing", "snapshots/\(name)") { () throws(LedgerError) in
      try file.syncData()
    }
    return (file, byteCount, hasher.finish())
  }

  private static func copy(
    _ database: StorageFile, _ isCancelled: () -> Bool, _ sink: Sink
  ) throws(ProjectionError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    defer { buffer.deallocate() }
    var offset = 0
    while true {
      if isCancelled() { throw .interrupted }
      let count = try attempt("reading", "a temporary generation") { () throws(LedgerError) in
        try database.read(into: buffer, offsetBytes: offset)
      }
      if count == 0 { return }
      try sink(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      offset += count
    }
  }

  private static func send(_ bytes: [UInt8], _ sink: Sink) throws(ProjectionError) {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    defer { copy.deallocate() }
    copy.copyBytes(from: bytes)
    try sink(UnsafeRawBufferPointer(copy))
  }

  // MARK: Removing

  /// Removes everything that `choose` does not keep: other snapshots, unreadable headers, and what interrupted work
  /// left. Returns the names of the removed and of the kept snapshots.
  /// - Parameter choose: receives all snapshots, by size; none is added meanwhile.
  package func prune(
    isCancelled: () -> Bool = { false },
    keeping choose: ([Snapshot]) throws(ProjectionError) -> [Snapshot]
  ) throws(ProjectionError) -> (removed: [String], kept: [Snapshot]) {
    let isThere = try inLedger { () throws(LedgerError) in
      try ledger.folderIfPresent(Self.folderName) != nil
    }
    guard isThere else { return ([], []) }
    return try withLock(isCancelled: isCancelled) { (folder) throws(ProjectionError) in
      // Snapshots found before the wait for the lock may have been replaced.
      let found = try inLedger { () throws(LedgerError) in try folder.names() }
      var store = self
      store.list(found, in: folder)
      // A header that cannot be read now is not treated as damaged.
      if let unread = store.unreadable.first(where: \.isOfSystem) {
        throw .file(
          operation: "reading", name: "\(Self.folderName)/\(unread.file)", cause: unread.cause)
      }
      let kept = try choose(store.snapshots)
      var names: Set<String> = ["lock"]
      for snapshot in kept {
        names.formUnion([
          snapshot.header.file, SnapshotHeader.headerName(size: snapshot.header.size),
        ])
      }
      // Earlier versions of this program compressed the databases.
      let suffixes = [".json", ".sqlite", ".sqlite.gz"]
      let obsoleteNames = found.filter { name in
        !names.contains(name) && suffixes.contains { name.hasSuffix($0) }
      }.sorted()
      // Headers first: a file without one is never read.
      try inLedger { () throws(LedgerError) in
        for suffix in suffixes {
          for name in obsoleteNames where name.hasSuffix(suffix) { try folder.unlink(name) }
        }
        try folder.sync()
      }
      let removed = obsoleteNames.filter { $0.hasSuffix(".json") }
      return (removed.map { String($0.dropLast(".json".count)) }, kept)
    }
  }
}

extension Projector {
  /// The snapshots of the ledger.
  package var snapshots: SnapshotStore { SnapshotStore(reader.directory) }

  /// Saves the projections after catching up, or as they were at `size` events.
  /// - Parameter append: makes the event that vouches for the snapshot durable and returns its position. If it
  ///   throws, no snapshot is created.
  package func createSnapshot(
    at size: Int? = nil, append: (EventDraft) throws -> Position
  ) throws(ProjectionError) -> Snapshot {
    let scratch: ScratchFile
    if let size {
      scratch = try self.scratch(at: size)
    } else {
      scratch = try self.scratch(of: try current())
    }
    do {
      let database = try Database(path: scratch.path, mode: .read)
      if let damage = try damage(in: database) {
        throw DatabaseError(inconsistency: "the database \(damage)")
      }
      let progress = try Progress(database)
      // A server may have folded more since the reader read the head.
      if progress.position > reader.head.size { try reader.refresh() }
      guard progress.position <= reader.head.size,
        try reader.frontier(at: progress.position) == progress.frontier
      else {
        throw ProjectionError.inconsistent("their history differs from the log's")
      }
      // A snapshot must not outlive the events that it depends on.
      try reader.syncTails()
      return try snapshots.save(
        scratch.file, progress, projections.identities,
        content: try contentDigest(of: database), isCancelled: observer.isCancelled
      ) { (draft) throws(ProjectionError) in
        do { return try append(draft) } catch { throw Self.projectionError(error) }
      }
    } catch { throw Self.projectionError(error) }
  }
}

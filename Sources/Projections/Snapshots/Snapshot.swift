// One snapshot: checks whether it is usable, and copies its database.
import Base
import Glibc
import Ledger

/// A saved state of the projections: a database and its header.
package struct Snapshot: Sendable {
  package let header: SnapshotHeader
  /// The folder of both files.
  let folder: Folder

  /// The name for users: its number of events.
  package var name: String { "\(header.size)" }

  private func refusal(_ cause: String) -> ProjectionError { .snapshot(name: name, cause: cause) }

  /// Copies the database into an empty file and checks its digest. If it throws, discard the file.
  ///
  /// Throws `snapshot` if the database is not the one that the header describes.
  func copy(to path: String, isCancelled: () -> Bool) throws(ProjectionError) {
    let target = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
    guard target >= 0 else { throw Self.systemFailure("opening") }
    defer { close(target) }
    try read(isCancelled: isCancelled) { (piece) throws(ProjectionError) in
      var rest = piece[...]
      while !rest.isEmpty {
        let count = write(target, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        if count > 0 {
          rest = rest.dropFirst(count)
        } else if count == 0 || errno != EINTR {
          throw Self.systemFailure("writing")
        }
      }
    }
  }

  private static func systemFailure(_ operation: String) -> ProjectionError {
    .file(
      operation: operation, name: "a temporary generation", cause: systemErrorText(errno))
  }

  /// Reads the whole file in pieces.
  ///
  /// Throws `snapshot` if the file is not the one that the header describes.
  func read(
    isCancelled: () -> Bool,
    _ body: (UnsafeRawBufferPointer) throws(ProjectionError) -> Void = { _ in }
  ) throws(ProjectionError) {
    guard let file = try? folder.openFile(header.file, .readOnly) else {
      throw refusal("its file cannot be opened")
    }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    defer { buffer.deallocate() }
    let hasher = SHA256()
    var offset = 0
    while true {
      if isCancelled() { throw .interrupted }
      let count: Int
      do throws(LedgerError) { count = try file.read(into: buffer, offsetBytes: offset) } catch {
        throw refusal("its file cannot be read: \(error.cause)")
      }
      if count == 0 { break }
      let piece = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      hasher.update(piece)
      offset += count
      guard offset <= header.byteCount else { throw refusal("its file is damaged") }
      try body(piece)
    }
    guard hasher.finish() == header.sha256 else { throw refusal("its file is damaged") }
  }

  /// Compares the file's length with its header; checking more requires reading it. Nil if it fits.
  var unfitFile: String? {
    let status: FileStatus?
    do throws(LedgerError) { status = try folder.status(header.file) } catch {
      return "its file: \(error.cause)"
    }
    guard let status else { return "its file is missing" }
    let size = status.sizeBytes
    return size == header.byteCount
      ? nil : "its file has \(size) bytes, but its header says \(header.byteCount)"
  }
}

extension Projector {
  /// Whether another version of this program made a snapshot.
  package func isOfAnotherVersion(_ snapshot: Snapshot) -> Bool {
    !snapshot.header.versionDifferences(from: projections.identities).isEmpty
  }

  /// Why a snapshot cannot be used, as far as its header and the log show; nil if it can.
  package func unfitness(of snapshot: Snapshot) -> String? {
    let header = snapshot.header
    let identity = reader.directory.identity
    guard header.ledgerID == "\(identity.id)", header.origin.hasSameBytes(as: identity.origin)
    else { return "it belongs to another ledger" }
    let differences = header.versionDifferences(from: projections.identities)
    if !differences.isEmpty {
      return "it belongs to another version of this program: \(differences.joined(separator: ", "))"
    }
    guard header.size <= reader.head.size else {
      return "it holds \(header.size) events, but the log \(reader.head.size)"
    }
    do throws(LedgerError) {
      guard try reader.frontier(at: header.size) == header.frontier
      else { return "its history differs from the log's" }
    } catch { return "\(error)" }
    do throws(ProjectionError) { _ = try voucher(of: snapshot) } catch {
      if case .snapshot(_, let cause) = error { return cause }
      return "\(error)"
    }
    do throws(ProjectionError) {
      if let erasure = try redaction(after: header.event) {
        return "it was made before the erasure at position \(erasure)"
      }
    } catch { return "\(error)" }
    return snapshot.unfitFile
  }

  /// The erasure of the newest event that lists redacted lines, if that event is after a position. A snapshot made
  /// before it may hold what was redacted.
  private func redaction(after position: Position) throws(ProjectionError) -> Position? {
    // Only a ledger of the newer format has such events.
    guard reader.directory.identity.formatVersion >= Format.versionWithRedactions else {
      return nil
    }
    do {
      if let database = try existing(), try Progress(database).position >= reader.head.size {
        let found = try database.prepare(
          "SELECT erasure FROM redactions WHERE part IS NOT NULL AND position > ? LIMIT 1")
        found.bind(1, position)
        return try found.step() ? found.ordinal(0) : nil
      }
      var erasure: Position?
      try reader.read(from: min(position, reader.head.size), to: reader.head.size) { chunk in
        try chunk.forEachEvent { event in
          guard event.hasType("data.redacted"), event.position > position,
            case .listing(let listing)? = try? DataRedacted(data: event.data)
          else { return }
          erasure = listing.erasure
        }
        return erasure == nil
      }
      return erasure
    } catch { throw Self.projectionError(error) }
  }

  /// The event that vouches for a snapshot. It contains a digest of the snapshot's content: an attacker who can write
  /// to the folder, but not append to the log, cannot substitute another file.
  ///
  /// Throws `snapshot` if the log has no such event.
  func voucher(of snapshot: Snapshot) throws(ProjectionError) -> SnapshotCreated {
    let position = snapshot.header.event
    func refusal(_ cause: String) -> ProjectionError {
      .snapshot(name: snapshot.name, cause: cause)
    }
    let line: [UInt8]?
    do throws(LedgerError) {
      // Another process may have appended it since the reader read the head.
      if position >= reader.head.size { try reader.refresh() }
      line = position < reader.head.size ? try reader.event(at: position) : nil
    } catch { throw .ledger(error) }
    guard let line else {
      throw refusal("the log has no event at position \(position) to vouch for it")
    }
    let created = line.withUnsafeBytes { bytes -> SnapshotCreated? in
      guard let event = EventLine(bytes), EventType(event.type) == .snapshotCreated,
        event.version == EventType.snapshotCreated.currentVersion
      else { return nil }
      return try? SnapshotCreated(data: event.data)
    }
    guard let created else {
      throw refusal("the event at position \(position) does not vouch for any snapshot")
    }
    guard snapshot.header.isVouchedFor(by: created) else {
      throw refusal("it is not the snapshot that the event at position \(position) vouches for")
    }
    return created
  }

  /// As `unfitness`, and reads every byte of the file. Copies nothing, so it needs no space.
  package func unfitnessOfBytes(of snapshot: Snapshot) throws(ProjectionError) -> String? {
    if let cause = unfitness(of: snapshot) { return cause }
    do throws(ProjectionError) { try snapshot.read(isCancelled: observer.isCancelled) } catch {
      if case .snapshot(_, let cause) = error { return cause }
      throw error
    }
    return nil
  }

  /// Reads a whole snapshot as a restore would, has SQLite check every page, and compares its rows with the event
  /// that vouches for them.
  /// - Returns: why it cannot be used; nil if it can.
  ///
  /// Throws if that cannot be determined, for example because the disk is full.
  package func verify(_ snapshot: Snapshot) throws(ProjectionError) -> String? {
    try verify(snapshot) { _ in nil }
  }

  /// As `verify`, for all snapshots. Also compares their rows with what the log gives, which is folded once, from
  /// nothing.
  /// - Returns: each snapshot, with why it cannot be used or how it differs from the log; nil if it is good.
  package func prove() throws(ProjectionError) -> [(snapshot: Snapshot, problem: String?)] {
    var scratch: ScratchFile?
    var result: [(snapshot: Snapshot, problem: String?)] = []
    for snapshot in snapshots.snapshots {
      let problem = try verify(snapshot) { database in
        let size = snapshot.header.size
        let file: ScratchFile
        if let scratch {
          try foldOn(try Self.openAlone(scratch.path), to: size)
          file = scratch
        } else {
          file = try scratchFromNothing(at: size)
          scratch = file
        }
        let books = try Database(path: file.path, mode: .read)
        guard try contentDigest(of: books) == contentDigest(of: database)
        else { return "its rows differ from those that the log gives" }
        let comparison = TableComparison(
          older: database, newer: books, rowLimit: 0, isCancelled: observer.isCancelled)
        return try comparison.definitions().first.map { "its \($0) is not this program's" }
      }
      result.append((snapshot, problem))
    }
    return result
  }

  /// - Parameter compare: receives the database of an intact snapshot; returns what is wrong with it.
  private func verify(
    _ snapshot: Snapshot, _ compare: (Database) throws -> String?
  ) throws(ProjectionError) -> String? {
    if let cause = unfitness(of: snapshot) { return cause }
    do {
      let scratch = try newScratch()
      // `scratch` removes the file.
      defer { withExtendedLifetime(scratch) {} }
      try fill(scratch.path, from: snapshot, to: snapshot.header.size)
      let database = try Database(path: scratch.path, mode: .read)
      if let damage = try damage(in: database) { return "its database \(damage)" }
      let digest = try contentDigest(of: database)
      guard try snapshot.header.salt.conceal(digest) == voucher(of: snapshot).contentSHA256
      else { return "its rows differ from those that the event vouches for" }
      return try compare(database)
    } catch ProjectionError.snapshot(_, let cause) {
      return cause
    } catch { throw Self.projectionError(error) }
  }
}

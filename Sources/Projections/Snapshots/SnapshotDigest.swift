// The content digest in a snapshot's event: a digest of all rows, hidden by a salt.
import Base
import Ledger

/// 32 random bytes that only the snapshot's header holds. Without them, no one can test whether an event's digest
/// matches a guessed content.
struct SnapshotSalt {
  private static let byteCount = 32

  let bytes: [UInt8]

  /// Creates a random salt.
  init() {
    var generator = SystemRandomNumberGenerator()
    bytes = (0..<Self.byteCount).map { _ in generator.next() }
  }

  /// Nil unless there are exactly 32 bytes.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  /// The SHA-256 of the salt followed by a digest.
  func conceal(_ digest: SHA256Digest) -> SHA256Digest {
    (bytes + digest.bytes).withUnsafeBytes { SHA256.hash($0) }
  }
}

extension Projector {
  /// The digest of every row of every table except those with the database's progress. Tables are ordered by name,
  /// rows by key. Equal rows give the same digest, whatever order they were written in.
  func contentDigest(of database: Database) throws(ProjectionError) -> SHA256Digest {
    do throws(DatabaseError) {
      return try database.interruptible(by: observer.isCancelled) { () throws(DatabaseError) in
        var digest = ContentDigest()
        for name in try TableComparison.definitions(of: "table", database).keys.sorted() {
          try digest.add(table: name, of: database)
        }
        return digest.finish()
      }
    } catch {
      if error.isInterrupted { throw .interrupted }
      throw .database(error)
    }
  }
}

/// Hashes tables, in memory that does not grow with them.
private struct ContentDigest {
  private static let bufferByteCount = 64 << 10

  private let hasher = SHA256()
  private var buffer: [UInt8] = []

  init() { buffer.reserveCapacity(2 * Self.bufferByteCount) }

  mutating func add(table name: String, of database: Database) throws(DatabaseError) {
    let columns = try TableComparison.columns(of: name, in: database)
    let keys = columns.keys.isEmpty ? columns.names : columns.keys
    let list = { (names: [String]) in
      names.map(TableComparison.quoted).joined(separator: ", ")
    }
    let rows = try database.prepare(
      "SELECT \(list(columns.names)) FROM \(TableComparison.quoted(name)) ORDER BY \(list(keys))")
    // A zero byte, which no name contains, ends each name; an empty name ends the list of columns.
    for text in [name] + columns.names + [""] { buffer += Array(text.utf8) + [0] }
    let columnCount = Int32(columns.names.count)
    var rowCount: UInt64 = 0
    while try rows.step() {
      for index in 0..<columnCount { rows.append(index, to: &buffer) }
      rowCount += 1
      if buffer.count >= Self.bufferByteCount { flush() }
    }
    // A kind that no value has ends the table.
    buffer.append(0)
    withUnsafeBytes(of: rowCount.littleEndian) { buffer.append(contentsOf: $0) }
  }

  private mutating func flush() {
    buffer.withUnsafeBytes { hasher.update($0) }
    buffer.removeAll(keepingCapacity: true)
  }

  mutating func finish() -> SHA256Digest {
    flush()
    return hasher.finish()
  }
}

// A snapshot's header: a small JSON file that describes it.
package import Base
package import Ledger

/// The header of a snapshot.
package struct SnapshotHeader: Sendable {
  static let version = 3
  /// The largest header that is read, in bytes.
  static let byteCountMax = 64 << 10
  /// The largest number in a header: as bytes, far more than SQLite can hold in pages of 8 KiB.
  private static let numberMax: Int64 = 1 << 46

  package let origin: String
  package let ledgerID: String
  /// How many events the database has folded.
  package let size: Int
  /// The Merkle tree of these events.
  package let frontier: Frontier
  /// The time of the last event in epoch milliseconds; nil if there is none.
  package let lastEventAtMs: Int64?
  /// When the snapshot was created, in epoch milliseconds.
  package let createdAtMs: Int64
  /// The versions of its projections.
  package let projectionVersions: [(name: String, version: Int)]
  /// The digests of their definitions by name; empty in older headers, which have none.
  private let definitions: [String: String]
  /// The database: its name in the same folder, its length and its SHA-256.
  package let file: String
  package let byteCount: Int
  package let sha256: SHA256Digest
  /// Keeps the event that vouches for the snapshot from revealing the content.
  let salt: SnapshotSalt
  /// The position of that event.
  package let event: Position

  /// The root of the tree of its events.
  package var root: SHA256Digest { frontier.root }

  init(
    _ identity: LedgerIdentity, _ progress: Progress, _ projections: [ProjectionIdentity],
    createdAtMs: Int64, file: String, byteCount: Int, sha256: SHA256Digest, salt: SnapshotSalt,
    event: Position
  ) {
    origin = identity.origin
    ledgerID = "\(identity.id)"
    size = progress.position
    frontier = progress.frontier
    lastEventAtMs = progress.lastEventAtMs
    self.createdAtMs = createdAtMs
    projectionVersions = projections.map { ($0.name, $0.version) }
    definitions = Dictionary(uniqueKeysWithValues: projections.map { ($0.name, $0.definition) })
    self.file = file
    self.byteCount = byteCount
    self.sha256 = sha256
    self.salt = salt
    self.event = event
  }

  // MARK: Writing

  var bytes: [UInt8] {
    var lines = JSONLines()
    func object(_ name: String, _ members: [(String, String?)]) {
      lines.add(name) { writer in
        writer.beginObject()
        for (key, value) in members {
          writer.key(key)
          if let value { writer.string(value) } else { writer.null() }
        }
        writer.endObject()
      }
    }
    lines.add("snapshot") { $0.integer(Self.version) }
    object("ledger", [("origin", origin), ("id", ledgerID)])
    lines.add("size") { $0.integer(size) }
    lines.add("root") { $0.string(Base64.text(root.bytes)) }
    lines.add("frontier") { $0.string(Base64.text(frontier.bytes)) }
    lines.add("last_event_at") { writer in
      if let lastEventAtMs {
        writer.string(Timestamp.text(ms: lastEventAtMs))
      } else {
        writer.null()
      }
    }
    lines.add("created_at") { $0.string(Timestamp.text(ms: createdAtMs)) }
    lines.add("projections") { writer in
      writer.beginObject()
      for projection in projectionVersions {
        writer.key(projection.name)
        writer.integer(projection.version)
      }
      writer.endObject()
    }
    object("definitions", projectionVersions.map { ($0.name, definitions[$0.name]) })
    lines.add("file") { $0.string(file) }
    lines.add("bytes") { $0.integer(byteCount) }
    lines.add("sha256") { $0.string(sha256.hex) }
    lines.add("salt") { $0.string(Base64.text(salt.bytes)) }
    lines.add("event") { $0.integer(event) }
    return lines.bytes
  }

  // MARK: Reading

  /// Why bytes are not a header.
  struct Refusal: Error {
    let cause: String
    /// Whether the system failed to read the bytes, so that they may still be a valid header.
    var isOfSystem = false
    /// Whether an earlier version of this program wrote them.
    var isEarlier = false
  }

  init(_ bytes: [UInt8]) throws(Refusal) {
    let json: JSONValue
    do throws(JSONError) { json = try JSONValue(bytes) } catch {
      throw Refusal(cause: "its header is not JSON: \(error)")
    }
    func refusal(_ name: String) -> Refusal {
      Refusal(cause: "'\(name)' is missing or invalid in its header")
    }
    func text(_ name: String, in value: JSONValue?) throws(Refusal) -> String {
      guard let text = value?[name]?.stringValue else { throw refusal(name) }
      return text
    }
    func count(_ name: String) throws(Refusal) -> Int {
      guard let number = json[name]?.integerValue, 0...Self.numberMax ~= number
      else { throw refusal(name) }
      return Int(number)
    }
    func time(_ name: String) throws(Refusal) -> Int64 {
      guard let timeMs = try? Timestamp.parse(try text(name, in: json)) else { throw refusal(name) }
      return timeMs
    }
    switch try count("snapshot") {
    case Self.version: break
    case 1, 2:
      throw Refusal(
        cause: "an earlier version of this program made it, in another format", isEarlier: true)
    default: throw Refusal(cause: "its header does not have version \(Self.version)")
    }
    origin = try text("origin", in: json["ledger"])
    ledgerID = try text("id", in: json["ledger"])
    size = try count("size")
    let root = try text("root", in: json)
    let roots = try? Base64.decode(Array(try text("frontier", in: json).utf8))
    let size = size
    guard let frontier = roots?.withUnsafeBytes({ Frontier(size: size, bytes: $0) }),
      Base64.text(frontier.root.bytes) == root
    else { throw refusal("frontier") }
    self.frontier = frontier
    lastEventAtMs = json["last_event_at"] == .null ? nil : try time("last_event_at")
    createdAtMs = try time("created_at")
    guard case .object(let members) = json["projections"] else { throw refusal("projections") }
    projectionVersions = members.map {
      ($0.key, Int(truncatingIfNeeded: $0.value.integerValue ?? -1))
    }
    switch json["definitions"] {
    case .object(let members):
      definitions = Dictionary(
        members.map { ($0.key, $0.value.stringValue ?? "") },
        uniquingKeysWith: { first, _ in first })
    case nil: definitions = [:]
    default: throw refusal("definitions")
    }
    file = try text("file", in: json)
    guard Self.fileNames(size: size).contains(file) else { throw refusal("file") }
    byteCount = try count("bytes")
    let digest = Array(try text("sha256", in: json).utf8).withUnsafeBytes { SHA256Digest(hex: $0) }
    guard let digest else { throw refusal("sha256") }
    sha256 = digest
    let saltText = try text("salt", in: json)
    guard let salt = (try? Base64.decode(Array(saltText.utf8))).flatMap({ SnapshotSalt($0) })
    else { throw refusal("salt") }
    self.salt = salt
    event = try count("event")
  }

  // MARK: Names

  /// The possible names of the database: the number of events in 20 digits. The second name is for a replacement; the
  /// first file stays usable until the new header is in place.
  static func fileNames(size: Int) -> [String] {
    [".sqlite", ".2.sqlite"].map { baseName(size: size) + $0 }
  }
  static func headerName(size: Int) -> String { baseName(size: size) + ".json" }

  private static func baseName(size: Int) -> String {
    let digits = "\(size)"
    return String(repeating: "0", count: max(0, 20 - digits.utf8.count)) + digits
  }

  // MARK: Fitness

  /// Whether an event vouches for a snapshot with this header and for the file that it names.
  func isVouchedFor(by created: SnapshotCreated) -> Bool {
    created.size == size && created.root == root
      && created.projections.elementsEqual(projectionVersions) {
        $0.name == $1.name && $0.version == $1.version
      } && created.fileSHA256 == salt.conceal(sha256)
  }

  /// The projections whose version or definition differs from these, in words; empty if none does.
  func versionDifferences(from projections: [ProjectionIdentity]) -> [String] {
    let stored = Dictionary(
      projectionVersions.map { ($0.name, $0.version) }, uniquingKeysWith: { first, _ in first })
    var differences: [String] = []
    for projection in projections where stored[projection.name] != projection.version {
      let version = stored[projection.name].map { "\($0)" } ?? "missing"
      differences.append("\(projection.name) \(version), here \(projection.version)")
    }
    let known = Set(projections.map(\.name))
    for name in stored.keys.sorted() where !known.contains(name) {
      differences.append("\(name.prefix(64)) unknown here")
    }
    if differences.isEmpty, projections.contains(where: { definitions[$0.name] != $0.definition }) {
      differences.append("other tables, indexes or views")
    }
    return differences
  }
}

// MARK: - Content digest

/// The salt of the content digest in a snapshot's event: 32 random bytes that only the snapshot's header contains.
/// Without them, a guessed content can't be tested against the event's digest.
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
  /// The digest of every row of every table except those with the database's progress. Tables are ordered by name, rows
  /// by key. Equal rows give the same digest, whatever order they were written in.
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
  private let packing = ReplyPacking()
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
      for index in 0..<columnCount {
        if ReplyPacking.packs(columns.names[Int(index)], of: name) {
          try addPacked(rows.bytes(index))
        } else {
          rows.append(index, to: &buffer)
        }
      }
      rowCount += 1
      if buffer.count >= Self.bufferByteCount { flush() }
    }
    // A kind that no value has ends the table.
    buffer.append(0)
    withUnsafeBytes(of: rowCount.littleEndian) { buffer.append(contentsOf: $0) }
  }

  /// Adds what a packed reply holds.
  private mutating func addPacked(_ content: UnsafeRawBufferPointer) throws(DatabaseError) {
    let reply = try packing.unpacked(content)
    withUnsafeBytes(of: UInt64(reply.count).littleEndian) { buffer.append(contentsOf: $0) }
    buffer += reply
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

// The uploads of a fold, and what they say about the sales that their verifications will show.
import JSON
import Ledger

/// Writes uploads as they come and finds them again when a verification names them.
final class UploadTable {
  private struct Recent {
    var receipt: Int32
    var occurredAtMs: Int64
    var country: Symbol
    var user: Int32
    var metadata: [UInt8]
  }

  private let database: Database
  private let insert: Statement
  private lazy var select = Result { () throws(DatabaseError) in
    try database.prepare(
      "SELECT receipt, occurred_at_ms, country, user, metadata FROM uploads WHERE position = ?")
  }
  private let insertLine: Statement
  private let isFresh: Bool
  /// Uploads that await their first verification: most are followed by it at once.
  private var recent: [Int: Recent] = [:]
  private static let recentLimit = 4096
  private var lines: [(digest: [UInt8], position: Int)] = []

  init(_ database: Database, isFresh: Bool) throws(DatabaseError) {
    self.database = database
    self.isFresh = isFresh
    insert = try database.prepare("INSERT INTO uploads VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
    insertLine = try database.prepare("INSERT OR IGNORE INTO import_lines VALUES(?, ?)")
  }

  /// Writes an upload.
  func add(
    _ view: ReceiptUploadedView, position: Int, receipt: Int32, occurredAtMs: Int64,
    recordedAtMs: Int64, country: Symbol, user: Int32
  ) throws(DatabaseError) {
    insert.bind(1, position)
    insert.bind(2, Int(receipt))
    insert.bind(3, occurredAtMs)
    insert.bind(4, recordedAtMs)
    insert.bind(5, symbol: country)
    insert.bind(6, symbol: user)
    insert.bind(7, text: view.ipAddress?.string)
    insert.bind(8, text: view.identifierForVendor?.string)
    insert.bind(9, text: view.metadata)
    insert.bind(10, view.line)
    try insert.run()
    if recent.count >= Self.recentLimit { recent.removeAll(keepingCapacity: true) }
    recent[position] = Recent(
      receipt: receipt, occurredAtMs: occurredAtMs, country: country, user: user,
      metadata: view.metadata.map(Array.init) ?? [])
    if let digest = view.lineSHA256Hex.flatMap({ Digest32(hex: $0.raw) }) {
      try addLine(digest.bytes, position)
    }
  }

  private func addLine(_ digest: [UInt8], _ position: Int) throws(DatabaseError) {
    if isFresh {
      lines.append((digest, position))
    } else {
      try store(digest, position)
    }
  }

  private func store(_ digest: [UInt8], _ position: Int) throws(DatabaseError) {
    digest.withUnsafeBytes { insertLine.bind(1, blob: $0) }
    insertLine.bind(2, position)
    try insertLine.run()
  }

  /// Writes the digests of import lines, sorted, as they make the least work for the tree they go into.
  func storeLines() throws(DatabaseError) {
    lines.sort { left, right in
      left.digest.withUnsafeBytes { one in
        right.digest.withUnsafeBytes { other in
          let order = one.order(other)
          return order != 0 ? order < 0 : left.position < right.position
        }
      }
    }
    for line in lines { try store(line.digest, line.position) }
    lines = []
  }

  /// Calls `body` with the receipt and the evidence of an upload; nil where there is no such upload.
  func withEvidence<Result>(
    at position: Int,
    _ body: (Int32, UploadEvidence) throws(ProjectionError) -> Result
  ) throws(ProjectionError) -> Result? {
    if let upload = recent.removeValue(forKey: position) {
      return try withText(upload.metadata) { (metadata) throws(ProjectionError) in
        try body(
          upload.receipt,
          UploadEvidence(
            position: position, occurredAtMs: upload.occurredAtMs, country: upload.country,
            user: upload.user, metadata: metadata))
      }
    }
    do throws(DatabaseError) {
      let statement = try select.get()
      statement.bind(1, position)
      guard try statement.step() else {
        statement.reset()
        return nil
      }
    } catch { throw .database(error) }
    guard case .success(let statement) = select else { return nil }
    // The metadata's bytes belong to the statement until it is reset.
    defer { statement.reset() }
    return try body(
      Int32(statement.integer(0)),
      UploadEvidence(
        position: position, occurredAtMs: statement.integer(1),
        country: statement.optionalInteger(2).map(Symbol.init) ?? .none,
        user: statement.optionalInteger(3).map(Int32.init) ?? -1, metadata: statement.bytes(4)))
  }
}

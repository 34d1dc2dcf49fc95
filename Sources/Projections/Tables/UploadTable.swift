// The tables `uploads`, `signed_uploads` and `upload_verdicts`, and the evidence of uploads for sales.
import Base
import Ledger
import Revenue

/// Writes uploads as they arrive, and finds them again when a verification refers to them.
final class UploadTable {
  private struct Recent {
    var receipt: Int32
    var occurredAtMs: Int64
    var country: Symbol
    var user: Int32
    var metadata: [UInt8]
  }

  private let database: Database
  private let rows: RowWriter
  private let target: RowTarget
  private lazy var signedTarget = Result { () throws(DatabaseError) in
    try rows.target("INSERT INTO signed_uploads", valueCount: 6)
  }
  /// For uploads whose receipts an erasure kept until the App Store replies.
  private lazy var heldTarget = Result { () throws(DatabaseError) in
    try rows.target("INSERT INTO held_receipts", valueCount: 2)
  }
  private lazy var select = Result { () throws(DatabaseError) in
    try database.prepare(
      """
      SELECT receipt, occurred_at_ms, country, user, metadata FROM uploads
      WHERE position = ? AND receipt IS NOT NULL
      """)
  }
  /// Uploads waiting for their first verification, which usually follows at once.
  private var recent: [Int: Recent] = [:]
  private static let recentLimit = 4096
  /// The total size of their metadata, which a hostile client can make large.
  private var recentBytes = 0
  private static let recentBytesMax = 16 << 20
  /// The newest upload, kept outside the dictionary to save a lookup.
  private var last: (position: Int, upload: Recent)?

  init(_ database: Database, _ rows: RowWriter) throws(DatabaseError) {
    self.database = database
    self.rows = rows
    target = try rows.target("INSERT INTO uploads", valueCount: 12)
  }

  /// Writes an upload of signed transactions. No verification refers to it.
  /// - Parameter bundle: that of its first transaction with a bundle.
  func add(
    _ view: TransactionsReceivedView, position: Int, appFamily: Symbol, bundle: Symbol,
    occurredAtMs: Int64, recordedAtMs: Int64, country: Symbol, user: Int32
  ) throws(DatabaseError) {
    try write(
      view, position: position, receipt: nil, occurredAtMs: occurredAtMs,
      recordedAtMs: recordedAtMs, country: country, user: user)
    guard let id = view.uploadID else { return }
    rows.begin(try signedTarget.get())
    rows.add(position)
    rows.add(id.raw.indexHash)
    rows.add(text: id.raw)
    rows.add(Int(appFamily))
    rows.add(symbol: bundle)
    rows.add(view.transactions.count)
    try rows.end()
  }

  @inline(__always)
  private func write(
    _ view: some UploadView, position: Int, receipt: Int32?, occurredAtMs: Int64,
    recordedAtMs: Int64, country: Symbol, user: Int32
  ) throws(DatabaseError) {
    rows.begin(target)
    rows.add(position)
    rows.add(receipt.map { Int64($0) })
    let digest = view.lineSHA256Hex.flatMap { SHA256Digest(hex: $0.raw) }
    rows.add(digest?.indexHash)
    rows.add(occurredAtMs)
    rows.add(recordedAtMs)
    rows.add(symbol: country)
    rows.add(symbol: user)
    rows.add(view.line)
    if let digest {
      digest.withUnsafeBytes { rows.add(blob: $0) }
    } else {
      rows.add(blob: nil)
    }
    rows.add(text: view.ipAddress)
    rows.add(text: view.identifierForVendor)
    rows.add(text: view.metadata)
    try rows.end()
  }

  /// Writes an upload of a receipt.
  func add(
    _ view: ReceiptUploadedView, position: Int, receipt: Int32, occurredAtMs: Int64,
    recordedAtMs: Int64, country: Symbol, user: Int32
  ) throws(DatabaseError) {
    try write(
      view, position: position, receipt: receipt, occurredAtMs: occurredAtMs,
      recordedAtMs: recordedAtMs, country: country, user: user)
    if let untilMs = view.receiptUntilMs {
      rows.begin(try heldTarget.get())
      rows.add(position)
      rows.add(untilMs)
      try rows.end()
    }
    if let last {
      if recent.count >= Self.recentLimit || recentBytes >= Self.recentBytesMax {
        recent.removeAll(keepingCapacity: true)
        recentBytes = 0
      }
      recent[last.position] = last.upload
      recentBytes += last.upload.metadata.count
    }
    last = (
      position,
      Recent(
        receipt: receipt, occurredAtMs: occurredAtMs, country: country, user: user,
        metadata: view.metadata.map(Array.init) ?? [])
    )
  }

  private func takeRecent(_ position: Int) -> Recent? {
    if let last, last.position == position {
      self.last = nil
      return last.upload
    }
    guard !recent.isEmpty, let upload = recent.removeValue(forKey: position) else { return nil }
    recentBytes -= upload.metadata.count
    return upload
  }

  /// Fetches an upload from the database. Resets the statement before returning, because another thread may then
  /// write rows on the same connection.
  private func fetch(_ position: Int) throws(DatabaseError) -> Recent? {
    try rows.drain()
    let statement = try select.get()
    defer { statement.reset() }
    statement.bind(1, position)
    guard try statement.step() else { return nil }
    return Recent(
      receipt: try statement.number(0), occurredAtMs: try statement.instant(1),
      country: try statement.symbol(2),
      user: try statement.optionalNumber(3) ?? -1,
      metadata: Array(statement.bytes(4)))
  }

  /// Calls `body` with an upload's receipt and evidence; returns nil if there is no such upload.
  func withEvidence<Result>(
    at position: Int,
    _ body: (Int32, UploadEvidence) throws(ProjectionError) -> Result
  ) throws(ProjectionError) -> Result? {
    let found: Recent?
    do throws(DatabaseError) {
      if let recent = takeRecent(position) { found = recent } else { found = try fetch(position) }
    } catch {
      throw .database(error)
    }
    guard let upload = found else { return nil }
    return try withText(upload.metadata) { (metadata) throws(ProjectionError) in
      try body(
        upload.receipt,
        UploadEvidence(
          position: position, occurredAtMs: upload.occurredAtMs, country: upload.country,
          user: upload.user, metadata: metadata))
    }
  }
}

extension RowWriter {
  /// Adds a string from an event, unescaped.
  fileprivate func add(text: JSONString?) {
    if let text, text.hasEscapes {
      withText(text.bytes) { add(text: $0) }
    } else {
      add(text: text?.raw)
    }
  }
}

extension SHA256Digest {
  /// The digest's first four bytes, as a number to index by.
  var indexHash: Int64 {
    withUnsafeBytes { Int64(Int32(littleEndian: $0.loadUnaligned(as: Int32.self))) }
  }
}

// MARK: - Fraud verdicts

/// Writes to the table `upload_verdicts` the first fraud verdict on each upload, with the event that gave it.
struct UploadVerdicts {
  private let rows: RowWriter
  private let target: RowTarget

  init(_ rows: RowWriter) throws(DatabaseError) {
    self.rows = rows
    // Events come in order, and the first verdict counts.
    target = try rows.target("INSERT OR IGNORE INTO upload_verdicts", valueCount: 4)
  }

  /// Writes a verdict, unless the upload already has one.
  /// - Parameter receipt: nil for an upload of signed transactions.
  func add(upload: Int, receipt: Int32?, _ fraud: Fraud) throws(DatabaseError) {
    rows.begin(target)
    rows.add(upload)
    rows.add(receipt.map { Int64($0) })
    rows.add(Int(fraud.reason))
    rows.add(fraud.position)
    try rows.end()
  }
}

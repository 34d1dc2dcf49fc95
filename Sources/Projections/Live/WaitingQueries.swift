// Queries of the verification queue, which is only a projection: the pending receipts.
import Base
import Ledger
import Revenue

/// Queries about waiting uploads and recent replies. Used by one thread at a time.
struct WaitingQueries {
  private let selectReceipts: Statement
  private let selectReceipt: Statement
  private let selectUploads: Statement
  private let selectUpload: Statement
  private let selectReply: Statement
  private let selectSummary: Statement

  /// The condition of the partial index.
  private static let waiting = "o.is_accepted = 1 AND o.is_refused = 0"
  /// Its parameters: the receipt's id and hash, its app family.
  private static let isReceipt = "r.receipt_hash = ?2 AND r.receipt_id = ?1 AND f.text = ?3"

  init(_ database: Database) throws(DatabaseError) {
    selectReceipts = try database.prepare(
      """
      SELECT r.id, r.receipt_id, f.text, b.text FROM
      (SELECT DISTINCT o.receipt AS receipt FROM open_uploads o INDEXED BY open_uploads_waiting
      WHERE \(Self.waiting) AND o.receipt > ? ORDER BY o.receipt LIMIT ?) w
      JOIN receipts r ON r.id = w.receipt
      JOIN symbols f ON f.id = r.app_family JOIN symbols b ON b.id = r.bundle ORDER BY r.id
      """)
    selectReceipt = try database.prepare(
      """
      SELECT r.id FROM receipts r JOIN symbols f ON f.id = r.app_family
      WHERE \(Self.isReceipt)
      """)
    selectUploads = try database.prepare(
      """
      SELECT o.upload, p.occurred_at_ms, o.is_unreachable
      FROM open_uploads o INDEXED BY open_uploads_waiting JOIN uploads p ON p.position = o.upload
      WHERE \(Self.waiting) AND o.receipt = ?1 AND (?2 = 0 OR o.is_unreachable = 0)
      ORDER BY o.upload LIMIT ?3
      """)
    selectUpload = try database.prepare(
      """
      SELECT o.upload, p.occurred_at_ms, o.is_unreachable
      FROM open_uploads o JOIN uploads p ON p.position = o.upload
      WHERE \(Self.waiting) AND o.upload = ?
      """)
    // All in one statement: before the next one, SQLite forgets the pages it has read if the fold has written.
    selectReply = try database.prepare(
      """
      SELECT v.outcome, v.status, s.text, v.endpoint, v.reason, v.occurred_at_ms, h.text, v.trust,
      v.position
      FROM receipts r JOIN symbols f ON f.id = r.app_family
      JOIN verifications v ON v.position = r.answer_position
      LEFT JOIN symbols s ON s.id = v.environment LEFT JOIN symbols h ON h.id = v.host
      WHERE \(Self.isReceipt)
      """)
    selectSummary = try database.prepare(
      """
      SELECT count(DISTINCT o.receipt), min(p.occurred_at_ms)
      FROM open_uploads o INDEXED BY open_uploads_waiting JOIN uploads p ON p.position = o.upload
      WHERE \(Self.waiting)
      """)
  }

  func receipts(after: Int64, limit: Int) throws -> [WaitingReceipt] {
    let rows = selectReceipts
    rows.bind(1, after)
    rows.bind(2, limit)
    defer { rows.reset() }
    var result: [WaitingReceipt] = []
    while try rows.step() {
      guard let id = UUID16(rows.text(1)), let family = UUID16(rows.text(2)) else {
        throw DatabaseError(inconsistency: "a receipt's id is not a UUID")
      }
      result.append(
        WaitingReceipt(
          number: rows.integer(0), receiptID: id, appFamily: family, bundleID: rows.text(3),
          uploads: try uploads(ofNumber: rows.integer(0), .all)))
    }
    return result
  }

  func uploads(
    ofReceipt receiptID: UUID16, family: UUID16, _ part: WaitingPart
  ) throws -> [WaitingUpload] {
    let row = selectReceipt
    Self.bind(row, receiptID, family)
    defer { row.reset() }
    return try row.step() ? uploads(ofNumber: row.integer(0), part) : []
  }

  func upload(at position: Position) throws -> WaitingUpload? {
    let row = selectUpload
    row.bind(1, position)
    defer { row.reset() }
    return try row.step() ? Self.upload(row) : nil
  }

  func summary() throws -> (receipts: Int, oldestMs: Int64?) {
    defer { selectSummary.reset() }
    guard try selectSummary.step() else { return (0, nil) }
    return (try selectSummary.ordinal(0), try selectSummary.optionalInstant(1))
  }

  func recentReply(
    ofReceipt receiptID: UUID16, family: UUID16, givenInMs times: ClosedRange<Int64>
  ) throws -> RecentReply? {
    let row = selectReply
    Self.bind(row, receiptID, family)
    defer { row.reset() }
    guard try row.step(), times.contains(try row.instant(5)) else { return nil }
    let outcome: Outcome =
      try row.code(0, as: OutcomeCode.self) == .valid ? .valid : .invalid
    let isImported = row.integer(7) == Int64(ReplyTrust.imported.rawValue)
    return RecentReply(
      position: try row.ordinal(8), outcome: outcome, status: row.optionalInteger(1),
      environment: row.optionalText(2),
      endpoint: try row.optionalFlag(3).map { $0 ? .sandbox : .production },
      reason: row.optionalText(4),
      source: row.optionalText(6).map { .host($0) } ?? (isImported ? .imported : nil),
      occurredAtMs: try row.instant(5))
  }

  private static func bind(_ row: Statement, _ receiptID: UUID16, _ family: UUID16) {
    let text = receiptID.description
    row.bind(1, text: text)
    row.bind(2, withText(text) { $0.indexHash })
    row.bind(3, text: family.description)
  }

  private func uploads(ofNumber number: Int64, _ part: WaitingPart) throws -> [WaitingUpload] {
    let rows = selectUploads
    rows.bind(1, number)
    rows.bind(2, part.isUnrecordedAlone ? 1 : 0)
    // A negative limit means no limit.
    rows.bind(3, part.limit ?? -1)
    defer { rows.reset() }
    var result: [WaitingUpload] = []
    while try rows.step() { result.append(try Self.upload(rows)) }
    return result
  }

  private static func upload(_ row: Statement) throws(DatabaseError) -> WaitingUpload {
    WaitingUpload(
      position: try row.ordinal(0), occurredAtMs: try row.instant(1),
      isUnreachableRecorded: try row.flag(2))
  }
}

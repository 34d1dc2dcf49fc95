// The receipts report: each receipt and its state (rule R9).
import AppStore
import Base
import Revenue

struct ReceiptsReport {
  static let columns = [
    ReportColumn("receipt_id", isKey: true), ReportColumn("app_family_id"),
    ReportColumn("bundle_id"),
    ReportColumn("style"), ReportColumn("environment"), ReportColumn("state"),
    ReportColumn("is_fraud", .flag), ReportColumn("fraud_reason"), ReportColumn("country_code"),
    ReportColumn("user_identifier"), ReportColumn("uploads", .integer),
    ReportColumn("purchases", .integer), ReportColumn("first_position", .integer, isKey: true),
    ReportColumn("last_position", .integer), ReportColumn("created_at", .time),
    ReportColumn("updated_at", .time),
  ]

  let source: ReportSource

  /// Writes the report, sorted by first position.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    var summary = ReportSummary()
    try writer.begin(Self.columns)
    let rows = try source.database.prepare(
      """
      SELECT r.receipt_id, r.app_family, r.bundle, r.style, \(PendingEnvironment.ofReceiptSQL), r.state,
      r.fraud_reason, r.country, u.user_identifier, r.uploads, r.purchases, r.first_position,
      r.last_position, r.created_at_ms, r.updated_at_ms
      FROM receipts r LEFT JOIN users u ON u.id = r.user
      LEFT JOIN pending_receipts q ON q.receipt = r.id ORDER BY r.first_position
      """)
    while try rows.step() {
      // A receipt whose environment is still unknown is always included.
      if !rows.isNull(4), !ReceiptResource.isUnknown(rows.bytes(4)),
        !source.shows(environmentNamed: rows.bytes(4))
      {
        continue
      }
      try write(rows, writer)
      summary.rowCount += 1
    }
    return summary
  }

  private func write(_ row: Statement, _ writer: any ReportWriter) throws {
    func symbol(_ index: Int32) throws(DatabaseError) -> ReportCell {
      row.isNull(index) ? .empty : .text(source.symbols.text(try row.symbol(index)))
    }
    try writer.write(.text(row.bytes(0)))
    try writer.write(try symbol(1))
    try writer.write(try symbol(2))
    try writer.write(.word(try row.flag(3) ? "transaction" : "unified"))
    try writer.write(row.isNull(4) ? .empty : .text(row.bytes(4)))
    try writer.write(.word(try row.code(5, as: ReceiptState.self).word))
    try writer.write(.flag(!row.isNull(6)))
    try writer.write(try symbol(6))
    try writer.write(try symbol(7))
    try writer.write(row.isNull(8) ? .empty : .text(row.bytes(8)))
    for index: Int32 in 9...12 { try writer.write(.integer(row.integer(index))) }
    for index: Int32 in 13...14 { try writer.write(.time(try row.instant(index))) }
    try writer.endRow()
  }
}

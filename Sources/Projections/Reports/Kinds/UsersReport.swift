// The users report: what each user uploaded, bought and returned (rule R9).
import Base
import Revenue

struct UsersReport {
  static let columns = [
    ReportColumn("user_identifier", isKey: true), ReportColumn("receipts", .integer),
    ReportColumn("uploads", .integer), ReportColumn("sales", .integer),
    ReportColumn("returns", .integer), ReportColumn("trials", .integer),
    ReportColumn("countries", .list), ReportColumn("net"), ReportColumn("first_seen_at", .time),
    ReportColumn("last_seen_at", .time),
  ]

  private struct User {
    var identifier: Text
    var receipts = 0
    var uploads = 0
    var sales = 0
    var returns = 0
    var trials = 0
    var countries: [Text] = []
    var net: [Currency: Int128] = [:]
    /// Nil for a user whom no upload named (rule R12).
    var firstSeenAtMs: Int64?
    var lastSeenAtMs: Int64?
    var hasSale = false

    /// A user without an upload is there for a sale.
    var isShown: Bool { uploads > 0 || hasSale }
  }

  let source: ReportSource

  /// Writes the report, sorted by user as bytes.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    var users = try loadUsers()
    try addUploads(to: &users)
    var summary = ReportSummary()
    summary.rates = try addSales(to: &users)
    try writer.begin(Self.columns)
    for user in users.values.filter(\.isShown)
      .sorted(by: { $0.identifier.precedes($1.identifier) })
    {
      try write(user, writer)
      summary.rowCount += 1
    }
    return summary
  }

  private func loadUsers() throws -> [Int: User] {
    var result: [Int: User] = [:]
    let rows = try source.database.prepare(
      "SELECT id, user_identifier, uploads, first_seen_at_ms, last_seen_at_ms FROM users")
    while try rows.step() {
      var user = User(
        identifier: source.arena.keep(rows.bytes(1)), firstSeenAtMs: try rows.optionalInstant(3),
        lastSeenAtMs: try rows.optionalInstant(4))
      user.uploads = try rows.ordinal(2)
      result[try rows.ordinal(0)] = user
    }
    return result
  }

  private func addUploads(to users: inout [Int: User]) throws {
    let receipts = try source.database.prepare(
      """
      SELECT user, count(DISTINCT receipt) FROM uploads WHERE user IS NOT NULL GROUP BY user
      """)
    while try receipts.step() {
      users[try receipts.ordinal(0)]?.receipts = try receipts.ordinal(1)
    }
    let countries = try source.database.prepare(
      """
      SELECT DISTINCT u.user, s.text FROM uploads u JOIN symbols s ON s.id = u.country
      WHERE u.user IS NOT NULL ORDER BY 1, 2
      """)
    while try countries.step() {
      users[try countries.ordinal(0)]?.countries.append(source.arena.keep(countries.bytes(1)))
    }
  }

  /// Adds what each user bought, converted to the reporting currency where a rate allows it. Returns the rates used.
  private func addSales(to users: inout [Int: User]) throws -> UsedRates {
    let list = try SaleList(source)
    var conversion = try source.request.conversion(source.database)
    try source.forEachLine { line throws(ProjectionError) in
      guard var user = users[Int(list.sale(line.sale).user)] else { return }
      var line = line
      _ = conversion?.convert(&line)
      user.hasSale = true
      if line.kind.isPaid {
        if line.type == .sale { user.sales += 1 }
        if line.type == .return { user.returns += 1 }
      } else if line.kind == .trial, line.type == .sale {
        user.trials += 1
      }
      if let currency = line.currency, let amount = line.amountMicros {
        user.net[currency, default: 0] += Int128(amount)
      }
      users[Int(list.sale(line.sale).user)] = user
    }
    return conversion?.usedRates ?? UsedRates()
  }

  private func write(_ user: User, _ writer: any ReportWriter) throws {
    try writer.write(.text(user.identifier))
    for count in [user.receipts, user.uploads, user.sales, user.returns, user.trials] {
      try writer.write(.integer(Int64(count)))
    }
    try writer.write(.list(user.countries))
    try writer.write(.amounts(user.net))
    try writer.write(user.firstSeenAtMs.map { .time($0) } ?? .empty)
    try writer.write(user.lastSeenAtMs.map { .time($0) } ?? .empty)
    try writer.endRow()
  }
}

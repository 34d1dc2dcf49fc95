// Queries about the App Store Server API: its customers, and how far each history was fetched.
import Glibc
package import Ledger
import Revenue

/// A customer's transactions of one kind: sales with one original transaction id.
package struct FetchCustomer: Equatable, Sendable {
  /// The number of the first of the sales.
  package var sale: Int64
  package var environment: String
  package var bundleID: String
  package var originalTransactionID: String
  package var transactionID: String
  fileprivate var environmentNumber: Int64
  fileprivate var bundleNumber: Int64
  /// The event that showed it first.
  package var firstPosition: Int
}

/// How far a customer's history was fetched.
package struct FetchedHistory: Equatable, Sendable {
  /// The transaction that was asked about.
  package var transactionID: String
  /// Whether the last page was fetched, or an error made further calls pointless.
  package var isComplete: Bool
  /// The revision with which to ask for the next page, or for what is new.
  package var revision: String?
  /// When the newest reply arrived, in epoch milliseconds.
  package var atMs: Int64
}

/// How far an app's notification history was fetched.
package struct FetchedNotifications: Equatable, Sendable {
  package var fromMs: Int64
  package var toMs: Int64
  package var isComplete: Bool
  package var paginationToken: String?
}

/// Queries of one generation of the projections. Each query is its own read transaction.
package final class FetchQueries {
  private let readEvent: (Position) throws -> [UInt8]
  private let selectCustomers: Statement
  private let selectHistory: Statement
  private let selectPages: Statement
  private let selectNotifications: Statement
  private let selectRanges: Statement
  private let selectHeldPages: Statement
  private let selectAllPages: Statement
  private let selectAcceptances: Statement
  private let selectSales: Statement
  private let selectNewestSale: Statement
  /// The page that was read last: a customer's sales follow one another.
  private var lastPage: (position: Position, line: [UInt8])?

  package init(
    _ database: Database, readEvent: @escaping (Position) throws -> [UInt8]
  ) throws(DatabaseError) {
    self.readEvent = readEvent
    func symbol(_ column: String) -> String { "(SELECT text FROM symbols WHERE id = \(column))" }
    selectCustomers = try database.prepare(
      """
      SELECT id, environment, bundle, \(symbol("environment")), \(symbol("bundle")),
      original_transaction_id, transaction_id, first_position FROM sales WHERE id > ?
      ORDER BY id LIMIT ?
      """)
    let call = FetchCallCode.history.rawValue
    selectHistory = try database.prepare(
      """
      SELECT has_more, revision, occurred_at_ms, error_code FROM fetched_pages
      WHERE transaction_hash = ?1 AND transaction_id = ?2 AND call = \(call)
      AND environment = ?3 AND bundle = ?4 ORDER BY position DESC LIMIT 1
      """)
    selectPages = try database.prepare(
      """
      SELECT p.position, p.transaction_id FROM signed_statements s
      JOIN fetched_pages p ON p.position = s.position
      WHERE s.transaction_hash = ?1 AND p.call = \(call) AND p.environment = ?2 AND p.bundle = ?3
      AND p.transaction_id IS NOT NULL ORDER BY p.position DESC
      """)
    selectNotifications = try database.prepare(
      """
      SELECT from_ms, to_ms, has_more, revision FROM fetched_pages
      WHERE call = \(FetchCallCode.notificationHistory.rawValue) AND error_code IS NULL
      AND from_ms IS NOT NULL AND to_ms IS NOT NULL
      AND environment IN (SELECT id FROM symbols WHERE text = ?1)
      AND bundle IN (SELECT id FROM symbols WHERE text = ?2) ORDER BY position DESC LIMIT 1
      """)
    selectRanges = try database.prepare(
      """
      SELECT from_ms, to_ms, occurred_at_ms FROM fetched_pages
      WHERE call = \(FetchCallCode.notificationHistory.rawValue) AND error_code IS NULL
      AND has_more = 0 AND from_ms IS NOT NULL AND to_ms IS NOT NULL
      AND environment IN (SELECT id FROM symbols WHERE text = ?1)
      AND bundle IN (SELECT id FROM symbols WHERE text = ?2) ORDER BY from_ms, to_ms
      """)
    let ofHistory = """
      FROM fetched_pages WHERE transaction_hash = ?1 AND transaction_id = ?2 AND call = \(call)
      AND environment IN (SELECT id FROM symbols WHERE text = ?3)
      AND bundle IN (SELECT id FROM symbols WHERE text = ?4)
      """
    selectHeldPages = try database.prepare(
      """
      SELECT position \(ofHistory) AND revision IS ?5
      AND position > (SELECT ifnull(max(position), -1) \(ofHistory) AND has_more = 0)
      ORDER BY position DESC LIMIT \(Self.heldPagesMax)
      """)
    selectAllPages = try database.prepare(
      "SELECT position FROM fetched_pages WHERE position > ? ORDER BY position LIMIT ?")
    selectAcceptances = try database.prepare(
      "SELECT position FROM signature_acceptances WHERE page = ? ORDER BY position")
    selectSales = try database.prepare(
      "SELECT id, first_position FROM sales WHERE id > ? ORDER BY id")
    selectNewestSale = try database.prepare("SELECT max(id) FROM sales")
  }

  // MARK: Customers

  /// The sales after one, by number, as customers to ask about. A customer may occur several times.
  package func customers(afterSale: Int64, limit: Int) throws(DatabaseError) -> [FetchCustomer] {
    let rows = selectCustomers
    rows.bind(1, afterSale)
    rows.bind(2, limit)
    defer { rows.reset() }
    var result: [FetchCustomer] = []
    while try rows.step() {
      let original = rows.text(5)
      result.append(
        FetchCustomer(
          sale: rows.integer(0), environment: rows.text(3), bundleID: rows.text(4),
          originalTransactionID: original.isEmpty ? rows.text(6) : original,
          transactionID: rows.text(6), environmentNumber: rows.integer(1),
          bundleNumber: rows.integer(2), firstPosition: try rows.ordinal(7)))
    }
    return result
  }

  /// How far the customer's history was fetched, by this transaction or another one of the customer; nil if it was not.
  package func history(of customer: FetchCustomer) throws -> FetchedHistory? {
    if let own = try history(about: customer.originalTransactionID, customer) { return own }
    guard let other = try otherTransaction(showing: customer) else { return nil }
    return try history(about: other, customer)
  }

  private func history(
    about transactionID: String, _ customer: FetchCustomer
  ) throws(DatabaseError) -> FetchedHistory? {
    let rows = selectHistory
    rows.bind(1, withText(transactionID) { $0.indexHash })
    rows.bind(2, text: transactionID)
    rows.bind(3, customer.environmentNumber)
    rows.bind(4, customer.bundleNumber)
    defer { rows.reset() }
    guard try rows.step() else { return nil }
    return FetchedHistory(
      transactionID: transactionID, isComplete: try !rows.flag(0),
      revision: rows.optionalText(1), atMs: try rows.instant(2))
  }

  /// The transaction that was asked about when a page showed the customer's. Hashes may collide, so the page itself is
  /// read.
  private func otherTransaction(showing customer: FetchCustomer) throws -> String? {
    let rows = selectPages
    rows.bind(1, withText(customer.transactionID) { $0.indexHash })
    rows.bind(2, customer.environmentNumber)
    rows.bind(3, customer.bundleNumber)
    defer { rows.reset() }
    while try rows.step() {
      let position = try rows.ordinal(0)
      let isShown =
        position == customer.firstPosition
        ? true : try shows(customer.transactionID, at: position)
      if isShown { return rows.text(1) }
    }
    return nil
  }

  /// The most pages of a history that a page is compared with.
  private static let heldPagesMax = 256

  /// Whether the log already has a page of a history: the same reply to the same question, with the same verdicts.
  /// Pages from before the history was last fetched to its end do not count.
  package func containsHistoryPage(_ page: TransactionsFetched) throws -> Bool {
    guard let id = page.transactionID else { return false }
    let data = page.data
    // Everything before the call is in the row, except the time.
    let call = Array("\"call\":".utf8)
    let start = data.indices.first { data[$0...].starts(with: call) }
    guard let start else { return false }
    let rows = selectHeldPages
    rows.bind(1, withText(id) { $0.indexHash })
    rows.bind(2, text: id)
    rows.bind(3, text: page.environment)
    rows.bind(4, text: page.bundleID)
    rows.bind(5, text: page.revision)
    defer { rows.reset() }
    while try rows.step() {
      let line = try readEvent(try rows.ordinal(0))
      let isSame = line.withUnsafeBytes { line in
        data.withUnsafeBytes { Self.contains(line, .init(rebasing: $0[start...])) }
      }
      if isSame { return true }
    }
    return false
  }

  // MARK: Rejected objects

  private static let invalid = Array(#""outcome":"invalid""#.utf8)

  /// Calls `body` with the rejected objects of the next pages after a position, and with what later events accepted of
  /// each. Returns the position to continue after; nil once there are no more pages.
  package func forEachRefusedPage(
    after position: Position, limit: Int,
    _ body: (Position, _ line: [UInt8], [SignaturesAccepted]) throws -> Void
  ) throws -> Position? {
    selectAllPages.bind(1, position)
    selectAllPages.bind(2, limit)
    let pages = try positions(selectAllPages)
    for page in pages {
      let line = try readEvent(page)
      let isRefused = line.withUnsafeBytes { line in
        Self.invalid.withUnsafeBytes { Self.contains(line, $0) }
      }
      if isRefused { try body(page, line, try acceptances(of: page)) }
    }
    return pages.last
  }

  private func acceptances(of page: Position) throws -> [SignaturesAccepted] {
    selectAcceptances.bind(1, page)
    return try positions(selectAcceptances).compactMap { position in
      try readEvent(position).withUnsafeBytes { line in
        try EventLine(line).map { try SignaturesAccepted(data: $0.data) }
      }
    }
  }

  private func positions(_ rows: Statement) throws(DatabaseError) -> [Position] {
    defer { rows.reset() }
    var result: [Position] = []
    while try rows.step() { result.append(try rows.ordinal(0)) }
    return result
  }

  private func shows(_ transactionID: String, at position: Position) throws -> Bool {
    if lastPage?.position != position { lastPage = (position, try readEvent(position)) }
    guard let line = lastPage?.line else { return false }
    let wanted = Array("\"\(transactionID)\"".utf8)
    return line.withUnsafeBytes { line in wanted.withUnsafeBytes { Self.contains(line, $0) } }
  }

  private static func contains(
    _ line: UnsafeRawBufferPointer, _ wanted: UnsafeRawBufferPointer
  ) -> Bool {
    guard let start = line.baseAddress, let first = wanted.first, let text = wanted.baseAddress
    else { return false }
    var offset = 0
    while offset + wanted.count <= line.count,
      let found = memchr(start + offset, Int32(first), line.count - offset - wanted.count + 1)
    {
      if memcmp(found, text, wanted.count) == 0 { return true }
      offset = UnsafeRawPointer(found) - start + 1
    }
    return false
  }

  // MARK: Notifications

  /// How far the notification history of a bundle was fetched; nil if it was not.
  package func notifications(
    ofBundle bundleID: String, environment: String
  ) throws(DatabaseError) -> FetchedNotifications? {
    let rows = selectNotifications
    rows.bind(1, text: environment)
    rows.bind(2, text: bundleID)
    defer { rows.reset() }
    guard try rows.step() else { return nil }
    return FetchedNotifications(
      fromMs: try rows.instant(0), toMs: try rows.instant(1), isComplete: try !rows.flag(2),
      paginationToken: rows.optionalText(3))
  }

  /// Where a gap in the fetched notification history begins that reaches beyond a moment, because notifications in it
  /// were rejected, and when it was last asked for; nil if there is none.
  package func notificationGap(
    ofBundle bundleID: String, environment: String, afterMs: Int64
  ) throws(DatabaseError) -> (fromMs: Int64, askedAtMs: Int64)? {
    let rows = selectRanges
    rows.bind(1, text: environment)
    rows.bind(2, text: bundleID)
    defer { rows.reset() }
    var end: (ms: Int64, askedAtMs: Int64)?
    while try rows.step() {
      let (fromMs, toMs) = (try rows.instant(0), try rows.instant(1))
      let atMs = try rows.instant(2)
      guard let known = end else {
        end = (toMs, atMs)
        continue
      }
      if fromMs > known.ms, fromMs - known.ms > 1, fromMs > afterMs {
        return (max(known.ms, afterMs), known.askedAtMs)
      }
      if toMs > known.ms { end = (toMs, atMs) }
      if toMs == known.ms { end?.askedAtMs = max(known.askedAtMs, atMs) }
    }
    return nil
  }

  // MARK: New sales

  /// The number of the newest sale; -1 if there is none.
  package func newestSale() throws(DatabaseError) -> Int64 {
    defer { selectNewestSale.reset() }
    return try selectNewestSale.step() ? selectNewestSale.optionalInteger(0) ?? -1 : -1
  }

  /// How many sales after a given one were first seen at positions that pass.
  package func sales(
    after sale: Int64, firstSeen isCounted: (Position) -> Bool
  ) throws(DatabaseError) -> Int {
    selectSales.bind(1, sale)
    defer { selectSales.reset() }
    var count = 0
    while try selectSales.step() {
      if isCounted(try selectSales.ordinal(1)) { count += 1 }
    }
    return count
  }
}

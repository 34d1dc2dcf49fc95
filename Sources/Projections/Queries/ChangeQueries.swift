// Queries about what a range of events changed, in order.
package import Ledger
package import Revenue

/// A change as the tables record it, before its details are read. Sorted in the order of changes.
private struct ChangeMark: Comparable {
  enum Kind: Int { case sale, line, turn, fraud }

  var position: Position
  var kind: Kind
  /// The number of the sale or subscription, or the position of the upload.
  var number: Int
  /// The index of the line in its sale, or the kind of transition.
  var line = 0

  static func < (left: ChangeMark, right: ChangeMark) -> Bool {
    (left.position, left.kind.rawValue, left.number, left.line)
      < (right.position, right.kind.rawValue, right.number, right.line)
  }
}

extension LedgerQueries {
  /// The most events that a page covers.
  private static var changeEventsMax: Int { 4096 }
  /// After this many sales, a page ends with their event.
  private static var changeSalesMax: Int { 4096 }

  /// The changes of the folded events from a point on.
  /// - Parameter limit: the most changes to return.
  package func changes(from point: ChangePoint, limit: Int) throws -> LedgerChangePage {
    let head = Int(try database.integer("SELECT position FROM progress") ?? 0)
    guard point.position < head else { return LedgerChangePage(changes: [], next: point) }
    var end = min(head, point.position + Self.changeEventsMax)
    var marks = try newSales(from: point.position, to: &end)
    try addMarks(
      .line, "SELECT position, sale, ordinal FROM later_lines", point.position..<end, to: &marks)
    try addMarks(
      .turn, "SELECT position, subscription, kind FROM subscription_turns",
      point.position..<end, to: &marks)
    try addMarks(
      .fraud, "SELECT position, upload, 0 FROM upload_verdicts", point.position..<end, to: &marks)
    marks.sort()
    var page = LedgerChangePage(changes: [], next: ChangePoint(end))
    var families: [String: String?] = [:]
    var place = ChangePoint(point.position, -1)
    for mark in marks {
      place =
        mark.position == place.position
        ? ChangePoint(place.position, place.ordinal + 1) : ChangePoint(mark.position)
      if place < point { continue }
      if page.changes.count == limit {
        page.next = place
        return page
      }
      if let change = try change(mark, at: place, &families) { page.changes.append(change) }
    }
    return page
  }

  // MARK: Marks

  /// The sales that events showed first. If there are very many, the range ends earlier.
  private func newSales(from start: Position, to end: inout Position) throws -> [ChangeMark] {
    let rows = try database.prepare(
      "SELECT first_position, id FROM sales WHERE id >= ? ORDER BY id")
    rows.bind(1, try firstSale(at: start))
    var marks: [ChangeMark] = []
    while try rows.step() {
      let position = try rows.ordinal(0)
      guard position >= start else {
        throw DatabaseError(inconsistency: "sales are not numbered as events showed them")
      }
      if position >= end { break }
      if marks.count >= Self.changeSalesMax, let last = marks.last, last.position != position {
        end = position
        break
      }
      marks.append(ChangeMark(position: position, kind: .sale, number: try rows.ordinal(1)))
    }
    return marks
  }

  /// The number of the first sale that an event from a position on showed first. Sales are numbered in that order.
  private func firstSale(at position: Position) throws -> Int {
    let row = try database.prepare(
      "SELECT id, first_position FROM sales WHERE id >= ? ORDER BY id LIMIT 1")
    var low = 0
    var high = Int(try database.nextNumber(of: "sales"))
    while low < high {
      let middle = (low + high) / 2
      row.reset()
      row.bind(1, middle)
      if try row.step(), row.integer(1) < position {
        low = try row.ordinal(0) + 1
      } else {
        high = middle
      }
    }
    return low
  }

  private func addMarks(
    _ kind: ChangeMark.Kind, _ select: String, _ range: Range<Position>,
    to marks: inout [ChangeMark]
  ) throws {
    let rows = try database.prepare("\(select) WHERE position >= ? AND position < ?")
    rows.bind(1, range.lowerBound)
    rows.bind(2, range.upperBound)
    while try rows.step() {
      marks.append(
        ChangeMark(
          position: try rows.ordinal(0), kind: kind, number: try rows.ordinal(1),
          line: try rows.ordinal(2)))
    }
  }

  // MARK: Details

  private func change(
    _ mark: ChangeMark, at point: ChangePoint, _ families: inout [String: String?]
  ) throws -> LedgerChange? {
    if mark.kind == .fraud {
      guard let (fraud, family, identity) = try fraud(ofUpload: mark.number) else { return nil }
      return LedgerChange(
        point: point, identity: identity, isBackfill: try isBackfill(mark.position),
        appFamilyID: family, content: .fraud(fraud))
    }
    if mark.kind == .turn { return try turn(mark, at: point, &families) }
    guard let sale = try sales("id = ?", { $0.bind(1, mark.number) }).first else { return nil }
    let content: LedgerChange.Content
    if mark.kind == .sale {
      content = .sale(sale, isRenewal: try isRenewal(sale, number: mark.number))
    } else {
      guard sale.lines.indices.contains(mark.line) else { return nil }
      content = .line(sale, sale.lines[mark.line])
    }
    return LedgerChange(
      point: point, identity: try identity(ofLine: mark, sale),
      isBackfill: try isBackfill(mark.position),
      appFamilyID: try family(of: sale.bundleID, &families), content: content)
  }

  /// The identity of a journal line: a sale has one Sale line, and Returns and Reversals by the statements that caused
  /// them.
  private func identity(ofLine mark: ChangeMark, _ sale: SaleDetail) throws -> [String] {
    let row = try database.prepare(
      """
      SELECT s.key_kind, l.statement_ms FROM sales s
      LEFT JOIN later_lines l ON l.sale = s.id AND l.ordinal = ?2 WHERE s.id = ?1
      """)
    row.bind(1, mark.number)
    row.bind(2, mark.kind == .line ? mark.line : 0)
    guard try row.step(), let line = sale.lines.dropFirst(mark.line).first else { return [] }
    return [
      "line", sale.environment, sale.bundleID, "\(row.integer(0))", sale.saleKey, line.line,
      "\(line.dateMs)", Self.text(row.optionalInteger(1)),
    ]
  }

  private static func text(_ number: Int64?) -> String { number.map { "\($0)" } ?? "" }

  /// Whether an event came from a synchronization or an import, or is about an upload that did.
  private func isBackfill(_ position: Position) throws -> Bool {
    let row = try database.prepare(
      """
      SELECT EXISTS (SELECT 1 FROM fetched_pages WHERE position = ?1)
      OR EXISTS (SELECT 1 FROM signature_acceptances WHERE position = ?1)
      OR EXISTS (SELECT 1 FROM notifications
        WHERE position = ?1 AND (is_fetched = 1 OR line IS NOT NULL))
      OR EXISTS (SELECT 1 FROM uploads WHERE line IS NOT NULL AND position =
        coalesce((SELECT upload FROM verifications WHERE position = ?1), ?1))
      """)
    row.bind(1, position)
    return try row.step() && row.integer(0) != 0
  }

  /// Nil until a statement shows the subscription: renewal information does not contain what was bought.
  private func turn(
    _ mark: ChangeMark, at point: ChangePoint, _ families: inout [String: String?]
  ) throws -> LedgerChange? {
    guard let subscription = try SubscriptionQueries(database).subscription(number: mark.number)
    else { return nil }
    let row = try database.prepare(
      """
      SELECT t.expires_at_ms, t.expiration_intent, t.grace_period_expires_at_ms, t.statement_ms,
      n.notification_uuid, t.kind FROM subscription_turns t
      LEFT JOIN notifications n ON n.position = t.position
      WHERE t.position = ? AND t.kind = ? AND t.subscription = ?
      """)
    row.bind(1, mark.position)
    row.bind(2, mark.line)
    row.bind(3, mark.number)
    guard try row.step() else { return nil }
    let kind: SubscriptionTransition.Kind = try row.code(5)
    let detail = SubscriptionTurnDetail(
      kind: kind, expiresAtMs: try row.optionalInstant(0),
      expirationIntent: try text(row, symbolAt: 1),
      gracePeriodExpiresAtMs: try row.optionalInstant(2))
    // A notification that was stored twice is the same one.
    let source =
      row.optionalText(4).map { [$0] }
      ?? [Self.text(detail.expiresAtMs), Self.text(row.optionalInteger(3))]
    let identity = [
      "\(kind)", subscription.environment, subscription.bundleID,
      subscription.originalTransactionID,
    ]
    return LedgerChange(
      point: point, identity: identity + source, isBackfill: try isBackfill(mark.position),
      appFamilyID: try family(of: subscription.bundleID, &families),
      content: .subscription(subscription, detail))
  }

  private func family(
    of bundleID: String, _ known: inout [String: String?]
  ) throws -> String? {
    if let family = known[bundleID] { return family }
    let row = try database.prepare("SELECT app_family_id FROM app_bundles WHERE bundle_id = ?")
    row.bind(1, text: bundleID)
    let family = try row.step() ? row.text(0) : nil
    known[bundleID] = .some(family)
    return family
  }

  /// Whether the App Store signed it as a renewal. If it signed neither that nor a purchase, whether the latest earlier
  /// sale with its original transaction id, among those that the log had shown up to its event, was not upgraded.
  private func isRenewal(_ sale: SaleDetail, number: Int) throws -> Bool {
    let row = try database.prepare(
      """
      SELECT s.flags, (SELECT o.is_upgraded FROM sales o WHERE o.chain_hash = s.chain_hash
        AND o.original_transaction_id = s.original_transaction_id
        AND o.environment = s.environment AND o.bundle = s.bundle AND o.id <> s.id
        AND o.first_position <= s.first_position
        AND (o.sale_date_ms < s.sale_date_ms
          OR o.sale_date_ms = s.sale_date_ms AND o.sale_key < s.sale_key)
        ORDER BY o.sale_date_ms DESC, o.sale_key DESC LIMIT 1)
      FROM sales s WHERE s.id = ?
      """)
    row.bind(1, number)
    guard try row.step() else { return false }
    let flags = SaleFlags(rawValue: try row.number(0))
    if flags.contains(.isSignedRenewal) { return true }
    if flags.contains(.isSignedPurchase) || sale.originalTransactionID.isEmpty { return false }
    return try row.optionalFlag(1) == false
  }

  /// How many preceding uploads are searched for those of the same instant.
  private static var simultaneousMax: Int { 4096 }

  private func fraud(
    ofUpload position: Position
  ) throws -> (FraudDetail, family: String?, identity: [String])? {
    let row = try database.prepare(
      """
      SELECT v.fraud_reason, r.receipt_id, g.upload_id, coalesce(r.bundle, g.bundle), p.country,
      u.user_identifier, p.occurred_at_ms, coalesce(r.app_family, g.app_family), p.recorded_at_ms,
      (SELECT count(*) FROM uploads e WHERE e.position < p.position
        AND e.position >= p.position - \(Self.simultaneousMax)
        AND e.recorded_at_ms = p.recorded_at_ms AND e.occurred_at_ms = p.occurred_at_ms)
      FROM upload_verdicts v JOIN uploads p ON p.position = v.upload
      LEFT JOIN receipts r ON r.id = v.receipt
      LEFT JOIN signed_uploads g ON g.position = v.upload AND v.receipt IS NULL
      LEFT JOIN users u ON u.id = p.user WHERE v.upload = ?
      """)
    row.bind(1, position)
    guard try row.step() else { return nil }
    // An erasure changes the receipt's id, but never when an upload arrived.
    return (
      FraudDetail(
        upload: position, reason: try text(row, symbolAt: 0) ?? "", receiptID: row.optionalText(1),
        uploadID: row.optionalText(2), bundleID: try text(row, symbolAt: 3),
        countryCode: try text(row, symbolAt: 4), userIdentifier: row.optionalText(5),
        occurredAtMs: try row.instant(6)), try text(row, symbolAt: 7),
      ["fraud", "\(row.integer(6))", "\(row.integer(8))", "\(row.integer(9))"]
    )
  }
}

// MARK: - Changes and their order

/// The place of a change: an event, and which of its changes. Changes, of which webhooks report, are in this order.
package struct ChangePoint: Hashable, Comparable, Sendable, CustomStringConvertible {
  package var position: Position
  /// The index among the changes of the event, from 0.
  package var ordinal: Int

  package init(_ position: Position, _ ordinal: Int = 0) {
    self.position = position
    self.ordinal = ordinal
  }

  /// Parses `12.0`; nil for anything else.
  package init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let position = Position(parts[0]), let ordinal = Int(parts[1]),
      position >= 0, ordinal >= 0
    else { return nil }
    self.init(position, ordinal)
  }

  package var description: String { "\(position).\(ordinal)" }

  package static func < (left: ChangePoint, right: ChangePoint) -> Bool {
    (left.position, left.ordinal) < (right.position, right.ordinal)
  }
}

/// One thing that an event changed, in its current state in the projections.
package struct LedgerChange: Equatable, Sendable {
  package enum Content: Equatable, Sendable {
    /// A sale. A renewal is a sale that the App Store signed as one or, if it signed neither that nor a purchase, a
    /// sale that follows an earlier one with its original transaction id that was not upgraded.
    case sale(SaleDetail, isRenewal: Bool)
    /// A Return or Reversal.
    case line(SaleDetail, LineDetail)
    /// The subscription ended, or has a grace period.
    case subscription(SubscriptionDetail, SubscriptionTurnDetail)
    case fraud(FraudDetail)
  }

  package var point: ChangePoint
  /// What tells the change from all others of its ledger, whatever its position and its user are.
  package var identity: [String]
  /// Whether it comes from a synchronization or an import.
  package var isBackfill: Bool
  /// Nil if no app family has the bundle.
  package var appFamilyID: String?
  package var content: Content

  package init(
    point: ChangePoint, identity: [String], isBackfill: Bool = false, appFamilyID: String?,
    content: Content
  ) {
    self.point = point
    self.identity = identity
    self.isBackfill = isBackfill
    self.appFamilyID = appFamilyID
    self.content = content
  }
}

/// What an event newly stated about a subscription.
package struct SubscriptionTurnDetail: Equatable, Sendable {
  package var kind: SubscriptionTransition.Kind
  /// The end of its period as known then, in epoch milliseconds.
  package var expiresAtMs: Int64?
  package var expirationIntent: String?
  package var gracePeriodExpiresAtMs: Int64?

  package init(
    kind: SubscriptionTransition.Kind, expiresAtMs: Int64? = nil, expirationIntent: String? = nil,
    gracePeriodExpiresAtMs: Int64? = nil
  ) {
    self.kind = kind
    self.expiresAtMs = expiresAtMs
    self.expirationIntent = expirationIntent
    self.gracePeriodExpiresAtMs = gracePeriodExpiresAtMs
  }
}

/// The first fraud verdict on an upload.
package struct FraudDetail: Equatable, Sendable {
  /// The position of the upload.
  package var upload: Position
  package var reason: String
  /// Nil for an upload of signed transactions.
  package var receiptID: String?
  /// Nil for an upload of a receipt.
  package var uploadID: String?
  package var bundleID: String?
  package var countryCode: String?
  package var userIdentifier: String?
  /// When the upload was received.
  package var occurredAtMs: Int64

  package init(
    upload: Position, reason: String, receiptID: String? = nil, uploadID: String? = nil,
    bundleID: String? = nil, countryCode: String? = nil, userIdentifier: String? = nil,
    occurredAtMs: Int64
  ) {
    self.upload = upload
    self.reason = reason
    self.receiptID = receiptID
    self.uploadID = uploadID
    self.bundleID = bundleID
    self.countryCode = countryCode
    self.userIdentifier = userIdentifier
    self.occurredAtMs = occurredAtMs
  }
}

/// Some changes in order, and the point where the next ones begin.
package struct LedgerChangePage: Sendable {
  package var changes: [LedgerChange]
  package var next: ChangePoint

  package init(changes: [LedgerChange], next: ChangePoint) {
    self.changes = changes
    self.next = next
  }
}

// The positions of the events of a type, a receipt, a user or an app, so that a replay can skip all others.
package import Ledger
import Revenue

extension LedgerQueries {
  /// The positions of the uploads that pass all filters, and of their verifications, in order. With an app family as
  /// the only filter, also those of its notifications and fetched pages, which name neither a receipt nor a user.
  package func positions(
    receiptID: String?, userIdentifier: String?, appFamilyID: String?
  ) throws -> [Position] {
    var conditions: [String] = []
    if receiptID != nil {
      conditions.append(
        "\(Self.isReceipt) AND p.position BETWEEN r.first_position AND r.last_position")
    }
    if userIdentifier != nil {
      conditions.append("p.user = (SELECT id FROM users WHERE user_identifier = ?3)")
    }
    if appFamilyID != nil {
      conditions.append("r.app_family = (SELECT id FROM symbols WHERE text = ?4)")
    }
    let uploads = """
      FROM uploads p JOIN receipts r ON r.id = p.receipt
      WHERE \(conditions.isEmpty ? "1" : conditions.joined(separator: " AND "))
      """
    let signed =
      receiptID == nil
      ? Self.signedEvents(ofUser: userIdentifier != nil, ofFamily: appFamilyID != nil) : ""
    let range = """
      AND v.position BETWEEN (SELECT r.first_position FROM receipts r WHERE \(Self.isReceipt))
      AND (SELECT r.last_position FROM receipts r WHERE \(Self.isReceipt))
      """
    let rows = try database.prepare(
      """
      SELECT p.position \(uploads)
      UNION ALL SELECT v.position FROM verifications v
      WHERE v.receipt IN (SELECT p.receipt \(uploads)) AND v.upload IN (SELECT p.position \(uploads))
      \(receiptID == nil ? "" : range)
      \(signed)
      ORDER BY 1
      """)
    if let receiptID { Self.bind(receipt: receiptID, to: rows) }
    if let userIdentifier { rows.bind(3, text: TokenUser.canonical(user: userIdentifier)) }
    if let appFamilyID { rows.bind(4, text: appFamilyID) }
    var result: [Position] = []
    while try rows.step() { result.append(try rows.ordinal(0)) }
    return result
  }

  /// SQL: adds the events of signed objects that pass the same filters.
  private static func signedEvents(ofUser: Bool, ofFamily: Bool) -> String {
    let user = "p.user = (SELECT id FROM users WHERE user_identifier = ?3)"
    let family = "app_family = (SELECT id FROM symbols WHERE text = ?4)"
    let uploads = """
      UNION ALL SELECT p.position FROM uploads p JOIN signed_uploads g ON g.position = p.position
      WHERE \(ofUser ? user : "1") AND \(ofFamily ? "g.\(family)" : "1")
      """
    if ofUser || !ofFamily { return uploads }
    return uploads + " UNION ALL SELECT n.position FROM notifications n WHERE n.\(family)"
      + " UNION ALL SELECT f.position FROM fetched_pages f WHERE f.\(family)"
  }

  /// The positions before `end` of all events of these types, in order. The projections must have folded all events
  /// before `end`. Types that no table lists completely cannot be told apart: asking for one returns the events of all
  /// of them.
  package func positions(of types: Set<EventType>, before end: Position) throws -> [Position] {
    var result: [Position] = []
    if !types.isDisjoint(with: Self.unlistedTypes) { result += try unlisted(before: end) }
    for type in types {
      switch type {
      case .receiptUploaded:
        result += try positions("SELECT position FROM uploads WHERE receipt IS NOT NULL", end)
      case .transactionsReceived:
        result += try positions("SELECT position FROM signed_uploads", end)
      case .receiptVerified: result += try positions("SELECT position FROM verifications", end)
      case .pricesDeclared:
        result += try positions("SELECT position FROM declarations WHERE type = 0", end)
      case .ratesDeclared:
        result += try positions("SELECT position FROM declarations WHERE type = 1", end)
      case .trustDeclared:
        result += try positions("SELECT position FROM trust_declarations", end)
      case .notificationReceived:
        result += try positions("SELECT position FROM notifications", end)
      case .transactionsFetched:
        result += try positions("SELECT position FROM fetched_pages", end)
      case .signaturesAccepted:
        result += try positions("SELECT position FROM signature_acceptances", end)
      case .dataRedacted:
        result += try positions("SELECT position FROM redactions", end)
      case .appRegistered, .snapshotCreated, .historyAccepted: break
      }
    }
    result.sort()
    return result
  }

  private static let unlistedTypes: Set<EventType> = [
    .appRegistered, .snapshotCreated, .historyAccepted,
  ]

  private func positions(_ sql: String, _ end: Position) throws -> [Position] {
    let rows = try database.prepare(sql)
    var result: [Position] = []
    while try rows.step() { result.append(try rows.ordinal(0)) }
    return result.filter { $0 < end }
  }

  /// The positions of the events that no table lists. The tables list every upload, verification, notification,
  /// fetched page and declaration. The other events are registrations, of which the tables hold only each app's
  /// latest, and types that the tables do not hold at all.
  private func unlisted(before end: Position) throws -> [Position] {
    let others = try database.prepare(
      """
      SELECT position FROM uploads UNION ALL SELECT position FROM verifications
      UNION ALL SELECT position FROM declarations
      UNION ALL SELECT position FROM trust_declarations
      UNION ALL SELECT position FROM notifications
      UNION ALL SELECT position FROM fetched_pages
      UNION ALL SELECT position FROM signature_acceptances ORDER BY position
      """)
    var result: [Position] = []
    var next = 0
    while next < end {
      let found = try others.step() ? min(others.ordinal(0), end) : end
      if next < found { result += next..<found }
      next = found + 1
    }
    return result
  }
}

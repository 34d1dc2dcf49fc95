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
    for type in types {
      guard let listing = Self.listing(of: type) else { continue }
      let rows = try database.prepare(listing)
      while try rows.step() { result.append(try rows.ordinal(0)) }
    }
    result.removeAll { $0 >= end }
    if types.contains(where: { Self.listing(of: $0) == nil }) {
      result += try unlisted(before: end)
    }
    result.sort()
    return result
  }

  /// SQL: the positions of all events of a type; nil if no table lists them completely. Of registrations the tables
  /// hold only each app's latest.
  private static func listing(of type: EventType) -> String? {
    switch type {
    case .receiptUploaded: "SELECT position FROM uploads WHERE receipt IS NOT NULL"
    case .transactionsReceived: "SELECT position FROM signed_uploads"
    case .receiptVerified: "SELECT position FROM verifications"
    case .pricesDeclared: "SELECT position FROM declarations WHERE type = 0"
    case .ratesDeclared: "SELECT position FROM declarations WHERE type = 1"
    case .settlementDeclared: "SELECT position FROM settlement_files"
    case .settlementMapped: "SELECT position FROM settlement_maps"
    case .trustDeclared: "SELECT position FROM trust_declarations"
    case .notificationReceived: "SELECT position FROM notifications"
    case .transactionsFetched: "SELECT position FROM fetched_pages"
    case .signaturesAccepted: "SELECT position FROM signature_acceptances"
    case .dataRedacted: "SELECT position FROM redactions"
    default: nil
    }
  }

  /// The positions of the events that no table lists.
  private func unlisted(before end: Position) throws -> [Position] {
    let listings = EventType.allCases.compactMap(Self.listing).joined(separator: " UNION ALL ")
    let others = try database.prepare(listings + " ORDER BY position")
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

// Which column of a table gives which part of an import line.

/// A part of a line that a column can give.
package enum MappedPart: String, CaseIterable, Sendable {
  case receipt, reply
  case signedTransaction = "signed_transaction"
  case notification
  case notificationV1 = "notification_v1"
  case occurredAt = "occurred_at"
  case verifiedAt = "verified_at"
  case endpoint, environment
  case userIdentifier = "user_identifier"
  case countryCode = "country_code"
  case identifierForVendor = "identifier_for_vendor"
  case ipAddress = "ip_address"
  case metadata
  case price, currency
  case productID = "product_id"
  case transactionID = "transaction_id"

  /// Those of which a line needs one.
  static let subjects: [MappedPart] = [
    .receipt, .reply, .signedTransaction, .notification, .notificationV1,
  ]
  /// Those that together make an entry of `metadata.prices`.
  static let ofPrice: [MappedPart] = [.price, .currency, .productID, .transactionID]
}

/// Columns by the parts that they give.
package struct TableMap: Equatable, Sendable {
  package private(set) var columns: [MappedPart: String] = [:]

  /// Reads `receipt=blob,user_identifier=uid`. A name without a column is that of its column.
  /// Returns what is wrong with it, as a clause that follows the text, instead of a map.
  package static func parse(_ text: String) -> Result<TableMap, TableMapError> {
    var map = TableMap()
    for item in text.split(separator: ",", omittingEmptySubsequences: false) {
      let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = pair.first.map(String.init), let part = MappedPart(rawValue: name) else {
        let known = MappedPart.allCases.map(\.rawValue).joined(separator: ", ")
        return .failure(TableMapError("must name parts of a line: \(known)"))
      }
      let column = pair.count == 2 ? String(pair[1]) : name
      guard !column.isEmpty else {
        return .failure(TableMapError("names no column for \(name)"))
      }
      guard map.columns.updateValue(column, forKey: part) == nil else {
        return .failure(TableMapError("names \(name) twice"))
      }
    }
    guard MappedPart.subjects.contains(where: { map.columns[$0] != nil }) else {
      let subjects = MappedPart.subjects.map(\.rawValue).joined(separator: ", ")
      return .failure(TableMapError("names none of \(subjects)"))
    }
    if map.columns[.metadata] != nil, MappedPart.ofPrice.contains(where: { map.columns[$0] != nil })
    {
      return .failure(TableMapError("gives both metadata and parts of a price"))
    }
    return .success(map)
  }
}

/// What is wrong with a map, as a clause that follows it.
package struct TableMapError: Error, Equatable, Sendable {
  package let clause: String

  init(_ clause: String) { self.clause = clause }
}

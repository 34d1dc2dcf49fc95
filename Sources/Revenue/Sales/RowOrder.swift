// Rule R2: the order of the rows that show one sale.
package import AppStore

extension ReplyRow {
  /// R2: sorts the rows of one sale. Rows of `latest_receipt_info` come first, then the smaller purchase
  /// date, the smaller transaction id and the original order decide.
  package static func inOrder(_ rows: [ReplyRow]) -> [ReplyRow] {
    rows.enumerated().sorted { left, right in
      precedes(left.element, left.offset, right.element, right.offset)
    }.map(\.element)
  }

  /// R2: whether one row comes before another, given their indexes.
  static func precedes(
    _ one: ReplyRow, _ index: Int, _ other: ReplyRow, _ otherIndex: Int
  ) -> Bool {
    let isLatest = one.source == .latestReceiptInfo
    if isLatest != (other.source == .latestReceiptInfo) { return isLatest }
    let dates = (one.purchaseDateMs ?? .min, other.purchaseDateMs ?? .min)
    if dates.0 != dates.1 { return dates.0 < dates.1 }
    let none = Text(start: nil, count: 0)
    let ids = (one.transactionID ?? none).order(other.transactionID ?? none)
    return ids != 0 ? ids < 0 : index < otherIndex
  }
}

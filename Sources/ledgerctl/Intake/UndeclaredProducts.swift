// Sold products that their app does not declare, with the command that declares them.
import Projections
import Server

extension UndeclaredProduct {
  /// `coins.5000 of com.example.shop in 3 transactions: ledgerctl app edit …`.
  var sentence: String {
    "\(productID) of \(bundleID) in \(counted(transactionCount, "transaction")): \(declaringCommand)"
  }

  var record: Record {
    [
      "app_family_id": appFamilyID, "bundle_id": bundleID, "product_id": productID,
      "transactions": transactionCount, "last_position": lastPosition,
    ]
  }
}

/// How many undeclared products are listed individually.
private let undeclaredCountMax = 10

extension [UndeclaredProduct] {
  /// A sentence for each of the first ones, then the number of the others.
  var sentences: [String] {
    let shown = prefix(undeclaredCountMax).map(\.sentence)
    return count > undeclaredCountMax
      ? shown + ["\(count - undeclaredCountMax) more undeclared products"] : shown
  }
}

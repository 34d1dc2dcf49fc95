// Sold products that their app does not declare, with the command that declares them.
import JSON
import Projections
import Server

extension UndeclaredProduct {
  /// `coins.5000 of com.example.shop in 3 transactions: ledgerctl app edit …`.
  var sentence: String {
    "\(productID) of \(bundleID) in \(counted(transactionCount, "transaction")): \(declaringCommand)"
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("app_family_id", appFamilyID)
      writer.member("bundle_id", bundleID)
      writer.member("product_id", productID)
      writer.member("transactions", transactionCount)
      writer.member("last_position", lastPosition)
    }
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

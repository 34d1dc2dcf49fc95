// A sale and its journal lines as JSON, as a table row, and with the positions of its events.
import JSON
import Ledger
import Projections
import Revenue

extension LineDetail {
  func amountText(_ currency: Currency?) -> String? {
    amountMicros.map { Amount.text(micros: $0, currency: currency) }
  }
}

extension SaleDetail {
  var unitPriceText: String? {
    unitPriceMicros.map { Amount.text(micros: $0, currency: currency) }
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("environment", environment)
      writer.member("bundle_id", bundleID)
      writer.member("sale_key", saleKey)
      writer.member("product_id", productID)
      writer.member("kind", kind)
      writer.member("quantity", Int(quantity))
      writer.member("sale_date", atMs: saleDateMs)
      writer.member("original_transaction_id", originalTransactionID)
      writer.array("transaction_ids", transactionIDs) { $1.string($0) }
      writer.member("first_position", firstPosition)
      writer.member("country_code", countryCode)
      writer.member("country_position", countryPosition)
      writer.member("user_identifier", userIdentifier)
      writer.member("user_position", userPosition)
      writer.member("currency", currency?.description)
      writer.member("unit_price", unitPriceText)
      writer.member("price_basis", priceBasis.isEmpty ? nil : priceBasis)
      writer.member("price_position", pricePosition)
      writer.member("price_problem", priceProblem)
      writer.member("is_upgraded", isUpgraded)
      writer.member("cancelled", isCancelled)
      writer.member("pending", isPending)
      writer.array("lines", lines) { line, writer in
        writer.object { writer in
          writer.member("line", line.line)
          writer.member("date", atMs: line.dateMs)
          writer.member("quantity", Int(line.quantity))
          writer.member("amount", line.amountText(currency))
          writer.member("reason", line.reason)
          writer.member("position", line.position)
        }
      }
    }
  }

  /// `2 × 9.99 EUR`, or the reason why there is no price.
  var priceText: String {
    guard let unitPriceText, let currency else {
      return priceProblem.map { "unpriced: \($0)" } ?? kind
    }
    return quantity == 1
      ? "\(unitPriceText) \(currency)" : "\(quantity) × \(unitPriceText) \(currency)"
  }

  /// The state of the sale in a word or two.
  var stateText: String {
    [
      isPending ? "pending" : nil, isCancelled ? "returned" : nil,
      isUpgraded ? "upgraded" : nil,
    ].compactMap { $0 }.joined(separator: ", ")
  }

  static func table(_ sales: [SaleDetail]) -> TextTable {
    var table = TextTable([
      .init("sale_key"), .init("product_id"), .init("kind"), .init("sale_date"), .init("country"),
      .init("price", isNumber: true), .init("price_basis"),
      .init("first", isNumber: true), .init("country_at", isNumber: true),
      .init("user_at", isNumber: true), .init("price_at", isNumber: true), .init("state"),
    ])
    func text(_ position: Position?) -> String { position.map { "\($0)" } ?? "" }
    for sale in sales {
      table.append([
        sale.saleKey, sale.productID, sale.kind, timeText(sale.saleDateMs),
        sale.countryCode, sale.priceText, sale.priceBasis, text(sale.firstPosition),
        text(sale.countryPosition), text(sale.userPosition), text(sale.pricePosition),
        sale.stateText,
      ])
    }
    return table
  }

  /// The fields of the sale, each with the position of the event that gave it.
  var fields: [(name: String, value: String)] {
    func at(_ position: Position?) -> String { position.map { "  (position \($0))" } ?? "" }
    return [
      ("sale", "\(saleKey)\(isPending ? ", pending" : "")\(at(firstPosition))"),
      ("environment", environment), ("bundle id", bundleID), ("product", productID),
      ("kind", kind), ("quantity", "\(quantity)"), ("date", timeText(saleDateMs)),
      ("transactions", transactionIDs.joined(separator: " ")),
      ("country", countryPosition == nil ? "unknown" : "\(countryCode)\(at(countryPosition))"),
      ("user", userIdentifier.map { "\($0)\(at(userPosition))" } ?? "unknown"),
      (
        "unit price",
        unitPriceText.map {
          "\($0) \(currency?.description ?? ""), \(priceBasis)\(at(pricePosition))"
        } ?? priceProblem.map { "none: \($0)" } ?? "none: \(kind)"
      ),
      ("upgraded", isUpgraded ? "yes" : "no"),
    ]
  }

  /// The journal lines of the sale.
  var lineTable: TextTable {
    var table = TextTable([
      .init("date"), .init("line"), .init("quantity", isNumber: true), .init("currency"),
      .init("amount", isNumber: true), .init("reason"), .init("position", isNumber: true),
    ])
    for line in lines {
      table.append([
        timeText(line.dateMs), line.line, "\(line.quantity)", currency?.description ?? "",
        line.amountText(currency) ?? "", line.reason ?? "", "\(line.position)",
      ])
    }
    return table
  }
}

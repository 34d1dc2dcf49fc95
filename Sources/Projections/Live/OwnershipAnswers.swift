// Answers to a company's own back ends about users, read from the projections.
import Base
import Ledger
import Revenue

/// Answers questions about users, from one generation. Used by one thread at a time.
final class OwnershipAnswers {
  /// A list of purchases goes on with the next answer once it has this many bytes, so that an answer stays below
  /// 1 MiB.
  private static let listByteCountMax = 512 << 10
  /// The transaction ids of one sale that an answer shows.
  private static let transactionIDCountMax = 100

  private let database: Database
  private let arena = TextArena()
  private let symbols: StringInterner
  private let sales: UserSales
  private let begin: Statement
  private let commit: Statement
  private let selectPosition: Statement
  /// How many events were folded when the symbols were loaded.
  private var symbolsPosition: Position?

  init(_ database: Database) throws(DatabaseError) {
    self.database = database
    symbols = StringInterner(arena)
    sales = try UserSales(database)
    begin = try database.prepare("BEGIN")
    commit = try database.prepare("COMMIT")
    selectPosition = try database.prepare("SELECT position FROM progress")
  }

  /// Answers a question about a user of an app family.
  /// - Parameters:
  ///   - family: nil for one that is not registered.
  ///   - atMs: the moment that decides what has ended, in epoch milliseconds.
  func answer(
    _ question: OwnershipQuestion, about user: String, of id: UUID16, _ family: AppFamily?,
    atMs: Int64
  ) throws -> OwnershipAnswer {
    try begin.run()
    defer { try? commit.run() }
    let position = try foldedCount()
    if symbolsPosition != position {
      try symbols.load(from: database)
      symbolsPosition = position
    }
    var resource = ReceiptResource()
    resource.begin()
    resource.add("at", timeMs: atMs)
    resource.add("position", position > 0 ? Int64(position - 1) : nil)
    resource.add("app_family_id", id)
    switch question {
    case .purchases(let place, let limit):
      try addPurchases(of: user, family, after: place ?? .start, limit: limit, to: &resource)
    }
    resource.end()
    return .found(resource.finish())
  }

  private func foldedCount() throws(DatabaseError) -> Position {
    defer { selectPosition.reset() }
    return try selectPosition.step() ? Position(selectPosition.integer(0)) : 0
  }

  // MARK: Purchases

  private func addPurchases(
    of user: String, _ family: AppFamily?, after place: PurchaseCursor, limit: Int,
    to resource: inout ReceiptResource
  ) throws {
    let (page, hasMore) = try purchases(of: user, family, after: place, limit: limit)
    var next = hasMore ? page.last?.place : nil
    resource.beginArray("purchases")
    for (index, sale) in page.enumerated() {
      try add(sale, family, to: &resource)
      if resource.byteCount >= Self.listByteCountMax, index + 1 < page.count {
        next = sale.place
        break
      }
    }
    resource.endArray()
    resource.add("next", next?.text)
  }

  private func purchases(
    of user: String, _ family: AppFamily?, after place: PurchaseCursor, limit: Int
  ) throws -> (page: [UserSale], hasMore: Bool) {
    guard let family, let number = try sales.number(ofUser: user) else { return ([], false) }
    let bundles = family.bundleIDs.compactMap { symbols.known($0) }
    var page: [UserSale] = []
    try sales.forEach(ofUser: number, after: place) { sale in
      // A user of several apps may have the same identifier in all of them.
      if bundles.contains(sale.bundle) { page.append(sale) }
      return page.count <= limit
    }
    let hasMore = page.count > limit
    if hasMore { page.removeLast() }
    return (page, hasMore)
  }

  private func add(
    _ sale: UserSale, _ family: AppFamily?, to resource: inout ReceiptResource
  ) throws {
    let environment = symbols.text(sale.environment)
    let bundle = symbols.text(sale.bundle)
    let product = symbols.string(sale.product)
    let returns =
      sale.cancellation == .none ? SaleReturns() : try sales.returns(of: sale)
    resource.begin()
    if let family {
      sale.key.withUnsafeBytes { key in
        resource.addPurchaseID(
          family: family.id, environment: environment, bundle: bundle, kind: sale.keyKind, key: key)
      }
    }
    resource.add("environment", word: ReceiptResource.environment(environment))
    resource.add("bundle_id", text: bundle)
    resource.add("product_id", product)
    resource.add("type", family?.products[product]?.rawValue)
    resource.add("kind", word: sale.kind.word)
    resource.add("quantity", sale.quantity)
    resource.add("purchased_at", timeMs: sale.saleDateMs)
    resource.add("state", SaleState(sale, returns).rawValue)
    addAmounts(of: sale, returns, to: &resource)
    resource.add("country_code", text: sale.country == .none ? nil : symbols.text(sale.country))
    sale.transactionID.withUnsafeBytes { id in
      resource.add("transaction_id", text: id.isEmpty ? nil : id)
    }
    sale.originalTransactionID.withUnsafeBytes { id in
      resource.add("original_transaction_id", text: id.isEmpty ? nil : id)
    }
    let ids = try sales.transactionIDs(of: sale, limit: Self.transactionIDCountMax)
    resource.add("transaction_ids", texts: ids)
    resource.add("positions", positions: sale.positions + returns.positions)
    resource.end()
  }

  private func addAmounts(
    of sale: UserSale, _ returns: SaleReturns, to resource: inout ReceiptResource
  ) {
    let currency = sale.currency == .none ? nil : Currency.parse(symbols.text(sale.currency))
    func text(_ micros: Int64?) -> String? {
      guard let micros, currency != nil else { return nil }
      return Amount.text(micros: micros, currency: currency)
    }
    resource.add("unit_price", text(sale.unitPriceMicros))
    resource.add("amount", text(sale.amountMicros))
    resource.add("currency", currency?.description)
    resource.add(
      "price_basis", word: sale.priceBasis == .notApplicable ? nil : sale.priceBasis.word)
    resource.add("refunded_quantity", returns.quantity)
    resource.add("refunded_amount", text(sale.amountMicros.map { _ in returns.amountMicros }))
    resource.add("refunded_at", timeMs: returns.returnedAtMs)
  }
}

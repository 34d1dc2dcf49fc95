// Folds verifications into sales: rules R2 to R6. R7 is in Pricing.swift, R8 in Cancellations.swift.
package import AppStore

/// Folds verifications, in position order, into the sales of a store.
package final class RevenueFold {
  let store: SaleStore
  let symbols: StringInterner
  let exceptions: any ExceptionSink
  /// Returns a user's identifier, for exceptions.
  let userIdentifier: (Int32) throws -> Text
  var prices = MetadataPrices()

  /// A row of the current verification, and the index of its sale.
  struct Shown {
    var sale: Int
    /// The sale's number. Indexes differ between runs, numbers do not.
    var saleID: Int
    var row: Int
  }

  private var shown: [Shown] = []
  /// The number of sales in the most recent verification.
  package private(set) var shownSaleCount = 0
  /// The fraud that the most recent verification, together with earlier ones, proves against its upload.
  package private(set) var fraudReason: FraudReason?

  package init(
    store: SaleStore, symbols: StringInterner, exceptions: any ExceptionSink,
    userIdentifier: @escaping (Int32) throws -> Text
  ) {
    self.store = store
    self.symbols = symbols
    self.exceptions = exceptions
    self.userIdentifier = userIdentifier
  }

  /// Folds one verification that counts (rule R1). The rows must be in R2's order of sources.
  package func fold(_ verification: Verification, rows: [ReplyRow]) throws {
    shown.removeAll(keepingCapacity: true)
    shownSaleCount = 0
    fraudReason = nil
    for (index, row) in rows.enumerated() {
      if let place = try place(of: row, verification) {
        shown.append(Shown(sale: place, saleID: store.sales[place].id, row: index))
      }
    }
    if shown.isEmpty { return }
    if shown.count > 1 { order(rows) }
    if let products = verification.products { try compare(rows, products, verification) }
    var newRegularSales = 0
    try forEachSale { place, group in
      shownSaleCount += 1
      try observe(place, group, rows, verification)
      let sale = store.sales[place]
      if sale.isFirstObservation, sale.kind == .regular { newRegularSales += 1 }
    }
    try price(rows, verification, newRegularSales: newRegularSales)
  }

  /// Visits the sales shown, each with its rows in R2's order.
  func forEachSale(
    _ body: (Int, ArraySlice<Shown>) throws -> Void
  ) rethrows {
    var first = 0
    while first < shown.count {
      var end = first + 1
      while end < shown.count, shown[end].sale == shown[first].sale { end += 1 }
      try body(shown[first].sale, shown[first..<end])
      first = end
    }
  }

  // MARK: R2 – rows

  /// R2: the index of the sale that a row shows, added if new; nil for a malformed row, and for a pending row
  /// of a confirmed sale.
  private func place(
    of row: ReplyRow, _ verification: Verification
  ) throws -> Int? {
    let key = SaleKey(
      of: row, environment: verification.environment, bundle: verification.bundle)
    guard let key else {
      try refuse(row, verification)
      return nil
    }
    if let known = try store.find(key) {
      // R1: a pending receipt never changes a confirmed sale.
      return verification.isPending && !store.sales[known].isPending ? nil : known
    }
    let place = store.add(key)
    store.update(place) { $0.isPending = verification.isPending }
    return place
  }

  private func refuse(_ row: ReplyRow, _ verification: Verification) throws {
    if verification.isPending { return }
    var missing: [String] = []
    if row.productID == nil { missing.append("product_id") }
    if row.transactionID == nil && row.originalTransactionID == nil {
      missing.append("transaction_id")
    }
    if row.purchaseDateMs == nil && row.originalPurchaseDateMs == nil {
      missing.append("purchase_date")
    }
    let none = Text(start: nil, count: 0)
    try withText(missing.joined(separator: "+")) { detail in
      try exceptions.add(
        .malformedTransaction, environment: verification.environment, bundle: verification.bundle,
        product: row.productID ?? none,
        transaction: row.transactionID ?? row.originalTransactionID ?? none, detail: detail,
        position: verification.position)
    }
  }

  /// R2: groups the rows by sale. Within a sale, rows of `latest_receipt_info` come first, then the smaller
  /// purchase date, the smaller transaction id and the original order decide.
  private func order(_ rows: [ReplyRow]) {
    shown.sort { left, right in
      if left.saleID != right.saleID { return left.saleID < right.saleID }
      return ReplyRow.precedes(rows[left.row], left.row, rows[right.row], right.row)
    }
  }

  // MARK: R3 – the sale key

  /// R3: the sale date of a row.
  private func saleDateMs(of row: ReplyRow, _ kind: KeyKind) -> Int64 {
    let dates =
      kind == .lineItem
      ? (row.purchaseDateMs, row.originalPurchaseDateMs)
      : (row.originalPurchaseDateMs, row.purchaseDateMs)
    // A row with neither date is malformed (R2) and shows no sale.
    return dates.0 ?? dates.1 ?? 0
  }

  /// R3: reports a renewal that has no line item and would merge with its first period.
  private func notice(
    renewal row: ReplyRow, of place: Int, _ verification: Verification
  ) throws {
    guard row.webOrderLineItemID == nil, row.hasExpiryDate, let transaction = row.transactionID,
      let original = row.originalTransactionID, !transaction.equals(original)
    else { return }
    try exceptions.add(
      .renewalWithoutLineItem, sale: store.sales[place], detail: transaction,
      position: verification.position)
  }

  // MARK: Fraud

  /// Reports products that the app family does not declare.
  private func compare(
    _ rows: [ReplyRow], _ products: DeclaredProducts, _ verification: Verification
  ) throws {
    let none = Text(start: nil, count: 0)
    for entry in shown {
      let row = rows[entry.row]
      guard let product = row.productID, !products.holds(product) else { continue }
      fraudReason = .productUnknown
      try exceptions.add(
        .productUnknown, environment: verification.environment, bundle: verification.bundle,
        product: product, transaction: row.transactionID ?? row.originalTransactionID ?? none,
        detail: none, position: verification.position)
    }
  }

  /// Reports a replay: a declared consumable belongs to the user who showed it first.
  private func notice(replayOf sale: Sale, _ verification: Verification) throws {
    guard let products = verification.products, products.isConsumable(symbols.text(sale.product))
    else { return }
    if fraudReason == nil { fraudReason = .transactionReplayed }
    try withText("upload at \(verification.upload.position)") { detail in
      try exceptions.add(
        .transactionReplayed, sale: sale, detail: detail, position: verification.position)
    }
  }

  // MARK: R4 – first observation wins, later ones add

  private func observe(
    _ place: Int, _ group: ArraySlice<Shown>, _ rows: [ReplyRow], _ verification: Verification
  ) throws {
    let isFirst = store.sales[place].version == 0
    store.update(place) { $0.isFirstObservation = isFirst }
    var isChanged = isFirst
    if isFirst, let primary = group.first { fix(place, rows[primary.row], verification) }
    for entry in group {
      let row = rows[entry.row]
      let quantity = quantity(of: row)
      if !quantity.isGood {
        try withText(row.quantity.text) { detail in
          try exceptions.add(
            .badQuantity, sale: store.sales[place], detail: detail,
            position: verification.position)
        }
      }
      if !isFirst { try compare(place, row, quantity.value, verification) }
      try notice(renewal: row, of: place, verification)
      if let transaction = row.transactionID, store.addAlias(place, transaction) {
        isChanged = true
      }
    }
    if try add(place, verification) { isChanged = true }
    if try cancel(place, group, rows, verification) { isChanged = true }
    if isChanged { touch(place, verification) }
  }

  /// Counts a change made by this verification.
  func touch(_ place: Int, _ verification: Verification) {
    store.update(place) { sale in
      sale.isChanged = true
      if sale.updatedPosition == verification.position { return }
      sale.updatedPosition = verification.position
      sale.updatedAtMs = verification.recordedAtMs
      sale.version += 1
    }
  }

  /// R4: the primary row of the first observation determines what the sale is.
  private func fix(_ place: Int, _ row: ReplyRow, _ verification: Verification) {
    let none = Text(start: nil, count: 0)
    let product = symbols.symbol(row.productID ?? none)
    let transaction = store.arena.keep(row.transactionID ?? row.originalTransactionID ?? none)
    let original = store.arena.keep(row.originalTransactionID ?? none)
    let kind = kind(of: row)
    store.update(place) { sale in
      sale.product = product
      sale.quantity = quantity(of: row).value
      sale.saleDateMs = saleDateMs(of: row, sale.keyKind)
      sale.kind = kind
      sale.transactionID = transaction
      sale.originalTransactionID = original
      sale.firstPosition = verification.position
      sale.trust = verification.trust
      sale.createdAtMs = verification.recordedAtMs
      sale.priceBasis = kind.isPaid ? .none : .notApplicable
    }
    if store.sales[place].keyKind == .transaction {
      _ = store.addAlias(place, store.sales[place].key)
    }
  }

  /// R4: an integer from 1 to 10; otherwise 1, and an exception.
  private func quantity(of row: ReplyRow) -> (value: Int64, isGood: Bool) {
    if let value = row.quantity.integer, (1...10).contains(value) { return (value, true) }
    return (1, false)
  }

  /// R4: reports a row of a later verification that disagrees.
  private func compare(
    _ place: Int, _ row: ReplyRow, _ quantity: Int64, _ verification: Verification
  ) throws {
    let sale = store.sales[place]
    if let product = row.productID, !symbols.text(sale.product).equals(product) {
      try conflict("product_id", sale, verification)
    }
    if quantity != sale.quantity { try conflict("quantity", sale, verification) }
  }

  private func conflict(
    _ what: String, _ sale: Sale, _ verification: Verification
  ) throws {
    try withText(what) { detail in
      try exceptions.add(
        .conflictingObservation, sale: sale, detail: detail, position: verification.position)
    }
  }

  // MARK: R5 – kinds

  /// R5: the first kind that matches.
  private func kind(of row: ReplyRow) -> SaleKind {
    if row.isFamilyShared { return .familyShared }
    if row.isTrialPeriod { return .trial }
    if row.isInIntroOfferPeriod || row.hasPromotionalOffer || row.hasOfferCode { return .offer }
    return .regular
  }

  // MARK: R6 – country and user

  /// R6: the first country and the first user count; returns whether one was added.
  private func add(_ place: Int, _ verification: Verification) throws -> Bool {
    let upload = verification.upload
    let sale = store.sales[place]
    var isChanged = false
    if sale.country == .none, upload.country != .none {
      store.update(place) {
        $0.country = upload.country
        $0.countryPosition = upload.position
      }
      isChanged = true
    }
    guard upload.user >= 0 else { return isChanged }
    if sale.user < 0 {
      store.update(place) {
        $0.user = upload.user
        $0.userPosition = upload.position
      }
      return true
    }
    if sale.user != upload.user {
      try exceptions.add(
        .claimedByOtherUser, sale: sale, detail: try userIdentifier(upload.user),
        position: verification.position)
      try notice(replayOf: sale, verification)
    }
    return isChanged
  }
}

extension SaleKey {
  /// R2 and R3: the key of the sale that a row shows; nil for a malformed row.
  package init?(of row: ReplyRow, environment: Symbol, bundle: Symbol) {
    guard row.productID != nil, let transaction = row.originalTransactionID ?? row.transactionID,
      row.purchaseDateMs != nil || row.originalPurchaseDateMs != nil
    else { return nil }
    if let lineItem = row.webOrderLineItemID {
      self.init(environment: environment, bundle: bundle, kind: .lineItem, text: lineItem)
    } else {
      self.init(environment: environment, bundle: bundle, kind: .transaction, text: transaction)
    }
  }
}

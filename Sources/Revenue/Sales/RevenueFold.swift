// Folds verifications into sales: rules R2 to R5. R6 is in Users.swift, R7 in Pricing.swift, R8 in Refunds.swift, R12
// there and in SignedTransactions.swift, R13 in SubscriptionFold.swift.
package import AppStore

/// Folds verifications, in position order, into the sales of a store.
package final class RevenueFold {
  let store: SaleStore
  /// Nil if subscriptions are not needed.
  let subscriptions: SubscriptionStore?
  let accounts: AccountStore
  let symbols: StringInterner
  let exceptions: any ExceptionSink
  /// Returns a user's identifier, for exceptions.
  let userIdentifier: (Int32) throws -> Text
  /// Returns the number of the user with this identifier, for users that only an app account token names.
  let tokenUser: (Text) throws -> Int32
  /// The text for a position in the details of exceptions.
  package let positionText: (Int) -> String
  /// Whether an upload came after an erasure of the ledger that contains another upload.
  let isAfterErasure: (_ position: Int, _ erasure: Int, _ named: Int) -> Bool
  var prices = MetadataPrices()

  /// A row of the current verification, and the index of its sale.
  struct Shown {
    var sale: Int
    /// The sale's number. Indexes differ between runs, numbers do not.
    var saleID: Int
    var row: Int
  }

  private(set) var shown: [Shown] = []
  /// What the signed statements of the current event contain about refunds, by the index of their sale.
  var refundsOfEvent: [(place: Int, statements: [RefundStatement])] = []
  /// The subscriptions that the current reply shows.
  var seenSubscriptions: [SeenSubscription] = []
  /// The number of sales in the most recent event.
  package private(set) var shownSaleCount = 0
  /// The fraud that the most recent event, together with earlier ones, proves against its upload.
  package private(set) var fraudReason: FraudReason?

  package init(
    store: SaleStore, subscriptions: SubscriptionStore?, accounts: AccountStore,
    symbols: StringInterner, exceptions: any ExceptionSink,
    userIdentifier: @escaping (Int32) throws -> Text,
    tokenUser: @escaping (Text) throws -> Int32,
    positionText: @escaping (Int) -> String = { "\($0)" },
    isAfterErasure: @escaping (_ position: Int, _ erasure: Int, _ named: Int) -> Bool = {
      (position, erasure, _) in position > erasure
    }
  ) {
    self.store = store
    self.subscriptions = subscriptions
    self.accounts = accounts
    self.symbols = symbols
    self.exceptions = exceptions
    self.userIdentifier = userIdentifier
    self.tokenUser = tokenUser
    self.positionText = positionText
    self.isAfterErasure = isAfterErasure
  }

  /// Folds one verification that counts (rule R1). The rows must be in R2's order of sources.
  package func fold(
    _ verification: Verification, rows: [ReplyRow], renewals: [RenewalInfo] = []
  ) throws {
    begin()
    try observe(rows, verification)
    if renewals.isEmpty || verification.isPending { return }
    try fold(renewals, rows: rows, verification)
  }

  private func observe(_ rows: [ReplyRow], _ verification: Verification) throws {
    for (index, row) in rows.enumerated() {
      if let place = try place(of: row, verification) {
        shown.append(Shown(sale: place, saleID: store.sales[place].id, row: index))
      }
    }
    if shown.count > 1 { order(rows) }
    if let products = verification.products { try compare(rows, products, verification) }
    var newRegularSales = 0
    try forEachSale { place, group in
      shownSaleCount += 1
      noteUpload(of: place, verification)
      try observe(place, group, rows, verification)
      let sale = store.sales[place]
      if sale.isFirstObservation, sale.kind == .regular { newRegularSales += 1 }
    }
    if let subscriptions, !verification.isPending {
      try observeSubscriptions(rows, verification, in: subscriptions)
    }
    try price(verification, newRegularSales: newRegularSales)
  }

  private func begin() {
    shown.removeAll(keepingCapacity: true)
    shownSaleCount = 0
    fraudReason = nil
  }

  /// Folds one event with signed transactions that count (rule R12), each statement in the order of the list.
  package func fold(_ event: SignedEvidence, _ statements: [SignedStatement]) throws {
    begin()
    var first: Verification?
    var firstOfSale: Verification?
    for (index, statement) in statements.enumerated() {
      let transaction = statement.transaction
      guard let environment = transaction.environment, let bundle = transaction.bundleID else {
        preconditionFailure("a transaction that counts names its environment and its bundle")
      }
      let verification = event.verification(
        environment: symbols.symbol(environment), bundle: symbols.symbol(bundle),
        trust: statement.trust)
      if first == nil { first = verification }
      guard let place = try place(of: transaction.row, verification) else { continue }
      if firstOfSale == nil { firstOfSale = verification }
      if let products = event.products { try compare(transaction.row, products, verification) }
      if !shown.contains(where: { $0.sale == place }) {
        noteUpload(of: place, verification)
        shown.append(Shown(sale: place, saleID: store.sales[place].id, row: index))
      }
      try observe(place, transaction, verification)
      if let subscriptions {
        try observeSubscription(place, transaction, verification, in: subscriptions)
      }
    }
    if let first { try applyRefunds(first) }
    shownSaleCount = shown.count
    // An exception of the whole event is attributed to the first transaction's app.
    guard event.upload != nil, let first = firstOfSale ?? first else { return }
    shown.sort { $0.saleID < $1.saleID }
    let newRegularSales = shown.count {
      store.sales[$0.sale].isFirstObservation && store.sales[$0.sale].kind == .regular
    }
    try price(first, newRegularSales: newRegularSales)
  }

  /// R12: the first observation in the sense of R7.2 and R7.3 is the first event with an upload.
  private func noteUpload(of place: Int, _ verification: Verification) {
    store.update(place) { sale in
      sale.isFirstObservation = verification.upload != nil && !sale.flags.contains(.hasUpload)
      guard sale.isFirstObservation else { return }
      sale.flags.insert(.hasUpload)
      // Readers do not see this change, but it must be saved.
      sale.isChanged = true
    }
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
  private func place(of row: ReplyRow, _ verification: Verification) throws -> Int? {
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
    if missing.isEmpty { missing.append("before_2008") }
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

  /// R3: reports a renewal that has no line item and would merge with its first period.
  func notice(
    renewal row: ReplyRow, of place: Int, _ verification: Verification
  ) throws {
    guard row.webOrderLineItemID == nil, row.expiresAtMs != nil,
      let transaction = row.transactionID,
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
    for entry in shown { try compare(rows[entry.row], products, verification) }
  }

  private func compare(
    _ row: ReplyRow, _ products: DeclaredProducts, _ verification: Verification
  ) throws {
    guard let product = row.productID, !products.holds(product) else { return }
    let none = Text(start: nil, count: 0)
    fraudReason = .productUnknown
    try exceptions.add(
      .productUnknown, environment: verification.environment, bundle: verification.bundle,
      product: product, transaction: row.transactionID ?? row.originalTransactionID ?? none,
      detail: none, position: verification.position)
  }

  /// Reports a replay: a declared consumable belongs to the user who showed it first.
  func notice(replayOf sale: Sale, _ verification: Verification) throws {
    guard let products = verification.products, products.isConsumable(symbols.text(sale.product)),
      let upload = verification.upload
    else { return }
    if fraudReason == nil { fraudReason = .transactionReplayed }
    try withText("upload at \(positionText(upload.position))") { detail in
      try exceptions.add(
        .transactionReplayed, sale: sale, detail: detail, position: verification.position)
    }
  }

  // MARK: R4 – first observation wins, later ones add

  private func observe(
    _ place: Int, _ group: ArraySlice<Shown>, _ rows: [ReplyRow], _ verification: Verification
  ) throws {
    let isFirst = store.sales[place].version == 0
    var isChanged = isFirst
    if isFirst, let primary = group.first {
      let row = rows[primary.row]
      fix(place, row, kind: kind(of: row), quantity: quantity(of: row), verification)
    }
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
    if group.contains(where: { rows[$0.row].isTrialPeriod }), becomeTrial(place) {
      isChanged = true
    }
    if try add(place, verification) { isChanged = true }
    let tokens = group.lazy.compactMap { rows[$0.row].appAccountToken }
    if try addToken(place, tokens, verification) { isChanged = true }
    if try cancel(place, group, rows, verification) { isChanged = true }
    if isChanged {
      touch(place, verification)
      try settleUser(place)
    }
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
  func fix(
    _ place: Int, _ row: ReplyRow, kind: SaleKind, quantity: (value: Int64, isGood: Bool),
    _ verification: Verification
  ) {
    let none = Text(start: nil, count: 0)
    let product = symbols.symbol(row.productID ?? none)
    let transaction = store.arena.keep(row.transactionID ?? row.originalTransactionID ?? none)
    let original = store.arena.keep(row.originalTransactionID ?? none)
    store.update(place) { sale in
      sale.product = product
      sale.quantity = quantity.value
      if !quantity.isGood { sale.flags.insert(.isQuantityAssumed) }
      if row.isInIntroOfferPeriod { sale.flags.insert(.isIntroductory) }
      if row.hasPromotionalOffer { sale.flags.insert(.isPromotional) }
      if row.hasOfferCode { sale.flags.insert(.isByOfferCode) }
      sale.saleDateMs = row.saleDateMs(sale.keyKind) ?? 0
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
  func compare(
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
}

extension SaleKey {
  /// R2 and R3: the key of the sale that a row shows; nil for a malformed row.
  package init?(of row: ReplyRow, environment: Symbol, bundle: Symbol) {
    guard row.productID != nil, let transaction = row.originalTransactionID ?? row.transactionID
    else { return nil }
    let kind: KeyKind = row.webOrderLineItemID == nil ? .transaction : .lineItem
    guard let saleDateMs = row.saleDateMs(kind), saleDateMs >= Self.firstDayMs else { return nil }
    self.init(
      environment: environment, bundle: bundle, kind: kind,
      text: row.webOrderLineItemID ?? transaction)
  }

  /// R2: 2008-07-10, the first day of the App Store, in epoch milliseconds. An earlier date is wrong, for example in
  /// seconds.
  private static let firstDayMs: Int64 = 1_215_648_000_000
}

extension ReplyRow {
  /// R3: the sale date of a row; nil if it has neither date.
  fileprivate func saleDateMs(_ kind: KeyKind) -> Int64? {
    kind == .lineItem
      ? purchaseDateMs ?? originalPurchaseDateMs : originalPurchaseDateMs ?? purchaseDateMs
  }
}

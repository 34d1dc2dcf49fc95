// Rule R7, 1–3: the prices that clients send with their uploads.
import AppStore
import Base

extension RevenueFold {
  /// R7: 30 days of 86,400 s, in milliseconds.
  private static let evidenceLimitMs: Int64 = 30 * 86_400 * 1000

  /// R7: applies the prices of the verification's upload to each sale that it shows.
  func price(_ verification: Verification, newRegularSales: Int) throws {
    guard let upload = verification.upload, !upload.metadata.isEmpty else { return }
    prices.read(upload.metadata)
    if prices.isEmpty { return }
    if prices.shorthand != nil, newRegularSales > 1 {
      try exceptions.add(
        .priceAmbiguous, environment: verification.environment, bundle: verification.bundle,
        detail: "\(newRegularSales) new sales at \(positionText(verification.position))",
        position: verification.position)
    }
    try matchOtherTransactions(verification)
    try forEachSale { place, _ in
      guard store.sales[place].kind.isPaid else { return }
      if try priceByTransaction(place, verification) { return }
      guard store.sales[place].isFirstObservation, store.sales[place].clientPrice == nil else {
        return
      }
      if try priceByProduct(place, verification) { return }
      if newRegularSales == 1, store.sales[place].kind == .regular {
        try priceByShorthand(place, verification)
      }
    }
  }

  /// R7: StoreKit's transaction id can differ from that in Apple's reply. An entry whose id no sale has applies to the
  /// only new regular sale of its product; if there is none, it is an exception.
  private func matchOtherTransactions(_ verification: Verification) throws {
    for (index, entry) in prices.entries.enumerated() {
      guard let transaction = entry.transactionID,
        try !shown.contains(where: { store.hasAlias($0.sale, transaction) })
          && !store.isAliasOfAny(transaction)
      else { continue }
      if let place = onlyNewSale(of: entry.productID) {
        prices.limit(entryAt: index, toSale: store.sales[place].id)
        continue
      }
      guard let upload = verification.upload else { continue }
      try exceptions.add(
        .priceUnmatched, environment: verification.environment, bundle: verification.bundle,
        detail: transaction, upload: upload.position, position: verification.position)
    }
  }

  /// The only regular sale of a product that the current event shows first; nil if there is none or several.
  private func onlyNewSale(of product: Text?) -> Int? {
    guard let product else { return nil }
    var found: Int?
    var isOnly = true
    forEachSale { place, _ in
      let sale = store.sales[place]
      guard sale.isFirstObservation, sale.kind == .regular,
        symbols.text(sale.product).equals(product)
      else { return }
      if found != nil { isOnly = false }
      found = place
    }
    return isOnly ? found : nil
  }

  /// R7.1: applies the first entry for one of the sale's transactions; returns whether that decides the
  /// price.
  private func priceByTransaction(
    _ place: Int, _ verification: Verification
  ) throws -> Bool {
    let fitting = prices.entries.first { entry in
      entry.transactionID.map { store.hasAlias(place, $0) } ?? false
    }
    guard let fitting else { return false }
    let reading = read(fitting, place)
    if let price = store.sales[place].clientPrice {
      switch reading {
      case .price(let micros, let currency):
        if price != UnitPrice(micros: micros, currency: currency) {
          try conflict(place, micros, currency, verification)
        }
      case .problem(let problem): try note(problem, "client_transaction", place, verification)
      }
      return true
    }
    return try take(reading, .clientTransaction, place, verification)
  }

  /// Reads an entry. A price whose amount for the sale's quantity exceeds 64 bits is ignored.
  private func read(_ entry: PriceEntry, _ place: Int) -> PriceReading {
    let reading = entry.read()
    if case .price(let micros, let currency) = reading,
      UnitPrice(micros: micros, currency: currency).amountMicros(of: store.sales[place].quantity)
        == nil
    {
      return .problem(.unreadable)
    }
    return reading
  }

  func conflict(
    _ place: Int, _ micros: Int64, _ currency: Currency, _ verification: Verification
  ) throws {
    let other = "\(Amount.text(micros: micros, currency: currency)) \(currency)"
    try withText(other) { detail in
      try exceptions.add(
        .priceConflict, sale: store.sales[place], detail: detail, position: verification.position)
    }
  }

  /// R7.2: applies the first entry for the sale's product and kind; returns whether that decides the price.
  private func priceByProduct(_ place: Int, _ verification: Verification) throws -> Bool {
    let product = symbols.text(store.sales[place].product)
    let kind = store.sales[place].kind
    let id = store.sales[place].id
    let fitting = prices.entries.first { entry in
      (entry.transactionID == nil || entry.onlySale == id)
        && (entry.productID?.equals(product) ?? false)
        && fits(entry, kind, store.sales[place].flags)
    }
    guard let fitting else { return false }
    if isLate(place, verification) {
      try noteLate("client_product", place, verification)
      return false
    }
    return try take(read(fitting, place), .clientProduct, place, verification)
  }

  /// R7.2: whether an entry's kind fits the sale.
  private func fits(_ entry: PriceEntry, _ kind: SaleKind, _ flags: SaleFlags) -> Bool {
    // Read as an id: an empty or null value is not a kind.
    guard let text = entry.kind.id else { return kind == .regular }
    let word = JSONString(raw: text, hasEscapes: false)
    if kind == .regular { return word == "regular" }
    return (word == "intro" && flags.contains(.isIntroductory))
      || (word == "promo" && flags.contains(.isPromotional))
      || (word == "offer_code" && flags.contains(.isByOfferCode))
  }

  /// R7.3: applies the shorthand to the only regular sale first observed by this verification.
  private func priceByShorthand(
    _ place: Int, _ verification: Verification
  ) throws {
    guard let shorthand = prices.shorthand else { return }
    if isLate(place, verification) {
      return try noteLate("client_single", place, verification)
    }
    _ = try take(read(shorthand, place), .clientSingle, place, verification)
  }

  /// R7: whether the upload came too late for its price to be evidence of the price on the sale date.
  private func isLate(_ place: Int, _ verification: Verification) -> Bool {
    guard let upload = verification.upload else { return true }
    return upload.occurredAtMs - store.sales[place].saleDateMs > Self.evidenceLimitMs
  }

  private func noteLate(
    _ rule: StaticString, _ place: Int, _ verification: Verification
  ) throws {
    try exceptions.add(
      .priceObservedLate, sale: store.sales[place], detail: rule.text,
      position: verification.position)
  }

  /// Sets a valid price, or records the problem; returns whether the sale has a price now.
  private func take(
    _ reading: PriceReading, _ basis: PriceBasis, _ place: Int, _ verification: Verification
  ) throws -> Bool {
    switch reading {
    case .price(let micros, let currency):
      let price = UnitPrice(micros: micros, currency: currency)
      if store.sales[place].priceBasis == .signedTransaction {
        try compare(place, clientPrice: price, verification)
        return true
      }
      _ = symbols.symbol(currency)
      store.update(place) {
        $0.price = price
        $0.priceBasis = basis
        $0.pricePosition = verification.upload?.position ?? verification.position
      }
      touch(place, verification)
      return true
    case .problem(let problem):
      try note(problem, basis.word, place, verification)
      if store.sales[place].priceProblem.isOpen {
        store.update(place) { $0.priceProblem = problem }
        touch(place, verification)
      }
      return false
    }
  }

  /// R12: reports a client's price whose amount is not the signed one.
  func compare(_ place: Int, clientPrice: UnitPrice, _ verification: Verification) throws {
    let sale = store.sales[place]
    if clientPrice.currency == sale.price?.currency,
      clientPrice.amountMicros(of: sale.quantity) == sale.signedAmountMicros
    {
      return
    }
    try conflict(place, clientPrice.micros, clientPrice.currency, verification)
  }

  private func note(
    _ problem: PriceProblem, _ rule: StaticString, _ place: Int, _ verification: Verification
  ) throws {
    try exceptions.add(
      ExceptionType(problem), sale: store.sales[place], detail: rule.text,
      position: verification.position)
  }
}

// Rule R12: applies a signed transaction to its sale. Returns and Reversals are in Refunds.swift.
import AppStore
import Base

extension RevenueFold {
  /// R12: applies one signed statement to its sale.
  func observe(
    _ place: Int, _ transaction: SignedTransaction, _ verification: Verification
  ) throws {
    let row = transaction.row
    let quantity = quantity(ofSigned: row)
    let isFirst = store.sales[place].version == 0
    if isFirst {
      fix(place, row, kind: kind(of: transaction), quantity: quantity, verification)
      if isOpenOffer(transaction), store.sales[place].kind == .offer {
        store.update(place) { _ = $0.flags.insert(.mayBecomeTrial) }
      }
    }
    var isChanged = isFirst
    var flags = store.sales[place].flags
    if let isRenewal = transaction.isRenewal {
      flags.insert(isRenewal ? .isSignedRenewal : .isSignedPurchase)
    }
    if let type = transaction.type { flags = flags.replacingType(type) }
    if flags != store.sales[place].flags {
      store.update(place) {
        $0.flags = flags
        $0.isChanged = true
      }
    }
    if !quantity.isGood {
      try withText(row.quantity.text) { detail in
        try exceptions.add(
          .badQuantity, sale: store.sales[place], detail: detail, position: verification.position)
      }
    } else if replaceQuantity(place, quantity.value) {
      isChanged = true
    }
    if !isFirst { try compare(place, row, quantity.value, verification) }
    try notice(renewal: row, of: place, verification)
    if let alias = row.transactionID, store.addAlias(place, alias) { isChanged = true }
    if transaction.isFreeTrial, becomeTrial(place) { isChanged = true }
    if try add(place, verification) { isChanged = true }
    if try addSigned(place, transaction, verification) { isChanged = true }
    if try price(place, transaction, verification) { isChanged = true }
    if try noteRefund(place, transaction, verification) { isChanged = true }
    if isChanged {
      touch(place, verification)
      try settleUser(place)
    }
  }

  // MARK: Kind and quantity

  /// R12: the first kind that matches.
  private func kind(of transaction: SignedTransaction) -> SaleKind {
    if transaction.row.isFamilyShared { return .familyShared }
    if transaction.isFreeTrial { return .trial }
    return transaction.offerType == nil ? .regular : .offer
  }

  /// R12: whether a statement leaves open whether its introductory offer is a trial.
  private func isOpenOffer(_ transaction: SignedTransaction) -> Bool {
    transaction.offerType == 1 && !transaction.hasOfferDiscountType && !transaction.hasPrice
  }

  /// R12: makes an offer that was left open a trial, because a later statement calls it one; returns whether it was
  /// open.
  func becomeTrial(_ place: Int) -> Bool {
    guard store.sales[place].flags.contains(.mayBecomeTrial) else { return false }
    store.update(place) { sale in
      sale.flags.remove(.mayBecomeTrial)
      sale.kind = .trial
      sale.price = nil
      sale.signedAmountMicros = 0
      sale.priceBasis = .notApplicable
      sale.pricePosition = -1
    }
    return true
  }

  /// R12: an integer from 1 to 1,000,000; otherwise 1, and an exception.
  private func quantity(ofSigned row: ReplyRow) -> (value: Int64, isGood: Bool) {
    if let value = row.quantity.integer, (1...Sale.quantityMax).contains(value) {
      return (value, true)
    }
    return (1, false)
  }

  /// R12: replaces a quantity that R4 set to 1 because it was invalid; returns whether it did.
  private func replaceQuantity(_ place: Int, _ quantity: Int64) -> Bool {
    guard store.sales[place].flags.contains(.isQuantityAssumed) else { return false }
    store.update(place) { sale in
      sale.flags.remove(.isQuantityAssumed)
      sale.quantity = quantity
      if sale.priceBasis == .signedTransaction, let currency = sale.price?.currency {
        sale.price = Self.unitPrice(sale.signedAmountMicros, quantity, currency)
      } else if let price = sale.price, price.amountMicros(of: quantity) == nil {
        // Amounts have 64 bits.
        sale.price = nil
        sale.priceBasis = .none
        sale.pricePosition = -1
        if sale.priceProblem.isOpen { sale.priceProblem = .unreadable }
      }
    }
    return true
  }

  // MARK: Country and user

  /// R6 and R12: the first storefront takes precedence over every client's country, the first account and the first
  /// token come after every client's user; returns whether one was added.
  private func addSigned(
    _ place: Int, _ transaction: SignedTransaction, _ verification: Verification
  ) throws -> Bool {
    var isChanged = false
    if !store.sales[place].flags.contains(.isCountrySigned),
      let country = transaction.storefront.flatMap({ Country.parse(alpha3: $0) })
    {
      let symbol = symbols.symbol(country.description)
      store.update(place) { sale in
        sale.flags.insert(.isCountrySigned)
        sale.country = symbol
        sale.countryPosition = verification.position
      }
      try compareCountries(place, verification)
      isChanged = true
    }
    if try addAccount(place, transaction, verification) { isChanged = true }
    guard let token = transaction.appAccountToken else { return isChanged }
    return try addToken(place, CollectionOfOne(token), verification) || isChanged
  }

  // MARK: Price

  /// R12: the unit price of a signed amount, rounded half to even to the micro.
  private static func unitPrice(
    _ amountMicros: Int64, _ quantity: Int64, _ currency: Currency
  ) -> UnitPrice {
    var (unit, rest) = amountMicros.quotientAndRemainder(dividingBy: quantity)
    if rest * 2 > quantity || (rest * 2 == quantity && unit % 2 == 1) { unit += 1 }
    return UnitPrice(micros: unit, currency: currency)
  }

  /// R12: applies the first signed price; returns whether the sale changed.
  private func price(
    _ place: Int, _ transaction: SignedTransaction, _ verification: Verification
  ) throws -> Bool {
    let sale = store.sales[place]
    guard sale.kind.isPaid else { return false }
    if transaction.hasMultiSeatInfo {
      try exceptions.add(
        .multiSeatPrice, sale: sale, detail: Text(start: nil, count: 0),
        position: verification.position)
      guard sale.priceProblem.isOpen else { return false }
      store.update(place) { $0.priceProblem = .multiSeat }
      return true
    }
    guard let milliunits = transaction.priceMilliunits,
      let currency = transaction.currency.flatMap({ Currency.parse($0) })
    else { return false }
    let amount = milliunits * 1000
    if sale.priceBasis == .signedTransaction {
      if sale.signedAmountMicros != amount || sale.price?.currency != currency {
        try conflict(place, amount, currency, verification)
      }
      return false
    }
    let clientPrice = sale.clientPrice
    _ = symbols.symbol(currency)
    store.update(place) {
      $0.signedAmountMicros = amount
      $0.price = Self.unitPrice(amount, $0.quantity, currency)
      $0.priceBasis = .signedTransaction
      $0.pricePosition = verification.position
    }
    if let clientPrice { try compare(place, clientPrice: clientPrice, verification) }
    return true
  }
}

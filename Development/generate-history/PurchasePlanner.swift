// What a customer buys: single purchases, subscriptions with all that befalls them.
import AppStoreAuthority
import ProgramSupport

struct PurchasePlanner {
  let simulation: Simulation
  let customer: Customer
  var random: RandomSource
  private var purchases: [Purchase] = []
  private var ordinal = 0

  init(simulation: Simulation, customer: Customer, random: RandomSource) {
    self.simulation = simulation
    self.customer = customer
    self.random = random
  }

  private var purchaseLimit: Int { simulation.isSmall ? 3 : 24 }

  /// All purchases up to the end of the simulation, in no order.
  mutating func plan() -> [Purchase] {
    let firstMs = customer.arrivalMs + Int64(random.within(20...7200)) * secondMs
    let subscriptions = customer.app.subscriptions
    if !subscriptions.isEmpty, random.chance(customer.isLegacy ? 700 : 400) {
      let startMs = random.chance(700) ? firstMs : firstMs + Int64(random.within(1...40)) * dayMs
      let first = subscriptions[random.chance(700) ? 0 : subscriptions.count - 1]
      subscribe(to: first, fromMs: startMs)
    }
    buySingles(fromMs: firstMs)
    return purchases
  }

  private mutating func nextTransaction() -> UInt64 {
    ordinal += 1
    return simulation.identifiers.transaction(
      customer: customer.index, ordinal: ordinal, isSandbox: customer.isSandbox)
  }

  private mutating func nextLineItem() -> UInt64 {
    ordinal += 1
    return simulation.identifiers.lineItem(
      customer: customer.index, ordinal: ordinal, isSandbox: customer.isSandbox)
  }

  // MARK: Single purchases

  private mutating func buySingles(fromMs: Int64) {
    let others = customer.app.others
    guard !others.isEmpty else { return }
    // Few customers buy much.
    let wanted = random.index(
      weighted: purchases.isEmpty ? [4, 50, 24, 12, 6, 4] : [62, 24, 9, 5])
    var owned: Set<String> = []
    var atMs = fromMs
    for _ in 0..<wanted {
      let product = random.pick(others)
      guard atMs < simulation.toMs, purchases.count < purchaseLimit else { return }
      if product.kind == .nonConsumable, !owned.insert(product.id).inserted { continue }
      buy(product, atMs: atMs)
      atMs +=
        random.chance(300)
        ? Int64(random.within(60...3600)) * secondMs
        : Int64(random.within(1...60 * 24)) * hourMs
    }
  }

  private mutating func buy(_ product: Product, atMs: Int64) {
    let transaction = nextTransaction()
    var purchase = Purchase(
      product: product, transaction: transaction, original: transaction, purchasedMs: atMs,
      originallyPurchasedMs: atMs + originalOffsetMs(),
      unitMicros: simulation.priceMicros(
        of: product, in: customer.storefront, atMs: atMs, offer: .regular))
    if product.kind == .consumable, random.chance(70) { purchase.quantity = random.within(2...5) }
    if product.kind == .nonConsumable {
      purchase.isFamilyShared = random.chance(35)
      if random.chance(110) {
        purchase.restoredMs = atMs + Int64(random.within(10 * 24...300 * 24)) * hourMs
        purchase.restoredTransaction = nextTransaction()
      }
    }
    refund(&purchase, perMille: 30)
    purchases.append(purchase)
  }

  /// A first purchase's two dates differ by seconds now and then, in either direction.
  private mutating func originalOffsetMs() -> Int64 {
    random.chance(150) ? Int64(random.within(-3...2)) * secondMs : 0
  }

  /// Gives some purchases a refund, and some refunds a reversal. Says whether there was a refund.
  @discardableResult
  private mutating func refund(_ purchase: inout Purchase, perMille: Int) -> Bool {
    guard random.chance(perMille) else { return false }
    purchase.cancelledMs =
      purchase.purchasedMs + Int64(random.within(6 * 60...45 * 24 * 60)) * minuteMs
    purchase.cancellationReason = random.chance(350) ? 1 : 0
    if random.chance(250) {
      purchase.reversedMs = purchase.cancelledMs + Int64(random.within(2 * 24...30 * 24)) * hourMs
    }
    return true
  }

  // MARK: Subscriptions

  private func expiry(of product: Product, offer: Offer, fromMs: Int64) -> Int64 {
    if customer.isSandbox {
      return fromMs + (product.periodMonths == 1 ? 5 * minuteMs : hourMs)
    }
    if offer == .trial { return fromMs + (product.periodMonths == 1 ? 7 : 14) * dayMs }
    return StoreTime.adding(months: product.periodMonths, to: fromMs)
  }

  private mutating func firstOffer() -> Offer {
    switch random.index(weighted: [46, 32, 15, 7]) {
    case 0: .regular
    case 1: .trial
    case 2: .introductory
    default: .code(random.pick(["SPRING-LETTER", "podcast_21", "Welcome Back"]))
    }
  }

  private mutating func returningOffer() -> Offer {
    switch random.index(weighted: [45, 40, 15]) {
    case 0: .regular
    case 1: .promotional(random.pick(["return.30", "loyal_autumn", "stay-with-us"]))
    default: .code("WINBACK26")
    }
  }

  private mutating func subscribe(to first: Product, fromMs: Int64) {
    let original = nextTransaction()
    let isFamilyShared = random.chance(30)
    let originalMs = fromMs + originalOffsetMs()
    var product = first
    var offer = firstOffer()
    var atMs = fromMs
    var isFirst = true
    while atMs < simulation.toMs, purchases.count < purchaseLimit {
      var period = Purchase(
        product: product, transaction: isFirst ? original : nextTransaction(), original: original,
        lineItem: nextLineItem(), purchasedMs: atMs, originallyPurchasedMs: originalMs,
        expiresMs: expiry(of: product, offer: offer, fromMs: atMs), offer: offer,
        isFamilyShared: isFamilyShared,
        unitMicros: simulation.priceMicros(
          of: product, in: customer.storefront, atMs: atMs, offer: offer))
      isFirst = false
      if random.chance(45) {
        period.secondTransaction = nextTransaction()
        period.secondSinceMs = atMs + Int64(random.within(1...20 * 24)) * hourMs
      }
      let wasRefunded = offer != .trial && refund(&period, perMille: 28)
      let next = whatFollows(&period, wasRefunded: wasRefunded)
      purchases.append(period)
      guard let next else { return }
      (product, offer, atMs) = (next.product, next.offer, next.atMs)
    }
  }

  private typealias NextPeriod = (product: Product, offer: Offer, atMs: Int64)

  /// Decides what comes after a period, and marks the period with how it ended.
  private mutating func whatFollows(_ period: inout Purchase, wasRefunded: Bool) -> NextPeriod? {
    let lengthMs = period.expiresMs - period.purchasedMs
    if wasRefunded, random.chance(700) {
      period.lapse = .voluntary(atMs: period.cancelledMs)
      return nil
    }
    let yearly = customer.app.subscriptions.last { $0.periodMonths == 12 }
    if !wasRefunded, period.product.periodMonths == 1, random.chance(30), let yearly {
      let share = Int64(random.within(10...90))
      period.upgradedMs = period.purchasedMs + lengthMs / secondMs * share / 100 * secondMs
      period.cancelledMs = period.upgradedMs
      return (yearly, .regular, period.upgradedMs)
    }
    let staysPerMille =
      switch (period.offer, period.product.periodMonths) {
      case (.trial, _): 580
      case (_, 1): 800
      default: 600
      }
    if random.chance(staysPerMille) { return (period.product, .regular, period.expiresMs) }
    if random.chance(280) {
      period.lapse = .billing
      guard random.chance(500) else { return nil }
      let gapMs = customer.isSandbox ? minuteMs : Int64(random.within(6...16 * 24)) * hourMs
      return (period.product, .regular, period.expiresMs + gapMs)
    }
    let share = Int64(random.within(5...98))
    period.lapse = .voluntary(
      atMs: period.purchasedMs + lengthMs / secondMs * share / 100 * secondMs)
    guard random.chance(350) else { return nil }
    let gapMs = customer.isSandbox ? hourMs : Int64(random.within(15...160)) * dayMs
    return (period.product, returningOffer(), period.expiresMs + gapMs)
  }
}

// One customer: who they are, what they buy, when their app uploads a receipt; and their identifiers.
import AppStoreAuthority
import ProgramSupport

struct PlannedUpload: Sendable {
  var atMs: Int64
  /// 0, or 1 for a second device.
  var device = 0
  /// When the receipt in it was made; an older time than the upload's means the same receipt again.
  var receiptMs: Int64
  /// Index of the purchase that prompted it.
  var prompt: Int?
}

/// A customer's whole history, planned in advance. It is drawn anew for each upload rather than kept, so that
/// memory does not grow with what customers do.
struct Customer: Sendable {
  let index: Int
  let app: App
  let storefront: Storefront
  let isSandbox: Bool
  /// Whether the app still sends transaction receipts.
  let isLegacy: Bool
  let userIdentifier: String?
  /// Another user who takes the device over, and when; `.max` where nobody does.
  let laterUserIdentifier: String
  let laterUserSinceMs: Int64
  let arrivalMs: Int64
  var purchases: [Purchase] = []
  var uploads: [PlannedUpload] = []

  func user(atMs: Int64) -> String? {
    laterUserSinceMs <= atMs ? laterUserIdentifier : userIdentifier
  }
}

/// What the whole simulation shares.
struct Simulation: Sendable {
  let seed: UInt64
  /// Uploads lie within these instants.
  let fromMs: Int64
  let toMs: Int64
  let isSmall: Bool

  var identifiers: Identifiers { Identifiers(seed: seed) }

  /// When some prices rise: 00:00 UTC of a day after three fifths of the time.
  var priceRiseMs: Int64 { (fromMs + (toMs - fromMs) / 5 * 3) / dayMs * dayMs }

  /// What a product costs in a storefront, in micros of its currency.
  func priceMicros(
    of product: Product, in storefront: Storefront, atMs: Int64, offer: Offer
  ) -> Int64 {
    let tierCents = atMs >= priceRiseMs ? product.raisedTierCents : product.tierCents
    let percent =
      switch offer {
      case .regular, .trial: 100
      case .introductory: 50
      case .promotional: 70
      case .code: 40
      }
    return storefront.currency.priceMicros(tierCents: tierCents, percent: percent)
  }
}

extension Simulation {
  /// Plans customer `index`; the same every time.
  func customer(_ index: Int) -> Customer {
    var random = RandomSource(seed: seed, 10, UInt64(index))
    let leadMs = min(120 * dayMs, toMs - fromMs)
    let earliestMs = fromMs - leadMs
    let spanSeconds = Int((toMs - hourMs - earliestMs) / secondMs)
    var arrival = random.below(spanSeconds)
    // The apps grow: some customers are drawn twice and come at the later time.
    if random.chance(300) { arrival = max(arrival, random.below(spanSeconds)) }
    let app = Catalogue.apps[random.index(weighted: Catalogue.weights)]
    let storefront = Storefronts.all[random.index(weighted: Storefronts.weights)]
    let isSandbox = random.chance(25)
    let isLegacy = random.chance(60)
    let arrivalMs = earliestMs / secondMs * secondMs + Int64(arrival) * secondMs
    let changesUser = random.chance(25)
    var customer = Customer(
      index: index, app: app, storefront: storefront, isSandbox: isSandbox, isLegacy: isLegacy,
      userIdentifier: random.chance(955) ? userIdentifier(index, ordinal: 0) : nil,
      laterUserIdentifier: userIdentifier(index, ordinal: 1),
      laterUserSinceMs: changesUser ? arrivalMs + Int64(random.within(5...150)) * dayMs : .max,
      arrivalMs: arrivalMs)
    var purchases = PurchasePlanner(simulation: self, customer: customer, random: random)
    customer.purchases = purchases.plan()
    var uploads = UploadPlanner(simulation: self, customer: customer)
    customer.uploads = uploads.plan()
    return customer
  }

  private func userIdentifier(_ index: Int, ordinal: Int) -> String {
    let number = identifiers.user(customer: index, ordinal: ordinal)
    let hex = String(number, radix: 16)
    switch number % 40 {
    case 0: return "@reader\(number % 1_000_000_007)"
    case 1..<14: return String(number % 100_000_000_000_000)
    case 14..<24: return "acct_" + hex
    default: return "u-" + hex
    }
  }
}

/// Numbers that never meet: each pair of customer and ordinal has its own.
struct Identifiers: Sendable {
  let seed: UInt64

  /// A bijection of 48 bits, so that numbers look scattered and stay unique.
  private func scattered(customer: Int, ordinal: Int, stream: UInt64) -> UInt64 {
    let mask: UInt64 = 1 << 48 - 1
    var keys = RandomSource(seed: seed, stream)
    var word = (UInt64(customer) << 16 | UInt64(ordinal & 0xFFFF)) & mask
    for _ in 0..<2 {
      word = (word ^ keys.next()) & mask
      word = (word &* (keys.next() | 1)) & mask
      word ^= word >> 24
    }
    return word
  }

  /// 15 digits in production, 16 in the sandbox.
  func transaction(customer: Int, ordinal: Int, isSandbox: Bool) -> UInt64 {
    (isSandbox ? 2_000_000_000_000_000 : 410_000_000_000_000)
      + scattered(customer: customer, ordinal: ordinal, stream: 1)
  }

  func lineItem(customer: Int, ordinal: Int, isSandbox: Bool) -> UInt64 {
    (isSandbox ? 2_000_000_000_000_000 : 420_000_000_000_000)
      + scattered(customer: customer, ordinal: ordinal, stream: 2)
  }

  func user(customer: Int, ordinal: Int) -> UInt64 {
    scattered(customer: customer, ordinal: ordinal, stream: 3)
  }
}

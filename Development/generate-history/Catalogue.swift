// The invented apps and what they sell.

enum ProductKind: Int, Sendable {
  // As attribute 1707 of a unified receipt numbers them.
  case nonConsumable = 0
  case consumable = 1
  case nonRenewing = 2
  case autoRenewable = 3
}

struct Product: Sendable {
  let id: String
  let kind: ProductKind
  /// Apple's number for the product.
  let itemID: Int
  /// Price in cents of a dollar, from which storefronts' prices are made.
  let tierCents: Int
  /// The same after the price rise; equal where it never rises.
  let raisedTierCents: Int
  /// Length of a subscription's period in months; 0 for all else.
  let periodMonths: Int
}

struct App: Sendable {
  let bundleID: String
  /// Apple's number for the app.
  let adamID: Int
  let subscriptionGroup: String
  /// How often customers choose it.
  let weight: Int
  let products: [Product]
  /// Whether the price list names its products; without it, sales can stay unpriced.
  let isOnPriceList: Bool

  let productNumbers: [String: Int64]

  init(
    bundleID: String, adamID: Int, subscriptionGroup: String, weight: Int, products: [Product],
    isOnPriceList: Bool
  ) {
    self.bundleID = bundleID
    self.adamID = adamID
    self.subscriptionGroup = subscriptionGroup
    self.weight = weight
    self.products = products
    self.isOnPriceList = isOnPriceList
    productNumbers = Dictionary(
      uniqueKeysWithValues: products.map { ($0.id, Int64($0.itemID)) })
  }

  var subscriptions: [Product] { products.filter { $0.kind == .autoRenewable } }
  var others: [Product] { products.filter { $0.kind != .autoRenewable } }
}

enum Catalogue {
  private static func product(
    _ id: String, _ kind: ProductKind, _ itemID: Int, cents: Int, raised: Int = 0, months: Int = 0
  ) -> Product {
    Product(
      id: id, kind: kind, itemID: itemID, tierCents: cents,
      raisedTierCents: raised == 0 ? cents : raised, periodMonths: months)
  }

  static let apps: [App] = [
    App(
      bundleID: "com.example.harbor", adamID: 6_480_112_207, subscriptionGroup: "21480316",
      weight: 28,
      products: [
        product(
          "com.example.harbor.crew.monthly", .autoRenewable, 6_480_113_001, cents: 499,
          raised: 599, months: 1),
        product(
          "com.example.harbor.crew.yearly", .autoRenewable, 6_480_113_002, cents: 3999,
          raised: 4999, months: 12),
        product("com.example.harbor.charts", .nonConsumable, 6_480_113_003, cents: 999),
        product("com.example.harbor.tip", .consumable, 6_480_113_004, cents: 299),
      ], isOnPriceList: true),
    App(
      bundleID: "com.example.lantern-reader", adamID: 6_481_230_945,
      subscriptionGroup: "21480622", weight: 22,
      products: [
        product(
          "lantern.unlimited.month", .autoRenewable, 6_481_231_101, cents: 999, months: 1),
        product("lantern.unlimited.year", .autoRenewable, 6_481_231_102, cents: 7999, months: 12),
        product("lantern.credits.10", .consumable, 6_481_231_103, cents: 199),
        product("lantern.credits.60", .consumable, 6_481_231_104, cents: 999),
      ], isOnPriceList: true),
    App(
      bundleID: "org.example.meadow", adamID: 6_482_377_518, subscriptionGroup: "21480875",
      weight: 26,
      products: [
        product("meadow_seeds_80", .consumable, 6_482_378_001, cents: 99),
        product("meadow_seeds_500", .consumable, 6_482_378_002, cents: 499),
        product("meadow_seeds_1200", .consumable, 6_482_378_003, cents: 999, raised: 1199),
        product("meadow_no_ads", .nonConsumable, 6_482_378_004, cents: 399),
        product("meadow_orchard", .nonConsumable, 6_482_378_005, cents: 699),
      ], isOnPriceList: true),
    App(
      bundleID: "com.example.tidewater", adamID: 6_483_004_761, subscriptionGroup: "21481130",
      weight: 14,
      products: [
        product("tidewater.plus.1m", .autoRenewable, 6_483_005_201, cents: 299, months: 1),
        product("tidewater.plus.12m", .autoRenewable, 6_483_005_202, cents: 1999, months: 12),
        product("tidewater.season.pass", .nonRenewing, 6_483_005_203, cents: 1499),
        product("tidewater.logbook", .nonConsumable, 6_483_005_204, cents: 1999),
      ], isOnPriceList: true),
    App(
      bundleID: "net.example.quill", adamID: 6_484_559_032, subscriptionGroup: "21481388",
      weight: 10,
      products: [
        product(
          "net.example.quill.studio.year", .autoRenewable, 6_484_560_001, cents: 2999, months: 12),
        product("net.example.quill.templates", .nonConsumable, 6_484_560_002, cents: 499),
        product("net.example.quill.course", .nonRenewing, 6_484_560_003, cents: 2499),
        product("net.example.quill.ink", .consumable, 6_484_560_004, cents: 199),
      ], isOnPriceList: false),
  ]

  static let weights = apps.map(\.weight)
}

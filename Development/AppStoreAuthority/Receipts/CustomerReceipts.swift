// Invented customers and the receipts that their devices hold.
package import AppStore
private import ProgramSupport

/// Customers by number; the same numbers give the same receipts.
package struct CustomerReceipts: Sendable {
  package enum Environment: String, Sendable {
    case production, sandbox, mixed
  }

  package struct Product: Sendable {
    package let id: String
    /// As in attribute 1707.
    package let type: Int
    /// Price of one unit in US dollars, in hundredths.
    package let cents: Int
  }

  package static let products = [
    Product(id: "coins.100", type: 1, cents: 99), Product(id: "coins.1200", type: 1, cents: 999),
    Product(id: "lifetime", type: 0, cents: 4_999),
    Product(id: "season.pass", type: 2, cents: 1_499),
    Product(id: "plus.monthly", type: 3, cents: 799),
    Product(id: "plus.yearly", type: 3, cents: 5_999),
  ]

  package let seed: UInt64
  private let bundleID: String
  private let environment: Environment
  /// When the receipts are made, in epoch milliseconds.
  package let atMs: Int64

  package init(seed: UInt64, bundleID: String, environment: Environment, atMs: Int64) {
    self.seed = seed
    self.bundleID = bundleID
    self.environment = environment
    self.atMs = atMs
  }

  /// A customer's receipt: the first holds some purchases, each further one more.
  package func receipt(customer: Int, ordinal: Int) -> Receipt {
    var chance = RandomSource(state: seed &* 0xD129_0B26_8A1F_3C71 ^ UInt64(customer) << 20)
    let isSandbox =
      environment == .sandbox || (environment == .mixed && chance.below(10) == 0)
    let count = chance.below(4) + 2 + ordinal
    var purchases: [ReceiptPurchase] = []
    var hasSubscription = false
    for number in 0..<count {
      var product = chance.pick(Self.products)
      // One subscription for each customer: the others buy coins instead.
      if product.type == 3, hasSubscription { product = Self.products[0] }
      if product.type == 3 { hasSubscription = true }
      let agoMs = Int64(chance.below(20 * 86_400_000)) + 1_000
      purchases.append(
        purchase(
          product, name: "\(seed) \(customer) \(number)", atMs: atMs - agoMs,
          isSandbox: isSandbox))
    }
    return Receipt(
      style: .unified, environment: isSandbox ? "ProductionSandbox" : "Production",
      bundleID: bundleID, applicationVersion: isSandbox ? "1.0" : "4.2",
      originalApplicationVersion: isSandbox ? "1.0" : "3.17",
      creationDateMs: atMs / 1000 * 1000, purchases: purchases)
  }

  private func purchase(
    _ product: Product, name: String, atMs: Int64, isSandbox: Bool
  ) -> ReceiptPurchase {
    let dateMs = atMs / 1000 * 1000
    let id = String(AppFacts.id("transaction " + name, isSandbox: isSandbox))
    var purchase = ReceiptPurchase()
    purchase.productID = product.id
    purchase.transactionID = id
    purchase.originalTransactionID = id
    purchase.quantity = "1"
    purchase.purchaseDateMs = dateMs
    purchase.originalPurchaseDateMs = dateMs
    purchase.productType = product.type
    if product.type == 3 {
      let days: Int64 = product.id == "plus.yearly" ? 365 : 30
      purchase.expiresDateMs = dateMs + days * dayMs
      purchase.webOrderLineItemID = String(
        AppFacts.id("line item " + name, isSandbox: isSandbox))
    }
    return purchase
  }

  // MARK: Upload requests

  private static let storefronts = [
    ("US", "USD", 100), ("DE", "EUR", 100), ("GB", "GBP", 90), ("SE", "SEK", 1_100),
    ("BR", "BRL", 500), ("AU", "AUD", 150),
  ]

  /// The country of a customer, and what a unit of each product costs there: with two decimals.
  package static func storefront(
    customer: Int
  ) -> (country: String, currency: String, price: @Sendable (Product) -> String) {
    let (country, currency, _) = storefronts[customer % storefronts.count]
    return (
      country, currency,
      { product in
        let cents = Self.cents(product, customer: customer)
        let rest = cents % 100
        return "\(cents / 100).\(rest < 10 ? "0" : "")\(rest)"
      }
    )
  }

  /// What a unit of a product costs where a customer buys, in hundredths of the currency.
  package static func cents(_ product: Product, customer: Int) -> Int {
    product.cents * storefronts[customer % storefronts.count].2 / 100
  }
}

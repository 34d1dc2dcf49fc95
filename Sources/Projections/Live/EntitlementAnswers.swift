// Answers to the question what a user is entitled to.
import Ledger
import Revenue

extension OwnershipAnswers {
  /// The purchases of one user that an answer looks at. More have only users who are no single person.
  static let purchaseCountMax = 10_000

  /// What was found for the entitlements of an app, by their places in its list.
  private struct Claims {
    private let entitlements: [Entitlement]
    private var matches: [Symbol: [(place: Int, match: Entitlement.Match)]] = [:]
    /// By place; of Production, and of the Sandbox.
    private(set) var production: [EntitlementClaim?]
    private(set) var sandbox: [EntitlementClaim?]

    init(_ entitlements: [Entitlement]) {
      self.entitlements = entitlements
      production = Array(repeating: nil, count: entitlements.count)
      sandbox = production
    }

    /// The entitlements whose patterns name a product.
    mutating func matches(
      _ product: Symbol, _ id: @autoclosure () -> String
    ) -> [(place: Int, match: Entitlement.Match)] {
      if let known = matches[product] { return known }
      let id = id()
      let found = entitlements.indices.compactMap { place in
        entitlements[place].match(id).map { (place, $0) }
      }
      matches[product] = found
      return found
    }

    /// Adds a claim; of two the better one stays.
    mutating func add(_ claim: EntitlementClaim, _ place: Int, isSandbox: Bool) {
      let known = isSandbox ? sandbox[place] : production[place]
      if let known, !claim.precedes(known) { return }
      if isSandbox { sandbox[place] = claim } else { production[place] = claim }
    }
  }

  /// Adds what a user is entitled to; false if the user has too many purchases.
  func addEntitlements(
    of user: String, _ family: AppFamily?, atMs: Int64, to resource: inout ReceiptResource
  ) throws -> Bool {
    var claims = Claims(family?.entitlements ?? [])
    if let family, !family.entitlements.isEmpty, let number = try sales.number(ofUser: user) {
      let bundles = family.bundleIDs.compactMap { symbols.known($0) }
      guard let subscriptions = try subscriptions(ofUser: user, number, family) else {
        return false
      }
      for subscription in subscriptions { try claim(subscription, atMs, &claims) }
      guard try claimPurchases(of: number, family, bundles, &claims) else { return false }
    }
    add(claims.production, family, to: &resource)
    resource.begin("sandbox")
    add(claims.sandbox, family, to: &resource)
    resource.end()
    return true
  }

  private func add(
    _ claims: [EntitlementClaim?], _ family: AppFamily?, to resource: inout ReceiptResource
  ) {
    resource.beginArray("entitlements")
    for (place, claim) in claims.enumerated() {
      guard let claim, let family else { continue }
      resource.begin()
      resource.add("name", family.entitlements[place].name)
      resource.add("is_active", claim.reason.isActive)
      resource.add("until", timeMs: claim.untilMs)
      resource.add("reason", claim.reason.rawValue)
      resource.add("product_id", claim.productID)
      resource.add(
        "original_transaction_id",
        claim.originalTransactionID.isEmpty ? nil : claim.originalTransactionID)
      resource.add("positions", positions: Set(claim.positions).sorted())
      resource.end()
    }
    resource.endArray()
  }

  // MARK: Claims

  /// Adds what a subscription's current period says, and what earlier periods say about other products.
  private func claim(
    _ subscription: SubscriptionDetail, _ atMs: Int64, _ claims: inout Claims
  ) throws {
    let isSandbox = isSandbox(subscription.environment)
    let hasBegun = subscription.terms.periodStartMs <= atMs
    // A period that has not begun gives what the one before gives too, or is all that is known.
    var hasEarlier = false
    var continued: Set<Int> = []
    try sales.forEach(of: subscription, symbols, limit: Self.purchaseCountMax) { sale in
      if sale.saleDateMs <= atMs { hasEarlier = true }
      let product = symbols.string(sale.product)
      let matches = claims.matches(sale.product, product)
      let isOfCurrentProduct = product == subscription.productID
      guard !isOfCurrentProduct || !hasBegun, !matches.isEmpty else { return }
      let returns = try returns(of: sale)
      guard
        let claim = EntitlementClaim(sale, of: subscription, product, returns, atMs: atMs)
      else { return }
      for (place, _) in matches {
        claims.add(claim, place, isSandbox: isSandbox)
        if claim.reason.isActive { continued.insert(place) }
      }
    }
    guard let product = symbols.known(subscription.productID) else { return }
    let current = EntitlementClaim(subscription, atMs: atMs)
    for (place, _) in claims.matches(product, subscription.productID)
    where hasBegun || !hasEarlier || continued.contains(place) {
      claims.add(current, place, isSandbox: isSandbox)
    }
  }

  /// Adds what the purchases of a user say that are no periods of subscriptions; false if there are too many.
  private func claimPurchases(
    of user: Int64, _ family: AppFamily, _ bundles: [Symbol], _ claims: inout Claims
  ) throws -> Bool {
    var count = 0
    try sales.forEach(ofUser: user, after: .start) { sale in
      count += 1
      guard count <= Self.purchaseCountMax else { return false }
      guard bundles.contains(sale.bundle) else { return true }
      let matches = claims.matches(sale.product, symbols.string(sale.product))
      if matches.isEmpty { return true }
      // A period is its subscription's, whose user may be another one.
      if sale.periodEndMs != nil { return true }
      let product = symbols.string(sale.product)
      let isSandbox = isSandbox(symbols.string(sale.environment))
      let returns = try returns(of: sale)
      for (place, match) in matches {
        let type = family.products[product] ?? ProductType(sale.flags)
        if let claim = EntitlementClaim(sale, product, type, match, returns) {
          claims.add(claim, place, isSandbox: isSandbox)
        }
      }
      return true
    }
    return count <= Self.purchaseCountMax
  }

  private func isSandbox(_ environment: String) -> Bool {
    withText(environment) { ReceiptResource.environment($0)?.text.elementsEqual("sandbox".utf8) }
      ?? true
  }
}

// The App Store's reply about a unified receipt of an invented customer.
import AppStoreAuthority
import ProgramSupport

struct ReplyPlan {
  let simulation: Simulation
  let customer: Customer
  let upload: PlannedUpload
  /// When the App Store answered.
  let requestMs: Int64
  /// Makes the base64 of the customer's receipt as it was at a time.
  let receipt: (Int64) -> String

  /// How many rows `latest_receipt_info` shows at most: the newest.
  private static let latestLimit = 60

  func reply(random: inout RandomSource) -> UnifiedReply {
    let style = ReplyStyle(isTyped: random.chance(10), hasTypedDates: false)
    let facts = ReceiptFacts(simulation: simulation, customer: customer)
    let held = UnifiedReceipt.purchases(
      of: customer, receiptMs: upload.receiptMs, device: upload.device)
    let latest = latestRows(random: &random)
    return UnifiedReply(
      facts.receipt(device: upload.device, atMs: upload.receiptMs),
      facts.facts(device: upload.device, atMs: upload.receiptMs), style, nowMs: requestMs,
      inApp: held.map(row), latest: latest.map(row), renewals: pendingRenewals,
      latestReceipt: simulation.isSmall || latest.isEmpty ? nil : receipt(latestReceiptMs))
  }

  private func row(_ purchase: Purchase) -> PurchaseRow {
    var row = PurchaseRow(
      purchase.inReceipt(atMs: requestMs), subscriptionGroup: customer.app.subscriptionGroup)
    row.isFamilyShared = purchase.isFamilyShared
    row.refund = purchase.refund(atMs: requestMs)
    if case .code(let name) = purchase.offer { row.offerCode = name }
    row.isUpgraded = purchase.upgradedMs <= requestMs
    return row
  }

  /// The receipt that was sent, unless something was bought since.
  private var latestReceiptMs: Int64 {
    let newest = customer.purchases.map(\.purchasedMs).filter { $0 <= requestMs }.max() ?? 0
    return newest > upload.receiptMs ? newest + 1000 : upload.receiptMs
  }

  /// The subscriptions' periods, mostly the newest first; a few replies mix consumables in.
  private func latestRows(random: inout RandomSource) -> [Purchase] {
    let known = customer.purchases.filter { $0.purchasedMs <= requestMs }
    guard known.contains(where: { $0.product.kind == .autoRenewable }) else { return [] }
    let hasConsumables = random.chance(40)
    var rows: [Purchase] = []
    for purchase in known {
      guard purchase.product.kind == .autoRenewable else {
        if hasConsumables, purchase.product.kind == .consumable { rows.append(purchase) }
        continue
      }
      rows.append(purchase)
      if purchase.secondSinceMs <= requestMs { rows.append(purchase.onSecondDevice) }
    }
    rows.sort { ($0.purchasedMs, $0.transaction) > ($1.purchasedMs, $1.transaction) }
    rows = Array(rows.prefix(Self.latestLimit))
    if random.chance(120) {
      for index in rows.indices.reversed() { rows.swapAt(index, random.below(index + 1)) }
    }
    return rows
  }

  private var pendingRenewals: [PendingRenewal] {
    let periods = customer.purchases.filter {
      $0.product.kind == .autoRenewable && $0.purchasedMs <= requestMs
    }
    guard let last = periods.max(by: { $0.purchasedMs < $1.purchasedMs }) else { return [] }
    let (willRenew, end): (Bool, PendingRenewal.End?) =
      switch last.lapse {
      case .none: (true, nil)
      case .voluntary(let atMs): (atMs > requestMs, .voluntary)
      case .billing: (requestMs < last.expiresMs + PendingRenewal.retryMs, .billing)
      }
    return [
      PendingRenewal(
        after: last.inReceipt(atMs: requestMs), willRenew: willRenew, end: end, nowMs: requestMs)
    ]
  }
}

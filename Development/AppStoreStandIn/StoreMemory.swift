// What the stand-in knows about purchases beyond their receipts: refunds, renewals, sharing.
import AppStore
import AppStoreAuthority
import Base

/// What was asked of the stand-in about purchases, by their ids.
struct StoreMemory: Sendable {
  struct Refund: Sendable {
    let atMs: Int64
    /// Apple's code: `0` or `1`.
    let reason: String
    /// What was given back, 100000 for all; verifyReceipt does not say.
    var percentage = 100_000
    /// When it was asked for; `atMs` may lie before.
    var askedMs: Int64?
  }

  enum LapseCause: String, Sendable {
    case voluntary, billing
  }

  var refunds: [String: Refund] = [:]
  var familyShared: Set<String> = []
  /// Transactions that a second device shows under another id.
  var onSecondDevice: Set<String> = []
  /// When refunds were withdrawn, by transaction: also such as nobody asked for here.
  var undoneRefunds: [String: Int64] = [:]
  /// When renewals beyond those that come with time were asked for, by original transaction.
  var extraRenewals: [String: [Int64]] = [:]
  /// Subscriptions that no longer renew, by original transaction.
  var lapses: [String: LapseCause] = [:]
  /// Whether subscriptions renew as time goes.
  var renewsByItself = true
  /// Whether `latest_receipt_info` holds consumables too, as it does at times.
  var latestHoldsConsumables = false

  /// What notifications tell of it, in the order of time.
  private(set) var told: [Told] = []

  /// A notification about what was asked for here.
  struct Told: Sendable {
    let type: String
    let subtype: String?
    /// Of a renewal the original one.
    let transaction: String
    /// The machine's time, since it is the time of the signature.
    let atMs: Int64
    let uuid: String
  }

  /// Notifications that are kept.
  private static let toldMax = 100_000

  mutating func note(_ type: String, _ subtype: String?, _ transaction: String, atMs: Int64) {
    guard told.count < Self.toldMax else { return }
    told.append(
      Told(
        type: type, subtype: subtype, transaction: transaction, atMs: atMs,
        uuid: UUID16.random().description))
  }

  /// Bounds what a receipt of long ago comes to.
  static let renewalsMax = 400
  /// Shorter periods are taken as this long.
  static let shortestPeriodMs: Int64 = 1_000

  /// The periods of a subscription, oldest first: those that the receipt holds, then the renewals.
  func periods(of held: [ReceiptPurchase], isSandbox: Bool, nowMs: Int64) -> [ReceiptPurchase] {
    let known = held.sorted { ($0.purchaseDateMs ?? 0) < ($1.purchaseDateMs ?? 0) }
    guard let last = known.last, let original = last.originalTransactionID,
      let expiresMs = last.expiresDateMs
    else { return known }
    let lengthMs = max(expiresMs - (last.purchaseDateMs ?? expiresMs), Self.shortestPeriodMs)
    let askedMs = extraRenewals[original] ?? []
    var count = askedMs.count
    if renewsByItself, lapses[original] == nil, nowMs >= expiresMs {
      count += Int(min((nowMs - expiresMs) / lengthMs + 1, Int64(Self.renewalsMax)))
    }
    var periods = known
    var previousMs = expiresMs
    for number in 0..<min(count, Self.renewalsMax) {
      var renewal = last
      let name = "\(original) \(number) \(expiresMs)"
      renewal.transactionID = String(AppFacts.id("renewal " + name, isSandbox: isSandbox))
      renewal.webOrderLineItemID = String(AppFacts.id("line item " + name, isSandbox: isSandbox))
      // Renewed before its time on request: nothing is bought in the future.
      renewal.purchaseDateMs = min(previousMs, number < askedMs.count ? askedMs[number] : nowMs)
      previousMs += lengthMs
      renewal.expiresDateMs = previousMs
      renewal.isTrialPeriod = false
      renewal.isInIntroOfferPeriod = false
      renewal.promotionalOfferID = nil
      periods.append(renewal)
    }
    return periods
  }

  /// The purchase as the second device shows it: the same line item under another transaction.
  func secondDevice(of purchase: ReceiptPurchase, isSandbox: Bool) -> ReceiptPurchase? {
    guard let id = purchase.transactionID, onSecondDevice.contains(id) else { return nil }
    var second = purchase
    second.transactionID = String(AppFacts.id("second device \(id)", isSandbox: isSandbox))
    return second
  }

  func refund(of purchase: ReceiptPurchase) -> Refund? {
    if let id = purchase.transactionID, let refund = refunds[id] { return refund }
    return purchase.cancellationDateMs.map { Refund(atMs: $0, reason: "0") }
  }

  func isFamilyShared(_ purchase: ReceiptPurchase) -> Bool {
    [purchase.transactionID, purchase.originalTransactionID].contains { id in
      id.map(familyShared.contains) ?? false
    }
  }
}

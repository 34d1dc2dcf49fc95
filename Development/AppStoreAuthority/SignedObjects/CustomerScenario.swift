// What befalls the purchases of invented customers: renewals, payments that fail, refunds.

/// One thing that happens, and what the App Store says from then on.
package struct Incident: Sendable {
  package var type: String
  package var subtype: String?
  /// Nil for a test.
  package var transaction: TransactionPayload?
  /// Of subscriptions alone.
  package var renewal: RenewalPayload?
  package var atMs: Int64
  package var consumptionReason: String?

  package init(
    _ type: String, _ subtype: String? = nil, _ transaction: TransactionPayload?,
    _ renewal: RenewalPayload? = nil, atMs: Int64
  ) {
    self.type = type
    self.subtype = subtype
    self.transaction = transaction
    self.renewal = renewal
    self.atMs = atMs
  }

  /// The subscription's status at a time as the App Store numbers it: 1 active, 2 expired, 3 billing retry,
  /// 4 grace period, 5 revoked; nil where there is no subscription.
  package static func status(
    of transaction: TransactionPayload, _ renewal: RenewalPayload?, atMs: Int64
  ) -> Int? {
    guard let expiresMs = transaction.expiresMs else { return nil }
    if transaction.revocation != nil { return 5 }
    if atMs < expiresMs { return 1 }
    if let graceMs = renewal?.graceExpiresMs, atMs < graceMs { return 4 }
    return renewal?.isInBillingRetry == true ? 3 : 2
  }
}

/// What befalls one purchase until the time of the receipts. A story uses up that span, however short it is: what
/// takes weeks at the App Store may take hours here, and a period that is to end within it is that short.
struct CustomerScenario {
  let customer: Int
  let bought: TransactionPayload
  /// The next period of a subscription: begins, ends, and a number of its own.
  let renewed: (_ number: Int, _ fromMs: Int64, _ untilMs: Int64) -> TransactionPayload
  /// The time of the receipts.
  let atMs: Int64

  /// So many eighths of the span after the purchase, to the second.
  private func eighth(_ count: Int64) -> Int64 {
    (bought.purchaseMs + count * (atMs - bought.purchaseMs) / 8) / 1000 * 1000
  }

  private var soonMs: Int64 { min(bought.purchaseMs + 2_000, atMs) }
  private var lastMs: Int64 { atMs - 1_000 }

  // MARK: Single purchases

  /// - Parameter isLast: whether it is the last in the receipt, the one that may be refunded.
  func single(isLast: Bool) -> [Incident] {
    var incidents = [Incident("ONE_TIME_CHARGE", nil, bought, atMs: soonMs)]
    guard isLast, customer % 5 == 1 || customer % 5 == 2 else { return incidents }
    if bought.type == .consumable {
      var request = Incident("CONSUMPTION_REQUEST", nil, bought, atMs: eighth(2))
      request.consumptionReason = customer % 2 == 0 ? "UNINTENDED_PURCHASE" : "UNSATISFIED"
      incidents.append(request)
    }
    if customer % 5 == 2 {
      return incidents + [Incident("REFUND_DECLINED", nil, bought, atMs: eighth(4))]
    }
    let share = customer % 20 == 16 ? 50_000 : 100_000
    incidents.append(
      Incident("REFUND", nil, refunded(share, atMs: eighth(4) - 60_000), atMs: eighth(4)))
    if customer % 10 == 1 {
      incidents.append(Incident("REFUND_REVERSED", nil, bought, atMs: eighth(6)))
    }
    return incidents
  }

  /// - Parameter share: thousandths of a percent.
  private func refunded(_ share: Int, atMs: Int64) -> TransactionPayload {
    var refunded = bought
    refunded.revocation = TransactionPayload.Revocation(
      dateMs: max(atMs, bought.purchaseMs) / 1000 * 1000, reason: 1, percentage: share,
      type: share == 100_000 ? "REFUND_FULL" : "REFUND_PRORATED")
    return refunded
  }

  // MARK: Subscriptions

  func subscription() -> [Incident] {
    let first = Incident(
      "SUBSCRIBED", "INITIAL_BUY", bought, RenewalPayload(of: bought), atMs: soonMs)
    switch customer % 12 {
    case 7: return [first] + refund()
    case 8: return [first] + recovery()
    case 9: return [first] + voluntaryEnd()
    case 10: return [first] + billingEnd(hasGrace: false)
    case 11: return [first] + billingEnd(hasGrace: true)
    case let rest where rest % 2 == 0:
      // It begins when it is told of, whatever was left of the one before.
      let fromMs = max(atMs / 1000 * 1000 - hourMs, bought.purchaseMs)
      let next = renewed(0, fromMs, fromMs + lengthMs)
      return [first, Incident("DID_RENEW", nil, next, RenewalPayload(of: next), atMs: lastMs)]
    default: return [first, disabled(bought, atMs: lastMs)]
    }
  }

  private var lengthMs: Int64 { (bought.expiresMs ?? bought.purchaseMs) - bought.purchaseMs }

  private func disabled(_ transaction: TransactionPayload, atMs: Int64) -> Incident {
    Incident(
      "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", transaction, ending(transaction),
      atMs: atMs)
  }

  private func ending(
    _ transaction: TransactionPayload, intent: Int? = nil
  ) -> RenewalPayload {
    var renewal = RenewalPayload(of: transaction)
    renewal.willRenew = false
    renewal.expirationIntent = intent
    return renewal
  }

  /// A renewal whose payment fails.
  private func failing(
    _ transaction: TransactionPayload, graceMs: Int64? = nil, isInGrace: Bool = false
  ) -> RenewalPayload {
    var renewal = RenewalPayload(of: transaction)
    renewal.isInBillingRetry = true
    renewal.expirationIntent = isInGrace ? nil : 2
    renewal.graceExpiresMs = graceMs
    return renewal
  }

  private func renewal(_ number: Int, untilMs: Int64) -> Incident {
    let next = renewed(number, eighth(2), untilMs)
    return Incident("DID_RENEW", nil, next, RenewalPayload(of: next), atMs: eighth(2))
  }

  private func refund() -> [Incident] {
    var request = Incident(
      "CONSUMPTION_REQUEST", nil, bought, RenewalPayload(of: bought), atMs: eighth(2))
    request.consumptionReason = "UNINTENDED_PURCHASE"
    let returned = refunded(40_000, atMs: eighth(4))
    return [
      request, Incident("REFUND", nil, returned, ending(returned, intent: 1), atMs: eighth(4)),
    ]
  }

  private func recovery() -> [Incident] {
    let next = renewal(0, untilMs: eighth(4))
    guard let short = next.transaction else { return [] }
    let recovered = renewed(1, eighth(5), eighth(5) + lengthMs)
    return [
      next,
      Incident(
        "DID_FAIL_TO_RENEW", "GRACE_PERIOD", short,
        failing(short, graceMs: eighth(6), isInGrace: true), atMs: eighth(4)),
      Incident(
        "DID_RENEW", "BILLING_RECOVERY", recovered, RenewalPayload(of: recovered), atMs: eighth(5)),
    ]
  }

  private func voluntaryEnd() -> [Incident] {
    let next = renewal(0, untilMs: eighth(5))
    guard let short = next.transaction else { return [] }
    return [
      next, disabled(short, atMs: eighth(3)),
      Incident("EXPIRED", "VOLUNTARY", short, ending(short, intent: 1), atMs: eighth(5)),
    ]
  }

  private func billingEnd(hasGrace: Bool) -> [Incident] {
    let next = renewal(0, untilMs: eighth(4))
    guard let short = next.transaction else { return [] }
    var told = [next]
    if hasGrace {
      let graceMs = eighth(5)
      told += [
        Incident(
          "DID_FAIL_TO_RENEW", "GRACE_PERIOD", short,
          failing(short, graceMs: graceMs, isInGrace: true), atMs: eighth(4)),
        Incident(
          "GRACE_PERIOD_EXPIRED", nil, short, failing(short, graceMs: graceMs), atMs: graceMs),
      ]
    } else {
      told.append(Incident("DID_FAIL_TO_RENEW", nil, short, failing(short), atMs: eighth(4)))
    }
    return told + [
      Incident("EXPIRED", "BILLING_RETRY", short, ending(short, intent: 2), atMs: eighth(7))
    ]
  }
}

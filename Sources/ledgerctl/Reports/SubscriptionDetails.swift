// A subscription as JSON, and as fields and a table row, as it stood at a moment.
import Ledger
import Projections
import Revenue

/// A subscription at a moment, in epoch milliseconds.
struct SubscriptionAtMoment {
  let subscription: SubscriptionDetail
  let momentMs: Int64

  private var status: String { subscription.status(atMs: momentMs).rawValue }

  private var priceText: String? {
    subscription.unitPriceMicros.map { Amount.text(micros: $0, currency: subscription.currency) }
  }

  private var offerText: String? {
    subscription.offer == .none ? nil : "\(subscription.offer.word)"
  }

  var record: Record {
    let terms = subscription.terms
    return [
      "original_transaction_id": subscription.originalTransactionID,
      "product_id": subscription.productID, "user_identifier": subscription.userIdentifier,
      "country_code": subscription.countryCode, "at": timeText(momentMs), "status": status,
      "started_at": timeText(subscription.startedAtMs),
      "current_period_start_at": timeText(terms.periodStartMs),
      "expires_at": timeText(terms.expiresAtMs),
      "grace_period_expires_at": terms.gracePeriodExpiresAtMs.map(timeText),
      "auto_renew": subscription.isAutoRenewing,
      "auto_renew_product_id": subscription.autoRenewProductID,
      "expiration_intent": subscription.expirationIntent,
      "in_billing_retry": terms.isInBillingRetry, "price": priceText,
      "currency": subscription.currency?.description, "offer": offerText,
      "revoked_at": terms.revokedAtMs.map(timeText),
      "statement_position": subscription.statementPosition,
      "renewal_position": subscription.renewalPosition, "position": subscription.position,
    ]
  }

  /// What is known of it, with the positions of the events that say so.
  var fields: Fields {
    let terms = subscription.terms
    var fields: Fields = [
      ("subscription", subscription.originalTransactionID),
      ("status", "\(status) at \(timeText(momentMs))"), ("product", subscription.productID),
      ("since", timeText(subscription.startedAtMs)),
      (
        "current period",
        "\(timeText(terms.periodStartMs)) to \(timeText(terms.expiresAtMs))  (position "
          + "\(subscription.statementPosition))"
      ),
    ]
    if let offerText { fields.append(("offer", offerText)) }
    if let revokedAtMs = terms.revokedAtMs {
      fields.append((terms.isUpgraded ? "upgraded" : "revoked", timeText(revokedAtMs)))
    }
    fields.append(("renews", renewalText))
    if let graceMs = terms.gracePeriodExpiresAtMs {
      fields.append(("grace period", "to \(timeText(graceMs))"))
    }
    return fields
  }

  private var renewalText: String {
    guard let position = subscription.renewalPosition else { return "unknown" }
    var words: [String] = []
    switch subscription.isAutoRenewing {
    case true: words.append("yes")
    case false: words.append("no")
    default: words.append("not stated")
    }
    if let product = subscription.autoRenewProductID { words.append("to \(product)") }
    if let intent = subscription.expirationIntent { words.append("expiration intent \(intent)") }
    if subscription.terms.isInBillingRetry == true { words.append("in billing retry") }
    return "\(words.joined(separator: ", "))  (position \(position))"
  }

  static func table(_ subscriptions: [SubscriptionAtMoment]) -> TextTable {
    TextTable(
      [
        "original_transaction_id", "product_id", "status", "current_period_start_at", "expires_at",
        "auto_renew", .number("position"),
      ], subscriptions.map(\.tableRecord))
  }

  private var tableRecord: Record {
    // Cells have no flags.
    let renews = subscription.isAutoRenewing.map { $0 ? "yes" : "no" }
    return [
      "original_transaction_id": subscription.originalTransactionID,
      "product_id": subscription.productID, "status": status,
      "current_period_start_at": timeText(subscription.terms.periodStartMs),
      "expires_at": timeText(subscription.terms.expiresAtMs), "auto_renew": renews,
      "position": subscription.position,
    ]
  }
}

extension LedgerQueries {
  /// The subscriptions of sales, each once, as they stood at the last event.
  func subscriptionsAtLastEvent(of sales: [SaleDetail]) throws -> [SubscriptionAtMoment] {
    guard let momentMs = try lastEventAtMs() else { return [] }
    var found: [SubscriptionDetail] = []
    for sale in sales {
      guard let subscription = try subscription(of: sale), !found.contains(subscription) else {
        continue
      }
      found.append(subscription)
    }
    return found.map { SubscriptionAtMoment(subscription: $0, momentMs: momentMs) }
  }
}

// MARK: - The options of `app add` and `app edit` that declare entitlements

extension Option {
  static let entitlement = Option(
    "entitlement", value: .init("NAME=PATTERNS"), isRepeatable: true,
    help:
      "an entitlement and the products that give it, separated by commas: ids, or prefixes followed by "
      + "`*`")
}

extension AppAddOptions {
  /// As many as a response can name.
  static let entitlementCountMax = 100
  static let patternCountMax = 100

  /// The entitlements of `--entitlement`, with distinct names.
  static func entitlements(_ invocation: Invocation) throws(UsageError) -> [Entitlement] {
    var entitlements: [Entitlement] = []
    for text in invocation.values("entitlement") {
      entitlements.append(try entitlement(text, invocation))
    }
    if let name = firstDuplicate(entitlements.map(\.name)) {
      throw invocation.wrong("entitlement", name, "given twice")
    }
    return entitlements
  }

  /// Whether a text can be an entitlement's name.
  static func isEntitlementName(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
          || [UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-")].contains(byte)
      }
  }

  private static func entitlement(
    _ text: String, _ invocation: Invocation
  ) throws(UsageError) -> Entitlement {
    guard let equals = text.firstIndex(of: "=") else {
      throw invocation.wrong("entitlement", text, "must be NAME=PATTERN[,PATTERN]")
    }
    let name = String(text[..<equals])
    guard isEntitlementName(name) else {
      throw invocation.wrong(
        "entitlement", text, "NAME must be 1 to 64 letters, digits, points, hyphens and underscores"
      )
    }
    let patterns = text[text.index(after: equals)...].split(
      separator: ",", omittingEmptySubsequences: false
    ).map(String.init)
    guard patterns.allSatisfy(isPattern) else {
      throw invocation.wrong(
        "entitlement", text, "PATTERN must be a product id, or the beginning of one followed by *")
    }
    guard patterns.count <= patternCountMax else {
      throw invocation.wrong("entitlement", name, "has more than \(patternCountMax) patterns")
    }
    if let pattern = firstDuplicate(patterns) {
      throw invocation.wrong("entitlement", "\(name)=\(pattern)", "given twice")
    }
    return Entitlement(name: name, patterns: patterns)
  }

  /// `*` stands at the end, if anywhere; alone it names every product.
  private static func isPattern(_ text: String) -> Bool {
    isIdentifier(text) && !text.dropLast().contains("*")
  }
}

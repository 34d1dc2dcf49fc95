// A subscription as the rules keep it (rule R13): current period, renewal, status at a moment, transitions.

/// A subscription: all periods of one original transaction. Its texts belong to the store's arena.
package struct Subscription: BitwiseCopyable {
  /// The status of a subscription at a moment, named as in reports.
  package enum Status: String, CaseIterable, Sendable {
    case active
    case gracePeriod = "grace_period"
    case billingRetry = "billing_retry"
    case expired, revoked
  }

  /// The offer by which the current period was bought.
  package enum Offer: Int8, CaseIterable, BitwiseCopyable, Sendable {
    case none, trial, introductory, promotional, offerCode, winBack, other

    /// Its name in reports; empty for none.
    package var word: StaticString {
      switch self {
      case .none: ""
      case .trial: "trial"
      case .introductory: "introductory"
      case .promotional: "promotional"
      case .offerCode: "offer_code"
      case .winBack: "win_back"
      case .other: "other"
      }
    }
  }

  /// The content of the current statement. Times are epoch milliseconds.
  package struct Period: Equatable, BitwiseCopyable {
    /// The number of the sale that the statement shows.
    package var sale: Int
    package var product: Symbol
    /// The start of the first period.
    package var startedAtMs: Int64
    package var startMs: Int64
    package var expiresAtMs: Int64
    package var offer: Offer
    package var revokedAtMs: Int64?
    /// The statement's time; the minimum if it has none.
    package var statementMs: Int64
    package var position: Int

    package init(
      sale: Int, product: Symbol, startedAtMs: Int64, startMs: Int64, expiresAtMs: Int64,
      offer: Offer, revokedAtMs: Int64?, statementMs: Int64, position: Int
    ) {
      (self.sale, self.product) = (sale, product)
      (self.startedAtMs, self.startMs, self.expiresAtMs) = (startedAtMs, startMs, expiresAtMs)
      (self.offer, self.revokedAtMs) = (offer, revokedAtMs)
      (self.statementMs, self.position) = (statementMs, position)
    }
  }

  /// The content of the newest renewal information; nil for what it does not contain.
  package struct Renewal: Equatable, BitwiseCopyable {
    /// The information's time in epoch milliseconds; the minimum if it has none.
    package var statementMs: Int64
    package var position: Int
    package var isAutoRenewing: Bool?
    /// The product that it renews to.
    package var product: Symbol = .none
    /// Why it expired, as sent.
    package var expirationIntent: Symbol = .none
    package var isInBillingRetry: Bool?
    /// Epoch milliseconds.
    package var gracePeriodExpiresAtMs: Int64?

    package init(statementMs: Int64, position: Int) {
      (self.statementMs, self.position) = (statementMs, position)
    }
  }

  /// The subscription's number, from 0 in the order in which the events name them.
  package var id: Int
  package var environment: Symbol
  package var bundle: Symbol
  package var original: Text
  /// The first event that names it, in this run.
  package var firstPosition: Int

  /// Nil until a statement shows it: until then it is not in reports.
  package var period: Period?
  package var renewal: Renewal?
  package var country: Symbol = .none
  package var user: Int32 = -1
  /// Whether the country is that of a storefront.
  package var isCountrySigned = false
  package var userBasis: UserBasis = .none
  /// The position of the event that gave the user; −1 until there is one.
  package var userPosition = -1
  /// As for a sale: the first of its periods' statements that has one counts.
  package var account: Int32 = -1
  package var token: Int64 = 0
  package var tokenUser: Int32 = -1
  package var tokenPosition = -1
  /// Whether the user took it over from an erased user: later sales belong to this user.
  package var isTakenOver = false

  /// The most recent event in this run that changed it.
  package var updatedPosition = -1
  /// Whether the database has no state or another state of it.
  package var isChanged = true
  /// Its index among those that the current event shows, or −1.
  var mark: Int32 = -1

  package init(
    id: Int, environment: Symbol, bundle: Symbol, original: Text, firstPosition: Int
  ) {
    (self.id, self.environment, self.bundle) = (id, environment, bundle)
    (self.original, self.firstPosition) = (original, firstPosition)
  }

  package var key: SubscriptionKey {
    SubscriptionKey(environment: environment, bundle: bundle, original: original)
  }

  /// R13: the position of the newer of the statement and the renewal information; nil if no statement shows it.
  package var position: Int? {
    period.map { max($0.position, renewal?.position ?? -1) }
  }
}

/// What determines the status of a subscription (rule R13). Times are epoch milliseconds.
package struct SubscriptionTerms: Equatable, BitwiseCopyable, Sendable {
  package var periodStartMs: Int64
  package var expiresAtMs: Int64
  package var revokedAtMs: Int64?
  /// Whether any statement of the current period's sale called it upgraded.
  package var isUpgraded = false
  package var gracePeriodExpiresAtMs: Int64?
  package var isInBillingRetry: Bool?
  /// The time of the newest renewal information; nil if there is none or it has no time.
  package var renewalMs: Int64?

  /// How long after the expiry a billing retry counts.
  package static let billingRetryMaxMs: Int64 = 60 * 86_400_000

  package init(periodStartMs: Int64, expiresAtMs: Int64) {
    (self.periodStartMs, self.expiresAtMs) = (periodStartMs, expiresAtMs)
  }

  /// - Parameter isUpgraded: whether any statement of the period's sale called it upgraded.
  package init(
    _ period: Subscription.Period, _ renewal: Subscription.Renewal?, isUpgraded: Bool
  ) {
    self.init(periodStartMs: period.startMs, expiresAtMs: period.expiresAtMs)
    (revokedAtMs, self.isUpgraded) = (period.revokedAtMs, isUpgraded)
    guard let renewal else { return }
    gracePeriodExpiresAtMs = renewal.gracePeriodExpiresAtMs
    isInBillingRetry = renewal.isInBillingRetry
    renewalMs = renewal.statementMs == .min ? nil : renewal.statementMs
  }

  /// R13: the status at a moment, given in epoch milliseconds.
  package func status(atMs momentMs: Int64) -> Subscription.Status {
    if let revokedAtMs, revokedAtMs <= momentMs, !isUpgraded { return .revoked }
    if momentMs < expiresAtMs { return .active }
    if let gracePeriodExpiresAtMs, momentMs < gracePeriodExpiresAtMs { return .gracePeriod }
    if isInBillingRetry == true, let renewalMs, renewalMs >= periodStartMs,
      momentMs < expiresAtMs + Self.billingRetryMaxMs
    {
      return .billingRetry
    }
    return .expired
  }
}

// MARK: - Transitions

/// The end or the grace period of a subscription, from the first event that states it for a lapse. Webhooks report it.
package struct SubscriptionTransition: BitwiseCopyable, Equatable, Sendable {
  package enum Kind: Int8, CaseIterable, BitwiseCopyable, Sendable {
    case expiry, gracePeriod
  }

  package var position: Int
  package var kind: Kind
  /// The subscription's number.
  package var subscription: Int
  /// The end of its period as known then, in epoch milliseconds; nil if no statement showed it.
  package var expiresAtMs: Int64?
  /// As the event contains it.
  package var expirationIntent: Symbol
  package var gracePeriodExpiresAtMs: Int64?
  /// The time of the renewal information that was newest then, in epoch milliseconds.
  package var statementMs: Int64?
}

extension Subscription {
  /// The transitions when newer renewal information replaces what is known.
  func turns(to newest: Renewal) -> [SubscriptionTransition] {
    var kinds: [SubscriptionTransition.Kind] = []
    if newest.saysEnd, renewal?.saysEnd != true { kinds.append(.expiry) }
    if newest.gracePeriodExpiresAtMs != nil, renewal?.gracePeriodExpiresAtMs == nil {
      kinds.append(.gracePeriod)
    }
    return kinds.map { turn($0, newest, position: newest.position) }
  }

  /// A transition that an event states by its type.
  func turn(
    _ kind: SubscriptionTransition.Kind, _ renewal: Renewal?, position: Int
  ) -> SubscriptionTransition {
    SubscriptionTransition(
      position: position, kind: kind, subscription: id, expiresAtMs: period?.expiresAtMs,
      expirationIntent: renewal?.expirationIntent ?? .none,
      gracePeriodExpiresAtMs: renewal?.gracePeriodExpiresAtMs,
      statementMs: renewal.flatMap { $0.statementMs == .min ? nil : $0.statementMs })
  }
}

extension Subscription.Renewal {
  /// Whether it gives a reason for the end, and no grace period that is still running.
  fileprivate var saysEnd: Bool {
    expirationIntent != .none && (gracePeriodExpiresAtMs ?? .min) <= statementMs
  }
}

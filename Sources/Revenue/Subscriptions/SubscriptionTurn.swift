// Turns of subscriptions: where renewal information first says that one ended, or that it has a grace period.

/// What an event says of a subscription that no earlier one has said of the same lapse. Others are told of it.
package struct SubscriptionTurn: BitwiseCopyable, Equatable, Sendable {
  package enum Kind: Int8, CaseIterable, BitwiseCopyable, Sendable {
    case expiry, gracePeriod
  }

  package var position: Int
  package var kind: Kind
  /// The subscription's number.
  package var subscription: Int
  /// The end of its period as known then, in epoch milliseconds; nil if no statement showed it.
  package var expiresAtMs: Int64?
  /// As the event says it.
  package var expirationIntent: Symbol
  package var gracePeriodExpiresAtMs: Int64?
  /// The time of the renewal information that was newest then, in epoch milliseconds.
  package var statementMs: Int64?
}

extension Subscription {
  /// The turns that follow when newer renewal information takes the place of what is known.
  func turns(to newest: Renewal) -> [SubscriptionTurn] {
    var kinds: [SubscriptionTurn.Kind] = []
    if newest.saysEnd, renewal?.saysEnd != true { kinds.append(.expiry) }
    if newest.gracePeriodExpiresAtMs != nil, renewal?.gracePeriodExpiresAtMs == nil {
      kinds.append(.gracePeriod)
    }
    return kinds.map { turn($0, newest, position: newest.position) }
  }

  /// A turn that an event states by its type.
  func turn(
    _ kind: SubscriptionTurn.Kind, _ renewal: Renewal?, position: Int
  ) -> SubscriptionTurn {
    SubscriptionTurn(
      position: position, kind: kind, subscription: id, expiresAtMs: period?.expiresAtMs,
      expirationIntent: renewal?.expirationIntent ?? .none,
      gracePeriodExpiresAtMs: renewal?.gracePeriodExpiresAtMs,
      statementMs: renewal.flatMap { $0.statementMs == .min ? nil : $0.statementMs })
  }
}

extension Subscription.Renewal {
  /// Whether it gives a reason for the end, and no grace period that goes on.
  fileprivate var saysEnd: Bool {
    expirationIntent != .none && (gracePeriodExpiresAtMs ?? .min) <= statementMs
  }
}

// R13: the status of a subscription at a moment, sentence by sentence.
import Revenue
import TestSupport
import Testing

@Suite struct SubscriptionStatusTests {
  /// A period from 1 to 31 January 2026.
  private static func terms(_ change: (inout SubscriptionTerms) -> Void = { _ in })
    -> SubscriptionTerms
  {
    var terms = SubscriptionTerms(
      periodStartMs: ms("2026-01-01"), expiresAtMs: ms("2026-01-31"))
    change(&terms)
    return terms
  }

  @Test func itIsActiveUntilItExpires() {
    let terms = Self.terms()
    expectEqual(terms.status(atMs: ms("2026-01-31") - 1), .active)
    expectEqual(terms.status(atMs: ms("2026-01-31")), .expired)
    expectEqual(terms.status(atMs: ms("2025-12-31")), .active, "whatever its start is")
  }

  @Test func graceFollowsUntilItsEnd() {
    let terms = Self.terms { $0.gracePeriodExpiresAtMs = ms("2026-02-05") }
    expectEqual(terms.status(atMs: ms("2026-01-31") - 1), .active)
    expectEqual(terms.status(atMs: ms("2026-01-31")), .gracePeriod)
    expectEqual(terms.status(atMs: ms("2026-02-05") - 1), .gracePeriod)
    expectEqual(terms.status(atMs: ms("2026-02-05")), .expired)
  }

  @Test func billingRetryLastsSixtyDaysAtMost() {
    let terms = Self.terms {
      $0.isInBillingRetry = true
      $0.renewalMs = ms("2026-01-31")
    }
    expectEqual(terms.status(atMs: ms("2026-01-31")), .billingRetry)
    // 60 days after 31 January.
    expectEqual(terms.status(atMs: ms("2026-04-01") - 1), .billingRetry)
    expectEqual(terms.status(atMs: ms("2026-04-01")), .expired)
  }

  @Test func graceComesBeforeBillingRetry() {
    let terms = Self.terms {
      $0.isInBillingRetry = true
      $0.renewalMs = ms("2026-01-31")
      $0.gracePeriodExpiresAtMs = ms("2026-02-05")
    }
    expectEqual(terms.status(atMs: ms("2026-02-04")), .gracePeriod)
    expectEqual(terms.status(atMs: ms("2026-02-05")), .billingRetry)
  }

  @Test func aBillingRetryOfAnEarlierPeriodCountsNoMore() {
    for (renewal, status) in [
      (ms("2026-01-01") - 1, Subscription.Status.expired), (ms("2026-01-01"), .billingRetry),
    ] {
      let terms = Self.terms {
        $0.isInBillingRetry = true
        $0.renewalMs = renewal
      }
      expectEqual(terms.status(atMs: ms("2026-02-01")), status)
    }
    let untimed = Self.terms { $0.isInBillingRetry = true }
    expectEqual(untimed.status(atMs: ms("2026-02-01")), .expired, "information without a time")
    let over = Self.terms {
      $0.isInBillingRetry = false
      $0.renewalMs = ms("2026-01-31")
    }
    expectEqual(over.status(atMs: ms("2026-02-01")), .expired)
  }

  @Test func aRevokedPeriodIsRevokedFromThatMomentOn() {
    let terms = Self.terms { $0.revokedAtMs = ms("2026-01-10") }
    expectEqual(terms.status(atMs: ms("2026-01-10") - 1), .active)
    expectEqual(terms.status(atMs: ms("2026-01-10")), .revoked)
    expectEqual(terms.status(atMs: ms("2027-01-01")), .revoked)
  }

  @Test func anUpgradedPeriodIsNotRevoked() {
    let terms = Self.terms {
      $0.revokedAtMs = ms("2026-01-10")
      $0.isUpgraded = true
    }
    expectEqual(terms.status(atMs: ms("2026-01-20")), .active)
    expectEqual(terms.status(atMs: ms("2026-02-01")), .expired)
  }
}

// Random events with signed objects, whose ids are those of the other random events.
import Base
import Ledger
import TestSupport

/// Makes uploads of signed transactions, notifications and fetched pages.
struct SignedHistory {
  var random: SeededRandom

  /// The app account tokens that transactions name.
  static let tokens = [accountToken(1), accountToken(2)]

  /// - Parameter user: the uploading user, in uploads that name one.
  mutating func step(user: String) -> TestEvent {
    switch random.below(4) {
    case 0, 1:
      let plans = (0..<random.below(3) + 1).map { _ in plan() }
      return .signedUpload(
        plans, country: random.pick(["DE", "US", nil]), user: random.pick([user, nil]),
        metadata: random.pick([
          nil, ["note": "free text", "price": "7.77", "currency": "EUR"],
          ["prices": [["product_id": "coins", "price": "cheap", "currency": "EUR"]]],
        ]),
        line: random.chance(percent: 50) ? "line \(random.next())" : nil,
        fraud: plans.contains { !$0.verdict.isValid } ? .signatureInvalid : nil)
    case 2:
      return .notification(
        random.pick(["DID_RENEW", "REFUND", "EXPIRED", "TEST"]), uuid: "\(UUID16.random())",
        random.chance(percent: 80) ? transaction() : nil,
        renewal: random.chance(percent: 60) ? renewal() : nil,
        about: ["consumptionRequestReason": "UNINTENDED_PURCHASE"],
        line: random.chance(percent: 30) ? "note \(random.next())" : nil)
    default:
      return .fetched(
        (0..<random.below(4)).map { _ in plan() },
        renewals: random.chance(percent: 50) ? [SignedObjectPlan(renewal())] : [],
        random.pick([.history, .statuses]), about: "\(random.below(12))")
    }
  }

  private mutating func plan() -> SignedObjectPlan {
    random.chance(percent: 90)
      ? SignedObjectPlan(transaction())
      : SignedObjectPlan(transaction(), .invalid(reason: "signature_invalid"))
  }

  private mutating func transaction() -> JSONText {
    let id = random.below(12)
    var members: [(String, JSONText)] = [
      ("appAccountToken", random.pick([.absent] + Self.tokens.map { JSONText(stringLiteral: $0) })),
      ("price", random.pick([.absent, 1990, 2990, "expensive", .null])),
      ("currency", random.pick(["EUR", "usd", "???", .absent])),
      ("quantity", random.pick([1, 2, "x", 12_345_678, .absent])),
      ("storefront", random.pick(["DEU", "USA", "Atlantis", .absent])),
      (
        "type",
        random.pick(["Auto-Renewable Subscription", "Consumable", "My own type", .absent])
      ),
      ("deviceVerification", "bm90aGluZw=="),
    ]
    if random.chance(percent: 30) {
      members.append(("offerType", random.pick([1, 2, 3])))
      members.append(("offerDiscountType", random.pick(["FREE_TRIAL", "PAY_AS_YOU_GO", .absent])))
      members.append(("offerIdentifier", "spring for Jane"))
    }
    if random.chance(percent: 40) {
      members.append(("expiresDate", random.pick([instant("2026-02-05"), "soon"])))
    }
    if random.chance(percent: 25) {
      members.append(("revocationDate", instant("2026-01-20")))
      members.append(("revocationReason", random.pick([0, 1, "she asked nicely, thrice"])))
      members.append(("revocationPercentage", random.pick([100_000, 50_000, 200_000, .absent])))
    }
    if random.chance(percent: 10) { members.append(("multiSeatInfo", ["seats": 5])) }
    if random.chance(percent: 15) {
      members.append(
        (
          "advancedCommerceInfo",
          [
            "items": [
              ["refunds": [["refundDate": instant("2026-01-21"), "refundAmount": 500]]],
              ["refunds": [["refundDate": "then", "refundAmount": 300]], "SKU": "for Jane"],
            ]
          ]
        ))
    }
    if random.chance(percent: 10) { members.append(("inAppOwnershipType", "FAMILY_SHARED")) }
    if random.chance(percent: 10) { members.append(("isUpgraded", true)) }
    return signed(
      "\(id)", of: random.pick([nil, "1"]), line: random.pick([nil, "\(70 + id)"]),
      product: random.pick(["coins", "pro"]), on: "2026-01-0\(random.below(9) + 1)",
      signed: "2026-01-\(random.below(9) + 10)", merging: members)
  }

  private mutating func renewal() -> JSONText {
    .object([
      ("originalTransactionId", JSONText(stringLiteral: "\(random.below(12))")),
      ("autoRenewProductId", random.pick(["pro", "coins"])),
      ("autoRenewStatus", random.pick([0, 1])),
      ("expirationIntent", random.pick([.absent, 1, "because of Jane Doe"])),
      ("isInBillingRetryPeriod", random.pick([.absent, true, false])),
      ("gracePeriodExpiresDate", random.pick([.absent, instant("2026-02-20")])),
      ("environment", random.pick(["Production", .absent])), ("signedDate", instant("2026-01-12")),
      ("appAccountToken", JSONText(stringLiteral: Self.tokens[0])),
    ])
  }
}

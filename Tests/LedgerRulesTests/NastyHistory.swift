// Random histories with events of all types, some malformed, of several groups that share nothing.
import Ledger
import Projections
import TestSupport

enum NastyHistory {
  /// The steps of a history with a few hundred events.
  static func steps(seed: UInt64, worldCount: Int, stepCount: Int) -> [TestEvent] {
    var random = SeededRandom(seed: seed &+ 77)
    var generator = HistoryGenerator(seed: seed, worldCount: worldCount)
    var steps: [TestEvent] = [
      .app(
        AppRegistered(
          appFamilyID: TestEvent.signedFamily, name: "App", bundleIDs: ["app"], products: [])),
      .rates(source: "bank", ["2026-01-01 EUR USD 1.2", "2026-01-01 EUR JPY 160"]),
    ]
    generator.passOver(2)
    for _ in 0..<stepCount {
      if random.chance(percent: 70) {
        steps += generator.steps(1)
      } else {
        steps.append(
          random.chance(percent: 85)
            ? signed(&random, world: random.below(worldCount)) : malformed(&random))
        generator.passOver(1)
      }
    }
    return steps
  }

  private static func transaction(_ random: inout SeededRandom, world: Int) -> JSONText {
    let id = world * 100 + random.below(12)
    var members: [(String, JSONText)] = []
    if random.chance(percent: 70) {
      members.append(("price", random.pick([9990, 4000, 0])))
      members.append(("currency", random.pick(["EUR", "USD"])))
    }
    if random.chance(percent: 40) {
      members.append(("storefront", random.pick(["DEU", "USA", "xx"])))
    }
    if random.chance(percent: 25) { members.append(("quantity", random.pick([2, 3, 0]))) }
    if random.chance(percent: 30) {
      members.append(("expiresDate", instant("2026-0\(random.below(4) + 1)-20")))
      members.append(("type", "Auto-Renewable Subscription"))
    }
    if random.chance(percent: 20) {
      members.append(("revocationDate", instant("2026-01-\(10 + random.below(10))")))
      if random.chance(percent: 50) {
        members.append(("revocationPercentage", random.pick([50000, 100_000])))
        members.append(("revocationType", random.pick(["REFUND_PRORATED", "REFUND_FULL"])))
      }
    }
    if random.chance(percent: 20) {
      members.append(
        ("appAccountToken", random.pick(["\(accountToken(1))", "\(accountToken(2))", "no UUID"])))
    }
    if random.chance(percent: 40) {
      members.append(("appTransactionId", "account\(world)\(random.below(3))"))
    }
    return TestSupport.signed(
      "\(id)", of: random.pick([nil, "\(world * 100 + 1)"]),
      line: random.pick([nil, "\(world * 100 + 70 + id % 100)"]),
      product: random.pick(["coins", "pro", "pro"]), on: "2026-01-0\(random.below(9) + 1)",
      signed: "2026-01-\(10 + random.below(20))", merging: members)
  }

  private static func renewal(_ random: inout SeededRandom, world: Int) -> JSONText {
    .object([
      ("originalTransactionId", "\(world * 100 + random.pick([1, 2, 3]))"),
      ("signedDate", instant("2026-01-\(10 + random.below(20))")),
      ("environment", random.pick(["Production", .absent])),
      ("autoRenewStatus", random.pick([0, 1])),
      ("autoRenewProductId", random.pick(["pro", .absent])),
      ("gracePeriodExpiresDate", random.pick([.absent, instant("2026-03-01")])),
    ])
  }

  private static func signed(_ random: inout SeededRandom, world: Int) -> TestEvent {
    let day = "2026-01-\(10 + random.below(20))"
    let plans = (0..<random.below(4)).map { _ in
      SignedObjectPlan(transaction(&random, world: world))
    }
    let renewal = random.chance(percent: 50) ? renewal(&random, world: world) : nil
    switch random.below(3) {
    case 0:
      return .signedUpload(
        plans, country: random.pick(["DE", "FR", nil]), user: random.pick(["u1", "u3", nil]),
        metadata: random.pick([nil, ["price": "3.00", "currency": "EUR"]]), at: day,
        fraud: random.chance(percent: 5) ? .bundleIDMismatch : nil)
    case 1:
      return .notification(
        random.pick(["DID_RENEW", "REFUND", "REFUND_REVERSED", "EXPIRED", "TEST"]),
        uuid: "uuid-\(random.next())", plans.first?.payload, renewal: renewal, at: day)
    default:
      return .fetched(
        plans, renewals: renewal.map { [SignedObjectPlan($0)] } ?? [],
        about: "\(world * 100 + random.below(12))", at: day)
    }
  }

  /// An event that names no event of the right kind, or lacks what its type must have.
  private static func malformed(_ random: inout SeededRandom) -> TestEvent {
    let time = #""occurred_at":"2026-01-10T00:00:00.000Z""#
    let verified = #""authority":"app_store","outcome":"valid","status":0,"attempt":1,"# + time
    return random.pick([
      .raw(type: "receipt.verified", JSONText(raw: #"{"upload":0,"# + verified + "}")),
      .raw(type: "receipt.verified", JSONText(raw: #"{"upload":999999,"# + verified + "}")),
      .raw(
        type: "receipt.verified",
        JSONText(raw: #"{"upload":999999,"# + verified + #","reply_of":1}"#)),
      .raw(type: "receipt.verified", JSONText(raw: #"{"upload":"x"}"#)),
      .raw(type: "receipt.uploaded", JSONText(raw: #"{"receipt_id":"x"}"#)),
      .raw(type: "transactions.received", JSONText(raw: "{}")),
      .raw(type: "prices.declared", JSONText(raw: #"{"entries":5}"#)),
    ])
  }
}

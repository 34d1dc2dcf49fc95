// Random histories of several ledgers that share users, receipts, transactions and notifications, and the one ledger
// that took the same events in the order of a merge.
import Base
import Ledger
import TestSupport
import Testing

struct RandomFleet {
  let shops: [Shop]
  let one: Shop
  private var generators: [HistoryGenerator]
  private var random: SeededRandom
  private var timeMs = ms("2026-02-01")
  /// For each shop, where its events stand in the one ledger.
  private var positions: [[Position]]
  private var notifications: Set<String> = []

  init(seed: UInt64, shopCount: Int) throws {
    random = SeededRandom(seed: seed)
    shops = try (1...shopCount).map { try Shop(UInt8($0)) }
    // The family of the first registration.
    one = try Shop(1)
    generators = (0..<shopCount).map { HistoryGenerator(seed: seed &+ UInt64($0) &* 1009) }
    positions = shops.map { _ in [] }
    // A merged ledger begins with an event of its own.
    let head = #"{"log":{"size":0,"root":"\#(Self.root)"}}"#
    try one.append(.raw(type: "history.accepted", JSONText(raw: head)), at: "2026-02-01")
    for index in shops.indices {
      generators[index].passOver(1)
      try append(.app(Self.app), to: index)
    }
  }

  private static let root = Base64.text(Array(repeating: 0, count: 32))
  private static let app = AppRegistered(
    appFamilyID: TestEvent.signedFamily, name: "App", bundleIDs: ["app", "zoo"], products: [])

  /// The first day after all events.
  var endTime: String { "2026-03-01" }

  mutating func run(stepCount: Int) throws {
    for _ in 0..<stepCount {
      let index = random.below(shops.count)
      if random.chance(percent: 25) {
        let step = signedStep(index)
        generators[index].passOver(step.count)
        try append(step, to: index)
      } else {
        for step in generators[index].steps(1) { try append(step, to: index) }
      }
    }
  }

  private mutating func append(_ step: TestEvent, to index: Int) throws {
    // Often several events of one time: then the order of the ledgers decides, so only the last may come again.
    timeMs += random.chance(percent: 30) ? 0 : Int64(random.below(5000) + 1)
    if index < lastIndex { timeMs += 1 }
    lastIndex = index
    var step = step
    if case .app = step { step = .app(Self.app) }
    let drafts = try genuine(step.drafts, shops[index].family)
    let position = try shops[index].append(drafts: drafts, atMs: timeMs)
    try #require(position == positions[index].count)
    if case .raw(let type, _, let data) = step, type == "notification.received",
      !notifications.insert(String(data.text.prefix(60))).inserted
    {
      positions[index].append(-1)
      return
    }
    let merged = try one.append(
      drafts: genuine(moved(step, index).drafts, one.family), atMs: timeMs)
    positions[index] += (0..<drafts.count).map { merged + $0 }
  }

  private var lastIndex = 0

  /// The step with positions of the one ledger.
  private func moved(_ step: TestEvent, _ index: Int) -> TestEvent {
    guard case .verified(var plan) = step else { return step }
    plan.upload = plan.upload.map { positions[index][$0] }
    if case .reused(let position) = plan.reply { plan.reply = .reused(positions[index][position]) }
    return .verified(plan)
  }

  private mutating func signedStep(_ index: Int) -> TestEvent {
    let transaction = signed(
      "\(random.below(12))", of: random.pick([nil, "1"]), line: "\(70 + random.below(12))",
      product: random.pick(["coins", "pro"]), on: "2026-01-0\(1 + random.below(8))",
      signed: "2026-01-\(10 + random.below(9))",
      [
        "price": random.pick([9990, 4000]), "currency": random.pick(["EUR", "USD"]),
        "appTransactionId": random.pick(["a1", "a2"]),
      ])
    switch random.below(3) {
    case 0: return .signedUpload(transaction, user: random.pick(["u1", "u2", nil]))
    case 1: return .fetched(transaction)
    default: return .notification("DID_RENEW", uuid: "n\(random.below(6))", transaction)
    }
  }
}

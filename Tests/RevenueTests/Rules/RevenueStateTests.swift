// A state saved and loaded: a fold goes on as if it had not stopped, and damaged bytes are refused.
import Base
import Revenue
import TestSupport
import Testing

@Suite struct RevenueStateTests {
  /// One step of a random history.
  private enum Step {
    case reply(JSONText, user: String, metadata: JSONText)
    case signed([JSONText], isUpload: Bool, user: String, metadata: JSONText)
    case price(product: String, micros: Int64, day: String)
    case renewal(JSONText)

    func apply(to books: Books) throws {
      switch self {
      case .reply(let reply, let user, let metadata):
        try books.add(reply, user: user, metadata: metadata)
      case .signed(let payloads, let isUpload, let user, let metadata):
        try books.add(
          signed: payloads, isUpload: isUpload, user: user, country: "FR", metadata: metadata)
      case .price(let product, let micros, let day):
        try books.declare(product, micros: micros, from: day)
      case .renewal(let payload): try books.add(renewal: payload)
      }
    }
  }

  private static func history(_ random: inout SeededRandom, count: Int) -> [Step] {
    func day() -> String { anyDay(&random) }
    return (0..<count).map { _ in
      let product = random.pick(["coins", "pass", "gems"])
      if random.chance(percent: 10) {
        return .price(product: product, micros: Int64(random.below(9)) * 990_000, day: day())
      }
      if random.chance(percent: 10) {
        return .renewal([
          "originalTransactionId": JSONText(stringLiteral: String(random.below(5))),
          "signedDate": instant(day()), "autoRenewStatus": random.pick([.absent, 0, 1]),
          "autoRenewProductId": random.pick([.absent, "gold"]),
          "expirationIntent": random.pick([.absent, 2]),
          "isInBillingRetryPeriod": random.pick([.absent, true, false]),
          "gracePeriodExpiresDate": random.pick([.absent, instant(day())]),
        ])
      }
      if random.chance(percent: 50) { return signedStep(&random) }
      let rows = (0...random.below(3)).map { _ in
        let transaction = String(random.below(12))
        return row(
          transaction, of: String(random.below(3)),
          line: random.chance(percent: 50) ? "w" + transaction : nil, product: product, on: day(),
          [
            "cancellation_date_ms": random.chance(percent: 25) ? date(day()) : .absent,
            "cancellation_reason": random.chance(percent: 50) ? "1" : .absent,
            "is_upgraded": random.chance(percent: 5) ? "true" : .absent,
            "is_trial_period": random.chance(percent: 10) ? "true" : .absent,
            "expires_date_ms": random.chance(percent: 50) ? date(day()) : .absent,
            "quantity": random.chance(percent: 10) ? "11" : "2",
          ])
      }
      let requested = random.chance(percent: 80) ? day() : nil
      let price: JSONText = random.pick([
        [:], shorthand("1.99"), shorthand("0"), shorthand("2", "?"),
      ])
      return .reply(
        reply(rows: rows, requested: requested), user: "u\(random.below(3))", metadata: price)
    }
  }

  private static func signedStep(_ random: inout SeededRandom) -> Step {
    func day() -> String { anyDay(&random) }
    let payloads = (0...random.below(3)).map { _ in
      let transaction = String(random.below(12))
      return signed(
        transaction, of: String(random.below(3)),
        line: random.chance(percent: 50) ? "w" + transaction : nil,
        product: random.pick(["coins", "pass"]), on: day(), signed: day(),
        [
          "quantity": random.pick([0, 1, 2, 3]),
          "price": random.pick([.absent, 0, 1990, 2990]), "currency": "EUR",
          "storefront": random.pick([.absent, "DEU", "???"]),
          "appAccountToken": random.pick([.absent, "\(accountToken(1))", "\(accountToken(2))"]),
          "appTransactionId": random.pick([.absent, "a1", "a2"]),
          "offerType": random.pick([.absent, .absent, 1, 2]),
          "offerDiscountType": random.pick([.absent, .absent, "FREE_TRIAL"]),
          "revocationDate": random.chance(percent: 40) ? instant(day()) : .absent,
          "expiresDate": random.chance(percent: 50) ? instant(day()) : .absent,
          "revocationPercentage": random.pick([.absent, 33333, 50000, 12345, 100000]),
          "isUpgraded": random.chance(percent: 5) ? true : .absent,
          "multiSeatInfo": random.chance(percent: 5) ? [:] : .absent,
          "advancedCommerceInfo": random.chance(percent: 10) ? advanced(&random) : .absent,
        ])
    }
    return .signed(
      payloads, isUpload: random.chance(percent: 70), user: "u\(random.below(3))",
      metadata: random.pick([[:], shorthand("1.99"), prices(entry(transaction: "1", "2.50"))]))
  }

  private static func anyDay(_ random: inout SeededRandom) -> String {
    "2026-0\(1 + random.below(9))-1\(random.below(10))"
  }

  private static func advanced(_ random: inout SeededRandom) -> JSONText {
    let refunds = (0..<random.below(3)).map { _ -> JSONText in
      [
        "refundAmount": random.pick([.absent, 500, 1000, 5000]),
        "refundDate": instant(anyDay(&random)),
      ]
    }
    return ["items": [["refunds": .array(refunds)]]]
  }

  private static func load(_ bytes: [UInt8]) throws -> RevenueState {
    try bytes.withUnsafeBytes { try RevenueState.load($0) }
  }

  /// Replaces the digest at the end by the right one.
  private static func sealed(_ content: some Collection<UInt8>) -> [UInt8] {
    let content = Array(content)
    return content + content.withUnsafeBytes { SHA256.hash($0) }.bytes
  }

  @Test func aFoldGoesOnFromEveryCut() throws {
    var random = SeededRandom()
    var steps: [Step] = []
    var whole = Books()
    // A few of a thousand histories have no Reversal, and would test less.
    repeat {
      steps = Self.history(&random, count: 60)
      whole = Books()
      for step in steps { try step.apply(to: whole) }
    } while !whole.lines().contains { $0.hasPrefix("Reversal") }
    #expect(!whole.exceptions.isEmpty && !whole.subscriptions().isEmpty)
    for cut in 0...steps.count {
      let first = Books()
      for step in steps[..<cut] { try step.apply(to: first) }
      let saved = first.state.save()
      let state = try Self.load(saved)
      #expect(state.save() == saved, "seed \(random.seed), cut \(cut)")
      let second = Books(state, position: first.position)
      for step in steps[cut...] { try step.apply(to: second) }
      #expect(second.lines() == whole.lines(), "seed \(random.seed), cut \(cut)")
      #expect(second.exceptions == whole.exceptions, "seed \(random.seed), cut \(cut)")
      #expect(second.subscriptions() == whole.subscriptions(), "seed \(random.seed), cut \(cut)")
      #expect(second.periodEnds() == whole.periodEnds(), "seed \(random.seed), cut \(cut)")
      #expect(second.state.save() == whole.state.save(), "seed \(random.seed), cut \(cut)")
    }
  }

  @Test func everyTruncationAndEveryFlippedByteIsRefused() throws {
    var random = SeededRandom()
    let books = Books()
    for step in Self.history(&random, count: 12) { try step.apply(to: books) }
    let saved = books.state.save()
    for count in saved.indices {
      #expect(throws: RevenueStateError.self, "seed \(random.seed), \(count) bytes") {
        try Self.load(Array(saved[..<count]))
      }
      var flipped = saved
      flipped[count] ^= UInt8(1 << random.below(8))
      #expect(throws: RevenueStateError.self, "seed \(random.seed), byte \(count)") {
        try Self.load(flipped)
      }
    }
  }

  /// What fits its digest is refused or is a state that can be folded into.
  @Test func hostileBytesWithTheRightDigestNeverTrap() throws {
    var random = SeededRandom()
    let books = Books()
    let steps = Self.history(&random, count: 20)
    for step in steps { try step.apply(to: books) }
    let content = books.state.save().dropLast(32)
    var refusedCount = 0
    for round in 0..<3000 {
      var bytes = Array(content)
      if round.isMultiple(of: 4) { bytes.removeLast(random.below(bytes.count - 5)) }
      for _ in 0...random.below(3) {
        bytes[5 + random.below(bytes.count - 5)] = UInt8(random.below(256))
      }
      do {
        let state = try Self.load(Self.sealed(bytes))
        let resumed = Books(state, position: books.position)
        for step in steps.suffix(3) { try step.apply(to: resumed) }
        _ = resumed.lines()
        _ = state.save()
      } catch is RevenueStateError {
        refusedCount += 1
      }
    }
    #expect(refusedCount > 0, "seed \(random.seed)")
  }

  @Test func whatIsNoStateIsRefusedWithItsCause() {
    func expect(_ bytes: [UInt8], _ error: RevenueStateError) {
      #expect(throws: error) { try Self.load(bytes) }
    }
    expect([], .notState)
    expect(Array("SQLite format 3".utf8), .notState)
    expect(Array("RLRS".utf8), .damaged)
    expect(Self.sealed(Array("RLRS".utf8) + [3]), .unknownVersion(3))
    expect(Self.sealed(Array("RLRS".utf8) + [6]), .inconsistent)
    // A count far above what the bytes can hold allocates nothing.
    expect(
      Self.sealed(Array("RLRS".utf8) + [6, 0xFE, 0xFF, 0xFF, 0xFF, 0x0F]), .inconsistent)
  }
}

// Rule R12: whatever the order in which a sale's statements arrive, its net is that of their order in time.
import Base
import Revenue
import TestSupport
import Testing

@Suite("Refunds, whatever the order of arrival") struct RefundOrderTests {
  // MARK: By hand

  @Test(arguments: late)
  func aLateStatementMakesUpTheDifference(_ rule: LoneRule) throws {
    let books = Books()
    try rule.steps(books)
    if let lines = rule.lines { expectEqual(books.lines(), lines) }
    expectEqual(books.exceptions, rule.exceptions)
  }

  private typealias Signed = RefundRulesTests
  private static let sale = RefundRulesTests.sale

  private static func upgraded(_ day: String, to books: Books) throws {
    try books.add(
      reply(row("1", ["quantity": "3", "is_upgraded": "true"]), requested: day), on: day)
  }

  private static let late = [
    LoneRule(
      description: "a reply that is older than the one without the cancellation changes nothing",
      steps: {
        try Signed.reply(nil, "2026-01-12", to: $0)
        try Signed.reply("2026-01-08", "2026-01-10", to: $0)
      },
      lines: ["Sale 1 2026-01-05 3 -"]),
    LoneRule(
      description: "a reply without a time has that of its cancellation, or comes first",
      steps: {
        try $0.add(reply(Signed.repliedRow("2026-01-08")), on: "2026-01-20")
        try $0.add(reply(Signed.repliedRow(nil)), on: "2026-01-21")
        try Signed.reply(nil, "2026-01-09", to: $0)
      },
      lines: [
        "Sale 1 2026-01-05 3 -", "Return 1 2026-01-08 -3 -", "Reversal 1 2026-01-09 3 -",
      ]),
    LoneRule(
      description: "a late Reversal in the past takes away what rests on nothing newer",
      steps: {
        try $0.add(signed: [Signed.refunded("2026-01-09", 33333)])
        try Signed.reply("2026-01-10", "2026-01-11", to: $0)
        try Signed.reply(nil, "2026-01-10", to: $0)
      },
      // The newer reply's cancellation is of all units, with or without earlier ones.
      lines: [sale, "Return 1 2026-01-08 -1 -3.33", "Return 1 2026-01-10 -2 -6.67"]),
    LoneRule(
      description: "a late upgrade takes back what a newer reply had returned",
      steps: {
        try Signed.reply("2026-01-08", "2026-01-10", to: $0)
        try upgraded("2026-01-09", to: $0)
      },
      lines: [
        "Sale 1 2026-01-05 3 -", "Return 1 2026-01-08 -3 -", "Reversal 1 2026-01-09 3 -",
      ], exceptions: ["upgrade_credit_unknown "]),
    LoneRule(
      description: "a late upgrade leaves what an older reply had returned",
      steps: {
        try Signed.reply("2026-01-08", "2026-01-09", to: $0)
        try upgraded("2026-01-10", to: $0)
      },
      // The reply of the upgrade shows the sale without its cancellation.
      lines: [
        "Sale 1 2026-01-05 3 -", "Return 1 2026-01-08 -3 -", "Reversal 1 2026-01-10 3 -",
      ]),
    LoneRule(
      description: "sums that come late replace a share that was booked after their time",
      steps: {
        try $0.add(signed: [Signed.refunded("2026-01-12", 33333)])
        try $0.add(signed: [Signed.advanced("2026-01-09", [Signed.part(5000, "2026-01-07")])])
      },
      lines: [
        sale, "Return 1 2026-01-08 -1 -3.33", "Reversal 1 2026-01-09 1 3.33",
        "Return 1 2026-01-07 0 -5",
      ]),
    LoneRule(
      description: "sums of an older date beside a newer share of all on top change nothing",
      steps: {
        try $0.add(signed: [Signed.three("2026-01-07")])
        try Signed.reply("2026-01-10", "2026-01-11", to: $0)
        try $0.add(signed: [Signed.advanced("2026-01-09", [Signed.part(5000, "2026-01-08")])])
        try $0.add(signed: [Signed.advanced("2026-01-12", [Signed.part(5000, "2026-01-08")])])
      },
      lines: [sale, "Return 1 2026-01-10 -3 -10", "Reversal 1 2026-01-12 3 5"]),
    LoneRule(
      description: "sums that fell beside an assumed share of all are reversed once it falls",
      steps: {
        let sums = [Signed.part(5000, "2026-01-07"), Signed.part(5000, "2026-01-06")]
        try $0.add(signed: [Signed.advanced("2026-01-12", sums)])
        try Signed.reply("2026-01-08", "2026-01-24", to: $0)
        try $0.add(signed: [Signed.advanced("2026-01-18", [Signed.part(2000, "2026-01-06")])])
        try $0.add(signed: [Signed.refunded("2026-01-10", 33333)])
      },
      lines: [
        sale, "Return 1 2026-01-06 0 -5", "Return 1 2026-01-07 -3 -5", "Return 1 2026-01-08 0 0",
        "Reversal 1 2026-01-18 3 8",
      ]),
    LoneRule(
      description: "sums that went beside an assumed share of all are reversed once it falls",
      steps: {
        try $0.add(signed: [Signed.advanced("2026-01-12", [Signed.part(5000, "2026-01-07")])])
        try Signed.reply("2026-01-08", "2026-01-24", to: $0)
        try $0.add(signed: [Signed.advanced("2026-01-18", [])])
        try $0.add(signed: [Signed.refunded("2026-01-10", 0)])
      },
      lines: [
        sale, "Return 1 2026-01-07 0 -5", "Return 1 2026-01-08 0 0",
        "Reversal 1 2026-01-18 0 5",
      ]),
  ]

  /// The example of docs/revenue.md.
  @Test(
    "Three statements, in the order of arrival",
    arguments: [
      ([8, 10, 12], ["Return -4.99", "Reversal 4.99", "Return -4.99"]),
      ([12, 10, 8], ["Return -4.99"]), ([8, 12, 10], ["Return -4.99"]),
      ([10, 8, 12], ["Return -4.99"]),
    ])
  func threeStatements(days: [Int], lines: [String]) throws {
    let books = Books()
    for day in days {
      let time = Statement.date(day)
      if day == 10 {
        try books.add(signed: [
          signed("1", signed: time, ["quantity": 1, "price": 4990, "currency": "EUR"])
        ])
      } else {
        let cancelled = row("1", ["cancellation_date_ms": date("2026-02-07")])
        try books.add(reply(cancelled, requested: time), on: time)
      }
    }
    expectEqual(
      books.lines().dropFirst().map { line in
        let words = line.split(separator: " ")
        return "\(words[0]) \(words[4])"
      }, lines)
    try expectEqual(net(books), 0)
  }

  // MARK: In every order

  /// A statement of a story. All days differ, and so do the times.
  private struct Statement {
    var day: Int
    var isReply: Bool
    var isTimed = true
    var members: Members = [:]

    func apply(to books: Books) throws {
      let day = Self.date(day)
      if isReply {
        let row = row("1", merging: [("quantity", "3")] + members.map { ($0.key, $0.value) })
        try books.add(reply(row, requested: isTimed ? day : nil), on: "2026-03-01")
      } else {
        try books.add(signed: [RefundRulesTests.three(day, members)])
      }
    }

    /// Day 1 is the first of February.
    static func date(_ day: Int) -> String {
      CivilDate(dayNumber: Int(ms("2026-01-31") / 86_400_000) + day).description
    }
  }

  private static func story(_ random: inout SeededRandom, count: Int) -> [Statement] {
    let days = Array((10..<10 + max(16, count)).shuffled(using: &random).prefix(count))
    let upgradeDay = random.chance(percent: 20) ? 10 + random.below(16) : .max
    return days.map { day in
      func refundDate() -> String { Statement.date(1 + random.below(3)) }
      // A sale that Apple once marked as upgraded stays marked.
      let upgrade: JSONText = day >= upgradeDay ? true : .absent
      if random.chance(percent: 45) {
        // A reply without a time has that of its cancellation.
        let isTimed = random.chance(percent: 85)
        let date = isTimed ? refundDate() : Statement.date(day)
        let cancelled = !isTimed || random.chance(percent: 60)
        return Statement(
          day: day, isReply: true, isTimed: isTimed,
          members: [
            "cancellation_date_ms": cancelled ? TestSupport.date(date) : .absent,
            "is_upgraded": upgrade,
          ])
      }
      if random.chance(percent: 25) {
        let parts = (0..<random.below(3)).map { _ in
          RefundRulesTests.part(random.pick([2000, 5000, 9000]), refundDate())
        }
        return Statement(
          day: day, isReply: false,
          members: [
            "advancedCommerceInfo": ["items": [["refunds": .array(parts)]]], "isUpgraded": upgrade,
          ])
      }
      return Statement(
        day: day, isReply: false,
        members: [
          "revocationDate": random.chance(percent: 60) ? instant(refundDate()) : .absent,
          "revocationPercentage": random.pick([.absent, 0, 33333, 50000, 66667, 100_000]),
          "isUpgraded": upgrade,
        ])
    }
  }

  /// All orders of some numbers.
  private static func orders(_ count: Int) -> [[Int]] {
    if count == 0 { return [[]] }
    return orders(count - 1).flatMap { order in
      (0...order.count).map { place in
        var longer = order
        longer.insert(count - 1, at: place)
        return longer
      }
    }
  }

  private func net(_ books: Books) throws -> Int64? {
    var net: Int64? = 0
    for sale in books.state.store.sales {
      books.state.store.forEachJournalLine(of: sale) { line in
        net = line.amountMicros.map { (net ?? 0) + $0 }
        if line.type == .return {
          #expect(line.quantity <= 0 && line.amountMicros ?? 0 <= 0)
        } else {
          #expect(line.quantity >= 0 && line.amountMicros ?? 0 >= 0)
        }
      }
    }
    return net
  }

  @Test func aStoryHasOneNetInEveryOrder() throws {
    var random = SeededRandom()
    var nets: Set<Int64?> = []
    for story in 0..<60 {
      // Six have 720 orders.
      let count = story.isMultiple(of: 10) ? 6 : 3 + random.below(2)
      let statements = Self.story(&random, count: count)
      var expected: Int64??
      for order in Self.orders(count) {
        let books = Books()
        for number in order { try statements[number].apply(to: books) }
        let net = try net(books)
        if expected == nil { expected = .some(net) }
        guard net != expected ?? nil else { continue }
        Issue.record(
          """
          seed \(random.seed), story \(story), order \(order): \(net ?? -1), \
          not \((expected ?? nil) ?? -1): \(statements)\n\(books.lines())
          """)
        return
      }
      nets.insert(expected ?? nil)
    }
    #expect(nets.count > 4, "seed \(random.seed): stories that all end alike test little")
  }

  /// Long ones, of which much is dropped.
  @Test func aLongStoryHasOneNetInRandomOrders() throws {
    var random = SeededRandom()
    for story in 0..<20 {
      let statements = Self.story(&random, count: 90)
      let inTime = Books()
      for statement in statements.sorted(by: { $0.day < $1.day }) {
        try statement.apply(to: inTime)
      }
      for _ in 0..<4 {
        let books = Books()
        for statement in statements.shuffled(using: &random) { try statement.apply(to: books) }
        try expectEqual(net(books), net(inTime), "seed \(random.seed), story \(story)")
      }
    }
  }

  @Test func whatIsStoredBetweenStatementsChangesNothing() throws {
    var random = SeededRandom()
    for story in 0..<60 {
      let statements = Self.story(&random, count: 6)
      let (whole, parts) = (Books(), Books())
      for statement in statements {
        try statement.apply(to: whole)
        try statement.apply(to: parts)
        let store = parts.state.store
        for place in store.sales.indices {
          guard let history = store.refunds(of: place) else { continue }
          let stored = history.stored
          let read = try #require(Self.history(stored, store.arena))
          expectEqual(read.stored, stored, "seed \(random.seed), story \(story)")
          store.setRefunds(of: place, read)
        }
      }
      expectEqual(parts.lines(), whole.lines(), "seed \(random.seed), story \(story)")
      expectEqual(parts.exceptions, whole.exceptions, "seed \(random.seed), story \(story)")
    }
  }

  private static func history(_ bytes: [UInt8], _ arena: TextArena) -> RefundHistory? {
    bytes.withUnsafeBytes { RefundHistory(stored: $0, arena) }
  }

  @Test func whatIsStoredAndDamagedIsRefusedOrGivesAHistory() throws {
    var random = SeededRandom()
    let books = Books()
    for statement in Self.story(&random, count: 12) { try statement.apply(to: books) }
    try books.add(signed: [Signed.refunded("2026-01-09", 33333)])
    let arena = books.state.store.arena
    let stored = try #require(books.state.store.refunds(of: 0)).stored
    for count in stored.indices {
      let part = Array(stored[..<count])
      #expect(Self.history(part, arena) == nil, "seed \(random.seed), \(count) bytes")
    }
    #expect(Self.history(stored + [0], arena) == nil)
    // A count far above what the bytes can hold allocates nothing.
    #expect(Self.history([0xFE, 0xFF, 0xFF, 0xFF, 0x0F], arena) == nil)
    for _ in 0..<3000 {
      var bytes = stored
      for _ in 0...random.below(3) {
        bytes[random.below(bytes.count)] = UInt8(random.below(256))
      }
      if let history = Self.history(bytes, arena) { #expect(!history.stored.isEmpty) }
    }
  }

  // MARK: Kept statements

  @Test func statementsThatRepeatAreDroppedAndTheTotalStays() throws {
    let books = Books()
    try books.add(signed: [Signed.refunded("2026-01-09", 33333)])
    for day in 10..<90 {
      let time = "2026-0\(1 + day / 28)-\(10 + day % 28 % 19)T0\(day % 10):00:00Z"
      if day.isMultiple(of: 2) {
        try books.add(signed: [Signed.refunded(time, 33333)])
      } else {
        try Signed.reply("2026-01-08", time, to: books)
      }
    }
    expectEqual(books.lines(), [Self.sale, "Return 1 2026-01-08 -1 -3.33"])
    let history = try #require(books.state.store.refunds(of: 0))
    #expect(history.count <= RefundHistory.countKept)
    try Signed.reply(nil, "2026-06-01", to: books)
    expectEqual(books.lines().last, "Reversal 1 2026-06-01 1 3.33")
  }

  @Test func aSaleThatWasNeverRefundedKeepsNoStatement() throws {
    let books = Books()
    for day in 10..<20 {
      try books.add(signed: [Signed.three("2026-01-\(day)")])
      try Signed.reply(nil, "2026-01-\(day)", to: books)
    }
    #expect(books.state.store.refunds(of: 0) == nil)
  }
}

// Rule R6, users by Apple Account: sentence by sentence by hand, and random histories against the text.
import Base
import Revenue
import TestSupport
import Testing

@Suite("Rule R6, Apple Accounts") struct AccountRulesTests {
  /// A history, and the owners of the sales after it.
  struct Case: CustomTestStringConvertible {
    let testDescription: String
    let steps: @Sendable (Books) throws -> Void
    let owners: [String]
    let exceptions: [String]

    init(
      _ description: String, _ owners: [String], exceptions: [String] = [],
      _ steps: @escaping @Sendable (Books) throws -> Void
    ) {
      (testDescription, self.owners, self.exceptions) = (description, owners, exceptions)
      self.steps = steps
    }
  }

  @Test(arguments: linked + unlinked + erased) func salesHaveTheUserOfTheirAccount(
    _ example: Case
  ) throws {
    let books = Books()
    try example.steps(books)
    try expectEqual(books.owners(), example.owners)
    expectEqual(books.exceptions, example.exceptions)
  }

  private static func of(
    _ account: String?, _ transaction: String, token: String? = nil, _ members: Members = [:]
  ) -> JSONText {
    signed(
      transaction,
      merging: [
        ("appTransactionId", account.map { JSONText(stringLiteral: $0) } ?? .absent),
        ("appAccountToken", token.map { JSONText(stringLiteral: $0) } ?? .absent),
      ] + members.map { ($0.key, $0.value) })
  }

  /// A period of the subscription 7.
  private static func period(
    _ transaction: String, _ account: String?, token: String? = nil, on day: String = "2026-01-05"
  ) -> JSONText {
    signed(
      transaction, of: "7", line: "w\(transaction)", product: "pass", on: day,
      merging: [
        ("appTransactionId", account.map { JSONText(stringLiteral: $0) } ?? .absent),
        ("appAccountToken", token.map { JSONText(stringLiteral: $0) } ?? .absent),
        ("expiresDate", instant("2026-02-05")), ("type", "Auto-Renewable Subscription"),
      ])
  }

  private static let linked = [
    Case(
      "a notified sale has the user whose upload showed another of the account",
      [
        "1 u upload 0", "2 u account 0",
      ]
    ) {
      try $0.add(signed: [of("A", "1")], user: "u")
      try $0.add(signed: [of("A", "2")], isUpload: false)
    },
    Case(
      "an upload that comes later gives an earlier sale its user",
      [
        "1 u account 1", "2 u upload 1",
      ]
    ) {
      try $0.add(signed: [of("A", "1")], isUpload: false)
      try $0.add(signed: [of("A", "2")], user: "u")
    },
    Case(
      "a statement that comes later tells the account of either sale",
      [
        "1 u upload 0", "2 u account 0",
      ]
    ) {
      try $0.add(reply(row("1")), user: "u")
      try $0.add(signed: [of(nil, "2")], isUpload: false)
      try $0.add(signed: [of("A", "2")], isUpload: false)
      try $0.add(signed: [of("A", "1")], isUpload: false)
    },
    Case("the first account of a sale counts", ["1 u upload 0", "2 v account 2", "3 v upload 2"]) {
      try $0.add(signed: [of("A", "1")], user: "u")
      try $0.add(signed: [of("B", "2"), of("A", "2")], isUpload: false)
      try $0.add(signed: [of("B", "3")], user: "v")
    },
    Case(
      "the position is that of the first upload with a user",
      [
        "1 -  -1", "2 u account 2", "3 u upload 2", "4 u upload 3",
      ]
    ) {
      try $0.add(signed: [of("B", "1")], user: nil)
      try $0.add(signed: [of("A", "2")], user: nil)
      try $0.add(signed: [of("A", "3")], user: "u")
      try $0.add(signed: [of("A", "4")], user: "u")
    },
    Case(
      "an account outranks a token, and comes back to it where it links no more",
      [
        "1 u upload 0", "2 token:\(accountToken(1)) token 1", "3 v upload 2",
      ]
    ) {
      try $0.add(signed: [of("A", "1")], user: "u")
      try $0.add(signed: [of("A", "2", token: accountToken(1))], isUpload: false)
      try expectEqual($0.owners()[1], "2 u account 0")
      try $0.add(signed: [of("A", "3")], user: "v")
    },
    Case(
      "a subscription has the user of the first account of its periods",
      [
        "1 u upload 0", "w8 u account 0", "w9 u account 0", "of 7 u account 0",
      ]
    ) {
      try $0.add(signed: [of("A", "1")], user: "u")
      try $0.add(signed: [period("8", "A")], isUpload: false)
      try $0.add(signed: [period("9", "A", on: "2026-02-05")], isUpload: false)
    },
    Case(
      "a period by another account stays the subscription's by the first",
      [
        "1 u upload 0", "2 v upload 1", "w8 u account 0", "w9 v account 1", "of 7 u account 0",
      ]
    ) {
      try $0.add(signed: [of("A", "1")], user: "u")
      try $0.add(signed: [of("B", "2")], user: "v")
      try $0.add(signed: [period("8", "A")], isUpload: false)
      try $0.add(signed: [period("9", "B", on: "2026-02-05")], isUpload: false)
    },
  ]

  private static let unlinked = [
    Case("two users of one account link nothing", ["1 u upload 0", "2 -  -1", "3 v upload 2"]) {
      try $0.add(signed: [of("A", "1")], user: "u")
      try $0.add(signed: [of("A", "2")], isUpload: false)
      try $0.add(signed: [of("A", "3")], user: "v")
    },
    Case(
      "two users of one sale are two of its account, before it is known or after",
      [
        "1 u upload 0", "2 -  -1",
      ], exceptions: ["claimed_by_other_user v"]
    ) {
      try $0.add(reply(row("1")), user: "u")
      try $0.add(reply(row("1")), user: "v")
      try $0.add(signed: [of("A", "1"), of("A", "2")], isUpload: false)
    },
    Case(
      "another environment or app has other accounts",
      [
        "1 u upload 0", "2 -  -1", "3 -  -1",
      ]
    ) {
      try $0.add(signed: [of("A", "1")], user: "u")
      try $0.add(
        signed: [
          of("A", "2", ["environment": "Sandbox"]), of("A", "3", ["bundleId": "other"]),
        ], isUpload: false)
    },
    Case(
      "a token that differs from the first of an uploaded sale keeps a sale apart",
      [
        "1 u upload 0", "2 token:\(accountToken(2)) token 1", "3 u account 0", "4 u account 0",
      ]
    ) {
      try $0.add(signed: [of("A", "1", token: accountToken(1))], user: "u")
      try $0.add(
        signed: [
          of("A", "2", token: accountToken(2)), of("A", "3", token: accountToken(1)), of("A", "4"),
        ], isUpload: false)
    },
    Case(
      "with two tokens among the uploaded sales, one of them differs",
      [
        "1 u upload 0", "2 u upload 1", "3 token:\(accountToken(1)) token 2", "4 u account 0",
      ]
    ) {
      try $0.add(signed: [of("A", "1", token: accountToken(1))], user: "u")
      try $0.add(signed: [of("A", "2", token: accountToken(2))], user: "u")
      try $0.add(
        signed: [of("A", "3", token: accountToken(1)), of("A", "4")], isUpload: false)
    },
    Case(
      "the token of a sale that no upload with a user shows keeps nothing apart",
      [
        "1 u upload 0", "2 u account 0", "3 u account 0",
      ]
    ) {
      try $0.add(signed: [of("A", "1")], user: "u")
      try $0.add(signed: [of("A", "2", token: accountToken(1))], isUpload: false)
      try $0.add(signed: [of("A", "3", token: accountToken(2))], isUpload: false)
    },
    Case(
      "a token that an uploaded sale shows later counts too, its first",
      [
        "1 u upload 0", "2 token:\(accountToken(2)) token 1",
      ]
    ) {
      try $0.add(signed: [of("A", "1")], user: "u")
      try $0.add(signed: [of("A", "2", token: accountToken(2).uppercased())], isUpload: false)
      try $0.add(signed: [of("A", "1", token: accountToken(1))], isUpload: false)
      try $0.add(signed: [of("A", "1", token: accountToken(2))], isUpload: false)
    },
    Case(
      "a subscription's first token is compared, whatever later periods have",
      [
        "1 u upload 0", "w8 token:\(accountToken(2)) token 1", "w9 u account 0",
        "of 7 token:\(accountToken(2)) token 1",
      ]
    ) {
      try $0.add(signed: [of("A", "1", token: accountToken(1))], user: "u")
      try $0.add(signed: [period("8", "A", token: accountToken(2))], isUpload: false)
      try $0.add(
        signed: [period("9", "A", token: accountToken(1), on: "2026-02-05")], isUpload: false)
    },
  ]

  private static let erased = [
    Case(
      "the account of an erased user stays theirs, whoever uploads the sale after",
      [
        "1 (redacted 2) upload 0", "2 (redacted 2) account 0",
      ]
    ) {
      try $0.add(signed: [of("(redacted 2)", "1")], user: "(redacted 2)")
      try $0.add(signed: [of("(redacted 2)", "2")], isUpload: false)
      // The event of the erasure.
      try $0.add(renewal: [:])
      try $0.add(signed: [of("A", "1")], user: "v")
    },
    Case(
      "after an erasure the account is that of whoever uploads next, from then on",
      [
        "1 (redacted 2) upload 0", "2 (redacted 2) account 0", "3 v upload 3", "4 v account 3",
      ]
    ) {
      try $0.add(signed: [of("A", "1")], user: "(redacted 2)")
      try $0.add(signed: [of("A", "2")], isUpload: false)
      try $0.add(renewal: [:])
      try $0.add(signed: [of("A", "3")], user: "v")
      try $0.add(signed: [of("A", "4")], isUpload: false)
    },
    Case(
      "an erased user beside another holds the account until that one's next upload",
      [
        "1 u upload 0", "2 (redacted 2) upload 1", "3 -  -1", "4 u upload 4", "5 u account 4",
      ]
    ) {
      try $0.add(signed: [of("A", "1")], user: "u")
      try $0.add(signed: [of("A", "2")], user: "(redacted 2)")
      try $0.add(renewal: [:])
      try $0.add(signed: [of("A", "3")], isUpload: false)
      try $0.add(signed: [of("A", "4")], user: "u")
      try $0.add(signed: [of("A", "5")], isUpload: false)
    },
  ]

  // MARK: Against the text

  /// A statement about a sale, with what the text needs.
  private struct Said {
    var sale: Int
    var account: String?
    var token: String?
    var user: String?
    var position: Int
  }

  /// The owners of sales 0 to 5, straight from the text; for histories without erasures.
  private static func owners(_ said: [Said]) -> [Int: String] {
    func first<Value>(_ sale: Int, _ value: (Said) -> Value?) -> (Value, Int)? {
      for one in said where one.sale == sale {
        if let value = value(one) { return (value, one.position) }
      }
      return nil
    }
    var owners: [Int: String] = [:]
    for sale in Set(said.map(\.sale)) {
      let token = first(sale) { $0.token }
      if let (user, position) = first(sale, { $0.user }) {
        owners[sale] = "\(sale) \(user) upload \(position)"
        continue
      }
      owners[sale] = token.map { "\(sale) token:\($0.0) token \($0.1)" } ?? "\(sale) -  -1"
      guard let account = first(sale, { $0.account })?.0 else { continue }
      let uploads = said.filter { one in
        one.user != nil && first(one.sale) { $0.account }?.0 == account
      }
      guard let earliest = uploads.min(by: { $0.position < $1.position }), let user = earliest.user,
        uploads.allSatisfy({ $0.user == user })
      else { continue }
      let tokens = uploads.compactMap { one in first(one.sale) { $0.token }?.0 }
      if let token, tokens.contains(where: { $0 != token.0 }) { continue }
      owners[sale] = "\(sale) \(user) account \(earliest.position)"
    }
    return owners
  }

  @Test func randomHistoriesGiveWhatTheTextSays() throws {
    var random = SeededRandom()
    var linked = 0
    // In 300 histories, chance once linked only 100 sales.
    for _ in 0..<600 {
      let books = Books()
      var said: [Said] = []
      for _ in 0..<random.below(14) {
        let user: String? = random.chance(percent: 40) ? random.pick(["u", "u", "u", "v"]) : nil
        var payloads: [JSONText] = []
        for _ in 0...random.below(2) {
          let one = Said(
            sale: random.below(6), account: random.pick([nil, "A", "A", "B"]),
            token: random.pick([nil, nil, nil, accountToken(1), accountToken(2)]), user: user,
            position: books.position)
          said.append(one)
          payloads.append(Self.of(one.account, "\(one.sale)", token: one.token))
        }
        try books.add(signed: payloads, isUpload: user != nil, user: user)
        if random.chance(percent: 20) { _ = try books.owners() }
      }
      let expected = Self.owners(said)
      let found = try books.owners().filter { !$0.hasPrefix("of ") }
      expectEqual(found.sorted(), expected.values.sorted(), "seed \(random.seed)")
      linked += found.count { $0.contains(" account ") }
    }
    #expect(linked > 100, "seed \(random.seed)")
  }
}

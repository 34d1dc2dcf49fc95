// Rule R6 in reports and responses: users by Apple Account, and users that are tokens in either case.
import Base
import Ledger
import Projections
import Revenue
import TestSupport
import Testing

@Suite struct AccountUserTests {
  private static let app = LiveProjectionsTests.app([])

  @Test(arguments: users) func reports(_ rule: RuleCase) throws { try rule.check() }

  /// A purchase of an Apple Account.
  private static func bought(
    _ transaction: String, of account: String = "A", _ members: Members = [:]
  ) -> JSONText {
    signed(
      transaction,
      merging: [
        ("appTransactionId", JSONText(stringLiteral: account)), ("price", 1000),
        ("currency", "EUR"),
      ] + members.map { ($0.key, $0.value) })
  }

  /// A month of a subscription of an Apple Account.
  private static func month(
    _ transaction: String, _ product: String, of account: String = "A"
  ) -> JSONText {
    signed(
      transaction, line: "w\(transaction)", product: product,
      merging: [
        ("appTransactionId", JSONText(stringLiteral: account)),
        ("expiresDate", instant("2026-02-05")), ("type", "Auto-Renewable Subscription"),
        ("price", 5000), ("currency", "EUR"),
      ])
  }

  private static func notified(_ uuid: String, _ payload: JSONText) -> TestEvent {
    .notification("ONE_TIME_CHARGE", uuid: uuid, payload)
  }

  private static let whose = "sales sale_key,user_identifier,user_position,user_basis"
  private static let token: Members = ["appAccountToken": "\(accountToken(1))"]

  private static let users = [
    RuleCase(
      "R6: what a history shows of an account is its user's, with the first upload's position",
      [
        app, .fetched(bought("1"), month("2", "pass")),
        .signedUpload(bought("3"), user: "anna"), .signedUpload(bought("4"), user: "anna"),
      ],
      [
        whose: ["1,anna,2,account", "3,anna,2,upload", "4,anna,3,upload", "w2,anna,2,account"],
        "users user_identifier,uploads,sales,net": ["anna,2,4,8.00 EUR"],
        "subscriptions original_transaction_id,user_identifier": ["2,anna"],
        "journal sale_key,user_identifier --user anna": ["1,anna", "3,anna", "4,anna", "w2,anna"],
        "revenue --user anna": [
          "DE,EUR,2,2.00,0,0.00,0,0.00,2.00,0,0,0", "ZZ,EUR,2,6.00,0,0.00,0,0.00,6.00,0,0,0",
        ],
        "exceptions": [],
      ]),
    RuleCase(
      "R6: a second user's upload takes the account's users away again, whatever was reported before",
      [
        app, .signedUpload(bought("1"), user: "anna"), notified("n", bought("2")),
        notified("m", month("3", "pass")), notified("o", bought("4", token)),
        .signedUpload(bought("5"), user: "bob"),
      ],
      [
        whose: [
          "1,anna,1,upload", "2,,,", "4,token:\(accountToken(1)),4,token", "5,bob,5,upload",
          "w3,,,",
        ],
        "users user_identifier,sales": [
          "anna,1", "bob,1", "token:\(accountToken(1)),1",
        ],
        "subscriptions original_transaction_id,user_identifier": ["3,"], "exceptions": [],
      ]),
    RuleCase(
      "R6: the account of a sale may be known after its upload",
      [
        app, .upload(reply(row("1")), user: "anna"), notified("n", bought("2")),
        notified("m", bought("1")),
      ],
      [whose: ["1,anna,1,upload", "2,anna,1,account"]]),
    RuleCase(
      "R6: a sale with another token than the uploaded ones stays its token's",
      [
        app, .signedUpload(bought("1", token), user: "anna"),
        notified("n", bought("2", ["appAccountToken": "\(accountToken(2))"])),
        notified("m", bought("3", ["appAccountToken": "\(accountToken(1).uppercased())"])),
      ],
      [
        whose: [
          "1,anna,1,upload", "2,token:\(accountToken(2)),2,token", "3,anna,1,account",
        ]
      ]),
    RuleCase(
      "R6: an upload without a user links nothing, one of another account neither",
      [
        app, .signedUpload(bought("1")), .signedUpload(bought("2", of: "B"), user: "anna"),
        notified("n", bought("3")),
      ],
      [whose: ["1,,,", "2,anna,2,upload", "3,,,"]]),
  ]

  // MARK: Responses

  @Test func aSecondSubscriptionOfTheAccountGivesItsEntitlement() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      .app(
        AppRegistered(
          appFamilyID: LiveProjectionsTests.family, name: "App", bundleIDs: ["app"], products: [],
          entitlements: [
            Entitlement(name: "music", patterns: ["music"]),
            Entitlement(name: "video", patterns: ["video"]),
          ])),
      .signedUpload(Self.month("1", "music"), user: "anna"),
      .fetched(Self.month("1", "music"), Self.month("2", "video"), about: "1"),
    ])
    func active(_ user: String) throws -> [String?] {
      let answer = try UserQuestions(fixture).answer(.entitlements, about: user, at: "2026-01-20")
      return try #require(answer["entitlements"]?.arrayValue).filter {
        $0["is_active"] == .boolean(true)
      }
      .map { $0.texts("name")[0] }
    }
    try expectEqual(active("anna"), ["music", "video"])
    try expectEqual(
      UserQuestions(fixture).purchases(of: "anna").compactMap { $0.texts("product_id")[0] },
      ["video", "music"])
    // Another user who bought on the same device gets only what the upload shows.
    try fixture.append([.signedUpload(Self.month("3", "gym"), user: "bob")])
    try expectEqual(active("anna"), ["music"])
    try expectEqual(active("bob"), [])
  }

  @Test func anEarlierPositionHasTheUsersOfThen() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app, Self.notified("n", Self.bought("1")),
      .signedUpload(Self.bought("2"), user: "anna"), .signedUpload(Self.bought("3"), user: "bob"),
    ])
    let projector = Projector(try LogReader(fixture.directory))
    for (size, user) in [(2, nil), (3, "anna"), (4, nil)] as [(Int, String?)] {
      let queries = try LedgerQueries(try projector.books(at: size)) { _ in [] }
      let sale = try #require(try queries.sales(key: "1").first)
      expectEqual(sale.userIdentifier, user, "after \(size) events")
      expectEqual(sale.userBasis, (user == nil ? "" : "account"))
    }
  }

  // MARK: Tokens

  /// Every way to ask for a user that only a token names: how many sales each finds.
  private static let lookups: [(String, @Sendable (LedgerFixture, String) throws -> Int)] = [
    (
      "--user",
      { fixture, user in
        let words = try ReportWords("sales sale_key --user \(user)")
        return words.rows(of: try fixture.csv(words.request, from: try fixture.current())).count
      }
    ),
    ("/v1 purchases", { try UserQuestions($0).purchases(of: $1).count }),
    (
      "history",
      { fixture, user in
        try LedgerQueries(try fixture.current()) { _ in [] }.user(user)?.sales.count ?? 0
      }
    ),
    (
      "subscriptions",
      { try SubscriptionQueries(try $0.current()).subscriptions(ofUser: $1).count }
    ),
  ]

  @Test(arguments: [accountToken(1), accountToken(1).uppercased()], lookups.indices)
  func aTokenIsAUserInEitherCase(_ token: String, _ lookup: Int) throws {
    let fixture = try LedgerFixture()
    let month = signed(
      "1", line: "w1",
      merging: [
        ("appAccountToken", "\(accountToken(1))"), ("expiresDate", instant("2026-02-05")),
        ("type", "Auto-Renewable Subscription"),
      ])
    try fixture.append([Self.app, Self.notified("n", month)])
    let (name, count) = Self.lookups[lookup]
    try expectEqual(count(fixture, "token:\(token)"), 1, "\(name)")
    try expectEqual(count(fixture, "token:\(accountToken(2))"), 0, "\(name)")
  }
}

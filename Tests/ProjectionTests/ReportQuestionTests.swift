// Rules R9 and R10: a report's options: converted users, filters, order.
import Base
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct ReportQuestionTests {
  // MARK: users --in

  @Test(arguments: convertedUsers) func usersInACurrency(_ rule: RuleCase) throws {
    try rule.check()
  }

  private static let convertedUsers = [
    RuleCase(
      "R10: what users brought in is converted line by line, and without a rate stays as it is",
      [
        .upload(
          reply(
            row("1"), row("2", on: "2026-01-07"),
            row("3", ["cancellation_date_ms": date("2026-01-09")])),
          user: "anna",
          metadata: prices(
            entry(transaction: "1", "10.00", "USD"), entry(transaction: "2", "3.00", "JPY"),
            entry(transaction: "3", "4.00", "USD"))),
        .upload(
          reply(row("4")), user: "bob", metadata: prices(entry(transaction: "4", "1.00")),
          receipt: "b"),
        .upload(
          reply(row("5")), user: nil, metadata: prices(entry(transaction: "5", "1.00", "JPY"))),
        .rates(source: "bank", ["2026-01-01 EUR USD 2", "2026-01-09 EUR USD 4"]),
      ],
      [
        "users user_identifier,net": ["anna,3 JPY 10.00 USD", "bob,1.00 EUR"],
        // 10 ÷ 2 + 4 ÷ 2 − 4 ÷ 4.
        "users user_identifier,net --in EUR": ["anna,6.00 EUR 3 JPY", "bob,1.00 EUR"],
        "users user_identifier,net --in EUR --rates-max-age 3": [
          "anna,'-1.00 EUR 3 JPY 14.00 USD", "bob,1.00 EUR",
        ],
      ])
  ]

  @Test func linesOfUsersWithoutARateAreCountedAndNoOthers() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      .upload(
        reply(row("1")), user: "anna", metadata: prices(entry(transaction: "1", "1.00", "JPY"))),
      .upload(
        reply(row("2")), user: nil, metadata: prices(entry(transaction: "2", "1.00", "JPY")),
        receipt: "b"),
      .pending(
        .unified(.init("3")), user: "carl", metadata: prices(entry(transaction: "3", "2.00", "JPY"))
      ),
    ])
    let found = try ["users", "revenue"].map { report in
      let text = try fixture.json(
        ReportWords("\(report) --in EUR --include-pending").request, from: fixture.current())
      return try JSONValue(Array(text.utf8))["exceptions"]?["unconverted"]?.integerValue
    }
    expectEqual(found, [2, 3])
  }

  // MARK: exceptions

  @Test(arguments: exceptionColumns) func exceptionsHaveDateCountryAndUser(
    _ rule: RuleCase
  ) throws {
    try rule.check()
  }

  private static let canceled: Members = ["cancellation_date_ms": date("2026-02-10")]
  private static let who = "exceptions exception,date,country_code,user_identifier"

  private static let exceptionColumns = [
    RuleCase(
      "R9: an exception of a sale has the sale's date, country and user, also those known later",
      [
        .upload(reply(row("1", ["quantity": 0])), country: nil, user: nil),
        .upload(reply(row("1")), country: "FR", user: "anna", at: "2026-01-20", receipt: "b"),
        .upload(reply(row("2")), country: nil, user: nil, receipt: "c"),
      ],
      [
        who: [
          "bad_quantity,2026-01-05T00:00:00.000Z,FR,anna",
          "unpriced,2026-01-05T00:00:00.000Z,FR,anna",
          "unpriced,2026-01-05T00:00:00.000Z,ZZ,",
        ],
        who + " --version 5": [
          "bad_quantity,no such column,no such column,no such column",
          "unpriced,no such column,no such column,no such column",
          "unpriced,no such column,no such column,no such column",
        ],
      ]),
    RuleCase(
      "R10: one of a line has the line's",
      [
        .upload(
          reply(row("1", canceled)), user: "bob",
          metadata: prices(entry(transaction: "1", "2.00"))),
        .rates(source: "bank", ["2026-01-01 EUR USD 2"]),
      ],
      [
        who + " --in USD": [
          "stale_rate,2026-02-10T00:00:00.000Z,DE,bob",
          "unconverted,2026-02-10T00:00:00.000Z,DE,bob",
        ]
      ]),
    RuleCase(
      "R9: one without a sale has when it was met, and the country and user of its upload",
      [
        .upload(
          reply(row("1", ["product_id": ""])), country: "JP", user: "carl", at: "2026-02-10",
          verifiedAt: "2026-03-01"),
        .upload(
          ["status": 21010], country: nil, at: "2026-03-31", receipt: "b", outcome: .invalid,
          status: 21010),
        .raw(type: "app.registered", [:]),
      ],
      [
        who: [
          "malformed_transaction,2026-03-01T00:00:00.000Z,JP,carl",
          "reply_not_valid,2026-03-31T00:00:00.000Z,ZZ,", "malformed_event,,,",
        ]
      ]),
    RuleCase(
      "R9: a pending sale has its own",
      [.pending(.unified(.init("1", on: "2026-01-20")), user: "dora", at: "2026-02-10")],
      [who: ["pending_sale,2026-01-20T00:00:00.000Z,DE,dora"]]),
  ]

  // MARK: Filters

  @Test(arguments: filters) func filter(_ rule: RuleCase) throws { try rule.check() }

  /// Sales of two apps, three products, three countries, two users and all kinds; one is pending.
  private static let shop: [TestEvent] = [
    .upload(
      reply(row("1"), row("2", product: "coins.10", ["is_trial_period": true])), user: "anna",
      metadata: prices(entry(transaction: "1", "2.00"))),
    .upload(
      reply(
        row("3", product: "pro", on: "2026-02-03", canceled),
        row("4", product: "coins.10", on: "2026-02-04", ["promotional_offer_id": "spring"])),
      country: nil, user: "bob",
      metadata: prices(
        entry(transaction: "3", "5.00", "USD"), entry(transaction: "4", "1.00")), receipt: "b"),
    .upload(
      reply(row("5", product: "pro"), receipt: ["bundle_id": "zoo"]), country: "FR", user: nil,
      receipt: "c"),
    .upload(
      reply(row("6", ["product_id": ""])), country: "FR", user: "anna", receipt: "d"),
    .pending(.unified(.init("7", product: "coins")), user: "anna"),
    .raw(type: "app.registered", [:]),
  ]

  private static let filters = [
    RuleCase(
      "Filters show the sales that meet all of them, in each report",
      shop,
      [
        "sales sale_key --app zoo": ["5"],
        "sales sale_key --product coins*": ["1", "2", "4"],
        "sales sale_key --product coins": ["1"],
        "sales sale_key --product coins,pro --country FR,ZZ": ["3", "5"],
        "sales sale_key --country ZZ": ["3", "4"],
        "sales sale_key --user anna": ["1", "2"],
        "sales sale_key --user anna --include-pending": ["1", "2", "7"],
        "sales sale_key --user bob --kind offer": ["4"],
        "sales sale_key --user nobody": [],
        "sales sale_key --kind family_shared": [],
        "journal line,sale_key --country ZZ": ["Sale,3", "Sale,4", "Return,3"],
        "journal line,sale_key --product pro --from 2026-02-05": ["Return,3"],
        "revenue country_code,currency,units,net,trials --user anna": [
          "DE,,0,,1", "DE,EUR,1,2.00,0",
        ],
        "revenue country_code,currency,units,unpriced_units --app zoo --kind regular": ["FR,,1,1"],
        "revenue units --user anna --include-pending --kind regular": ["1", "1"],
      ]),
    RuleCase(
      "An app's id stands for the bundles that it is registered with",
      shop + [
        .app(
          AppRegistered(
            appFamilyID: "0e7c2f4a-9a0b-4c5d-8e6f-112233445566", name: "Zoo", bundleIDs: ["zoo"],
            products: []))
      ],
      [
        "sales sale_key --app 0E7C2F4A-9A0B-4C5D-8E6F-112233445566": ["5"],
        "sales sale_key --app app,0e7c2f4a-9a0b-4c5d-8e6f-112233445566": ["1", "2", "3", "4", "5"],
        "sales sale_key --app 11111111-9a0b-4c5d-8e6f-112233445566": [],
      ]),
    RuleCase(
      "Exceptions are those of the sales shown; without a sale their own app, product and upload count",
      shop,
      [
        "exceptions exception,sale_key": [
          "unpriced,5", "malformed_transaction,", "pending_sale,7", "malformed_event,",
        ],
        "exceptions exception --app app": ["malformed_transaction", "pending_sale"],
        "exceptions exception --app zoo": ["unpriced"],
        "exceptions exception --product p*": ["unpriced"],
        "exceptions exception --country FR": ["unpriced", "malformed_transaction"],
        "exceptions exception --country DE": ["pending_sale"],
        "exceptions exception --user anna": ["malformed_transaction", "pending_sale"],
        "exceptions exception --user bob": [],
        "exceptions exception --kind regular": ["unpriced", "pending_sale"],
        "exceptions exception --kind trial": [],
        "exceptions exception,detail --in JPY --country ZZ": [
          "unconverted,Return USD", "unconverted,Sale USD", "unconverted,Sale EUR",
        ],
      ]),
  ]

  /// The counts in a report equal the list of exceptions under the same filters, and the sales counted by trust are
  /// those of the journal.
  @Test func countsUnderFiltersAreThoseOfTheLists() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: seed)
    try fixture.append(generator.steps(150))
    let database = try fixture.current()
    for _ in 0..<40 {
      var options = ""
      if random.chance(percent: 30) {
        options += " --app \(random.pick(["app", "zoo,app", "old"]))"
      }
      if random.chance(percent: 40) { options += " --product \(random.pick(["coins", "p*", "*"]))" }
      if random.chance(percent: 40) {
        options += " --country \(random.pick(["DE", "ZZ,US", "FR"]))"
      }
      if random.chance(percent: 40) { options += " --user \(random.pick(["u1", "=user", "none"]))" }
      if random.chance(percent: 30) {
        options += " --kind \(random.pick(["regular", "offer,trial"]))"
      }
      if random.chance(percent: 50) { options += " --environment all" }
      if random.chance(percent: 30) { options += " --from 2026-02-01" }
      if random.chance(percent: 30) { options += " --in USD" }
      if random.chance(percent: 30) { options += " --include-pending" }
      let names = try ReportWords("exceptions exception").rows(
        of: fixture.csv(ReportWords("exceptions" + options).request, from: database))
      let expected = names.reduce(into: [String: Int]()) { $0[$1, default: 0] += 1 }
      for report in ["revenue", "journal", "exceptions"] {
        let summary = try summary(report + options, fixture, database)
        let counts = Dictionary(
          uniqueKeysWithValues: summary.exceptions.map { ($0.type, $0.count) })
        expectEqual(counts, expected, "seed \(seed): \(report + options)")
      }
      let sales = try ReportWords("journal environment,bundle_id,sale_key,price_basis,product_id")
        .rows(
          of: fixture.csv(
            ReportWords("journal" + options.replacing(" --include-pending", with: "")).request,
            from: database))
      let trust = try summary("revenue" + options, fixture, database).trust
      // Sales of two kinds of keys may have the same key.
      #expect(
        trust.reduce(0) { $0 + $1.count } >= Set(sales).count, "seed \(seed): \(options)")
    }
  }

  private func summary(
    _ line: String, _ fixture: LedgerFixture, _ database: Database
  ) throws -> ReportSummary {
    try Report.write(ReportWords(line).request, from: database, to: CSVReportWriter { _ in })
  }

  @Test(arguments: [
    ("--app app,zoo --product coins.*,pro --country DE,ZZ --user bob", []),
    ("--app App", [UnknownName.app("App")]),
    (
      "--product coin,coi*,gold*",
      [.product("coin", similar: "coins"), .product("gold*", similar: nil)]
    ),
    ("--country DE,NL", [.country("NL")]), ("--user eve", [.user]), ("--kind family_shared", []),
  ])
  func namesThatTheLedgerDoesNotKnowAreTold(options: String, expected: [UnknownName]) throws {
    let fixture = try LedgerFixture()
    try fixture.append(Self.shop)
    for report in ["revenue", "journal", "sales", "exceptions"] {
      let summary = try summary("\(report) \(options)", fixture, fixture.current())
      expectEqual(summary.unknownNames, expected)
    }
  }

  // MARK: Order

  @Test(arguments: orders) func order(_ rule: RuleCase) throws { try rule.check() }

  private static let orders = [
    RuleCase(
      "Numbers and times fall, text rises, unless the other is asked for; ties keep their order",
      shop,
      [
        "sales sale_key,sale_date --sort sale_date": [
          "4,2026-02-04T00:00:00.000Z", "3,2026-02-03T00:00:00.000Z", "1,2026-01-05T00:00:00.000Z",
          "2,2026-01-05T00:00:00.000Z", "5,2026-01-05T00:00:00.000Z",
        ],
        "sales sale_key --sort sale_date:asc": ["1", "2", "5", "3", "4"],
        "sales sale_key,product_id --sort product_id": [
          "1,coins", "2,coins.10", "4,coins.10", "3,pro", "5,pro",
        ],
        "sales sale_key --sort product_id:desc": ["3", "5", "2", "4", "1"],
        "sales sale_key --sort user_identifier": ["1", "2", "3", "4", "5"],
        "sales sale_key --sort user_identifier:desc": ["3", "4", "1", "2", "5"],
        "sales sale_key --sort sale_date --top 2": ["4", "3"],
        "sales sale_key --top 2": ["1", "2"],
        "exceptions exception --sort exception --top 3": [
          "malformed_event", "malformed_transaction", "pending_sale",
        ],
        "users user_identifier,uploads --sort uploads": ["anna,3", "bob,1"],
      ]),
    RuleCase(
      "Amounts of different currencies are not compared: rows come by currency, those without one last",
      shop,
      [
        "sales sale_key,unit_price,currency --sort unit_price": [
          "1,2.00,EUR", "4,1.00,EUR", "3,5.00,USD", "2,,", "5,,",
        ],
        "sales sale_key,unit_price --sort unit_price --top 1": ["1,2.00"],
        "sales sale_key,unit_price --sort unit_price:asc --top 4": [
          "4,1.00", "1,2.00", "3,5.00", "2,",
        ],
        "journal line,amount --sort amount:asc --top 1": ["Sale,1.00"],
        "revenue product_id,currency,net --by product --sort net": [
          "coins,EUR,2.00", "coins.10,EUR,1.00", "pro,USD,0.00", "coins.10,,", "pro,,",
        ],
        "users user_identifier,net --sort net": ["anna,2.00 EUR", "bob,1.00 EUR 0.00 USD"],
        "users user_identifier --sort net:asc --top 1": ["bob"],
      ]),
  ]

  @Test func totalsStayThoseOfAllRowsAndTheOthersAreCounted() throws {
    let fixture = try LedgerFixture()
    try fixture.append(Self.shop)
    let database = try fixture.current()
    let all = try summary("revenue --by product", fixture, database)
    for options in ["--top 2", "--sort net --top 1"] {
      let first = try summary("revenue --by product \(options)", fixture, database)
      expectEqual(first.totals.map(\.currency), all.totals.map(\.currency))
      expectEqual(
        first.totals.map { $0.sums.map(\.value) }, all.totals.map { $0.sums.map(\.value) })
      #expect(first.rowCount + first.notShownCount == all.rowCount && first.notShownCount > 0)
    }
    expectEqual(all.notShownCount, 0)
    let text = try fixture.json(
      ReportWords("revenue --by product --sort net --top 1").request, from: database)
    try expectEqual(JSONValue(Array(text.utf8))["rows_not_shown"]?.integerValue, 4)
  }

  @Test func aColumnThatTheReportDoesNotHaveIsAnError() throws {
    let fixture = try LedgerFixture()
    #expect(throws: ProjectionError.self) {
      try summary("revenue --by product --sort country_code", fixture, fixture.current())
    }
  }

  /// Rows that cannot be among the first are dropped on the way, which must change nothing.
  @Test func theFirstRowsOfManyAreThoseOfAllSorted() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let fixture = try LedgerFixture()
    for group in 0..<8 {
      var rows: [JSONText] = []
      var entries: [JSONText] = []
      for index in 0..<700 {
        let id = JSONText(stringLiteral: "\(group * 700 + index)")
        rows.append(row("\(group * 700 + index)"))
        entries.append(
          entry(
            transaction: id,
            JSONText(stringLiteral: "\(Int.random(in: 1...50, using: &random)).00"),
            JSONText(stringLiteral: random.pick(["EUR", "USD", "JPY"]))))
      }
      try fixture.append([
        .upload(
          reply(rows: rows), metadata: prices(entries: entries), receipt: "receipt \(group)")
      ])
    }
    let database = try fixture.current()
    func rows(_ options: String) throws -> [String] {
      try ReportWords("journal sale_key,amount,currency").rows(
        of: fixture.csv(ReportWords("journal \(options)").request, from: database))
    }
    for direction in ["asc", "desc"] {
      let sorted = try rows("--sort amount:\(direction)")
      for count in [7, 2_500] {
        try expectEqual(
          rows("--sort amount:\(direction) --top \(count)"), Array(sorted.prefix(count)),
          "seed \(seed)")
      }
      try expectEqual(rows("--sort amount:\(direction) --top 9000"), sorted)
    }
  }
}

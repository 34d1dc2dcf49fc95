// Sales of signed statements in the database: folded in one go and in pieces they are the same, line by line.
import AppStore
import Base
import Projections
import Revenue
import TestSupport
import Testing

/// An event's evidence about sales.
private enum Evidence {
  case signed([JSONText], user: String?, country: String?, metadata: JSONText)
  case notified([JSONText])
  case renewed(JSONText)
  case replied(JSONText, on: String, user: String?, country: String?, metadata: JSONText)
}

/// The tables of sales of one database, filled by the rules alone.
private final class SaleBooks {
  let database: Database
  private let temporary: TemporaryDirectory
  private var position = 0

  init() throws {
    temporary = try TemporaryDirectory()
    database = try Database(path: temporary.path("sales.sqlite"), mode: .create)
    try database.execute(Schema.tables + Schema.indexes + Schema.views)
  }

  /// Folds events as one run of the program does; returns the lines as the rules see them in memory.
  func fold(_ events: some Sequence<Evidence>) throws -> [String] {
    let isFresh = position == 0
    let arena = TextArena()
    let symbols = StringInterner(arena)
    try symbols.load(from: database)
    var symbolRows = SymbolRows(symbols)
    let rows = RowWriter(database, arena, isThreaded: false)
    let users = try UserTable(database, arena, isFresh: isFresh)
    let exceptions = try ExceptionTable(database, rows, arena, isFresh: isFresh)
    let table = SaleTable(database, symbols, isFresh: isFresh)
    let nextSale = Int(try database.integer("SELECT max(id) + 1 FROM sales") ?? 0)
    let store = SaleStore(arena, source: isFresh ? nil : table, nextID: nextSale)
    let subscriptionTable = SubscriptionTable(database)
    let subscriptions = SubscriptionStore(
      arena, source: isFresh ? nil : subscriptionTable,
      nextID: try SubscriptionTable.nextID(database))
    let accountTable = AccountTable(database, arena)
    let accounts = AccountStore(
      arena, source: isFresh ? nil : accountTable, nextID: try database.nextNumber(of: "accounts")
    )
    let rules = RevenueFold(
      store: store, subscriptions: subscriptions, accounts: accounts, symbols: symbols,
      exceptions: exceptions,
      userIdentifier: { try users.identifier($0) }, tokenUser: { try users.number(of: $0) })
    for event in events {
      try fold(event, rules, symbols, users, arena)
      position += 1
    }
    try DerivedPrices(store: store, symbols: symbols, priceList: PriceList())
      .settle { isFresh || $0.isChanged }
    try rules.settleUsers()
    try table.store(store, rows)
    try subscriptionTable.store(subscriptions, rows)
    try accountTable.store(accounts, rows)
    try users.store(rows)
    try symbolRows.store(rows)
    try rows.drain()
    var lines: [String] = []
    for sale in store.sales.sorted(by: { $0.id < $1.id }) {
      store.forEachJournalLine(of: sale) { line in
        lines.append(
          "\(sale.id) \(line.type.word) \(line.dateMs) \(line.quantity) "
            + "\(line.amountMicros.map(String.init) ?? "-") \(line.position)")
      }
    }
    withExtendedLifetime((table, subscriptionTable, accountTable)) {}
    return lines
  }

  private func fold(
    _ event: Evidence, _ rules: RevenueFold, _ symbols: StringInterner, _ users: UserTable,
    _ arena: TextArena
  ) throws {
    func upload(_ user: String?, _ country: String?, _ metadata: JSONText) throws
      -> UploadEvidence
    {
      let number = try user.map { user in try withText(user) { try users.number(of: $0) } }
      if let number { users.noteUpload(number, atMs: 5) }
      return UploadEvidence(
        position: position, occurredAtMs: ms("2026-01-06"),
        country: country.map { symbols.symbol($0) } ?? .none, user: number ?? -1,
        metadata: arena.keep(metadata.bytes))
    }
    func statements(_ payloads: [JSONText]) throws -> [SignedStatement] {
      let keeper = TextKeeper()
      return try payloads.map {
        SignedStatement(
          try SignedTransaction(payload: arena.keep($0.bytes), keeper), trust: .appStore)
      }
    }
    switch event {
    case .signed(let payloads, let user, let country, let metadata):
      let evidence = SignedEvidence(
        position: position, recordedAtMs: Int64(position),
        upload: try upload(user, country, metadata))
      try rules.fold(evidence, try statements(payloads))
    case .notified(let payloads):
      let evidence = SignedEvidence(
        position: position, recordedAtMs: Int64(position), upload: nil)
      try rules.fold(evidence, try statements(payloads))
    case .renewed(let payload):
      let keeper = TextKeeper()
      let renewal = try SignedRenewal(payload: arena.keep(payload.bytes), keeper)
      try rules.fold(
        renewal.info,
        RenewalEvidence(
          environment: symbols.symbol("Production"), bundle: symbols.symbol("app"),
          statementMs: renewal.signedDateMs ?? .min, position: position))
    case .replied(let text, let day, let user, let country, let metadata):
      let reply = try Reply(arena.keep(text.bytes), TextKeeper())
      try rules.fold(
        Verification(
          position: position, occurredAtMs: ms(day), recordedAtMs: Int64(position),
          requestDateMs: reply.requestDateMs, environment: symbols.symbol("Production"),
          bundle: symbols.symbol("app"), upload: try upload(user, country, metadata),
          trust: .imported), rows: reply.rows, renewals: reply.renewals)
    }
  }

  /// The journal as the view shows it.
  func lines() throws -> [String] {
    let rows = try database.prepare(
      """
      SELECT sale || ' ' || line || ' ' || date_ms || ' ' || quantity || ' '
        || coalesce(amount_micros, '-') || ' ' || position FROM journal_view
      ORDER BY sale, ordinal
      """)
    var lines: [String] = []
    while try rows.step() { lines.append(rows.text(0)) }
    return lines
  }
}

/// Random statements about few sales, of every kind that R12 distinguishes.
private struct Statements {
  var random: SeededRandom

  private mutating func day(_ days: ClosedRange<Int> = 6...20) -> String {
    let day = Int.random(in: days, using: &random)
    return "2026-01-\(day < 10 ? "0" : "")\(day)"
  }

  private mutating func members(ofSale number: Int) -> [(String, JSONText)] {
    let quantity = number == 2 ? 3 : 1
    var members: [(String, JSONText)] = [
      ("quantity", random.chance(percent: 10) ? "many" : JSONText(raw: String(quantity)))
    ]
    // The first stays without a price, the last takes the price of its chain.
    if (2...4).contains(number), random.chance(percent: 40) {
      members += [
        ("price", JSONText(raw: random.pick(["10000", "0", "9990"]))),
        ("currency", random.pick(["EUR", "JPY"])),
      ]
    }
    if random.chance(percent: 50) {
      members.append(("storefront", random.pick(["DEU", "FRA", "XXX"])))
    }
    if random.chance(percent: 30) {
      members.append(
        ("appAccountToken", random.pick(["\(accountToken(1))", "\(accountToken(2))"])))
    }
    if random.chance(percent: 50) {
      members.append(("appTransactionId", random.pick(["a", "b", "c", "d"])))
    }
    if random.chance(percent: 15) { members.append(("offerType", 1)) }
    if random.chance(percent: 5) { members.append(("offerDiscountType", "FREE_TRIAL")) }
    if random.chance(percent: 5) { members.append(("isUpgraded", "true")) }
    if random.chance(percent: 5) { members.append(("multiSeatInfo", [:])) }
    if random.chance(percent: 40) {
      members.append(("revocationDate", instant(day(8...10))))
      if random.chance(percent: 40) {
        members.append(
          (
            "revocationPercentage",
            JSONText(raw: random.pick(["0", "33333", "66667", "50000", "100000"]))
          ))
      }
    }
    if random.chance(percent: 60) { members.append(("expiresDate", instant(day(18...25)))) }
    if random.chance(percent: 10) { members.append(("type", "Consumable")) }
    if random.chance(percent: 10) {
      members.append(
        (
          "advancedCommerceInfo",
          [
            "items": [
              [
                "refunds": [
                  [
                    "refundDate": instant(day(8...10)),
                    "refundAmount": JSONText(
                      raw: random.pick(["1000", "9000", "20000", "null"])),
                  ]
                ]
              ]
            ]
          ]
        ))
    }
    return members
  }

  /// - Parameter isUploaded: the last two sales are never uploaded.
  private mutating func payload(isUploaded: Bool) -> JSONText {
    let number = Int.random(in: 1...(isUploaded ? 5 : 7), using: &random)
    return signed(
      "\(number)", of: (4...5).contains(number) ? "3" : nil,
      line: number > 2 ? "90\(number)" : nil,
      on: "2026-01-0\(number)", signed: day(), merging: members(ofSale: number))
  }

  private mutating func renewal() -> JSONText {
    [
      // No statement ever shows the last.
      "originalTransactionId": random.pick(["1", "3", "9"]),
      "autoRenewStatus": random.pick([.absent, 0, 1]),
      "autoRenewProductId": random.pick([.absent, "coins", "gems"]),
      "gracePeriodExpiresDate": random.pick([.absent, instant(day(18...25))]),
      "signedDate": instant(day()),
    ]
  }

  mutating func next() -> Evidence {
    let user: String? = random.chance(percent: 30) ? random.pick(["u", "u", "u", "v"]) : nil
    let country: String? = random.chance(percent: 50) ? random.pick(["DE", "US"]) : nil
    let metadata: JSONText = random.chance(percent: 15) ? shorthand("4.00") : [:]
    if random.chance(percent: 30) {
      let number = Int.random(in: 1...5, using: &random)
      let cancelled = random.chance(percent: 40) ? date(day(8...10)) : .absent
      let shown = row(
        "\(number)", of: number > 3 ? "3" : nil, line: number > 2 ? "90\(number)" : nil,
        on: "2026-01-0\(number)",
        [
          "quantity": number == 2 ? "3" : "1", "cancellation_date_ms": cancelled,
          "expires_date_ms": random.chance(percent: 60) ? date(day(18...25)) : .absent,
          "is_trial_period": random.chance(percent: 10) ? "true" : .absent,
        ])
      let requested = random.chance(percent: 90) ? day() : nil
      let renewals: JSONText =
        random.chance(percent: 50)
        ? [
          [
            "original_transaction_id": "3", "auto_renew_status": random.pick(["0", "1"]),
            "expiration_intent": random.pick([.absent, "1", "2"]),
            "is_in_billing_retry_period": random.pick([.absent, "0", "1"]),
          ]
        ] : .absent
      return .replied(
        reply(shown, requested: requested, also: ["pending_renewal_info": renewals]),
        on: requested ?? "2026-01-21", user: user,
        country: country, metadata: metadata)
    }
    if random.chance(percent: 20) { return .renewed(renewal()) }
    let isUploaded = random.chance(percent: 60)
    let payloads = (0..<Int.random(in: 1...3, using: &random)).map { _ in
      payload(isUploaded: isUploaded)
    }
    return isUploaded
      ? .signed(payloads, user: user, country: country, metadata: metadata)
      : .notified(payloads)
  }
}

@Suite struct SaleTableTests {
  private static let eventCount = 40

  private static func events(seed: UInt64) -> [Evidence] {
    var statements = Statements(random: SeededRandom(seed: seed))
    return (0..<eventCount).map { _ in statements.next() }
  }

  @Test(arguments: 1...12 as ClosedRange<UInt64>)
  func salesFoldedInPiecesAreThoseFoldedInOneGo(seed: UInt64) throws {
    let events = Self.events(seed: seed)
    let whole = try SaleBooks()
    let inMemory = try whole.fold(events)
    try expectEqual(whole.lines(), inMemory, "the view shows other lines than the rules")
    let expected = try whole.database.dump()
    for size in [1, 3, 11] {
      let pieces = try SaleBooks()
      for start in stride(from: 0, to: events.count, by: size) {
        _ = try pieces.fold(events[start..<min(start + size, events.count)])
      }
      for (one, other) in zip(try pieces.database.dump(), expected) where one != other {
        let (mine, theirs) = (Set(one.rows), Set(other.rows))
        Issue.record(
          """
          seed \(seed), pieces of \(size), \(one.name): \(mine.subtracting(theirs).sorted())
          against \(theirs.subtracting(mine).sorted())
          """)
      }
    }
  }

  @Test func theRandomStatementsMeetWhatTheTablesTellApart() throws {
    var met: Set<String> = []
    for seed in 1...12 as ClosedRange<UInt64> {
      let books = try SaleBooks()
      _ = try books.fold(Self.events(seed: seed))
      for (what, sql) in [
        ("a share of units", "SELECT 1 FROM later_lines WHERE share IN (33333, 66667)"),
        ("another share", "SELECT 1 FROM later_lines WHERE share = 50000"),
        ("an assumed share", "SELECT 1 FROM later_lines WHERE is_assumed = 1"),
        ("Advanced Commerce", "SELECT 1 FROM later_lines WHERE advanced_micros > 0"),
        ("an excess", "SELECT 1 FROM later_lines WHERE is_first_excess = 1"),
        ("a Reversal", "SELECT 1 FROM later_lines WHERE line = 2"),
        ("no price", "SELECT 1 FROM later_lines WHERE amount_micros IS NULL"),
        ("a signed price", "SELECT 1 FROM sales WHERE price_basis = 1"),
        ("a carried price", "SELECT 1 FROM sale_view WHERE price_basis = 'carried_forward'"),
        ("a token", "SELECT 1 FROM users WHERE uploads = 0 AND first_seen_at_ms IS NULL"),
        (
          "a country conflict",
          "SELECT 1 FROM exception_view WHERE exception = 'country_conflict'"
        ),
        ("a history of refunds", "SELECT 1 FROM refund_statements"),
        ("a period end", "SELECT 1 FROM sales WHERE period_end_ms > 0"),
        ("a revoked period", "SELECT 1 FROM subscription_view WHERE revoked_at_ms > 0"),
        ("a renewal", "SELECT 1 FROM subscription_view WHERE renewal_at_ms > 0"),
        ("a grace period", "SELECT 1 FROM subscriptions WHERE grace_period_expires_at_ms > 0"),
        ("a renewal alone", "SELECT 1 FROM subscriptions WHERE statement_position IS NULL"),
        ("a user's token", "SELECT 1 FROM subscriptions WHERE user_basis = 3"),
        ("a user by account", "SELECT 1 FROM sale_view WHERE user_basis = 'account'"),
        ("a subscription's user by account", "SELECT 1 FROM subscriptions WHERE user_basis = 2"),
        ("an account of two users", "SELECT 1 FROM account_users"),
        ("an account of two tokens", "SELECT 1 FROM accounts WHERE has_several_tokens = 1"),
      ] where try books.database.integer(sql) != nil { met.insert(what) }
    }
    expectEqual(met.count, 22, "\(met.sorted())")
  }

  @Test func aLaterTimeAloneRewritesNoSale() throws {
    let books = try SaleBooks()
    func shown(_ day: String) -> Evidence {
      .replied(reply(row("1"), requested: day), on: day, user: nil, country: nil, metadata: [:])
    }
    _ = try books.fold([shown("2026-01-06")])
    let before = try books.database.dump()
    try books.database.execute(
      """
      CREATE TEMP TRIGGER refuse BEFORE UPDATE ON sales
        BEGIN SELECT raise(ABORT, 'a sale was written'); END;
      """)
    _ = try books.fold([shown("2026-01-07")])
    for (one, other) in zip(try books.database.dump(), before) {
      expectEqual((one == other), (one.name != "statement_times"), "\(one.name)")
    }
  }
}

// The rules by themselves: replies in; sales, lines and exceptions out, without a ledger and a database.
import AppStore
import Base
import JSON
import Revenue
import TestSupport
import Testing

@Suite("The rules alone") struct RulesAloneTests {
  @Test func aReplyGivesASaleAndALaterOneItsReturn() throws {
    let books = Books()
    try books.add(
      reply(row("1"), requested: "2026-01-05"), user: 0, metadata: shorthand("1.99"))
    #expect(books.lines() == ["Sale 1 2026-01-05 1 1.99"])
    let cancelled = reply(
      row("1", ["cancellation_date_ms": date("2026-01-09")]), requested: "2026-01-10")
    try books.add(cancelled, user: 0)
    #expect(books.lines() == ["Sale 1 2026-01-05 1 1.99", "Return 1 2026-01-09 -1 -1.99"])
    #expect(books.exceptions.isEmpty)
  }

  @Test func whatDisagreesIsAnException() throws {
    let books = Books()
    try books.add(reply(row("1")), user: 0)
    try books.add(reply(row("1", ["quantity": "2"])), user: 1)
    #expect(books.lines() == ["Sale 1 2026-01-05 1 -"])
    #expect(books.exceptions == ["conflicting_observation quantity", "claimed_by_other_user u1"])
  }

  @Test func aPriceListPricesWhatNoClientPriced() throws {
    let books = Books()
    try books.add(reply(row("1"), row("2", on: "2026-02-05")), user: 0)
    try books.declare("coins", micros: 990_000, from: "2026-02-01")
    #expect(books.lines() == ["Sale 1 2026-01-05 1 -", "Sale 2 2026-02-05 1 0.99"])
  }
}

/// Keeps exceptions as `type detail`.
private final class ExceptionList: ExceptionSink {
  private(set) var found: [String] = []

  private func add(_ type: ExceptionType, _ detail: String) {
    found.append("\(type.word) \(detail)")
  }

  func add(_ type: ExceptionType, sale: Sale, detail: Text, position: Int) {
    add(type, String(decoding: detail, as: UTF8.self))
  }

  func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, product: Text, transaction: Text,
    detail: Text, position: Int
  ) {
    add(type, String(decoding: detail, as: UTF8.self))
  }

  func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, detail: String, position: Int
  ) {
    add(type, detail)
  }
}

/// Sales in memory, and the rules over them.
private final class Books {
  private let arena = TextArena()
  private let symbols: StringInterner
  private let store: SaleStore
  private let list = ExceptionList()
  private let rules: RevenueFold
  private var priceList = PriceList()
  private var position = 0

  init() {
    let arena = arena
    symbols = StringInterner(arena)
    store = SaleStore(arena)
    rules = RevenueFold(
      store: store, symbols: symbols, exceptions: list,
      userIdentifier: { number in withText("u\(number)") { arena.keep($0) } })
  }

  var exceptions: [String] { list.found }

  /// Applies a reply to an upload of a user.
  func add(_ reply: JSONText, user: Int32, metadata: JSONText = [:]) throws {
    let (replyBytes, metadataBytes) = (reply.bytes, metadata.bytes)
    try replyBytes.withUnsafeBytes { replyText in
      try metadataBytes.withUnsafeBytes { metadataText in
        let keeper = TextKeeper()
        let reply = try Reply(replyText, keeper)
        let upload = UploadEvidence(
          position: position, occurredAtMs: ms("2026-01-05"), country: .none, user: user,
          metadata: metadataText)
        let verification = Verification(
          position: position + 1, occurredAtMs: ms("2026-01-05"), recordedAtMs: ms("2026-01-05"),
          requestDateMs: reply.requestDateMs, environment: symbols.symbol("Production"),
          bundle: symbols.symbol("app"), upload: upload, trust: .appStore)
        try rules.fold(verification, rows: reply.rows)
        position += 2
      }
    }
  }

  /// Declares a price in euros, of all countries.
  func declare(_ product: String, micros: Int64, from day: String) throws {
    let currency = try #require(Currency.parse("EUR"))
    priceList.add(
      symbols.symbol(product),
      PriceList.Entry(
        country: .none, effectiveFromMs: ms(day), position: position, ordinal: 0,
        price: UnitPrice(micros: micros, currency: currency)))
    priceList.sort()
    position += 1
    try DerivedPrices(store: store, symbols: symbols, priceList: priceList).settle { _ in true }
  }

  /// The journal: type, sale key, day, quantity and amount; `-` for one that is not known.
  func lines() -> [String] {
    var lines: [String] = []
    for sale in store.sales {
      store.forEachJournalLine(of: sale) { line in
        let amount = line.amountMicros.map { Amount.text(micros: $0, currency: nil) } ?? "-"
        let day = CivilDate(dayNumber: Int(line.dateMs / 86_400_000))
        lines.append(
          "\(line.type.word) \(String(decoding: sale.key, as: UTF8.self)) \(day) "
            + "\(line.quantity) \(amount)")
      }
    }
    return lines
  }
}

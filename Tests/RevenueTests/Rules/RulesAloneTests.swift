// The rules by themselves: replies in; sales, lines and exceptions out, without a ledger and a database.
import TestSupport
import Testing

@Suite("The rules alone") struct RulesAloneTests {
  @Test func aReplyGivesASaleAndALaterOneItsReturn() throws {
    let books = Books()
    try books.add(
      reply(row("1"), requested: "2026-01-05"), user: "u0", metadata: shorthand("1.99"))
    expectEqual(books.lines(), ["Sale 1 2026-01-05 1 1.99"])
    let cancelled = reply(
      row("1", ["cancellation_date_ms": date("2026-01-09")]), requested: "2026-01-10")
    try books.add(cancelled, user: "u0")
    expectEqual(books.lines(), ["Sale 1 2026-01-05 1 1.99", "Return 1 2026-01-09 -1 -1.99"])
    #expect(books.exceptions.isEmpty)
  }

  @Test func whatDisagreesIsAnException() throws {
    let books = Books()
    try books.add(reply(row("1")), user: "u0")
    try books.add(reply(row("1", ["quantity": "2"])), user: "u1")
    expectEqual(books.lines(), ["Sale 1 2026-01-05 1 -"])
    expectEqual(books.exceptions, ["conflicting_observation quantity", "claimed_by_other_user u1"])
  }

  @Test func aPriceListPricesWhatNoClientPriced() throws {
    let books = Books()
    try books.add(reply(row("1"), row("2", on: "2026-02-05")), user: "u0")
    try books.declare("coins", micros: 990_000, from: "2026-02-01")
    expectEqual(books.lines(), ["Sale 1 2026-01-05 1 -", "Sale 2 2026-02-05 1 0.99"])
  }
}

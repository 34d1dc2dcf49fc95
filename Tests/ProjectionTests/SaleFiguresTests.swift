// Packed tables: data written in pieces, over several rows, is read unchanged.
import Revenue
import TestSupport
import Testing

import Projections

@Suite struct SaleFiguresTests {
  private static func sale(_ id: Int, _ random: inout SeededRandom) -> Sale {
    var sale = Sale(
      id: id, environment: Symbol.random(in: 0...2, using: &random),
      bundle: Symbol.random(in: 3...9, using: &random), keyKind: .transaction,
      key: Text(start: nil, count: 0))
    sale.product = Symbol.random(in: 10...(.max), using: &random)
    sale.country = Symbol.random(in: -1...7, using: &random)
    sale.kind = SaleKind.allCases.randomElement(using: &random) ?? .regular
    sale.priceBasis = PriceBasis.allCases.randomElement(using: &random) ?? .none
    sale.quantity = Int64.random(in: 1...Sale.quantityMax, using: &random)
    sale.saleDateMs = Int64.random(in: storedInstantsMs, using: &random)
    sale.firstPosition = Int.random(in: 0...(1 << 52), using: &random)
    if Bool.random(using: &random), let currency = Currency.parse(("EUR" as StaticString).text) {
      // For a whole quantity the amount has 64 bits; a larger one would not be accepted.
      sale.price = UnitPrice(
        micros: Int64.random(in: 0...(Int64.max / sale.quantity), using: &random),
        currency: currency)
      sale.signedAmountMicros = Int64.random(in: 0...(.max), using: &random)
    }
    return sale
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func figuresWrittenInPiecesAreReadAsTheyWereLast(seed: UInt64) throws {
    let temporary = try TemporaryDirectory()
    let database = try Database(path: temporary.path("figures.sqlite"), mode: .create)
    try database.execute(
      """
      CREATE TABLE sales(id INTEGER PRIMARY KEY);
      CREATE TABLE sale_figures(id INTEGER PRIMARY KEY, records BLOB NOT NULL);
      """)
    let rows = RowWriter(database, TextArena(), isThreaded: false)
    var table = PackedSaleTable<SaleFigures>(database)
    var random = SeededRandom(seed: seed)
    var expected: [SaleFigures] = []
    for _ in 0..<12 {
      for _ in 0..<Int.random(in: 0...90, using: &random) {
        let figures = SaleFigures(Self.sale(expected.count, &random), currency: 3)
        table.add(figures, ofSale: expected.count)
        try database.execute("INSERT INTO sales VALUES(\(expected.count))")
        expected.append(figures)
      }
      for _ in 0..<Int.random(in: 0...5, using: &random) where !expected.isEmpty {
        // A sale added in the same piece may change once more.
        let place = Int.random(in: expected.indices, using: &random)
        expected[place] = SaleFigures(Self.sale(place, &random), currency: 4)
        table.add(expected[place], ofSale: place)
      }
      try table.store(rows)
      try rows.drain()
      var read: [SaleFigures] = []
      let isWhole = try PackedSaleTable<SaleFigures>.forEach(in: database) { number, figures in
        expectEqual(number, read.count)
        read.append(figures)
      }
      #expect(isWhole)
      // A failed comparison of the arrays would print them whole.
      let isSame = read == expected
      #expect(isSame, "seed \(seed), \(expected.count) sales")
    }
    #expect(expected.count > 2 * SaleFigures.rowCapacity, "one row would test little")
    try database.execute("INSERT INTO sales VALUES(\(expected.count))")
    #expect(
      try !PackedSaleTable<SaleFigures>.forEach(in: database) { _, _ in },
      "a sale without figures")
  }

  @Test func timesAreReadAsTheyWereWritten() {
    for newestMs in [.min, -1, 0, 1_769_000_000_000, .max] as [Int64] {
      let bytes = UnsafeMutableRawPointer.allocate(
        byteCount: StatementTime.byteCount, alignment: 1)
      defer { bytes.deallocate() }
      let times = StatementTime(
        newestReplyMs: newestMs, newestReplyEventMs: newestMs / 3,
        newestSignedMs: newestMs / 2, periodEndMs: ~newestMs)
      times.write(to: bytes)
      expectEqual(StatementTime(bytes), times)
    }
  }

  @Test func aFullRowFitsAPage() {
    // SQLite's own limit for a row without an overflow page: the page less 35 bytes.
    let headerByteCount = 12
    #expect(
      SaleFigures.rowCapacity * SaleFigures.byteCount + headerByteCount <= 8192 - 35)
  }
}

// Pages of extreme ledgers: each must be whole, and its figures those of the revenue report.
import Base
import Ledger
import Projections
import ReportDocuments
import Revenue
import TestSupport
import Testing

@Suite struct ReportPageTests {
  private static func page(
    _ steps: [TestEvent], month: String = "2026-01", in currency: String? = nil,
    filter: ReportFilter = ReportFilter()
  ) throws -> (page: ReportPage, text: String) {
    let ledger = try LedgerFixture()
    try ledger.append(steps)
    let database = try ledger.current()
    var request = ReportRequest(.revenue)
    request.reportingCurrency = currency.flatMap(Currency.parse)
    request.filter = filter
    let basis = PageBasis(ledger: ledger.directory.identity, foreignTrust: [], versions: [])
    let page = try ReportPage(
      PageRequest(request, try #require(PagePeriod(parsingMonth: month))), basis, from: database,
      since: nil)
    return (page, String(decoding: page.bytes, as: UTF8.self))
  }

  /// Sales of January, one for each price.
  private static func sales(_ prices: [(price: String, currency: String)]) -> [TestEvent] {
    prices.enumerated().map { index, price in
      .upload(
        reply(row("\(index)", on: "2026-01-05")),
        metadata: priced(index, price.price, price.currency), receipt: "r\(index)")
    }
  }

  private static func priced(_ index: Int, _ price: String, _ currency: String) -> JSONText {
    prices(
      entry(
        transaction: "\(index)", JSONText(stringLiteral: price), JSONText(stringLiteral: currency)))
  }

  /// Every element that was opened is closed, in the right order.
  private static func isBalanced(_ text: String) -> Bool {
    let empty: Set<Substring> = ["meta", "wbr", "!DOCTYPE"]
    var open: [Substring] = []
    // The style sheet holds no markup.
    for part in text.split(separator: "<") where !part.hasPrefix(":root") {
      let name = part.prefix { !" >".contains($0) }
      if name.hasPrefix("/") {
        guard open.popLast() == name.dropFirst() else { return false }
      } else if !empty.contains(name) {
        open.append(name)
      }
    }
    return open.isEmpty
  }

  @Test func `An empty ledger has a page that says so`() throws {
    let (page, text) = try Self.page([])
    #expect(page.isEmpty)
    #expect(text.contains("The ledger is empty."))
    #expect(text.contains("There are no subscriptions."))
    // Without an event there is no position to name.
    #expect(!text.contains("--as-of"))
    #expect(Self.isBalanced(text))
  }

  /// The days of sales, some of them in the Sandbox, the environment of the page, and the month.
  @Test(
    arguments: [
      ([], "Production", nil),
      (["2026-01-05"], "Production", "2026-01"),
      (["2026-03-31", "2024-07-01"], "Production", "2026-03"),
      (["2026-05-02 Sandbox", "2023-01-31"], "Production", "2023-01"),
      (["2026-05-02 Sandbox", "2023-01-31"], "Sandbox", "2026-05"),
      (["2026-05-02 Sandbox"], "Production", nil),
    ] as [([String], String, String?)])
  func `The newest month with an entry is found among all, under the page's filters`(
    days: [String], environment: String, month: String?
  ) throws {
    let ledger = try LedgerFixture()
    try ledger.append(
      days.enumerated().map { index, day in
        .upload(
          reply(
            row("\(index)", on: String(day.prefix(10))),
            environment: day.hasSuffix("Sandbox") ? "Sandbox" : "Production"),
          receipt: "r\(index)")
      })
    var request = ReportRequest(.revenue)
    request.environments = [environment]
    let newest = try ReportPage.newestMonth(request, from: try ledger.current())
    expectEqual(newest?.monthText, month)
  }

  @Test func `A month without sales says so`() throws {
    let (page, text) = try Self.page(Self.sales([("2.00", "EUR")]), month: "2026-05")
    #expect(page.isEmpty)
    #expect(text.contains("There is no sale, return or reversal in May 2026."))
    #expect(Self.isBalanced(text))
  }

  @Test func `One sale is charted, and new against nothing`() throws {
    let (page, text) = try Self.page(Self.sales([("2.50", "EUR")]))
    expectEqual(page.figures.mainCurrency, Currency.parse("EUR"))
    expectEqual(page.figures.total(Currency.parse("EUR")).net, 2_500_000)
    #expect(text.contains("<b>(new)</b>"))
    #expect(text.contains("2026-01-05: 2.50 EUR"))
    #expect(Self.isBalanced(text))
  }

  /// A report of Apple's on one of two sales of January, at another price, and what it paid for it.
  private static let settled: [TestEvent] =
    sales([("9.99", "EUR"), ("9.99", "EUR")])
    + [
      SettlementDeclared.of(
        AppleReportText(
          region: "ZZ", days: ("12/28/2025", "01/31/2026"), ["coins S 1 6.29 EUR DE 8.99 EUR"]),
        "FY2026-P04", digit: "1"),
      .overview("January, 2026", "FY2026-P04", digit: "2", ["EUR 6.29 6"]),
    ].map {
      .raw(
        type: EventType.settlementDeclared.rawValue,
        JSONText(raw: String(decoding: $0.data, as: UTF8.self)))
    }

  @Test func `The newest month that Apple has reported leads from gross to the bank`() throws {
    let (_, text) = try Self.page(Self.settled, month: "2026-02")
    for step in [
      "Fiscal month FY2026-P04", "Its reports are complete.", "Sales of the receipts",
      "Another price, currency or country", "Kept by Apple: commission and taxes", "Paid",
      "At the bank: 6.00 EUR, expected on 5 March 2026.", "Open and missing, by fiscal month",
      "ledgerctl export reconcile --month FY2026-P04 --as-of",
    ] {
      #expect(text.contains(step), "\(step)")
    }
    #expect(Self.isBalanced(text))
  }

  @Test(
    arguments: [("2025-12", nil), ("2026-01", "coins"), ("2026-01", nil)] as [(String, String?)])
  func `A page of earlier months or of some products has nothing of settlement`(
    month: String, product: String?
  ) throws {
    var filter = ReportFilter()
    filter.products = product.map { [ReportFilter.ProductPattern($0)] }
    let (_, text) = try Self.page(Self.settled, month: month, filter: filter)
    expectEqual(text.contains("From gross to bank"), month == "2026-01" && product == nil)
  }

  @Test func `A currency without decimals keeps its form`() throws {
    let (_, text) = try Self.page(Self.sales([("375000", "VND"), ("1500", "JPY")]))
    #expect(text.contains("375<span>000</span>"))
    #expect(!text.contains("375<span>000</span>.00"))
    #expect(Self.isBalanced(text))
  }

  @Test func `Sales without a price are units and no amount`() throws {
    let (page, text) = try Self.page([.upload(reply(row("1", on: "2026-01-05")))])
    #expect(page.figures.currencies.isEmpty)
    expectEqual(page.figures.counts.unpricedUnits, 1)
    #expect(text.contains("1 of the units has no known price"))
    #expect(text.contains(ExceptionWords(.unpriced).title))
    #expect(text.contains("There is no priced sale or return in January 2026."))
    #expect(Self.isBalanced(text))
  }

  @Test func `A loss hangs below the line, and has no shares`() throws {
    let returned: Members = ["cancellation_date_ms": date("2026-01-10")]
    let (page, text) = try Self.page([
      .upload(
        reply(row("1", on: "2025-12-05", returned)),
        metadata: prices(entry(transaction: "1", "9.99")), at: "2026-01-11")
    ])
    expectEqual(page.figures.total(Currency.parse("EUR")).net, -9_990_000)
    #expect(text.contains("class=\"below\""))
    #expect(text.contains("value minus"))
    let table = try #require(text.firstRange(of: "id=\"countries-EUR\""))
    let end = try #require(text[table.upperBound...].firstRange(of: "</table>"))
    #expect(!text[table.upperBound..<end.lowerBound].contains("share"))
    #expect(Self.isBalanced(text))
  }

  @Test func `Of many currencies six are charted, and all are in the table, never added up`() throws
  {
    let currencies = Currency.all.filter { $0.minorDigits == 2 }.prefix(20)
    let (page, text) = try Self.page(Self.sales(currencies.map { ("3.00", "\($0)") }))
    #expect(page.figures.mainCurrency == nil)
    expectEqual(page.figures.currencies.count, 20)
    expectEqual(text.split(separator: "Net by day, ").count - 1, 6 * 2)
    #expect(text.contains("14 more currencies are in the table."))
    #expect(text.contains("For one total, declare exchange rates (‘ledgerctl rates import FILE’)"))
    for currency in currencies { #expect(text.contains("id=\"countries-\(currency)\"")) }
    #expect(!text.contains("60.00"))
    #expect(Self.isBalanced(text))
  }

  @Test func `Of many countries fifteen are named, and the rest are summed`() throws {
    let countries = Country.all.prefix(200)
    let steps = countries.enumerated().map { index, country in
      TestEvent.upload(
        reply(row("\(index)", on: "2026-01-05")), country: "\(country)",
        metadata: Self.priced(index, "\(index + 1).00", "EUR"), receipt: "r\(index)")
    }
    let (_, text) = try Self.page(steps)
    #expect(text.contains("185 others"))
    // 1 + 2 + … + 185.
    #expect(text.contains("17<span>205</span>.00"))
    #expect(Self.isBalanced(text))
  }

  @Test func `What no rate converts keeps its currency, beside the sums of the page's`() throws {
    let (page, text) = try Self.page(
      Self.sales([("2.00", "EUR"), ("3.00", "USD")]), in: "EUR")
    expectEqual(page.figures.currencies.map { "\($0)" }, ["EUR", "USD"])
    expectEqual(page.figures.mainCurrency, Currency.parse("EUR"))
    #expect(text.contains("Amounts in USD have no exchange rate: they keep their own currencies"))
    #expect(!text.contains("ledgerctl rates import FILE"))
    #expect(text.contains(ExceptionWords(.unconverted).title))
    #expect(Self.isBalanced(text))
  }

  @Test(arguments: [true, false])
  func `Several apps have a table of their own`(hasTwo: Bool) throws {
    let (_, text) = try Self.page([
      .app(
        AppRegistered(
          appFamilyID: "0e7c2f4a-9a0b-4c5d-8e6f-112233445566", name: "Zoo", bundleIDs: ["zoo"],
          products: [])),
      .upload(
        reply(row("1", on: "2026-01-05")), metadata: prices(entry(transaction: "1", "9.99")),
        receipt: "r1"),
      .upload(
        reply(row("2", on: "2026-01-06"), receipt: hasTwo ? ["bundle_id": "zoo"] : [:]),
        metadata: prices(entry(transaction: "2", "4.00")), receipt: "r2"),
    ])
    expectEqual(text.contains("id=\"apps-EUR\""), hasTwo)
    #expect(text.contains("13.99"))
    #expect(Self.isBalanced(text))
  }

  @Test func `The page says what it is limited to, and so do its commands`() throws {
    var filter = ReportFilter()
    filter.products = [.init("coins.*")]
    filter.countries = ["DE", "ZZ"]
    let (page, text) = try Self.page(Self.sales([("2.00", "EUR")]), filter: filter)
    #expect(page.isEmpty)
    #expect(text.contains(" · product coins.* · countries Germany, unknown</p>"))
    #expect(text.contains("--product &#39;coins.*&#39; --country DE,ZZ --amounts exact"))
    #expect(Self.isBalanced(text))
  }

  @Test func `A product's name cannot become markup`() throws {
    let name = "<script>\"&'\u{202E}"
    let (_, text) = try Self.page([
      .upload(
        reply(row("1", product: name, on: "2026-01-05")),
        metadata: prices(entry(transaction: "1", "9.99")))
    ])
    #expect(!text.contains("<script"))
    #expect(text.contains("&lt;script&gt;&quot;&amp;&#39;\\u{202E}"))
    #expect(Self.isBalanced(text))
  }

  @Test func `The same events give the same bytes`() throws {
    let steps = Self.sales([("2.00", "EUR"), ("3.00", "USD"), ("4.00", "GBP")])
    try expectEqual(Self.page(steps).text, Self.page(steps).text)
  }

  @Test func `What a report's rows do not add up to is never shown`() throws {
    var rows = PageRows(dimensions: [.period])
    var sums = PageSums()
    sums[0] = 1
    rows.rows = [.init(labels: ["2026-01"], currency: nil, sums: sums)]
    #expect(throws: ProjectionError.self) { try rows.check() }
  }
}

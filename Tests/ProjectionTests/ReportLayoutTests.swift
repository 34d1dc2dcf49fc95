// Rounded amounts, selected columns, rows of totals, and CSV for other locales.
import Base
import Projections
import Revenue
import TestSupport
import Testing

@Suite struct ReportLayoutTests {
  private static func sale(
    _ number: String, _ country: String, _ price: JSONText, _ currency: JSONText = "EUR",
    user: String = "anna", _ members: Members = [:]
  ) -> TestEvent {
    .upload(
      reply(row(number, product: "coins;\(number)", on: "2026-01-05T23:30:00.250Z", members)),
      country: country, user: user,
      metadata: prices(entry(transaction: JSONText(stringLiteral: number), price, currency)),
      receipt: "receipt \(number)")
  }

  /// A third of a euro each; and yen in units that have no decimals.
  private static let steps = [
    sale("1", "DE", "0.333333"), sale("2", "FR", "0.333333", user: "bob"),
    sale("3", "IT", "0.333333"),
    sale("4", "JP", "100.5", "JPY", ["quantity": 2]), sale("5", "US", "0.5", "JPY", user: "bob"),
  ]

  private static func csv(
    _ words: String, _ change: (inout ReportRequest) throws -> Void
  ) throws -> [String] {
    let fixture = try LedgerFixture()
    try fixture.append(steps)
    var request = try ReportWords(words).request
    try change(&request)
    return try fixture.csv(request, from: fixture.current())
      .split(separator: "\n").map(String.init)
  }

  // MARK: Rounded amounts

  @Test func rowsOfRevenueAddUpToTheRoundedTotal() throws {
    let lines = try Self.csv("revenue") {
      $0.amounts = .minor
      $0.layout.columns = ["country_code", "currency", "gross", "net"]
      $0.layout.hasTotal = true
    }
    expectEqual(
      lines,
      [
        "country_code,currency,gross,net", "DE,EUR,0.34,0.34", "FR,EUR,0.33,0.33",
        "IT,EUR,0.33,0.33", "JP,JPY,201,201", "US,JPY,1,1", "total,EUR,1.00,1.00",
        "total,JPY,202,202",
      ])
  }

  @Test func linesOfTheJournalAreRoundedOneByOne() throws {
    let lines = try Self.csv("journal") {
      $0.amounts = .minor
      $0.layout.columns = ["sale_key", "unit_price", "amount"]
    }
    expectEqual(
      lines,
      [
        "sale_key,unit_price,amount", "1,0.33,0.33", "2,0.33,0.33", "3,0.33,0.33", "4,100,201",
        "5,0,0",
      ])
  }

  @Test func netFollowsFromTheFiguresShown() throws {
    let lines = try Self.csv("revenue") {
      $0.amounts = .minor
      $0.dimensions = []
      $0.layout.columns = ["currency", "gross", "returns", "net"]
      $0.layout.hasTotal = false
    }
    // 0.999999 − 0.333333 is 0.666666 exactly, but 1.00 − 0.33 is shown.
    expectEqual(lines, ["currency,gross,returns,net", "EUR,1.00,0.00,1.00", "JPY,202,0,202"])
  }

  @Test(arguments: [
    ("revenue", ["country_code", "net"], ["DE,0.34", "FR,0.33", "IT,0.33", "JP,201", "US,1"]),
    ("journal", ["sale_key", "amount"], ["1,0.34", "2,0.33", "3,0.33", "4,201", "5,1"]),
  ])
  func reportsOfEarlierVersionsAreRoundedAsTheyWere(
    _ words: String, _ columns: [String], _ rows: [String]
  ) throws {
    let lines = try Self.csv(words) {
      $0.version = 7
      $0.amounts = .minor
      $0.layout.columns = columns
    }
    expectEqual(Array(lines.dropFirst()), rows)
  }

  @Test func whatUsersBroughtInIsRoundedCurrencyByCurrency() throws {
    let lines = try Self.csv("users") {
      $0.amounts = .minor
      $0.layout.columns = ["user_identifier", "net"]
    }
    expectEqual(lines, ["user_identifier,net", "anna,0.67 EUR 201 JPY", "bob,0.33 EUR 1 JPY"])
  }

  @Test func exactAmountsAndTheirTotalsStayAsTheyAre() throws {
    let lines = try Self.csv("revenue") {
      $0.layout.columns = ["country_code", "net"]
      $0.layout.hasTotal = true
    }
    expectEqual(
      lines,
      [
        "country_code,net", "DE,0.333333", "FR,0.333333", "IT,0.333333", "JP,201", "US,0.5",
        "total,0.999999", "total,201.5",
      ])
  }

  // MARK: Columns and totals

  @Test func columnsStandInTheOrderAskedForWithTextsAndListsIntact() throws {
    let lines = try Self.csv("sales") {
      $0.layout.columns = ["transaction_ids", "product_id", "sale_date", "country_code"]
    }
    expectEqual(lines.first, "transaction_ids,product_id,sale_date,country_code")
    expectEqual(lines.dropFirst().first, "1,\"coins;1\",2026-01-05T23:30:00.250Z,DE")
    expectEqual(lines.count, 6)
  }

  @Test func rowsOfTotalsHaveTheSumsAndNothingElse() throws {
    let lines = try Self.csv("journal") { $0.layout.hasTotal = true }
    expectEqual(
      lines.suffix(2), ["total,,,,,,,,,,3,EUR,,0.999999,,,", "total,,,,,,,,,,3,JPY,,201.5,,,"])
  }

  @Test func columnThatTheReportLacksIsRefused() throws {
    #expect(throws: ProjectionError.self) {
      try Self.csv("users") { $0.layout.columns = ["net", "gross"] }
    }
  }

  @Test(arguments: ReportKind.allCases) func columnsAreKnownBeforeAnyRow(_ kind: ReportKind) throws
  {
    for isByMonth in kind.hasMoment ? [false, true] : [false] {
      let lines = try Self.csv(kind.rawValue) { $0.isByMonth = isByMonth }
      var request = ReportRequest(kind)
      request.isByMonth = isByMonth
      let names = request.columns.map(\.name)
      expectEqual(lines.first, names.joined(separator: ","))
    }
  }

  // MARK: CSV for other locales

  private static func german(_ request: inout ReportRequest) throws {
    request.zone = try TimeZoneTable("Europe/Berlin")
    request.layout.csv.delimiter = UInt8(ascii: ";")
    request.layout.csv.decimal = UInt8(ascii: ",")
    request.layout.csv.dates = .spreadsheet
  }

  @Test func amountsHaveTheDecimalSignAndTimesTheReportsZone() throws {
    let lines = try Self.csv("journal") {
      try Self.german(&$0)
      $0.layout.columns = ["date", "product_id", "amount"]
    }
    expectEqual(
      lines.prefix(3),
      [
        "date;product_id;amount", "2026-01-06 00:30:00,250;\"coins;1\";0,333333",
        "2026-01-06 00:30:00,250;\"coins;2\";0,333333",
      ])
  }

  @Test func wholeSecondsHaveNoDecimals() throws {
    let lines = try Self.csv("users") {
      try Self.german(&$0)
      $0.layout.columns = ["user_identifier", "net", "first_seen_at"]
    }
    expectEqual(lines[1], "anna;\"0,666666 EUR 201 JPY\";2026-01-10 01:00:00")
  }

  @Test(arguments: [("\t", "coins;1"), ("|", "coins;1")])
  func textWithTheDelimiterIsQuoted(_ delimiter: String, _ product: String) throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      .upload(
        reply(row("1", product: "a\(delimiter)b")), metadata: prices(entry(transaction: "1", "2.5"))
      )
    ])
    var request = ReportRequest(.journal)
    request.layout.columns = ["sale_key", "product_id", "amount"]
    request.layout.csv.delimiter = try #require(delimiter.utf8.first)
    let lines = try fixture.csv(request, from: fixture.current()).split(separator: "\n")
    expectEqual(
      lines,
      [
        "sale_key\(delimiter)product_id\(delimiter)amount",
        "1\(delimiter)\"a\(delimiter)b\"\(delimiter)2.50",
      ])
  }

  @Test(
    "text that a spreadsheet would run as a formula stays text in every form of CSV",
    arguments: ["=1+1", "+1", "-1", "@a", "\t=1"])
  func formulasAreDisarmed(_ product: String) throws {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(reply(row("1", product: product)))])
    var request = ReportRequest(.sales)
    try Self.german(&request)
    request.layout.columns = ["product_id"]
    let lines = try fixture.csv(request, from: fixture.current()).split(separator: "\n")
    expectEqual(lines, ["product_id", "'\(product)"])
  }

  @Test(
    "sums in several currencies are text, other numbers are numbers, negative ones too",
    arguments: [
      (".", "'-4.00 EUR,-4.00,-0.5\n"), (",", "\"'-4,00 EUR\";-4,00;-0,5\n"),
    ]) func negativeAmounts(_ decimal: String, _ expected: String) throws
  {
    let euro = try #require(Currency.parse("EUR"))
    var form = ReportLayout.CSV()
    form.decimal = try #require(decimal.utf8.first)
    if decimal == "," { form.delimiter = UInt8(ascii: ";") }
    var bytes: [UInt8] = []
    try withoutActuallyEscaping({ (piece: UnsafeRawBufferPointer) in
      bytes.append(contentsOf: piece)
    }) { sink in
      let writer = CSVReportWriter(form: form, sink)
      try writer.write(.amounts([euro: -4_000_000]))
      try writer.write(.amount(-4_000_000, euro))
      try writer.write(.real(-0.5))
      try writer.endRow()
      try writer.end(ReportSummary())
    }
    expectEqual(String(decoding: bytes, as: UTF8.self), expected)
  }
}

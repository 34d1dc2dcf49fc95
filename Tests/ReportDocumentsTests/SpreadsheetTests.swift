// Excel files: texts, dates and amounts as cells, the limits of a sheet, and the same bytes each time.
import Base
import Projections
import ReportDocuments
import Revenue
import TestSupport
import Testing

@Suite struct SpreadsheetTests {
  // MARK: Cells

  private static func cell(_ text: String) -> String {
    var cell = SpreadsheetText()
    Array(text.utf8).withUnsafeBytes { cell.set($0) }
    expectEqual(cell.bytes.last, 0)
    return String(decoding: cell.bytes.dropLast(), as: UTF8.self)
  }

  @Test(arguments: [
    ("plain", "plain"), ("=1+1", "=1+1"), ("ünï·코드 𝒳", "ünï·코드 𝒳"), (" spaced ", " spaced "),
    ("two\nlines\t", "two\nlines\t"), ("\u{0}nul", "_x0000_nul"), ("a\rb", "a_x000D_b"),
    ("\u{1F}", "_x001F_"), ("_x0041_", "_x005F_x0041_"), ("a_xABcd_b", "a_x005F_xABcd_b"),
    ("_x004_", "_x004_"), ("_x0041", "_x0041"), ("_x00g1_", "_x00g1_"),
    ("\u{FFFE}\u{FFFF}", "_xFFFE__xFFFF_"), ("\u{FFFD}", "\u{FFFD}"),
    ("\u{FF1D}1+2", "\u{FF1D}1+2"),
  ])
  func aTextIsKeptWithWhatXMLForbidsAndExcelMisreadsEscaped(text: String, expected: String) {
    expectEqual(Self.cell(text), expected)
  }

  @Test func aTextOfExcelsLimitIsKeptAndALongerOneIsCutWithAMark() {
    for character in ["a", "ü", "𝒳"] {
      let units = character.utf16.count
      let longest = String(repeating: character, count: 32_767 / units)
      expectEqual(Self.cell(longest), longest)
      let cut = Self.cell(longest + character)
      #expect(cut.hasSuffix("\(character) … (cut)"))
      #expect(cut.utf16.count <= 32_767)
      #expect(cut.utf16.count > 32_767 - 2)
    }
    let escapes = Self.cell(String(repeating: "\u{1}", count: 5000))
    #expect(escapes.hasSuffix("_x0001_ … (cut)"))
    #expect(escapes.utf16.count <= 32_767)
  }

  @Test(
    arguments: [
      ("1900-03-01T00:00:00.000Z", 61.0), ("1970-01-01T00:00:00.000Z", 25569),
      ("2026-03-29T00:59:59.500Z", 46110 + 3599.5 / 86_400),
      ("9999-12-31T23:59:59.000Z", 2_958_465 + 86_399.0 / 86_400),
      ("1900-02-28T23:59:59.999Z", nil),
    ] as [(String, Double?)])
  func aTimeIsTheNumberThatExcelShowsAsIt(time: String, expected: Double?) throws {
    let number = SpreadsheetDate.number(atMs: try Timestamp.parse(time), in: .utc)
    expectEqual(number, expected)
  }

  @Test func theHourThatSummerTimeLeavesOutIsNotShown() throws {
    let zone = try TimeZoneTable("Europe/Berlin")
    let before = SpreadsheetDate.number(
      atMs: try Timestamp.parse("2026-03-29T00:59:59.000Z"), in: zone)
    let after = SpreadsheetDate.number(
      atMs: try Timestamp.parse("2026-03-29T01:00:00.000Z"), in: zone)
    expectEqual(before, 46110 + 7199.0 / 86_400)
    expectEqual(after, 46110 + 3.0 / 24)
  }

  @Test(
    arguments: [
      ("2026-03", Period.Granularity.month, 46082.0), ("2026-03-14", .day, 46095),
      ("2026-Q1", .quarter, nil), ("2026-W09", .week, nil), ("2026", .year, nil),
      ("total", .month, nil), ("total", .day, nil), ("1899-12", .month, nil),
    ] as [(String, Period.Granularity, Double?)])
  func onlyMonthsAndDaysAreDates(text: String, granularity: Period.Granularity, date: Double?) {
    let number = Array(text.utf8).withUnsafeBytes { SpreadsheetDate.number(of: $0, granularity) }
    expectEqual(number, date)
  }

  @Test(
    arguments: [
      (9_990_000, "EUR", 9.99, 2), (9_999_900, "EUR", 9.9999, 4), (0, "EUR", 0, 2),
      (120_000_000, "JPY", 120, 0), (500_000, "JPY", 0.5, 1), (-1_234_500, "KWD", -1.2345, 4),
      (-1_000_000, "KWD", -1, 3), (1, "USD", 0.000001, 6),
      (9_007_199_254_740_992, "USD", 9_007_199_254.740992, 6),
    ] as [(Int128, String, Double, Int)])
  func anAmountHasItsCurrencysDecimalsOrMore(
    micros: Int128, currency: String, value: Double, decimals: Int
  ) {
    let number = AmountNumber(micros, Currency.parse(currency))
    expectEqual(number.value, value)
    expectEqual(number.decimals, decimals)
  }

  // MARK: Files

  private static let columns = [
    ReportColumn("date", .time), ReportColumn("user_identifier"), ReportColumn("amount", .amount),
    ReportColumn("position", .integer),
  ]

  private static func about(hasExactTexts: Bool = true) -> SpreadsheetAbout {
    var about = SpreadsheetAbout(
      sheetName: "rows", title: "Rows", facts: [.init("Ledger", "receipts.example")], zone: .utc,
      createdAtMs: 1_770_000_000_000)
    about.hasExactTexts = hasExactTexts
    return about
  }

  private static func file(rowCount: Int, form: Int = 3) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var about = about()
    about.form = form
    let writer = try SpreadsheetReportWriter(about, check: {}) { bytes.append(contentsOf: $0) }
    try writer.begin(columns)
    for number in 0..<rowCount {
      try writer.write(.time(1_770_000_000_000 + Int64(number) * 1000))
      try withText("=user \(number)") { try writer.write(.text($0)) }
      try writer.write(.amount(9_990_000, Currency.parse("EUR")))
      try writer.write(.integer(.max - Int64(number)))
      try writer.endRow()
    }
    try writer.end(ReportSummary())
    return bytes
  }

  private static func sheet(_ bytes: [UInt8]) throws -> String {
    let zip = ZipFile(byteCount: bytes.count) { read(bytes, into: $0, at: $1) }
    let part = try zip.parts().first { $0.name.elementsEqual("xl/worksheets/sheet1.xml".utf8) }
    var text: [UInt8] = []
    try zip.inflate(#require(part)) { text.append(contentsOf: $0) }
    return String(decoding: text, as: UTF8.self)
  }

  private static func read(
    _ bytes: [UInt8], into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) -> Int {
    let piece = bytes.dropFirst(offset).prefix(buffer.count)
    buffer.copyBytes(from: piece)
    return piece.count
  }

  private static func cells(_ bytes: [UInt8]) throws -> SpreadsheetCells {
    try SpreadsheetCells(byteCount: bytes.count) { read(bytes, into: $0, at: $1) }
  }

  @Test(arguments: [0, 1, 2, 20_000])
  func rowsStandBetweenTheBeginningAndTheEndOfTheirSheet(rowCount: Int) throws {
    let text = try Self.sheet(try Self.file(rowCount: rowCount))
    expectEqual(text.split(separator: "<row ").count, rowCount + 2)
    #expect(text.hasSuffix("</worksheet>"))
    #expect(text.contains("<autoFilter ref=\"A1:E\(rowCount + 1)\"/>"))
    if rowCount > 0 {
      let last = rowCount + 1
      #expect(text.contains("<c r=\"B\(last)\" t=\"inlineStr\"><is><t>=user \(rowCount - 1)</t>"))
      #expect(text.contains("<v>9.99</v>"))
      #expect(text.contains("<is><t>9.99</t></is>"))
      // No binary number represents it exactly.
      #expect(text.contains("<is><t>9223372036854775807</t></is>"))
      #expect(!text.contains("<f>"))
    }
  }

  @Test(arguments: [
    (9_990_000, "<v>9.99</v>"), (-1_234_567_890_000, "<v>-1234567.89</v>"),
    // Excel keeps 15 digits.
    (9_999_999_999_999_990_000, "<v>9999999999999.99</v>"),
    (99_999_999_999_999_990_000, "<is><t>99999999999999.99</t></is>"),
  ])
  func aRoundedAmountIsOneCellWithAllItsDigits(micros: Int128, cell: String) throws {
    var bytes: [UInt8] = []
    let writer = try SpreadsheetReportWriter(Self.about(hasExactTexts: false), check: {}) {
      bytes.append(contentsOf: $0)
    }
    try writer.begin([ReportColumn("amount", .amount)])
    try writer.write(.amount(micros, Currency.parse("EUR")))
    try writer.endRow()
    try writer.end(ReportSummary())
    let text = try Self.sheet(bytes)
    #expect(text.contains(cell))
    expectEqual(try Self.cells(bytes).rows.cellCount, 2)
  }

  @Test(arguments: [
    (ReportKind.revenue, 3, ReportAmounts.minor, false), (.revenue, 3, .exact, true),
    (.revenue, 2, .minor, true), (.revenue, 2, .exact, true), (.exceptions, 3, .exact, false),
    (.exceptions, 1, .exact, true),
  ])
  func exactTextsStandBesideExactAmountsAndInEarlierForms(
    _ kind: ReportKind, form: Int, _ amounts: ReportAmounts, has: Bool
  ) {
    var request = ReportRequest(kind)
    (request.layout.spreadsheetForm, request.amounts) = (form, amounts)
    expectEqual(SpreadsheetAbout.hasExactTexts(request), has)
  }

  @Test func sheetsArePrintedAcrossAsWideAsThePaperWithTheHeadingOnEachPage() throws {
    let text = try Self.sheet(try Self.file(rowCount: 3))
    #expect(text.contains("orientation=\"landscape\""))
    #expect(text.contains("<pageSetUpPr fitToPage=\"1\"/>"))
    #expect(text.contains("fitToHeight=\"0\""))
  }

  @Test func anEarlierFormIsNotMadeForPaperAndHasOneStyleOfHeadings() throws {
    func headingStyles(_ form: Int) throws -> Set<Substring> {
      let text = try Self.sheet(try Self.file(rowCount: 1, form: form))
      let row = text.split(separator: "<row r=\"1\"").last?.split(separator: "</row>").first ?? ""
      return Set(
        row.split(separator: "<c ").dropFirst().compactMap {
          $0.split(separator: " s=\"").last?.split(separator: "\"").first
        })
    }
    let text = try Self.sheet(try Self.file(rowCount: 3, form: 2))
    #expect(!text.contains("pageSetup"))
    try expectEqual(headingStyles(2), ["1"])
    try expectEqual(headingStyles(3).count, 2)
  }

  @Test func theSameRowsGiveTheSameBytes() throws {
    try expectEqual(Self.file(rowCount: 3000), Self.file(rowCount: 3000))
  }

  @Test func cellsAreCountedAndComparedAsTheyWereWritten() throws {
    let cells = try Self.cells(Self.file(rowCount: 3000))
    // Five headings, and five cells a row: an amount has two.
    expectEqual(cells.rows.cellCount, 5 + 3000 * 5)
    try expectEqual(cells, Self.cells(Self.file(rowCount: 3000)))
    #expect(try cells.rows != Self.cells(Self.file(rowCount: 2999)).rows)
  }

  @Test func aRowBeyondTheLastIsAnErrorThatNamesAWayOut() throws {
    let writer = try SpreadsheetReportWriter(Self.about(), check: {}) { _ in
      Issue.record("a part of a file")
    }
    try writer.begin(Self.columns)
    for _ in 1...1_048_575 { try writer.endRow() }
    #expect(throws: SpreadsheetError.tooManyRows) { try writer.write(.integer(1)) }
    #expect(SpreadsheetError.tooManyRows.description.contains("--from and --to, or write CSV"))
  }

  @Test func whatStopsAReportStopsItWhileRowsAreWritten() throws {
    struct Stopped: Error {}
    var count = 0
    let writer = try SpreadsheetReportWriter(
      Self.about(), check: { if count > 300 { throw Stopped() } }
    ) { _ in Issue.record("a part of a file") }
    try writer.begin(Self.columns)
    #expect(throws: Stopped.self) {
      while count < 10_000 {
        count += 1
        try writer.endRow()
      }
    }
    expectEqual(count, 511)
  }

  @Test func aDamagedFileIsNotReadAsAWholeOne() throws {
    var bytes = try Self.file(rowCount: 1)
    bytes[bytes.count / 2] ^= 1
    #expect(throws: SpreadsheetError.self) { try Self.cells(bytes) }
    #expect(throws: SpreadsheetError.self) { try Self.cells(Array(bytes.dropLast())) }
    #expect(throws: SpreadsheetError.self) { try Self.cells([]) }
  }
}

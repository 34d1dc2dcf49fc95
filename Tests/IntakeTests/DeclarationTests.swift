// Price lists and exchange rates: what is accepted, and every reason for refusing a file.
import Base
import Foundation
import Intake
import Ledger
import TestSupport
import Testing

@Suite struct DeclarationTests {
  private static let priceHeader = "product_id,country_code,currency,price,effective_from\n"
  private static let rateHeader = "date,base,quote,rate\n"

  private func entries(_ declaration: Declaration) -> [JSONValue] {
    declaration.drafts.flatMap { draft in
      (try? JSONValue(draft.data))?["entries"]?.arrayValue ?? []
    }
  }

  private func days(_ declaration: Declaration) -> [String] {
    declaration.drafts.flatMap { draft in
      ((try? JSONValue(draft.data))?["days"]?.arrayValue ?? [])
        .map { String(decoding: $0.bytes, as: UTF8.self) }
    }
  }

  private func reasons(_ body: () throws(DeclarationError) -> Declaration) -> [String] {
    do throws(DeclarationError) {
      _ = try body()
      return []
    } catch {
      return error.description.split(separator: "\n").map(String.init)
    }
  }

  // MARK: Prices

  @Test(arguments: [
    priceHeader + "pro,DE,EUR,9.99,2026-01-01\n",
    "\u{FEFF}" + priceHeader + "pro,de,eur,9.99,2026-01-01",
    "price , effective_from,currency,country_code,Product_ID\r\n9.99,2026-01-01, EUR ,DE,pro\r\n",
    priceHeader + "\"pro\",\"DE\",\"EUR\",\"9.99\",\"2026-01-01\"\n\n",
    priceHeader + "pro,DE,EUR,9.99,2026-01-01\npro,DE,EUR,9.990,2026-01-01\n",
  ])
  func aPriceIsDeclared(_ text: String) throws {
    let declaration = try PriceListFile.read(Array(text.utf8), source: "prices.csv")
    expectEqual(declaration.entryCount, 1)
    let draft = declaration.drafts[0]
    expectEqual(draft.type, "prices.declared")
    let data = try JSONValue(draft.data)
    expectEqual(data["source"], .string("prices.csv"))
    expectEqual(data["source_sha256"], .string(Sample.hex(text)))
    expectEqual(
      String(decoding: entries(declaration)[0].bytes, as: UTF8.self),
      #"{"product_id":"pro","country_code":"DE","currency":"EUR","price":"9.99","#
        + #""effective_from":"2026-01-01"}"#)
  }

  @Test func aPriceMayHoldForAllOtherCountriesAndBeZero() throws {
    let text = Self.priceHeader + "\"a,\"\"b\"\"\",,USD,0,2026-01-01\n"
    let declaration = try PriceListFile.read(Array(text.utf8), source: "p")
    expectEqual(
      String(decoding: entries(declaration)[0].bytes, as: UTF8.self),
      #"{"product_id":"a,\"b\"","currency":"USD","price":"0","effective_from":"2026-01-01"}"#)
  }

  @Test(
    arguments: [
      ("product_id,price\n", ["line 1: the header has no country_code, currency, effective_from"]),
      (
        "product_id;country_code\n",
        [
          "line 1: column \"product_id;country_code\" is unknown",
          "line 1: the header has no product_id, country_code, currency, price, effective_from",
        ]
      ),
      (
        "product_id,country_code,currency,price,effective_from,price\n",
        ["line 1: column \"price\" appears twice"]
      ),
      (priceHeader, ["the file declares no price"]),
      ("\n\n", ["the file declares no price"]),
      (priceHeader + "pro,DE,EUR,9.99\n", ["line 2: 4 cells, but the header has 5"]),
      (
        priceHeader + ",UK,EURO,9\u{2C}99,2026-13-01\n",
        ["line 2: 6 cells, but the header has 5"]
      ),
      (
        priceHeader + ",UK,XAU,\"9,99\",2026-13-01\n",
        [
          "line 2: product_id is empty; country_code is neither an ISO 3166-1 alpha-2 code nor XK; "
            + "currency is not a known ISO 4217 code; "
            + "price is not a decimal number such as 9.99; "
            + "effective_from is not a date of the form YYYY-MM-DD"
        ]
      ),
      (
        priceHeader + "p,DE,EUR,-1,2026-01-01\np,DE,EUR,1e2,2026-01-01\np,DE,EUR,,2026-01-01\n",
        [
          "line 2: price is not a decimal number such as 9.99",
          "line 3: price is not a decimal number such as 9.99",
          "line 4: price is not a decimal number such as 9.99",
        ]
      ),
      (
        priceHeader + "p,DE,EUR,1,2026-01-01\np,DE,EUR,2,2026-01-01\np,,EUR,2,2026-01-01\n"
          + "p,DE,USD,1,2026-01-01\n",
        [
          "line 3: conflicts with line 2: another price for the same product, country and day",
          "line 5: conflicts with line 2: another price for the same product, country and day",
        ]
      ),
      (
        priceHeader + "p\"q,DE,EUR,1,2026-01-01\n",
        [
          "line 2: a quote inside a cell that does not begin with one"
        ]
      ),
      (
        priceHeader + "\"p\"q,DE,EUR,1,2026-01-01\n,,,,\n",
        [
          "line 2: text between a closing quote and the next comma",
          "line 3: product_id is empty; currency is not a known ISO 4217 code; "
            + "price is not a decimal number such as 9.99; "
            + "effective_from is not a date of the form YYYY-MM-DD",
        ]
      ),
      (priceHeader + "\"p\n,DE\n", ["line 2: a quoted cell is not closed"]),
      (
        priceHeader + "\"p\nq\",DE,EUR,x,2026-01-01\np,DE,EUR,y,2026-01-01\n",
        [
          "line 2: price is not a decimal number such as 9.99",
          "line 4: price is not a decimal number such as 9.99",
        ]
      ),
      (priceHeader + "p\rq,DE\n", ["line 2: a CR without an LF"]),
      (priceHeader + "p\0,DE\n", ["line 2: a control character"]),
      ("\"\n", ["line 1: a quoted cell is not closed"]),
    ] as [(String, [String])])
  func aBadPriceListIsRefusedAsAWhole(_ text: String, _ expected: [String]) {
    let found = reasons { () throws(DeclarationError) in
      try PriceListFile.read(Array(text.utf8), source: "p.csv")
    }
    expectEqual(found, expected.map { "p.csv: " + $0 })
  }

  @Test func wrongUTF8IsSaid() {
    let bytes = Array(Self.priceHeader.utf8) + [0xFF] + Array(",DE,EUR,1,2026-01-01\n".utf8)
    let found = reasons { () throws(DeclarationError) in
      try PriceListFile.read(bytes, source: "p.csv")
    }
    expectEqual(found, ["p.csv: line 2: invalid UTF-8"])
  }

  @Test func theFirstHundredBadLinesAreListedAndTheRestCounted() {
    let text = Self.priceHeader + String(repeating: "p\n", count: 250)
    let found = reasons { () throws(DeclarationError) in
      try PriceListFile.read(Array(text.utf8), source: "p.csv")
    }
    expectEqual(found.count, 101)
    expectEqual(found.last, "p.csv: 150 more bad lines")
  }

  @Test func endlessUnknownCurrenciesAreCounted() throws {
    let columns = (0..<400).map { _ in "QQQ" }.joined(separator: ",")
    let text = "Date,USD,\(columns)\n2026-01-02,1.1" + String(repeating: ",", count: 400) + "\n"
    let declaration = try RateListFile.read(Array(text.utf8), source: "r.csv")
    expectEqual(declaration.warnings.count, 101)
    expectEqual(declaration.warnings.last?.description, "300 more like this")
  }

  @Test func aLargeListIsDividedAmongEventsAndAppends() throws {
    let rows = (0..<100_000).map { "product.number.\($0),DE,EUR,9.99,2026-01-01\n" }
    let declaration = try PriceListFile.read(
      Array((Self.priceHeader + rows.joined()).utf8), source: "p.csv")
    let drafts = declaration.drafts
    #expect(drafts.count > 8)
    #expect(declaration.appends(from: 0).count > 1)
    #expect(drafts.allSatisfy { $0.data.count <= 1 << 20 })
    #expect(
      declaration.appends(from: 0).allSatisfy { $0.reduce(0) { $0 + $1.data.count } <= 8 << 20 })
    let ids = entries(declaration).compactMap { $0["product_id"]?.stringValue }
    expectEqual(ids, (0..<100_000).map { "product.number.\($0)" })
  }

  // MARK: Rates

  @Test func ratesAreGatheredByDayAndBase() throws {
    let text =
      Self.rateHeader
      + "2026-01-02,EUR,USD,1.1\n2026-01-02,usd,JPY,150\n2026-01-02,EUR,GBP,0.85\n"
      + "2026-01-03,EUR,USD,1.2\n2026-01-02,EUR,USD,1.10\n"
    let declaration = try RateListFile.read(Array(text.utf8), source: "r.csv")
    expectEqual(declaration.entryCount, 4)
    expectEqual(declaration.drafts[0].type, "rates.declared")
    expectEqual(
      days(declaration),
      [
        #"{"date":"2026-01-02","base":"EUR","rates":{"USD":"1.1","GBP":"0.85"}}"#,
        #"{"date":"2026-01-02","base":"USD","rates":{"JPY":"150"}}"#,
        #"{"date":"2026-01-03","base":"EUR","rates":{"USD":"1.2"}}"#,
      ])
  }

  @Test(arguments: [
    "Date,USD,JPY,XYZ,CYP,\n2026-01-02,1.1,160.5,N/A,N/A,\n2007-12-28,1.4692,,7,0.585274,\n",
    "Date,USD,JPY,XYZ,CYP\r\n2026-01-02,1.1,160.5,N/A,N/A\r\n2007-12-28,1.4692,,7,0.585274",
    "Date, USD, JPY, XYZ, CYP, \n2026-01-02, 1.1, 160.5, N/A, N/A, \n"
      + "2007-12-28, 1.4692, , junk, 0.585274, \n",
  ])
  func theCentralBanksHistoryIsTakenAsItIs(_ text: String) throws {
    let declaration = try RateListFile.read(Array(text.utf8), source: "eurofxref-hist.csv")
    expectEqual(declaration.entryCount, 4)
    expectEqual(
      days(declaration),
      [
        #"{"date":"2026-01-02","base":"EUR","rates":{"USD":"1.1","JPY":"160.5"}}"#,
        #"{"date":"2007-12-28","base":"EUR","rates":{"USD":"1.4692","CYP":"0.585274"}}"#,
      ])
    expectEqual(
      declaration.warnings.map(\.description),
      [
        "line 1: XYZ is not a known ISO 4217 code; its rates were ignored"
      ])
  }

  @Test(
    arguments: [
      (rateHeader, ["the file declares no rate"]),
      ("Date,USD,\n", ["the file declares no rate"]),
      ("date,base,quote\n", ["line 1: the header has no rate"]),
      (
        "when,USD\n2026-01-02,1\n",
        [
          "line 1: column \"when\" is unknown", "line 1: column \"usd\" is unknown",
          "line 1: the header has no date, base, quote, rate",
        ]
      ),
      (
        "Date,USD,Dollar\n2026-01-02,1,1\n",
        [
          "line 1: column \"Dollar\" is not date, base, quote, rate or a currency"
        ]
      ),
      ("Date,USD,USD\n2026-01-02,1,1\n", ["line 1: column USD appears twice"]),
      ("Date,EUR\n2026-01-02,1\n", ["line 1: column EUR is the base currency"]),
      (
        rateHeader + "2026-02-30,EUX,EUR,0\n",
        [
          "line 2: date is not a date of the form YYYY-MM-DD; base is not a known ISO 4217 code; "
            + "rate is not above 0"
        ]
      ),
      (rateHeader + "2026-01-02,EUR,XAU,1\n", ["line 2: quote is not a known ISO 4217 code"]),
      (rateHeader + "2026-01-02,EUR,EUR,1\n", ["line 2: base and quote are the same currency"]),
      (
        rateHeader
          + "2026-01-02,EUR,USD,1.0000000000001\n2026-01-02,EUR,USD,1234567890123456789\n"
          + "2026-01-02,EUR,USD,-1\n2026-01-02,EUR,USD,1e3\n2026-01-02,EUR,USD,\n",
        [
          "line 2: the rate of USD is more than 12 decimals",
          "line 3: the rate of USD is more than 18 significant digits",
          "line 4: the rate of USD is not a decimal number such as 1.0854 "
            + "(digits, and a point between digits)",
          "line 5: the rate of USD is not a decimal number such as 1.0854 "
            + "(digits, and a point between digits)",
          "line 6: the rate of USD is not a decimal number such as 1.0854 "
            + "(digits, and a point between digits)",
        ]
      ),
      (
        rateHeader + "2026-01-02,EUR,USD,1.1\n2026-01-02,EUR,USD,1.2\n",
        ["line 3: conflicts with line 2: another rate of EUR to USD for the same day"]
      ),
      (
        "Date,USD,JPY,\n2026-01-02,1.1,\n2026-01-03,1,x,\n2026-1-4,1,1,\n2026-01-05,1,1,1\n",
        [
          "line 3: the rate of JPY is not a decimal number such as 1.0854 "
            + "(digits, and a point between digits)",
          "line 4: Date is not a date of the form YYYY-MM-DD",
          "line 5: 3 cells after the date, but the header has 2",
        ]
      ),
    ] as [(String, [String])])
  func aBadRateListIsRefusedAsAWhole(_ text: String, _ expected: [String]) {
    let found = reasons { () throws(DeclarationError) in
      try RateListFile.read(Array(text.utf8), source: "r.csv")
    }
    expectEqual(found, expected.map { "r.csv: " + $0 })
  }

  // MARK: Files

  @Test func aFileIsCitedByItsBaseName() throws {
    let directory = try TemporaryDirectory()
    let path = try directory.write("may.csv", Self.rateHeader + "2026-01-02,EUR,USD,1.1\n")
    let declaration = try RateListFile.read(path: path, stop: StopFlag())
    try expectEqual(JSONValue(declaration.drafts[0].data)["source"], .string("may.csv"))
  }

  @Test func aFileThatCannotBeReadIsSaid() throws {
    let directory = try TemporaryDirectory()
    let missing = directory.path + "/missing.csv"
    let empty = try directory.write("empty.csv", "")
    for (path, cause) in [
      (missing, "open: \(missing): no such file or directory"),
      (directory.path, "read: \(directory.path): is a directory"),
      (empty, "read: \(empty): is empty"),
    ] {
      let prices = reasons { () throws(DeclarationError) in
        try PriceListFile.read(path: path, stop: StopFlag())
      }
      let rates = reasons { () throws(DeclarationError) in
        try RateListFile.read(path: path, stop: StopFlag())
      }
      expectEqual(prices, [cause])
      expectEqual(rates, [cause])
    }
  }

  @Test(arguments: [5, 6] as [UInt64])
  func noBytesCrashTheReaders(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let alphabet = Array("date,base\"\r\n\tproduct_idUSD1.0-\0".utf8) + [0xEF, 0xFF]
    for _ in 0..<3000 {
      let header = Bool.random(using: &random) ? Self.rateHeader : "Date,USD,\n"
      let bytes =
        Array(header.utf8)
        + (0..<Int.random(in: 0...40, using: &random)).map { _ in
          alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
        }
      let prices = reasons { () throws(DeclarationError) in
        try PriceListFile.read(bytes, source: "x")
      }
      #expect(!prices.isEmpty, "seed \(seed)")
      _ = reasons { () throws(DeclarationError) in try RateListFile.read(bytes, source: "x") }
    }
  }
}

// Conversion: which rate applies, and exact results rounded once.
import Revenue
import TestSupport
import Testing

@Suite struct RatesConversionTests {
  /// `day base quote rate position source`
  private static func table(_ lines: [String]) throws -> RateTable {
    RateTable(
      try lines.enumerated().map { index, line in
        let words = line.split(separator: " ").map(String.init)
        return DeclaredRate(
          source: words[5], dateDay: try #require(Int(words[0])),
          base: try #require(Currency.parse(words[1])),
          quote: try #require(Currency.parse(words[2])), rate: try Decimal18(parsing: words[3]),
          position: try #require(Int64(words[4])), orderInFile: index)
      })
  }

  private static func convert(
    _ lines: [String], _ micros: Int64, _ from: String, _ to: String, day: Int
  ) throws -> (micros: Int64?, sources: [String]) {
    var converter = RateConverter(try table(lines), to: try #require(Currency.parse(to)))
    let from = try #require(Currency.parse(from))
    let first = converter.convert(micros: micros, from: from, utcDay: day)
    // The second result comes from the cache.
    expectEqual(converter.convert(micros: micros, from: from, utcDay: day), first)
    return (first, converter.sourcesUsed.map(\.name))
  }

  private static let rates = [
    "100 EUR USD 1.10 5 ecb", "102 EUR USD 1.20 6 ecb", "102 EUR USD 1.25 9 correction",
    "104 EUR USD 1.30 3 ecb", "104 EUR USD 1.35 3 ecb",
    "100 EUR JPY 160 5 ecb", "100 USD GBP 0.8 5 bank", "100 USD EUR 0.5 7 bank",
    "103 AUD CHF 0.6 5 rba", "103 AUD SEK 7 5 rba", "100 CAD CHF 0.7 5 boc", "100 CAD SEK 8 5 boc",
  ]

  @Test(
    arguments: [
      (100, "EUR", "USD", 1_100_000, ["ecb"]),
      (101, "EUR", "USD", 1_100_000, ["ecb"]),
      (102, "EUR", "USD", 1_250_000, ["correction"]),
      (103, "EUR", "USD", 1_250_000, ["correction"]),
      (104, "EUR", "USD", 1_350_000, ["ecb"]),
      (9999, "EUR", "USD", 1_350_000, ["ecb"]),
      (99, "EUR", "USD", nil, []),
      (-5, "EUR", "USD", nil, []),
    ] as [(Int, String, String, Int64?, [String])])
  func latestDateThenLatestPositionThenLatestLineCounts(
    day: Int, from: String, to: String, expected: Int64?, sources: [String]
  ) throws {
    let result = try Self.convert(Self.rates, 1_000_000, from, to, day: day)
    expectEqual(result.micros, expected)
    expectEqual(result.sources, sources)
  }

  @Test func directPairGoesBeforeAFresherInverse() throws {
    let result = try Self.convert(Self.rates, 1_000_000, "USD", "EUR", day: 104)
    expectEqual(result.micros, 500_000)
    expectEqual(result.sources, ["bank"])
  }

  @Test func inverseOfTheOppositePairGoesBeforeACross() throws {
    let result = try Self.convert(Self.rates, 8_000_000, "GBP", "USD", day: 100)
    expectEqual(result.micros, 10_000_000)
    expectEqual(result.sources, ["bank"])
  }

  @Test(
    arguments: [
      // Through CAD, as AUD has no rate yet: 8 / 0.7.
      (102, "CHF", "SEK", 11_428_571, ["boc"]),
      // Through AUD, the first by name from day 103 on: 7 / 0.6.
      (103, "CHF", "SEK", 11_666_667, ["rba"]),
      (103, "SEK", "CHF", 85_714, ["rba"]),
      // Through EUR, each side at its own latest: 160 / 1.25.
      (103, "USD", "JPY", 128_000_000, ["correction", "ecb"]),
      // No base has both.
      (103, "CHF", "USD", nil, []),
      (103, "GBP", "SGD", nil, []),
    ] as [(Int, String, String, Int64?, [String])])
  func crossGoesThroughTheFirstBaseWithBoth(
    day: Int, from: String, to: String, expected: Int64?, sources: [String]
  ) throws {
    let result = try Self.convert(Self.rates, 1_000_000, from, to, day: day)
    expectEqual(result.micros, expected)
    expectEqual(result.sources, sources)
  }

  /// A limit of three days; nil if the line stays as it is, with the day of the rate that is too old.
  @Test(
    arguments: [
      (105, "EUR", "JPY", nil, 100, nil), (103, "EUR", "JPY", 160_000_000, nil, "EUR JPY 100"),
      (107, "EUR", "USD", 1_350_000, nil, "EUR USD 104"), (108, "EUR", "USD", nil, 104, nil),
      // The direct pair is too old, its inverse is not.
      (104, "USD", "EUR", 740_741, nil, "EUR USD 104"),
      (103, "USD", "EUR", 500_000, nil, "USD EUR 100"),
      // Through CAD until its rates are too old, then through AUD, whose base comes first.
      (102, "CHF", "SEK", 11_428_571, nil, "CAD CHF 100"),
      (106, "CHF", "SEK", 11_666_667, nil, "AUD CHF 103"),
      // One leg of the two is too old.
      (104, "JPY", "USD", nil, 100, nil),
      (99, "EUR", "USD", nil, nil, nil), (104, "GBP", "SGD", nil, nil, nil),
      (Int.min, "EUR", "USD", nil, nil, nil), (Int.max, "EUR", "USD", nil, 104, nil),
      (104, "USD", "USD", 1_000_000, nil, nil),
    ] as [(Int, String, String, Int64?, Int?, String?)])
  func rateThatIsTooOldConvertsNothing(
    day: Int, from: String, to: String, expected: Int64?, staleDay: Int?, oldest: String?
  ) throws {
    var converter = RateConverter(
      try Self.table(Self.rates), to: try #require(Currency.parse(to)), ageMaxDays: 3)
    let from = try #require(Currency.parse(from))
    for _ in 0..<2 {
      expectEqual(converter.convert(micros: 1_000_000, from: from, utcDay: day), expected)
      expectEqual(converter.staleRateDay(from: from, utcDay: day), staleDay)
    }
    expectEqual(converter.oldestUsed.map { "\($0.base) \($0.quote) \($0.day)" }, oldest)
  }

  @Test func oldestRateUsedIsThatOfAllLines() throws {
    var converter = RateConverter(
      try Self.table(Self.rates), to: try #require(Currency.parse("USD")), ageMaxDays: 100)
    let euro = try #require(Currency.parse("EUR"))
    for day in [104, 103, 102, 104] {
      _ = converter.convert(micros: 1, from: euro, utcDay: day)
    }
    expectEqual(converter.oldestUsed?.day, 102)
  }

  @Test func amountInTheReportingCurrencyStaysAndUsesNoSource() throws {
    let result = try Self.convert(Self.rates, -42, "USD", "USD", day: 0)
    expectEqual(result.micros, -42)
    #expect(result.sources.isEmpty)
  }

  /// Days far apart, some of which share a slot of the converter's cache.
  @Test func daysInAnyOrderKeepTheirOwnRates() throws {
    let days = [0, 1, 367, 1024, 4096, 8192, 8193, 16_384, 65_536]
    let lines = days.map { "\($0) EUR USD \($0 + 1) 0 s" }
    var converter = RateConverter(
      try Self.table(lines), to: try #require(Currency.parse("USD")))
    let euro = try #require(Currency.parse("EUR"))
    for day in days + days.reversed() + days {
      expectEqual(converter.convert(micros: 1, from: euro, utcDay: day), Int64(day + 1))
      #expect(converter.convert(micros: 1, from: euro, utcDay: day - 8192 * 9) == nil)
    }
    #expect(converter.convert(micros: 1, from: euro, utcDay: Int.min) == nil)
    expectEqual(converter.convert(micros: 1, from: euro, utcDay: Int.max), 65_537)
  }

  @Test func emptyTableConvertsNothing() throws {
    #expect(try Self.convert([], 1, "EUR", "USD", day: 10).micros == nil)
  }

  /// Computed with exact fractions by another program.
  @Test(
    arguments: [
      ("EUR", "USD", "1.0954", 12_340_000, 13_517_236),
      ("USD", "EUR", "1.0954", 12_340_000, 11_265_291),
      ("USD", "EUR", "2", 1, 0), ("USD", "EUR", "2", 3, 2), ("USD", "EUR", "2", 5, 2),
      ("USD", "EUR", "2", -3, -2), ("USD", "EUR", "2", -1, 0), ("EUR", "USD", "0.5", 7, 4),
      ("EUR", "USD", "0.5", -5, -2),
      ("EUR", "USD", "0.123456789012", 123_456_789_012_345_678, 15_241_578_753_196_160),
      ("EUR", "USD", "0.999999999999", Int64.max, 9_223_372_036_845_552_435),
      ("USD", "EUR", "1.000000000001", Int64.min, -9_223_372_036_845_552_436),
      ("EUR", "USD", "999999.999999999999", 999_999_999_999, 999_999_999_998_999_999),
      ("EUR", "USD", "1", Int64.min, Int64.min), ("EUR", "USD", "1", Int64.max, Int64.max),
      ("EUR", "USD", "123456.78", 0, 0),
    ] as [(String, String, String, Int64, Int64)])
  func resultIsExactAndRoundedOnceHalfToEven(
    from: String, to: String, rate: String, micros: Int64, expected: Int64
  ) throws {
    try expectEqual(
      Self.convert(["0 EUR USD \(rate) 0 s"], micros, from, to, day: 0).micros, expected)
  }

  @Test(
    arguments: [
      // 1.0854 USD and 161.23 JPY for a euro; rounding in between would change the last digit.
      ("1.0854", "161.23", 9_990_000, 1_483_957_711),
      ("0.8567", "1.0854", 9_990_000, 12_656_876),
      ("987654321.987654321", "123456.789012", Int64.max, 1_152_921_493_059_992),
      ("999999999999999999", "999999999999999999", Int64.min, Int64.min),
      ("0.000000000001", "0.000000000001", Int64.max, Int64.max),
    ] as [(String, String, Int64, Int64)])
  func crossIsRoundedOnce(own: String, target: String, micros: Int64, expected: Int64) throws {
    let lines = ["0 EUR USD \(own) 0 s", "0 EUR JPY \(target) 0 s"]
    try expectEqual(Self.convert(lines, micros, "USD", "JPY", day: 0).micros, expected)
  }

  @Test(
    arguments: [
      ("EUR", "USD", "1.000001", Int64.max), ("EUR", "USD", "999999999999999999", Int64.min),
      ("USD", "EUR", "0.000000000001", Int64.max), ("EUR", "USD", "2", 4_611_686_018_427_387_904),
    ] as [(String, String, String, Int64)])
  func resultBeyond64BitsIsNone(from: String, to: String, rate: String, micros: Int64) throws {
    let result = try Self.convert(["0 EUR USD \(rate) 0 s"], micros, from, to, day: 0)
    #expect(result.micros == nil)
    expectEqual(result.sources, [])
  }

  @Test func widestCrossIsNoneNotATrap() throws {
    let lines = ["0 EUR USD 0.000000000001 0 s", "0 EUR JPY 999999999999999999 0 s"]
    #expect(try Self.convert(lines, Int64.min, "USD", "JPY", day: 0).micros == nil)
  }

  @Test func sourceNamesEachDeclarationThatWasUsed() throws {
    var converter = RateConverter(
      try Self.table([
        "100 EUR USD 1.1 5 rates.csv", "101 EUR USD 1.2 9 rates.csv", "101 EUR GBP 0.8 7 bank",
        "102 EUR USD 1.3 11 rates.csv",
      ]), to: try #require(Currency.parse("USD")))
    let (euro, pound) = try (
      #require(Currency.parse("EUR")), #require(Currency.parse("GBP"))
    )
    for (currency, day) in [(euro, 101), (euro, 100), (pound, 101), (euro, 101)] {
      _ = converter.convert(micros: 1_000_000, from: currency, utcDay: day)
    }
    expectEqual(
      converter.sourcesUsed,
      [
        RateSource(name: "bank", positions: [7]), RateSource(name: "rates.csv", positions: [5, 9]),
      ])
  }

  /// An independent computation: every rate is examined for each question, and products are kept
  /// within 128 bits.
  @Test(arguments: [UInt64(11), 12, 13])
  func conversionAgreesWithALinearSearch(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let currencies = try ["AUD", "EUR", "GBP", "JPY", "USD"].map {
      try #require(Currency.parse($0))
    }
    for _ in 0..<60 {
      var rates: [DeclaredRate] = []
      for order in 0..<Int.random(in: 0...14, using: &random) {
        rates.append(
          DeclaredRate(
            source: "s\(order % 3)", dateDay: Int.random(in: 0...6, using: &random),
            base: try #require(currencies.randomElement(using: &random)),
            quote: try #require(currencies.randomElement(using: &random)),
            rate: try #require(
              Decimal18(
                mantissa: UInt64.random(in: 1...9999, using: &random),
                scale: Int.random(in: 0...4, using: &random))),
            position: Int64.random(in: 0...3, using: &random), orderInFile: order))
      }
      let table = RateTable(rates)
      for target in currencies {
        var converter = RateConverter(table, to: target)
        for own in currencies where own != target {
          for day in -1...7 {
            let micros = Int64.random(in: -100_000_000...100_000_000, using: &random)
            let expected = slowConversion(rates, micros, own, target, day, bases: currencies)
            expectEqual(
              converter.convert(micros: micros, from: own, utcDay: day), expected,
              "seed \(seed): \(micros) \(own) to \(target) on day \(day) by \(rates)")
          }
        }
      }
    }
  }

  private func slowConversion(
    _ rates: [DeclaredRate], _ micros: Int64, _ own: Currency, _ target: Currency, _ day: Int,
    bases: [Currency]
  ) -> Int64? {
    func rate(_ base: Currency, _ quote: Currency) -> Decimal18? {
      var best: DeclaredRate?
      for rate in rates where rate.base == base && rate.quote == quote && rate.dateDay <= day {
        guard let known = best else {
          best = rate
          continue
        }
        if (rate.dateDay, rate.position, rate.orderInFile)
          > (known.dateDay, known.position, known.orderInFile)
        {
          best = rate
        }
      }
      return best?.rate
    }
    func tenToThe(_ exponent: Int) -> Int128 { (0..<exponent).reduce(1) { power, _ in power * 10 } }
    var numerator: Int128 = 1
    var denominator: Int128 = 1
    if let direct = rate(own, target) {
      numerator = Int128(direct.mantissa)
      denominator = tenToThe(direct.scale)
    } else if let opposite = rate(target, own) {
      numerator = tenToThe(opposite.scale)
      denominator = Int128(opposite.mantissa)
    } else {
      let base = bases.first { rate($0, own) != nil && rate($0, target) != nil }
      guard let base, let over = rate(base, own), let under = rate(base, target) else { return nil }
      numerator = Int128(under.mantissa) * tenToThe(over.scale)
      denominator = Int128(over.mantissa) * tenToThe(under.scale)
    }
    let product = Int128(micros) * numerator
    var floor = product / denominator
    if floor * denominator > product { floor -= 1 }
    let twice = (product - floor * denominator) * 2
    let isUp = twice > denominator || (twice == denominator && floor % 2 != 0)
    return Int64(floor + (isUp ? 1 : 0))
  }
}

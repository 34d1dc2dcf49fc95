// Prices read from raw tokens, and amounts written as text.
import Revenue
import TestSupport
import Testing

@Suite struct MoneyPriceTests {
  @Test(
    arguments: [
      ("9.99", 9_990_000), ("0", 0), ("0.0", 0), ("00.99", 990_000), ("28", 28_000_000),
      ("0.99000000000000000444", 990_000), ("99999999999", 99_999_999_999_000_000),
      ("99999999999.9999999", 100_000_000_000_000_000), ("1.123456", 1_123_456),
      ("1.1234565", 1_123_456), ("1.1234575", 1_123_458), ("1.12345650", 1_123_456),
      ("1.123456500000000000000000000001", 1_123_457), ("1.1234564999", 1_123_456),
      ("1.1234566", 1_123_457), ("0.0000005", 0), ("0.0000015", 2), ("0.00000050001", 1),
      ("0.9999995", 1_000_000), ("12345678901.000001", 12_345_678_901_000_001), ("1.5", 1_500_000),
    ] as [(String, Int64)])
  func decimalIsReadExactly(text: String, micros: Int64) {
    #expect(withRawBytes(text) { PriceForms.micros(decimal: $0) } == micros)
  }

  @Test(arguments: [
    "", ".", "1.", ".5", "-1", "+1", "-0", "1e2", "1E2", "1.5e0", "1,5", "9,99 €", "¥28.00", " 1",
    "1 ", "1.2.3", "100000000000", "000000000001", "1.5x", "0x10", "NaN", "١", "null", "1.\u{0}",
  ])
  func otherTextIsUnreadable(text: String) {
    #expect(withRawBytes(text) { PriceForms.micros(decimal: $0) } == nil)
  }

  @Test func millionDecimalsAreReadWithoutOverflow() {
    let zeros = String(repeating: "0", count: 1_000_000)
    expectEqual(withRawBytes("1.0000005" + zeros) { PriceForms.micros(decimal: $0) }, 1_000_000)
    expectEqual(
      withRawBytes("1.0000005" + zeros + "1") { PriceForms.micros(decimal: $0) }, 1_000_001)
    #expect(withRawBytes("0" + zeros) { PriceForms.micros(decimal: $0) } == nil)
  }

  /// An independent computation: the whole number in 128 bits, divided once.
  @Test(arguments: [UInt64(1), 2, 3])
  func decimalsAgreeWithLongDivision(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    for _ in 0..<2000 {
      let whole = random.digits(Int.random(in: 1...11, using: &random))
      var fraction = random.digits(Int.random(in: 1...20, using: &random))
      if Bool.random(using: &random) { fraction = String(fraction.prefix(6)) + "5" }
      if Bool.random(using: &random) { fraction += "00" }
      let number = Int128(whole + fraction) ?? -1
      let decimals = fraction.count
      var expected = number
      if decimals <= 6 {
        for _ in decimals..<6 { expected *= 10 }
      } else {
        var divisor: Int128 = 1
        for _ in 6..<decimals { divisor *= 10 }
        let (quotient, remainder) = number.quotientAndRemainder(dividingBy: divisor)
        let twice = remainder * 2
        expected = quotient + (twice > divisor || (twice == divisor && quotient % 2 == 1) ? 1 : 0)
      }
      let text = whole + "." + fraction
      let micros = withRawBytes(text) { PriceForms.micros(decimal: $0) }
      expectEqual(micros.map { Int128($0) }, expected, "seed \(seed): \(text)")
    }
  }

  @Test(
    arguments: [
      ("0", 0), ("9990000", 9_990_000), ("99999999999999999", 99_999_999_999_999_999),
    ] as [(String, Int64)])
  func microsTokenIsRead(token: String, micros: Int64) {
    #expect(withRawBytes(token) { PriceForms.micros(microsToken: $0) } == micros)
  }

  @Test(
    arguments: [
      ("0", 0), ("9990", 9_990_000), ("99999999999999", 99_999_999_999_999_000),
    ] as [(String, Int64)])
  func milliunitsTokenIsRead(token: String, micros: Int64) {
    #expect(withRawBytes(token) { PriceForms.micros(milliunitsToken: $0) } == micros)
  }

  @Test(arguments: ["", "-1", "-0", "1.0", "1e3", "01", "\"1\"", "true", "null", " 1"])
  func otherTokensAreUnreadable(token: String) {
    #expect(withRawBytes(token) { PriceForms.micros(microsToken: $0) } == nil)
    #expect(withRawBytes(token) { PriceForms.micros(milliunitsToken: $0) } == nil)
  }

  @Test func oneDigitTooManyIsUnreadable() {
    #expect(withRawBytes("100000000000000000") { PriceForms.micros(microsToken: $0) } == nil)
    #expect(withRawBytes("100000000000000") { PriceForms.micros(milliunitsToken: $0) } == nil)
  }

  @Test(
    arguments: [
      (9_990_000, "EUR", "9.99"), (10_000_000, "EUR", "10.00"), (0, "USD", "0.00"),
      (-1_500_000, "USD", "-1.50"), (-1, "USD", "-0.000001"), (28_000_000, "JPY", "28"),
      (28_500_000, "JPY", "28.5"), (1_234_000, "KWD", "1.234"), (1_200_000, "KWD", "1.200"),
      (1_000_000, "CLF", "1.0000"), (1_123_450, "EUR", "1.12345"), (1_123_456, "CLF", "1.123456"),
      (0, nil, "0"), (1_500_000, nil, "1.5"), (2_000_000, nil, "2"), (-10, nil, "-0.00001"),
      (Int64.max, "EUR", "9223372036854.775807"), (Int64.min, nil, "-9223372036854.775808"),
      (1_234_567_000_000, "USD", "1234567.00"), (0, "CLF", "0.0000"), (50_000, "EUR", "0.05"),
    ] as [(Int64, String?, String)])
  func amountHasAtLeastItsMinorDigits(micros: Int64, code: String?, text: String) {
    let currency = code.flatMap { Currency.parse($0) }
    expectEqual((currency == nil), (code == nil))
    expectEqual(Amount.text(micros: micros, currency: currency), text)
    expectEqual(Amount.text(micros: Int128(micros), currency: currency), text)
  }

  @Test(
    arguments: [
      (Int128.max, "170141183460469231731687303715884.105727"),
      (Int128.min, "-170141183460469231731687303715884.105728"),
      (1_000_000_000_000_000_000_000_000, "1000000000000000000"),
      (1_000_000_000_000_000_001_500_000, "1000000000000000001.5"),
      (999_999_999_999_999_999_999_999, "999999999999999999.999999"),
      (-9_223_372_036_854_775_809, "-9223372036854.775809"),
    ] as [(Int128, String)])
  func sumOf128BitsIsWritten(micros: Int128, text: String) {
    expectEqual(Amount.text(micros: micros, currency: nil), text)
  }

  @Test(arguments: [UInt64(7), 8])
  func writtenAmountReadsBackAndIsShortest(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for _ in 0..<2000 {
      let digits = Int.random(in: 1...17, using: &random)
      let zeros = Int.random(in: 0...6, using: &random)
      let written = String(
        (random.digits(digits) + String(repeating: "0", count: zeros)).suffix(17))
      let micros = try #require(Int64(written))
      let currency = try #require(Currency.all.randomElement(using: &random))
      let text = Amount.text(micros: micros, currency: currency)
      #expect(withRawBytes(text) { PriceForms.micros(decimal: $0) } == micros, "seed \(seed)")
      let decimals = text.split(separator: ".").dropFirst().first?.count ?? 0
      #expect(decimals >= currency.minorDigits, "seed \(seed): \(text)")
      #expect(decimals == currency.minorDigits || text.last != "0", "seed \(seed): \(text)")
    }
  }
}

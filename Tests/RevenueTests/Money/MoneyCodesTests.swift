// Currency and country codes: which are known, how they are read, and their minor digits.
import Revenue
import TestSupport
import Testing

@Suite struct MoneyCodesTests {
  @Test(arguments: [
    ("USD", "USD", 2), ("eur", "EUR", 2), (" jpy\n", "JPY", 0), ("\tKwd \r\n", "KWD", 3),
    ("CLF", "CLF", 4), ("UYW", "UYW", 4), ("BHD", "BHD", 3), ("IQD", "IQD", 3), ("ISK", "ISK", 0),
    ("UGX", "UGX", 0), ("UYI", "UYI", 0), ("XOF", "XOF", 0), ("HUF", "HUF", 2), ("MGA", "MGA", 2),
    ("CHW", "CHW", 2), ("COU", "COU", 2), ("MXV", "MXV", 2), ("USN", "USN", 2), ("BOV", "BOV", 2),
    ("CHE", "CHE", 2), ("XDR", "XDR", 0), ("XSU", "XSU", 0), ("XUA", "XUA", 0), ("XBA", "XBA", 0),
    ("SLE", "SLE", 2), ("VED", "VED", 2), ("XCG", "XCG", 2), ("ZWG", "ZWG", 2), ("XAD", "XAD", 2),
    ("BYN", "BYN", 2), ("STN", "STN", 2), ("MRU", "MRU", 2), ("ZMW", "ZMW", 2), ("TMT", "TMT", 2),
  ])
  func activeCurrencyIsKnown(text: String, code: String, minorDigits: Int) throws {
    let currency = try #require(Currency.parse(text))
    expectEqual(currency.description, code)
    expectEqual(currency.minorDigits, minorDigits)
  }

  @Test(arguments: [
    ("SKK", 2), ("EEK", 2), ("LVL", 2), ("LTL", 2), ("HRK", 2), ("BGN", 2), ("ZWL", 2), ("ZWR", 2),
    ("ZWD", 2), ("ZWN", 2), ("VEF", 2), ("VEB", 2), ("BYR", 0), ("MRO", 2), ("STD", 2), ("ZMK", 2),
    ("GHC", 2), ("CYP", 2), ("MTL", 2), ("TMM", 2), ("CUC", 2), ("ANG", 2), ("SLL", 2), ("USS", 2),
    ("XFU", 0),
  ])
  func currencyWithdrawnSince2008IsKnown(code: String, minorDigits: Int) throws {
    try expectEqual(#require(Currency.parse(code)).minorDigits, minorDigits)
  }

  @Test(arguments: [
    "XAU", "XAG", "XPT", "XPD", "XTS", "XXX",
    "SIT", "DEM", "FRF", "ROL", "TRL", "AZM", "MZM", "SDD", "CSD", "GHP", "XFO", "CHC",
    "RMB", "UK", "", " ", "US", "USDD", "U S", "US1", "U\u{D}SD", "€", "US$", "ＵＳＤ", "\0USD", "@@@",
    "[[[",
  ])
  func otherTextIsNoCurrency(text: String) {
    #expect(Currency.parse(text) == nil)
  }

  @Test func tableIsWholeAndOrdered() {
    let codes = Currency.all.map(\.description)
    expectEqual(codes.count, 172 + 25)
    expectEqual(codes, codes.sorted())
    expectEqual(Set(codes).count, codes.count)
    expectEqual(Currency.all, Currency.all.sorted())
    for code in codes { expectEqual(Currency.parse(code.lowercased())?.description, code) }
    expectEqual(Currency.all.filter { $0.minorDigits == 3 }.count, 7)
    expectEqual(Currency.all.filter { $0.minorDigits == 4 }.count, 2)
    expectEqual(Currency.all.filter { $0.minorDigits == 0 }.count, 17 + 7 + 2)
  }

  @Test(arguments: [("US", "US"), ("de", "DE"), ("Gb", "GB"), ("xk", "XK"), ("SS", "SS")])
  func assignedCountryIsKnown(text: String, code: String) throws {
    let country = try #require(Country.parse(text))
    expectEqual(country.description, code)
  }

  @Test(arguments: [
    "UK", "uk", "EU", "ZZ", "XX", "AN", "CS", "YU", "SU", "AC", "", "U", "USA", " US", "U1", "é",
  ])
  func otherTextIsNoCountry(text: String) {
    #expect(Country.parse(text) == nil)
  }

  @Test func countryTableIsWholeAndOrdered() {
    let codes = Country.all.map(\.description)
    expectEqual(codes.count, 249 + 1)
    expectEqual(codes, codes.sorted())
    expectEqual(Country.all, Country.all.sorted())
    for code in codes { expectEqual(Country.parse(code.lowercased())?.description, code) }
  }
}

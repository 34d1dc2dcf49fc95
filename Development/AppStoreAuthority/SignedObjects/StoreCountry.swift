// The stores of countries, as signed transactions name them.

/// The store of a country.
package struct StoreCountry: Sendable {
  /// ISO 3166-1 alpha-3; Kosovo's is `XKS`.
  package let alpha3: String
  /// The store's own number, which is its `storefrontId`.
  package let number: Int

  /// The store of a country by its ISO 3166-1 alpha-2 code; nil where no invented customer buys.
  package init?(alpha2: String) {
    guard let store = Self.stores[alpha2] else { return nil }
    self = store
  }

  private init(_ alpha3: String, _ number: Int) {
    self.alpha3 = alpha3
    self.number = number
  }

  private static let table: [(alpha2: String, alpha3: String, number: Int)] = [
    ("US", "USA", 143_441), ("DE", "DEU", 143_443), ("GB", "GBR", 143_444),
    ("FR", "FRA", 143_442), ("IT", "ITA", 143_450), ("ES", "ESP", 143_454),
    ("NL", "NLD", 143_452), ("AT", "AUT", 143_445), ("BE", "BEL", 143_446),
    ("IE", "IRL", 143_449), ("PT", "PRT", 143_453), ("FI", "FIN", 143_447),
    ("GR", "GRC", 143_448), ("BG", "BGR", 143_526), ("RS", "SRB", 143_500),
    ("XK", "XKS", 143_624), ("JP", "JPN", 143_462), ("CN", "CHN", 143_465),
    ("KR", "KOR", 143_466), ("IN", "IND", 143_467), ("BR", "BRA", 143_503),
    ("MX", "MEX", 143_468), ("CA", "CAN", 143_455), ("AU", "AUS", 143_460),
    ("NZ", "NZL", 143_461), ("CH", "CHE", 143_459), ("SE", "SWE", 143_456),
    ("NO", "NOR", 143_457), ("DK", "DNK", 143_458), ("PL", "POL", 143_478),
    ("CZ", "CZE", 143_489), ("HU", "HUN", 143_482), ("TR", "TUR", 143_480),
    ("IL", "ISR", 143_491), ("SA", "SAU", 143_479), ("AE", "ARE", 143_481),
    ("ZA", "ZAF", 143_472), ("TH", "THA", 143_475), ("TW", "TWN", 143_470),
    ("SG", "SGP", 143_464), ("ID", "IDN", 143_476), ("VN", "VNM", 143_471),
    ("CL", "CHL", 143_483), ("AR", "ARG", 143_505), ("UA", "UKR", 143_492),
    ("IS", "ISL", 143_558), ("KW", "KWT", 143_493), ("BH", "BHR", 143_559),
    ("JO", "JOR", 143_528), ("MA", "MAR", 143_620), ("TN", "TUN", 143_536),
    ("OM", "OMN", 143_562),
  ]

  private static let stores = Dictionary(
    uniqueKeysWithValues: table.map { ($0.alpha2, StoreCountry($0.alpha3, $0.number)) })
}

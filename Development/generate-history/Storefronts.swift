// Where customers buy, in which currency they are billed, and what a tier costs there.

/// How the prices of a currency are shaped.
enum PriceShape: Sendable {
  /// Ends in .99.
  case pointNinetyNine
  /// Whole multiples of so many units.
  case multipleOf(Int)
}

struct Currency: Sendable {
  let code: String
  /// The sign that a localised price bears.
  let symbol: String
  /// ISO 4217 minor digits.
  let digits: Int
  /// What the App Store asks for a dollar's worth, in thousandths of a unit.
  let thousandthsPerDollar: Int
  let shape: PriceShape
  /// About what a euro buys, in micros; daily rates wander around it.
  let microsPerEuro: Int

  /// The price of a tier in micros.
  func priceMicros(tierCents: Int, percent: Int = 100) -> Int64 {
    let hundredThousandths = tierCents * percent / 100 * thousandthsPerDollar
    switch shape {
    case .pointNinetyNine:
      let units = max(1, (hundredThousandths + 99_999) / 100_000)
      return Int64(units) * 1_000_000 - 10_000
    case .multipleOf(let step):
      let units = max(1, (hundredThousandths / 100_000 + step - 1) / step) * step
      return Int64(units) * 1_000_000
    }
  }
}

struct Storefront: Sendable {
  let countryCode: String
  let currency: Currency
  let weight: Int
}

enum Storefronts {
  private static func currency(
    _ code: String, _ symbol: String, _ thousandths: Int, euro: Int, digits: Int = 2,
    step: Int? = nil
  ) -> Currency {
    Currency(
      code: code, symbol: symbol, digits: digits, thousandthsPerDollar: thousandths,
      shape: step.map(PriceShape.multipleOf) ?? .pointNinetyNine, microsPerEuro: euro)
  }

  static let euro = currency("EUR", "€", 1000, euro: 1_000_000)
  static let dollar = currency("USD", "$", 1000, euro: 1_104_000)

  /// Each currency with its storefronts and their weights. Many countries are billed in dollars or euros.
  private static let table: [(currency: Currency, countries: [(code: String, weight: Int)])] = [
    (
      dollar,
      [
        ("US", 300), ("AR", 9), ("UA", 8), ("IS", 3), ("KW", 4), ("BH", 2), ("JO", 2), ("MA", 3),
        ("TN", 2), ("OM", 2),
      ]
    ),
    (
      euro,
      [
        ("DE", 82), ("FR", 52), ("IT", 38), ("ES", 36), ("NL", 26), ("AT", 14), ("BE", 13),
        ("IE", 9), ("PT", 9), ("FI", 9), ("GR", 6), ("BG", 3), ("RS", 2), ("XK", 1),
      ]
    ),
    (currency("GBP", "£", 900, euro: 848_000), [("GB", 88)]),
    (currency("JPY", "¥", 150_000, euro: 163_200_000, digits: 0, step: 50), [("JP", 70)]),
    (currency("CNY", "¥", 7_000, euro: 7_880_000, step: 1), [("CN", 44)]),
    (currency("KRW", "₩", 1_350_000, euro: 1_561_000_000, digits: 0, step: 100), [("KR", 24)]),
    (currency("INR", "₹", 84_000, euro: 95_100_000, step: 10), [("IN", 30)]),
    (currency("BRL", "R$", 5_200, euro: 6_310_000), [("BR", 30)]),
    (currency("MXN", "$", 19_500, euro: 21_600_000, step: 1), [("MX", 20)]),
    (currency("CAD", "$", 1_370, euro: 1_533_000), [("CA", 40)]),
    (currency("AUD", "$", 1_540, euro: 1_712_000), [("AU", 38)]),
    (currency("NZD", "$", 1_690, euro: 1_866_000), [("NZ", 8)]),
    (currency("CHF", "CHF", 950, euro: 941_000, step: 1), [("CH", 20)]),
    (currency("SEK", "kr", 11_000, euro: 11_180_000, step: 1), [("SE", 16)]),
    (currency("NOK", "kr", 11_000, euro: 11_720_000, step: 1), [("NO", 13)]),
    (currency("DKK", "kr.", 7_500, euro: 7_460_000, step: 1), [("DK", 11)]),
    (currency("PLN", "zł", 4_500, euro: 4_260_000), [("PL", 16)]),
    (currency("CZK", "Kč", 24_500, euro: 24_860_000, digits: 2, step: 1), [("CZ", 8)]),
    (currency("HUF", "Ft", 400_000, euro: 402_100_000, step: 10), [("HU", 6)]),
    (currency("TRY", "₺", 33_000, euro: 43_300_000), [("TR", 14)]),
    (currency("ILS", "₪", 3_900, euro: 3_910_000), [("IL", 8)]),
    (currency("SAR", "SAR", 4_000, euro: 4_140_000), [("SA", 9)]),
    (currency("AED", "AED", 3_990, euro: 4_055_000), [("AE", 9)]),
    (currency("ZAR", "R", 19_000, euro: 20_150_000), [("ZA", 8)]),
    (currency("THB", "฿", 35_500, euro: 36_800_000, step: 10), [("TH", 8)]),
    (currency("TWD", "NT$", 32_500, euro: 34_700_000, step: 10), [("TW", 12)]),
    (currency("SGD", "$", 1_480, euro: 1_446_000), [("SG", 9)]),
    (currency("IDR", "Rp", 16_500_000, euro: 17_950_000_000, step: 1000), [("ID", 9)]),
    (currency("VND", "₫", 25_000_000, euro: 28_400_000_000, digits: 0, step: 1000), [("VN", 6)]),
    (currency("CLP", "$", 990_000, euro: 1_061_000_000, digits: 0, step: 100), [("CL", 7)]),
  ]

  static let all: [Storefront] = table.flatMap { row in
    row.countries.map {
      Storefront(countryCode: $0.code, currency: row.currency, weight: $0.weight)
    }
  }
  static let currencies: [Currency] = table.map(\.currency)
  static let weights = all.map(\.weight)
}

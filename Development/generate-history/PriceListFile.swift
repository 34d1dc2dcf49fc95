// A price list that agrees with what customers paid, where it says anything.
import AppStoreAuthority
import Base
import ProgramSupport

struct PriceListFile {
  let simulation: Simulation

  /// The list names these storefronts' prices; elsewhere its entries without a country hold.
  private static let storefronts = Storefronts.all.filter { $0.weight >= 8 }

  func write(to output: inout Output) throws(OutputError) {
    try output.write("product_id,country_code,currency,price,effective_from\n")
    let startMs = simulation.fromMs - 400 * dayMs
    for app in Catalogue.apps where app.isOnPriceList {
      for product in app.products {
        try write(product, sinceMs: startMs, to: &output)
        if product.raisedTierCents != product.tierCents {
          try write(product, sinceMs: simulation.priceRiseMs, to: &output)
        }
      }
    }
  }

  private func write(
    _ product: Product, sinceMs: Int64, to output: inout Output
  ) throws(OutputError) {
    let since = StoreTime.day(sinceMs).description
    func line(_ country: String, _ currency: Currency) -> String {
      let tierCents =
        sinceMs >= simulation.priceRiseMs ? product.raisedTierCents : product.tierCents
      let price = PriceForm.decimal(
        currency.priceMicros(tierCents: tierCents), digits: currency.digits)
      return "\(product.id),\(country),\(currency.code),\(price),\(since)\n"
    }
    for storefront in Self.storefronts {
      try output.write(line(storefront.countryCode, storefront.currency))
    }
    try output.write(line("", Storefronts.dollar))
  }
}

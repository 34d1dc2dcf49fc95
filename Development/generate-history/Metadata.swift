// What an app's own code sends beside a receipt: campaigns, and prices in whatever form it chose.
import AppStoreAuthority
import Base
import ProgramSupport

struct Metadata {
  let simulation: Simulation
  let customer: Customer
  let upload: PlannedUpload

  private struct Entry {
    var transaction: UInt64?
    var productID: String?
    var kind: String?
    let micros: Int64
  }

  /// Writes the field `metadata`, or nothing.
  func write(random: inout RandomSource, to json: inout JSONWriter) {
    switch random.index(weighted: [900, 85, 15]) {
    case 0: break
    case 1: return
    default:
      json.key("metadata")
      json.null()
      return
    }
    json.key("metadata")
    json.beginObject()
    if random.chance(300) { writeCampaign(random: &random, to: &json) }
    if let prompt = upload.prompt {
      let purchase = customer.purchases[prompt].shown(
        atMs: upload.receiptMs, device: upload.device)
      if random.chance(900) { writePrices(of: purchase, random: &random, to: &json) }
    } else if random.chance(350) {
      writeLater(random: &random, to: &json)
    }
    json.endObject()
  }

  private func writeCampaign(random: inout RandomSource, to json: inout JSONWriter) {
    let names = [
      "autumn-letter", "paywall-b", "review-site", "launch-week", "onboarding-3", "none",
    ]
    json.member("campaign_id", random.pick(names))
    if random.chance(300) { json.member("build", 2000 + random.below(400)) }
    if random.chance(120) {
      json.key("experiment")
      json.beginObject()
      json.member("name", "price page")
      json.member("arm", random.chance(500) ? "blue" : "sand – wide")
      json.endObject()
    }
  }

  /// About one in eight uploads with prices has a fault in them.
  private func fault(random: inout RandomSource) -> PriceFault? {
    guard random.chance(130) else { return nil }
    return PriceFault.allCases[random.index(weighted: PriceFault.weights)]
  }

  private func writePrices(
    of purchase: Purchase, random: inout RandomSource, to json: inout JSONWriter
  ) {
    let fault = fault(random: &random)
    switch random.index(weighted: [28, 26, 26, 6, 14]) {
    case 0:
      write(
        [Entry(transaction: purchase.transaction, micros: purchase.unitMicros)], fault: fault,
        random: &random, to: &json)
    case 1:
      write(byProduct(purchase, random: &random), fault: fault, random: &random, to: &json)
    case 2:
      form(purchase.unitMicros, .any(&random)).write(fault: fault, random: &random, to: &json)
    case 3:
      if random.chance(500) {
        json.member("transaction_id", String(purchase.transaction))
      } else {
        json.member("product_id", purchase.product.id)
        if let kind = kind(of: purchase.offer) { json.member("kind", kind) }
      }
      form(purchase.unitMicros, .any(&random)).write(fault: fault, random: &random, to: &json)
    default:
      write(wholeCatalogue, fault: fault, random: &random, to: &json)
    }
  }

  /// At a launch some apps send what their shop window shows, or what was paid for all they know of.
  private func writeLater(random: inout RandomSource, to json: inout JSONWriter) {
    let fault = fault(random: &random)
    if random.chance(500) {
      write(wholeCatalogue, fault: fault, random: &random, to: &json)
      return
    }
    let held = UnifiedReceipt.purchases(
      of: customer, receiptMs: upload.receiptMs, device: upload.device)
    let entries = held.suffix(4).map {
      Entry(transaction: $0.transaction, productID: $0.product.id, micros: $0.unitMicros)
    }
    write(entries, fault: fault, random: &random, to: &json)
  }

  private func kind(of offer: Offer) -> String? {
    switch offer {
    case .regular, .trial: nil
    case .introductory: "intro"
    case .promotional: "promo"
    case .code: "offer_code"
    }
  }

  /// The product's price; for an offer its own, and now and then the regular one beside it.
  private func byProduct(_ purchase: Purchase, random: inout RandomSource) -> [Entry] {
    let regularMicros = simulation.priceMicros(
      of: purchase.product, in: customer.storefront, atMs: purchase.purchasedMs, offer: .regular)
    var regular = Entry(productID: purchase.product.id, micros: regularMicros)
    if random.chance(150) { regular.kind = "regular" }
    guard let kind = kind(of: purchase.offer) else { return [regular] }
    let offer = Entry(
      productID: purchase.product.id, kind: kind, micros: purchase.unitMicros)
    return random.chance(500) ? [regular, offer] : [offer]
  }

  private var wholeCatalogue: [Entry] {
    customer.app.products.map { product in
      Entry(
        productID: product.id,
        micros: simulation.priceMicros(
          of: product, in: customer.storefront, atMs: upload.atMs, offer: .regular))
    }
  }

  private func form(_ micros: Int64, _ style: PriceStyle) -> PriceForm {
    PriceForm(micros: micros, currency: customer.storefront.currency, style: style)
  }

  private func write(
    _ entries: [Entry], fault: PriceFault?, random: inout RandomSource, to json: inout JSONWriter
  ) {
    let style = PriceStyle.any(&random)
    json.key("prices")
    json.beginArray()
    for entry in entries {
      json.beginObject()
      if let transaction = entry.transaction {
        json.member("transaction_id", String(transaction))
      }
      if let productID = entry.productID { json.member("product_id", productID) }
      if let kind = entry.kind { json.member("kind", kind) }
      form(entry.micros, style).write(fault: fault, random: &random, to: &json)
      json.endObject()
    }
    json.endArray()
  }
}

// Transaction receipts of old: base64 of a property list that holds two more pieces of base64.
import AppStoreAuthority
import Base
import ProgramSupport

struct LegacyReceipt {
  let simulation: Simulation
  let customer: Customer

  /// The keys of `purchase-info` and the values that the reply repeats, with `-` for the reply's `_`.
  static func fields(
    simulation: Simulation, customer: Customer, purchase: Purchase, device: Int, atMs: Int64
  ) -> [(key: String, value: String)] {
    let facts = ReceiptFacts(simulation: simulation, customer: customer)
    var fields: [(key: String, value: String)] = []
    func add(_ key: String, _ value: String) { fields.append((key, value)) }
    add(
      "original_purchase_date_pst", StoreTime.losAngeles(purchase.originallyPurchasedMs))
    add("unique_identifier", facts.deviceIdentifier(device: device))
    add("original_transaction_id", String(purchase.original))
    if purchase.expiresMs > 0 {
      add("expires_date", String(purchase.expiresMs))
      add("expires_date_formatted", StoreTime.greenwich(purchase.expiresMs))
      add("expires_date_formatted_pst", StoreTime.losAngeles(purchase.expiresMs))
      add("is_trial_period", purchase.offer == .trial ? "true" : "false")
      add("is_in_intro_offer_period", purchase.offer == .introductory ? "true" : "false")
    }
    if purchase.lineItem > 0 { add("web_order_line_item_id", String(purchase.lineItem)) }
    add("transaction_id", String(purchase.transaction))
    add("quantity", String(purchase.quantity))
    add("product_id", purchase.product.id)
    add("item_id", String(purchase.product.itemID))
    add("bid", customer.app.bundleID)
    add("unique_vendor_identifier", facts.vendorIdentifier(device: device))
    add("bvrs", facts.version(atMs: atMs))
    add("purchase_date", StoreTime.greenwich(purchase.purchasedMs))
    add("purchase_date_ms", String(purchase.purchasedMs))
    add("purchase_date_pst", StoreTime.losAngeles(purchase.purchasedMs))
    add("original_purchase_date", StoreTime.greenwich(purchase.originallyPurchasedMs))
    add("original_purchase_date_ms", String(purchase.originallyPurchasedMs))
    return fields
  }

  func base64(of purchase: Purchase, device: Int, receiptMs: Int64) -> String {
    let entries = Self.fields(
      simulation: simulation, customer: customer, purchase: purchase, device: device,
      atMs: receiptMs
    ).map { (String($0.key.map { $0 == "_" ? "-" : $0 }), $0.value) }
    let outer = [
      ("signature", Base64.text(signature(of: purchase, receiptMs: receiptMs))),
      ("purchase-info", Base64.text(TransactionReceiptPlan.propertyList(entries))),
      ("environment", customer.isSandbox ? "Sandbox" : "Production"),
      ("pod", customer.isSandbox ? "100" : String(customer.index % 70 + 1)),
      ("signing-status", "0"),
    ]
    return Base64.text(TransactionReceiptPlan.propertyList(outer))
  }

  /// Version 2, 128 bytes that sign nothing, and a certificate that is the same everywhere.
  private func signature(of purchase: Purchase, receiptMs: Int64) -> [UInt8] {
    var random = RandomSource(
      seed: simulation.seed, 50, purchase.transaction, UInt64(bitPattern: receiptMs))
    let signature = random.bytes(128)
    var shared = RandomSource(seed: simulation.seed, 51)
    let certificate = CertificateSet.certificate(
      subject: CertificateSet.name("Example Purchase Signing"),
      issuer: CertificateSet.name("Example Store Authority"), serial: [0x52, 0x0B, 0x31, 0x07],
      digest: .sha1, keyBytes: 256, fillerBytes: 40, random: &shared)
    return TransactionReceiptPlan.blob(
      version: 2, signature: signature, certificate: certificate)
  }
}

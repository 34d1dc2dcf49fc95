// Transaction receipts of old, and the App Store's replies about them.
import AppStoreAuthority
import Base
import ProgramSupport

struct LegacyReceipt {
  let simulation: Simulation
  let customer: Customer
  let device: Int

  private func fields(of purchase: Purchase, atMs: Int64) -> [(String, String)] {
    let facts = ReceiptFacts(simulation: simulation, customer: customer)
    return ReceiptSigner.fields(
      of: purchase.inReceipt(atMs: atMs), in: facts.receipt(device: device, atMs: atMs),
      facts.facts(device: device, atMs: atMs))
  }

  func base64(of purchase: Purchase, receiptMs: Int64) -> String {
    var plan = TransactionReceiptPlan(
      fields: fields(of: purchase, atMs: receiptMs),
      environmentLine: TransactionReceiptPlan.environmentLine(
        customer.isSandbox ? "Sandbox" : "Production"))
    plan.pod = customer.isSandbox ? "100" : String(customer.index % 70 + 1)
    return Base64.text(
      plan.list(
        blob: signature(of: purchase, receiptMs: receiptMs), purchaseInfo: plan.purchaseInfo))
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

  // MARK: The reply

  /// The reply about a purchase's receipt, which was made at `receiptMs`.
  func reply(about purchase: Purchase, receiptMs: Int64, requestMs: Int64) -> TransactionReply {
    func row(_ purchase: Purchase) -> TransactionReply.Row {
      (fields(of: purchase, atMs: receiptMs), purchase.refund(atMs: requestMs))
    }
    let latest = latestPeriod(of: purchase, requestMs: requestMs).map { latest in
      let isExpired = latest.expiresMs <= requestMs
      var willRenew = true
      if case .voluntary(let atMs) = latest.lapse { willRenew = atMs > requestMs }
      return TransactionReply.Latest(
        productID: latest.product.id, row: row(latest), isExpired: isExpired,
        willRenew: willRenew,
        receipt: isExpired ? nil : base64(of: latest, receiptMs: latest.purchasedMs + 1000))
    }
    return TransactionReply(row(purchase), latest: latest)
  }

  /// The newest period of a purchase's subscription.
  private func latestPeriod(of purchase: Purchase, requestMs: Int64) -> Purchase? {
    guard purchase.product.kind == .autoRenewable else { return nil }
    return customer.purchases.filter {
      $0.original == purchase.original && $0.purchasedMs <= requestMs
    }.max { $0.purchasedMs < $1.purchasedMs }
  }
}

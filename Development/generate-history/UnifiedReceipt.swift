// Unified receipts that nobody signed, and what receipts and replies both say about app and device.
import AppStore
import AppStoreAuthority
import Base
import ProgramSupport

struct ReceiptFacts {
  let simulation: Simulation
  let customer: Customer

  private var downloadID: Int64 {
    var random = RandomSource(seed: simulation.seed, 30, UInt64(customer.index))
    return customer.isSandbox ? 0 : 504_000_000_000_000 + Int64(random.below(900_000_000_000))
  }

  /// When the app was first got.
  private var installedMs: Int64 {
    var random = RandomSource(seed: simulation.seed, 31, UInt64(customer.index))
    let day = customer.arrivalMs - Int64(random.below(90)) * dayMs
    return day - Int64(random.below(3600)) * secondMs
  }

  /// A release every three weeks.
  private func release(atMs: Int64) -> Int { Int(atMs / (21 * dayMs)) % 400 }

  private func versionText(_ release: Int) -> String { "\(3 + release / 100).\(release % 100)" }

  private func version(atMs: Int64) -> String {
    customer.isSandbox ? "1.0" : versionText(release(atMs: atMs))
  }

  /// The 16 bytes of the device's identifier for the vendor.
  func vendorBytes(device: Int) -> [UInt8] {
    var random = RandomSource(seed: simulation.seed, 32, UInt64(customer.index), UInt64(device))
    var bytes = random.bytes(16)
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    return bytes
  }

  /// What the App Store knows when it makes a receipt at `atMs`.
  func facts(device: Int, atMs: Int64) -> AppFacts {
    let vendor = vendorBytes(device: device)
    // Apple gives apps their numbers in production only.
    var facts = AppFacts(
      adamID: customer.isSandbox ? 0 : Int64(customer.app.adamID),
      versionID: customer.isSandbox ? 0 : Int64(870_000_000 + release(atMs: atMs) * 10_007),
      downloadID: downloadID, originalPurchaseMs: installedMs, vendor: vendor,
      deviceIdentifier: SigningDigest.sha1.hash(vendor).withUnsafeBytes { Hex.text($0) })
    facts.device = vendor
    facts.productNumbers = customer.app.productNumbers
    facts.numbers = (Int64(customer.index % 1000 + 100), downloadID % 65_000)
    return facts
  }

  /// The receipt that a device has whose receipt was made at `atMs`.
  func receipt(device: Int, atMs: Int64) -> Receipt {
    Receipt(
      style: .unified, environment: customer.isSandbox ? "ProductionSandbox" : "Production",
      bundleID: customer.app.bundleID, applicationVersion: version(atMs: atMs),
      originalApplicationVersion: version(atMs: installedMs), creationDateMs: atMs,
      purchases: UnifiedReceipt.purchases(of: customer, receiptMs: atMs, device: device)
        .map { $0.inReceipt(atMs: atMs) })
  }
}

struct UnifiedReceipt {
  let simulation: Simulation
  let customer: Customer
  let certificates: CertificateSet
  let usesSHA256: Bool

  /// How many purchases a receipt shows at most: the newest.
  static let purchaseLimit = 16

  /// The purchases that a device's receipt made at `receiptMs` holds, the oldest first.
  static func purchases(of customer: Customer, receiptMs: Int64, device: Int) -> [Purchase] {
    let held = customer.purchases.filter { $0.purchasedMs <= receiptMs }
      .map { $0.shown(atMs: receiptMs, device: device) }
      .sorted { ($0.purchasedMs, $0.transaction) < ($1.purchasedMs, $1.transaction) }
    return Array(held.suffix(purchaseLimit))
  }

  /// Base64 of the receipt; the same for the same customer, device and time.
  func base64(receiptMs: Int64, device: Int) -> String {
    var random = RandomSource(
      seed: simulation.seed, 21, UInt64(customer.index), UInt64(device),
      UInt64(bitPattern: receiptMs))
    let facts = ReceiptFacts(simulation: simulation, customer: customer)
    var known = facts.facts(device: device, atMs: receiptMs)
    known.opaque = random.bytes(16)
    known.unexplained = (
      random.bytes(random.within(54...66)), random.bytes(random.within(70...92))
    )
    let content = ReceiptSigner.attributes(
      of: facts.receipt(device: device, atMs: receiptMs), known)
    let signature = random.bytes(simulation.isSmall ? 128 : 256)
    let frame = SignedDataFrame(
      digest: usesSHA256 ? .sha256 : .sha1, certificates: certificates.certificates,
      issuerName: certificates.issuerName,
      serial: DER.element(DER.Tag.integer, certificates.serial))
    return Base64.text(frame.file(content: content, signature: signature))
  }
}

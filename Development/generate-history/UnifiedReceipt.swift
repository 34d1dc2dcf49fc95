// Unified receipts: PKCS#7 SignedData over a SET of attributes. They carry a signature that nobody made.
import AppStoreAuthority
import Base
import ProgramSupport

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
    let content = attributes(receiptMs: receiptMs, device: device, random: &random)
    let signature = random.bytes(simulation.isSmall ? 128 : 256)
    let frame = SignedDataFrame(
      digest: usesSHA256 ? .sha256 : .sha1, certificates: certificates.certificates,
      issuerName: certificates.issuerName,
      serial: DER.element(DER.Tag.integer, certificates.serial))
    return Base64.text(frame.file(content: content, signature: signature))
  }

  private func attributes(
    receiptMs: Int64, device: Int, random: inout RandomSource
  ) -> [UInt8] {
    let facts = ReceiptFacts(simulation: simulation, customer: customer)
    let opaque = random.bytes(16)
    let bundle = DER.utf8(customer.app.bundleID)
    let hash = SigningDigest.sha1.hash(facts.vendorBytes(device: device) + opaque + bundle)
    let fillers = (random.bytes(random.within(54...66)), random.bytes(random.within(70...92)))
    var attributes: [[UInt8]] = []
    func add(_ type: Int64, _ value: [UInt8]) {
      attributes.append(UnifiedReceiptPlan.attribute(type, value))
    }
    add(0, DER.utf8(facts.receiptType))
    add(1, DER.integer(Int64(facts.adamID)))
    add(2, bundle)
    add(3, DER.utf8(facts.version(atMs: receiptMs)))
    add(4, opaque)
    add(5, hash)
    add(6, fillers.0)
    add(7, fillers.1)
    add(8, DER.date(receiptMs))
    add(9, DER.ia5("P26A"))
    add(10, DER.ia5("4+"))
    add(11, DER.integer(Int64(customer.index % 1000 + 100)))
    add(12, DER.date(receiptMs))
    add(13, DER.integer(Int64(facts.downloadID % 65_000)))
    add(14, DER.integer(118))
    add(15, DER.integer(Int64(facts.downloadID)))
    add(16, DER.integer(Int64(facts.versionID(atMs: receiptMs))))
    for purchase in Self.purchases(of: customer, receiptMs: receiptMs, device: device) {
      add(17, Self.attributes(of: purchase, receiptMs: receiptMs))
    }
    add(18, DER.date(facts.installedMs))
    add(19, DER.utf8(facts.originalVersion))
    add(25, DER.integer(3))
    return DER.element(DER.Tag.set, joining: attributes)
  }

  private static func attributes(of purchase: Purchase, receiptMs: Int64) -> [UInt8] {
    let isSubscription = purchase.product.kind == .autoRenewable
    var attributes: [[UInt8]] = []
    func add(_ type: Int64, _ value: [UInt8]) {
      attributes.append(UnifiedReceiptPlan.attribute(type, value))
    }
    add(1701, DER.integer(Int64(purchase.quantity)))
    add(1702, DER.utf8(purchase.product.id))
    add(1703, DER.utf8(String(purchase.transaction)))
    add(1704, DER.date(purchase.purchasedMs))
    add(1705, DER.utf8(String(purchase.original)))
    add(1706, DER.date(purchase.originallyPurchasedMs))
    add(1707, DER.integer(Int64(purchase.product.kind.rawValue)))
    add(1708, DER.date(isSubscription ? purchase.expiresMs : nil))
    add(1710, DER.integer(Int64(purchase.product.itemID)))
    add(1711, DER.integer(Int64(purchase.lineItem)))
    add(1712, DER.date(purchase.isCancelled(atMs: receiptMs) ? purchase.cancelledMs : nil))
    if isSubscription {
      add(1713, DER.integer(purchase.offer == .trial ? 1 : 0))
      add(1719, DER.integer(purchase.offer == .introductory ? 1 : 0))
    }
    if case .promotional(let id) = purchase.offer { add(1721, DER.utf8(id)) }
    return DER.element(DER.Tag.set, joining: attributes)
  }
}

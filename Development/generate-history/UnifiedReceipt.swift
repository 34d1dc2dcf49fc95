// Unified receipts: PKCS#7 SignedData over a SET of attributes. They carry a signature that nobody made.
import Bytes

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
    let digest = usesSHA256 ? ObjectIdentifier.sha256 : ObjectIdentifier.sha1
    var writer = DERWriter()
    writer.element(DERWriter.Tag.sequence) { message in
      message.objectIdentifier(ObjectIdentifier.pkcs7SignedData)
      message.element(DERWriter.Tag.context(0)) {
        $0.element(DERWriter.Tag.sequence) { signed in
          signed.integer(1)
          signed.element(DERWriter.Tag.set) { $0.algorithm(digest) }
          signed.element(DERWriter.Tag.sequence) {
            $0.objectIdentifier(ObjectIdentifier.pkcs7Data)
            $0.element(DERWriter.Tag.context(0)) {
              $0.element(DERWriter.Tag.octetString, content)
            }
          }
          signed.element(DERWriter.Tag.context(0), certificates.certificates)
          signed.element(DERWriter.Tag.set) { appendSigner(digest, signature, to: &$0) }
        }
      }
    }
    return Base64.text(writer.bytes)
  }

  private func appendSigner(
    _ digest: [UInt8], _ signature: [UInt8], to writer: inout DERWriter
  ) {
    writer.element(DERWriter.Tag.sequence) {
      $0.integer(1)
      $0.element(DERWriter.Tag.sequence) {
        $0.raw(certificates.issuerName)
        $0.element(DERWriter.Tag.integer, certificates.serial)
      }
      $0.algorithm(digest)
      $0.algorithm(ObjectIdentifier.rsaEncryption)
      $0.element(DERWriter.Tag.octetString, signature)
    }
  }

  private func attributes(
    receiptMs: Int64, device: Int, random: inout RandomSource
  ) -> [UInt8] {
    let facts = ReceiptFacts(simulation: simulation, customer: customer)
    let opaque = random.bytes(16)
    var bundle = DERWriter()
    bundle.string(DERWriter.Tag.utf8String, customer.app.bundleID)
    let hash = SHA1.hash(facts.vendorBytes(device: device) + opaque + bundle.bytes)
    let fillers = (random.bytes(random.within(54...66)), random.bytes(random.within(70...92)))
    var writer = DERWriter()
    writer.element(DERWriter.Tag.set) { set in
      set.attribute(0) { $0.string(DERWriter.Tag.utf8String, facts.receiptType) }
      set.attribute(1) { $0.integer(UInt64(facts.adamID)) }
      set.attribute(2) { $0.raw(bundle.bytes) }
      set.attribute(3) { $0.string(DERWriter.Tag.utf8String, facts.version(atMs: receiptMs)) }
      set.attribute(4) { $0.raw(opaque) }
      set.attribute(5) { $0.raw(hash) }
      set.attribute(6) { $0.raw(fillers.0) }
      set.attribute(7) { $0.raw(fillers.1) }
      set.attribute(8) { $0.date(receiptMs) }
      set.attribute(9) { $0.string(DERWriter.Tag.ia5String, "P26A") }
      set.attribute(10) { $0.string(DERWriter.Tag.ia5String, "4+") }
      set.attribute(11) { $0.integer(UInt64(customer.index % 1000 + 100)) }
      set.attribute(12) { $0.date(receiptMs) }
      set.attribute(13) { $0.integer(UInt64(facts.downloadID % 65_000)) }
      set.attribute(14) { $0.integer(118) }
      set.attribute(15) { $0.integer(UInt64(facts.downloadID)) }
      set.attribute(16) { $0.integer(UInt64(facts.versionID(atMs: receiptMs))) }
      for purchase in Self.purchases(of: customer, receiptMs: receiptMs, device: device) {
        set.attribute(17) { $0.purchase(purchase, receiptMs: receiptMs) }
      }
      set.attribute(18) { $0.date(facts.installedMs) }
      set.attribute(19) { $0.string(DERWriter.Tag.utf8String, facts.originalVersion) }
      set.attribute(25) { $0.integer(3) }
    }
    return writer.bytes
  }
}

extension DERWriter {
  /// SEQUENCE { type, version, OCTET STRING { value } }.
  fileprivate mutating func attribute(_ type: UInt64, _ value: (inout DERWriter) -> Void) {
    element(Tag.sequence) {
      $0.integer(type)
      $0.integer(1)
      $0.element(Tag.octetString, value)
    }
  }

  /// An empty date where there is none.
  fileprivate mutating func date(_ epochMs: Int64?) {
    string(Tag.ia5String, epochMs.map(StoreTime.receiptDate) ?? "")
  }

  fileprivate mutating func purchase(_ purchase: Purchase, receiptMs: Int64) {
    let isSubscription = purchase.product.kind == .autoRenewable
    let cancelledMs = purchase.isCancelled(atMs: receiptMs) ? purchase.cancelledMs : nil
    element(Tag.set) { set in
      set.attribute(1701) { $0.integer(UInt64(purchase.quantity)) }
      set.attribute(1702) { $0.string(Tag.utf8String, purchase.product.id) }
      set.attribute(1703) { $0.string(Tag.utf8String, String(purchase.transaction)) }
      set.attribute(1704) { $0.date(purchase.purchasedMs) }
      set.attribute(1705) { $0.string(Tag.utf8String, String(purchase.original)) }
      set.attribute(1706) { $0.date(purchase.originallyPurchasedMs) }
      set.attribute(1707) { $0.integer(UInt64(purchase.product.kind.rawValue)) }
      set.attribute(1708) { $0.date(isSubscription ? purchase.expiresMs : nil) }
      set.attribute(1710) { $0.integer(UInt64(purchase.product.itemID)) }
      set.attribute(1711) { $0.integer(purchase.lineItem) }
      set.attribute(1712) { $0.date(cancelledMs) }
      if isSubscription {
        set.attribute(1713) { $0.integer(purchase.offer == .trial ? 1 : 0) }
        set.attribute(1719) { $0.integer(purchase.offer == .introductory ? 1 : 0) }
      }
      if case .promotional(let id) = purchase.offer {
        set.attribute(1721) { $0.string(Tag.utf8String, id) }
      }
    }
  }
}

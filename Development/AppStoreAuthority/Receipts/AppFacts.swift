// What receipts and replies say about an app and a device beyond what a receipt decodes to.
package import AppStore
private import Base

/// What the App Store knows of an app, a device and a download.
package struct AppFacts: Sendable {
  /// Apple's number of the app; 0 in the Sandbox.
  package var adamID: Int64
  package var versionID: Int64
  /// Nil for some, as the App Store has it.
  package var downloadID: Int64?
  /// When the app was first got, in epoch milliseconds.
  package var originalPurchaseMs: Int64
  package var vendorIdentifier: String
  /// As transaction receipts name the device: 40 hexadecimal digits.
  package var deviceIdentifier: String
  /// Apple's numbers of products, where it gave any.
  package var productNumbers: [String: Int64] = [:]
  /// `item-id` of a product without a number.
  package var itemID: Int64 = 0
  /// Attribute 4 of a unified receipt, and what attribute 5 is a digest of.
  package var opaque: [UInt8] = []
  package var device: [UInt8] = []
  /// Attributes that Apple does not explain, by type: bytes and numbers.
  package var unexplained: (six: [UInt8], seven: [UInt8]) = ([], [])
  package var numbers: (eleven: Int64, thirteen: Int64) = (118, 60_000)

  package init(
    adamID: Int64, versionID: Int64, downloadID: Int64?, originalPurchaseMs: Int64,
    vendor: [UInt8], deviceIdentifier: String
  ) {
    self.adamID = adamID
    self.versionID = versionID
    self.downloadID = downloadID
    self.originalPurchaseMs = originalPurchaseMs
    vendorIdentifier = (UUID16(random: vendor)?.description ?? "").uppercased()
    self.deviceIdentifier = deviceIdentifier
  }

  /// Numbers and bytes that follow from a receipt's content, so that the same receipt always gets the same.
  package init(_ receipt: Receipt) {
    let first = receipt.purchases.first
    let seed =
      "\(receipt.bundleID) \(first?.originalTransactionID ?? "") \(receipt.creationDateMs ?? 0)"
    let isSandbox = receipt.environment != "Production"
    let bundleID = receipt.bundleID
    let earliestMs = receipt.purchases.compactMap(\.originalPurchaseDateMs).min()
    let number = Self.number("download " + seed, below: 900_000_000_000)
    self.init(
      adamID: isSandbox ? 0 : 400_000_000 + Self.number(bundleID, below: 1_200_000_000),
      versionID: isSandbox
        ? 0 : 800_000_000 + Self.number("version " + bundleID, below: 90_000_000),
      downloadID: isSandbox ? 0 : number % 8 == 0 ? nil : 504_000_000_000_000 + number,
      originalPurchaseMs: isSandbox
        ? 1_375_340_400_000 : (earliestMs ?? receipt.creationDateMs ?? 0) - 7 * dayMs,
      vendor: Self.bytes("vendor", 16, seed),
      deviceIdentifier: Self.bytes("udid", 20, seed).withUnsafeBytes { Hex.text($0) })
    itemID = 400_000_000 + Self.number("item " + bundleID, below: 1_200_000_000)
    opaque = Self.bytes("opaque", 16, seed)
    device = Self.bytes("device", 16, seed)
    unexplained = (Self.bytes("six", 60, seed), Self.bytes("seven", 80, seed))
  }

  private static func number(_ text: String, below bound: Int64) -> Int64 {
    let digest = SigningDigest.sha256.hash(Array(text.utf8))
    return digest.prefix(7).reduce(0) { $0 << 8 | Int64($1) } % bound
  }

  /// Bytes that go by a name.
  private static func bytes(_ name: String, _ count: Int, _ seed: String) -> [UInt8] {
    var bytes: [UInt8] = []
    var round = 0
    while bytes.count < count {
      bytes += SigningDigest.sha256.hash(Array("\(name) \(round) \(seed)".utf8))
      round += 1
    }
    return Array(bytes.prefix(count))
  }

  /// The id of something that has none of its own: 15 digits in production, 16 in the sandbox.
  package static func id(_ name: String, isSandbox: Bool) -> Int64 {
    (isSandbox ? 2_000_000_000_000_000 : 410_000_000_000_000)
      + number(name, below: 300_000_000_000_000)
  }
}

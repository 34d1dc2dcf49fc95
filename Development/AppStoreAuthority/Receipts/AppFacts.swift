// What receipts and replies say about an app and a device beyond what a receipt decodes to.
package import AppStore
private import Base

/// Numbers and bytes that follow from a receipt's content, so that the same receipt always gets the same.
package struct AppFacts: Sendable {
  private let seed: String
  private let isSandbox: Bool
  private let bundleID: String
  /// When the app was first got, in epoch milliseconds.
  package let originalPurchaseMs: Int64

  package init(_ receipt: Receipt) {
    let first = receipt.purchases.first
    seed =
      "\(receipt.bundleID) \(first?.originalTransactionID ?? "") \(receipt.creationDateMs ?? 0)"
    isSandbox = receipt.environment != "Production"
    bundleID = receipt.bundleID
    let earliest = receipt.purchases.compactMap(\.originalPurchaseDateMs).min()
    originalPurchaseMs =
      isSandbox ? 1_375_340_400_000 : (earliest ?? receipt.creationDateMs ?? 0) - 7 * dayMs
  }

  private static func number(_ text: String, below bound: Int64) -> Int64 {
    let digest = SigningDigest.sha256.hash(Array(text.utf8))
    return digest.prefix(7).reduce(0) { $0 << 8 | Int64($1) } % bound
  }

  /// Bytes that go by a name.
  package func bytes(_ name: String, _ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    var round = 0
    while bytes.count < count {
      bytes += SigningDigest.sha256.hash(Array("\(name) \(round) \(seed)".utf8))
      round += 1
    }
    return Array(bytes.prefix(count))
  }

  /// The App Store numbers apps in production alone.
  package var adamID: Int64 {
    isSandbox ? 0 : 400_000_000 + Self.number(bundleID, below: 1_200_000_000)
  }

  package var itemID: Int64 { 400_000_000 + Self.number("item " + bundleID, below: 1_200_000_000) }

  package var versionID: Int64 {
    isSandbox ? 0 : 800_000_000 + Self.number("version " + bundleID, below: 90_000_000)
  }

  /// Nil for some, as the App Store has it.
  package var downloadID: Int64? {
    if isSandbox { return 0 }
    let number = Self.number("download " + seed, below: 900_000_000_000)
    return number % 8 == 0 ? nil : 504_000_000_000_000 + number
  }

  package var vendorIdentifier: String {
    (UUID16(random: bytes("vendor", 16))?.description ?? "").uppercased()
  }

  /// The id of something that has none of its own: 15 digits in production, 16 in the sandbox.
  package static func id(_ name: String, isSandbox: Bool) -> Int64 {
    (isSandbox ? 2_000_000_000_000_000 : 410_000_000_000_000)
      + number(name, below: 300_000_000_000_000)
  }
}

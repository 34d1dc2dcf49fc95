// What receipt and reply both say about the app and the device, in one place so that they agree.
import AppStoreAuthority
import ProgramSupport

struct ReceiptFacts {
  let simulation: Simulation
  let customer: Customer

  var receiptType: String { customer.isSandbox ? "ProductionSandbox" : "Production" }

  /// Apple gives apps their numbers in production only.
  var adamID: Int { customer.isSandbox ? 0 : customer.app.adamID }

  var downloadID: Int {
    var random = RandomSource(seed: simulation.seed, 30, UInt64(customer.index))
    return customer.isSandbox ? 0 : 504_000_000_000_000 + random.below(900_000_000_000)
  }

  /// When the app was first got.
  var installedMs: Int64 {
    var random = RandomSource(seed: simulation.seed, 31, UInt64(customer.index))
    let day = customer.arrivalMs - Int64(random.below(90)) * dayMs
    return day - Int64(random.below(3600)) * secondMs
  }

  /// A release every three weeks.
  private func release(atMs: Int64) -> Int { Int(atMs / (21 * dayMs)) % 400 }

  private func versionText(_ release: Int) -> String { "\(3 + release / 100).\(release % 100)" }

  func version(atMs: Int64) -> String {
    customer.isSandbox ? "1.0" : versionText(release(atMs: atMs))
  }

  func versionID(atMs: Int64) -> Int {
    customer.isSandbox ? 0 : 870_000_000 + release(atMs: atMs) * 10_007
  }

  var originalVersion: String {
    customer.isSandbox ? "1.0" : versionText(release(atMs: installedMs))
  }

  /// The 16 bytes of the device's identifier for the vendor.
  func vendorBytes(device: Int) -> [UInt8] {
    var random = RandomSource(seed: simulation.seed, 32, UInt64(customer.index), UInt64(device))
    var bytes = random.bytes(16)
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    return bytes
  }

  func vendorIdentifier(device: Int) -> String {
    var text = ""
    for (index, byte) in vendorBytes(device: device).enumerated() {
      if [4, 6, 8, 10].contains(index) { text += "-" }
      if byte < 16 { text += "0" }
      text += String(byte, radix: 16, uppercase: true)
    }
    return text
  }

  /// The device as legacy receipts name it: 40 hexadecimal digits.
  func deviceIdentifier(device: Int) -> String {
    SigningDigest.sha1.hash(vendorBytes(device: device)).map { byte in
      (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
  }
}

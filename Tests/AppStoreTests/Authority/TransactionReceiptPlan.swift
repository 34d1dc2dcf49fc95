// Transaction receipts for tests: a signed property list in a property list.

import AppStore
import Bytes

struct TransactionReceiptPlan {
  var fields: [(String, String)] = [
    ("original-transaction-id", "1000000180636226"), ("transaction-id", "1000000181298734"),
    ("purchase-date-ms", "1715000000000"), ("original-purchase-date-ms", "1714000000000"),
    ("expires-date", "1717000000000"), ("web-order-line-item-id", "1000000030938713"),
    ("bvrs", "1"), ("item-id", "1028950797"), ("product-id", "yearly"),
    ("bid", "com.example.game"), ("quantity", "1"),
  ]
  var version: UInt8 = 2
  /// Text of the outer list after its two signed fields.
  var environmentLine = "\t\"environment\" = \"Sandbox\";\n"

  var purchaseInfo: [UInt8] {
    let lines = fields.map { "\t\"\($0.0)\" = \"\($0.1)\";\n" }.joined()
    return Array("{\n\(lines)}".utf8)
  }

  func signed(by signer: TestCertificate) throws -> [UInt8] {
    let purchaseInfo = purchaseInfo
    let signature = try signer.key.sign([version] + purchaseInfo, .sha1)
    return file(signature: signature, certificate: signer.der, purchaseInfo: purchaseInfo)
  }

  func file(signature: [UInt8], certificate: [UInt8], purchaseInfo: [UInt8]) -> [UInt8] {
    let length = (0..<4).map { UInt8(truncatingIfNeeded: certificate.count >> (24 - 8 * $0)) }
    return list(blob: [version] + signature + length + certificate, purchaseInfo: purchaseInfo)
  }

  func list(blob: [UInt8], purchaseInfo: [UInt8]) -> [UInt8] {
    let signature = String(decoding: Base64.encode(blob), as: UTF8.self)
    let info = String(decoding: Base64.encode(purchaseInfo), as: UTF8.self)
    return Array(
      """
      {
      \t"signature" = "\(signature)";
      \t"purchase-info" = "\(info)";
      \(environmentLine)\t"pod" = "100";
      \t"signing-status" = "0";
      }
      """.utf8)
  }
}

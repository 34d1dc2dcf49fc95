// Transaction receipts: a signed property list in a property list; every part can be bent.
private import Base

package struct TransactionReceiptPlan {
  /// The keys and values of `purchase-info`.
  package var fields: [(String, String)]
  package var version: UInt8
  /// Text of the outer list after its two signed fields.
  package var environmentLine: String
  package var pod = "100"

  package static let exampleFields: [(String, String)] = [
    ("original-transaction-id", "1000000180636226"), ("transaction-id", "1000000181298734"),
    ("purchase-date-ms", "1715000000000"), ("original-purchase-date-ms", "1714000000000"),
    ("expires-date", "1717000000000"), ("web-order-line-item-id", "1000000030938713"),
    ("bvrs", "1"), ("item-id", "1028950797"), ("product-id", "yearly"),
    ("bid", "com.example.game"), ("quantity", "1"),
  ]

  package init(
    fields: [(String, String)] = exampleFields, version: UInt8 = 2,
    environmentLine: String = environmentLine("Sandbox")
  ) {
    self.fields = fields
    self.version = version
    self.environmentLine = environmentLine
  }

  /// The line that names the environment; it stands outside what is signed.
  package static func environmentLine(_ name: String) -> String {
    "\t\"environment\" = \"\(name)\";\n"
  }

  package var purchaseInfo: [UInt8] { Self.propertyList(fields) }

  /// `{`, one line for each pair, `}`. Neither keys nor values may need an escape.
  package static func propertyList(_ pairs: [(String, String)]) -> [UInt8] {
    var text = "{\n"
    for (key, value) in pairs { text += "\t\"\(key)\" = \"\(value)\";\n" }
    return Array((text + "}").utf8)
  }

  package func signed(by signer: IssuedCertificate) throws(AuthorityError) -> [UInt8] {
    let purchaseInfo = purchaseInfo
    let signature = try signer.key.sign([version] + purchaseInfo, version < 4 ? .sha1 : .sha256)
    return file(signature: signature, certificate: signer.der, purchaseInfo: purchaseInfo)
  }

  package func file(
    signature: [UInt8], certificate: [UInt8], purchaseInfo: [UInt8]
  ) -> [UInt8] {
    list(
      blob: Self.blob(version: version, signature: signature, certificate: certificate),
      purchaseInfo: purchaseInfo)
  }

  /// Version, signature, the certificate's length and the certificate.
  package static func blob(
    version: UInt8, signature: [UInt8], certificate: [UInt8]
  ) -> [UInt8] {
    let length = (0..<4).map { UInt8(truncatingIfNeeded: certificate.count >> (24 - 8 * $0)) }
    return [version] + signature + length + certificate
  }

  package func list(blob: [UInt8], purchaseInfo: [UInt8]) -> [UInt8] {
    Array(
      """
      {
      \t"signature" = "\(Base64.text(blob))";
      \t"purchase-info" = "\(Base64.text(purchaseInfo))";
      \(environmentLine)\t"pod" = "\(pod)";
      \t"signing-status" = "0";
      }
      """.utf8)
  }
}

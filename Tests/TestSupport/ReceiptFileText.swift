// Receipt files for tests of pending sales: they decode, but carry no signature.
private import Base

/// A receipt file built in code.
package struct ReceiptFileText: Sendable {
  package let bytes: [UInt8]
  package let isTransactionStyle: Bool
  /// As the file names it.
  package let environment: String?

  /// A purchase by its fields: `product_id`, `transaction_id`, `purchase_date` and so on.
  package struct Purchase: Sendable {
    package var product = "coins"
    package var transaction: String
    package var original: String?
    package var line: Int64?
    package var time = "2026-01-05T00:00:00Z"
    package var quantity: Int64 = 1
    /// Attribute 1707, in unified receipts.
    package var type: Int64?

    package init(
      _ transaction: String, of original: String? = nil, line: Int64? = nil,
      product: String = "coins", on day: String = "2026-01-05", quantity: Int64 = 1,
      type: Int64? = nil
    ) {
      self.transaction = transaction
      self.original = original
      self.line = line
      self.product = product
      time = day + "T00:00:00Z"
      self.quantity = quantity
      self.type = type
    }
  }

  /// A unified receipt of the bundle `app`.
  package static func unified(
    _ purchases: Purchase..., environment: String = "Production"
  ) -> ReceiptFileText {
    unified(purchases, environment: environment)
  }

  /// The same with purchases in an array.
  package static func unified(
    _ purchases: [Purchase], environment: String = "Production"
  ) -> ReceiptFileText {
    var attributes: [UInt8] = []
    attributes += attribute(0, element(0x0C, Array(environment.utf8)))
    attributes += attribute(2, element(0x0C, Array("app".utf8)))
    for purchase in purchases { attributes += attribute(17, element(0x31, content(purchase))) }
    let signedDataType: [UInt8] = [0x06, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 7, 2]
    let dataType: [UInt8] = [0x06, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 7, 1]
    let content = element(
      0x30, dataType + element(0xA0, element(0x04, element(0x31, attributes))))
    let noAlgorithm = element(0x31, element(0x30, [0x06, 5, 0x2B, 0x0E, 3, 2, 26, 5, 0]))
    let signedData = element(0x30, integer(1) + noAlgorithm + content + element(0x31, []))
    return ReceiptFileText(
      bytes: element(0x30, signedDataType + element(0xA0, signedData)), isTransactionStyle: false,
      environment: environment)
  }

  /// A legacy receipt of the bundle `app`.
  /// - Parameter environment: of the line outside the signature.
  package static func transaction(
    _ purchase: Purchase, environment: String? = nil
  ) -> ReceiptFileText {
    let fields = [
      ("bid", "app"), ("product-id", purchase.product), ("transaction-id", purchase.transaction),
      ("original-transaction-id", purchase.original ?? purchase.transaction),
      ("purchase-date-ms", String(ms(purchase.time))), ("quantity", String(purchase.quantity)),
    ]
    let list = "{\n" + fields.map { "\t\"\($0.0)\" = \"\($0.1)\";\n" }.joined() + "}"
    let info = String(decoding: Base64Text.encode(Array(list.utf8)), as: UTF8.self)
    let line = environment.map { "\t\"environment\" = \"\($0)\";\n" } ?? ""
    return ReceiptFileText(
      bytes: Array("{\n\t\"purchase-info\" = \"\(info)\";\n\(line)}".utf8),
      isTransactionStyle: true,
      environment: nil)
  }

  private static func content(_ purchase: Purchase) -> [UInt8] {
    let time = element(0x16, Array(purchase.time.utf8))
    return attribute(1701, integer(purchase.quantity))
      + attribute(1702, element(0x0C, Array(purchase.product.utf8)))
      + attribute(1703, element(0x0C, Array(purchase.transaction.utf8)))
      + attribute(
        1705, element(0x0C, Array((purchase.original ?? purchase.transaction).utf8)))
      + attribute(1704, time) + attribute(1706, time)
      + (purchase.type.map { attribute(1707, integer($0)) } ?? [])
      + attribute(1711, integer(purchase.line ?? 0))
  }

  private static func attribute(_ type: Int64, _ value: [UInt8]) -> [UInt8] {
    element(0x30, integer(type) + integer(1) + element(0x04, value))
  }

  private static func integer(_ value: Int64) -> [UInt8] {
    var octets = (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
    while octets.count > 1, octets[0] == 0, octets[1] < 0x80 { octets.removeFirst() }
    return element(0x02, octets)
  }

  private static func element(_ identifier: UInt8, _ content: [UInt8]) -> [UInt8] {
    if content.count < 0x80 { return [identifier, UInt8(content.count)] + content }
    let length = (0..<(content.count < 1 << 16 ? 2 : 3)).reversed().map {
      UInt8(content.count >> (8 * $0) & 0xFF)
    }
    return [identifier, 0x80 | UInt8(length.count)] + length + content
  }
}

/// Standard base64 in one line.
enum Base64Text {
  private static let digits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func encode(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let value = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
      for place in 0..<4 {
        result.append(
          place <= group.count ? digits[value >> (18 - 6 * place) & 63] : UInt8(ascii: "="))
      }
    }
    return result
  }
}

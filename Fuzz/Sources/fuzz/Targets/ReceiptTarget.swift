// Receipt files of both styles: decoding, and the verdict on their signatures.
@testable import AppStore
@testable import AppStoreAuthority
@testable import Base

extension FuzzTarget {
  static let receipt = FuzzTarget(
    name: "receipt", inputByteCountMax: 8192,
    words: [
      "\u{30}\u{80}", "\u{24}\u{80}", "\u{0}\u{0}", "\u{2}\u{1}", "\u{4}\u{82}", "\u{16}\u{14}",
      "2024-05-06T07:08:09Z", "2013-08-01 07:00:00 Etc/GMT", "Xcode", "Production",
      "\"signature\" = ", "\"purchase-info\" = ", "\"purchase-date-ms\" = ",
    ],
    seeds: {
      let samples = try SampleReceipts()
      return samples.files + [[], [0x30], Array("{}".utf8), Array("/* */ {}".utf8)]
    },
    check: { input in
      derElements(input)
      let receipt: Receipt
      do throws(ReceiptError) { receipt = try ReceiptFile.decode(input) } catch {
        return require(error.description.hasPrefix("decode receipt: "), "errors have causes")
      }
      require(receipt.purchases.count <= ReceiptFile.maximumPurchaseCount, "a most of purchases")
      ReceiptCheck.encodes(receipt)
      ReceiptCheck.verdict(input, receipt)
    })

  /// Every element lies in what holds it, and elements do not overlap.
  private static func derElements(_ input: UnsafeRawBufferPointer) {
    var open = [DERReader(input)]
    var count = 0
    while var reader = open.popLast(), count < 4096 {
      do throws(DERError) {
        while !reader.isAtEnd {
          count += 1
          let before = reader.offset
          let element = try reader.next()
          require(element.range.lowerBound == before, "elements follow each other")
          require(element.range.upperBound == reader.offset, "a reader stands behind its element")
          require(
            element.range.lowerBound < element.content.lowerBound
              && element.content.upperBound <= element.range.upperBound,
            "contents lie in their elements")
          if element.identifier & 0x20 != 0 { open.append(try reader.inside(element)) }
        }
      } catch { require(0...input.count ~= error.offsetBytes, "errors have places") }
    }
  }
}

private enum ReceiptCheck {
  /// A decoded unified receipt, encoded again, decodes to the same.
  static func encodes(_ receipt: Receipt) {
    guard receipt.style == .unified, let content = ReceiptAttributes(receipt)?.content
    else { return }
    for isIndefinite in [false, true] {
      let file = SignedDataFrame(
        digest: .sha256, certificates: [], issuerName: DER.sequence(), serial: DER.integer(1),
        isIndefinite: isIndefinite
      ).file(content: content, signature: [0])
      do {
        require(try ReceiptFile.decode(file) == receipt, "a receipt decodes to what was encoded")
      } catch { require(false, "an encoded receipt decodes: \(error)") }
    }
  }

  /// Only what the authority signed is valid.
  static func verdict(_ input: UnsafeRawBufferPointer, _ receipt: Receipt) {
    let verdict = SampleReceipts.verifier.verify(input, receipt: receipt)
    if verdict == .valid { require(receipt.bundleID == "com.example.game", "nothing is forged") }
    _ = SampleReceipts.strictVerifier.verify(input, receipt: receipt)
  }
}

/// A receipt's attributes, so that they decode to it.
private struct ReceiptAttributes {
  private var attributes: [[UInt8]] = []

  var content: [UInt8] { DER.element(DER.Tag.set, joining: attributes) }

  /// Nil where a date is outside of what can be written.
  init?(_ receipt: Receipt) {
    if receipt.bundleID.isEmpty { return nil }
    add(2, receipt.bundleID)
    add(0, receipt.environment)
    add(3, receipt.applicationVersion)
    add(19, receipt.originalApplicationVersion)
    guard add(12, receipt.creationDateMs), add(21, receipt.expirationDateMs) else { return nil }
    for purchase in receipt.purchases {
      guard let attributes = ReceiptAttributes(purchase) else { return nil }
      self.attributes.append(UnifiedReceiptPlan.attribute(17, attributes.content))
    }
  }

  private init?(_ purchase: ReceiptPurchase) {
    add(1701, integer: purchase.quantity.flatMap { Int64($0) })
    add(1702, purchase.productID)
    add(1703, purchase.transactionID)
    add(1705, purchase.originalTransactionID)
    add(1707, integer: purchase.productType.map(Int64.init))
    add(1711, integer: purchase.webOrderLineItemID.flatMap { Int64($0) })
    add(1713, integer: purchase.isTrialPeriod ? 1 : nil)
    add(1719, integer: purchase.isInIntroOfferPeriod ? 1 : nil)
    add(1721, purchase.promotionalOfferID)
    guard add(1704, purchase.purchaseDateMs), add(1706, purchase.originalPurchaseDateMs),
      add(1708, purchase.expiresDateMs), add(1712, purchase.cancellationDateMs)
    else { return nil }
  }

  private mutating func add(_ type: Int64, _ text: String?) {
    if let text { attributes.append(UnifiedReceiptPlan.attribute(type, DER.utf8(text))) }
  }

  private mutating func add(_ type: Int64, integer: Int64?) {
    if let integer { attributes.append(UnifiedReceiptPlan.attribute(type, DER.integer(integer))) }
  }

  private mutating func add(_ type: Int64, _ dateMs: Int64?) -> Bool {
    guard let dateMs else { return true }
    guard Timestamp.rangeMs.contains(dateMs) else { return false }
    attributes.append(
      UnifiedReceiptPlan.attribute(type, DER.ia5(Timestamp.text(ms: dateMs))))
    return true
  }
}

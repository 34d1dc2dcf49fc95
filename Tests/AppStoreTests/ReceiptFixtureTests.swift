// Real receipts from outside the repository: their content, and whether they verify.

import AppStore
import Base
import Foundation
import TestSupport
import Testing

/// The shared fixtures next to the repository; nil in a clone without them.
enum Fixtures {
  static let folder: URL? = {
    let package = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let folder = package.appendingPathComponent("../shared/fixtures").standardizedFileURL
    return FileManager.default.fileExists(atPath: folder.path) ? folder : nil
  }()

  static func bytes(_ path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: try #require(folder).appendingPathComponent(path)))
  }

  static func receipt(_ name: String) throws -> [UInt8] {
    let text = try bytes("receipts/\(name).b64")
    return try text.withUnsafeBytes { try ReceiptText.decode($0) }
  }

  static func expected(_ name: String) throws -> [String: Any] {
    let json = try JSONSerialization.jsonObject(
      with: Data(try bytes("receipts/\(name).expected.json")))
    return try #require(json as? [String: Any])
  }
}

@Suite("Real receipts", .enabled(if: Fixtures.folder != nil, "no ../shared/fixtures here"))
struct ReceiptFixtureTests {
  static let appleSigned = [
    "transaction-v2-sandbox", "unified-sha1-sandbox", "unified-sha256-g5-sandbox",
    "unified-with-35-purchases",
  ]

  /// As the program is shipped: nothing is configured.
  static func verifier() throws -> ReceiptVerifier { try ReceiptVerifier(configuration: .init()) }

  @Test("an Apple-signed receipt is valid", arguments: appleSigned)
  func appleSignedIsValid(name: String) throws {
    let file = try Fixtures.receipt(name)
    let receipt = try ReceiptFile.decode(file)
    let verifier = try Self.verifier()
    expectEqual(verifier.verify(file, receipt: receipt), .valid)
    expectEqual(verifier.verify(file, receipt: receipt), .valid)
  }

  @Test("an Apple-signed receipt fails at another time, for time alone", arguments: appleSigned)
  func otherTime(name: String) throws {
    let file = try Fixtures.receipt(name)
    var receipt = try ReceiptFile.decode(file)
    let year2030Ms: Int64 = 1_893_456_000_000
    switch receipt.style {
    case .unified: receipt.creationDateMs = year2030Ms
    case .transaction: receipt.purchases[0].purchaseDateMs = year2030Ms
    }
    try expectEqual(Self.verifier().verify(file, receipt: receipt), .timeOnly(.expired))
  }

  @Test("Xcode's receipt decodes and is refused")
  func xcodeIsRefused() throws {
    let file = try Fixtures.receipt("unified-xcode-must-be-refused")
    let receipt = try ReceiptFile.decode(file)
    expectEqual(receipt.environment, "Xcode")
    try expectEqual(
      Self.verifier().verify(file, receipt: receipt), .invalid(.localTestingEnvironment))
  }

  @Test("Xcode's receipt is valid where the fingerprint of its signer is configured")
  func xcodeIsAdmitted() throws {
    let file = try Fixtures.receipt("unified-xcode-must-be-refused")
    let fingerprint = Array(
      "ff0ba36e721d2db741d2aa11e6112ef78bf7131b46c7f035b00891d045c864fe".utf8)
    let signer = try #require(fingerprint.withUnsafeBytes { SHA256Digest(hex: $0) })
    let verifier = try ReceiptVerifier(configuration: .init(localTestingSigners: [signer]))
    expectEqual(verifier.verify(file, receipt: try ReceiptFile.decode(file)), .valid)
  }

  @Test("a transaction receipt also verifies with certificates that were configured earlier")
  func transactionConfigurations() throws {
    let file = try Fixtures.receipt("transaction-v2-sandbox")
    let receipt = try ReceiptFile.decode(file)
    let intermediate = try Fixtures.bytes("certificates/itunes-store-ca.cer")
    let root = try Fixtures.bytes("certificates/apple-root-ca.cer")
    for certificates in [[], [intermediate], [intermediate, root]] as [[[UInt8]]] {
      let verifier = try ReceiptVerifier(
        configuration: .init(transactionIntermediates: certificates))
      expectEqual(verifier.verify(file, receipt: receipt), .valid)
    }
    let without = try ReceiptVerifier(configuration: .init(pinnedRoots: []))
    expectEqual(without.verify(file, receipt: receipt), .undecided(.intermediateNotConfigured))
  }

  @Test("a flipped bit in any byte of a real receipt is refused", arguments: appleSigned)
  func flippedBits(name: String) throws {
    let file = try Fixtures.receipt(name)
    let verifier = try Self.verifier()
    let isUnified = try ReceiptFile.decode(file).style == .unified
    var random = SeededRandom()
    // In a transaction receipt, the lines outside the signature may change.
    let end = isUnified ? file.count : file.count - 90
    for offset in stride(from: isUnified ? 0 : 20, to: end, by: 7) {
      var altered = file
      altered[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      guard let receipt = try? ReceiptFile.decode(altered) else { continue }
      let verdict = verifier.verify(altered, receipt: receipt)
      if verdict == .valid, !isUnified, receipt == (try ReceiptFile.decode(file)) { continue }
      #expect(verdict != .valid, "offset \(offset), seed \(random.seed)")
    }
  }

  @Test("the unified receipt has the expected content")
  func unifiedContent() throws {
    let name = "unified-sha1-sandbox"
    let receipt = try ReceiptFile.decode(try Fixtures.receipt(name))
    let expected = try Fixtures.expected(name)
    expectEqual(receipt.style, .unified)
    expectEqual(receipt.environment, expected["environment"] as? String)
    expectEqual(receipt.bundleID, expected["bundle_id"] as? String)
    expectEqual(receipt.applicationVersion, expected["application_version"] as? String)
    expectEqual(
      receipt.originalApplicationVersion, expected["original_application_version"] as? String)
    expectEqual(receipt.creationDateMs, milliseconds(expected["creation_date"]))
    let purchases = try #require(expected["in_app"] as? [[String: Any]])
    expectEqual(receipt.purchases.count, purchases.count)
    for (found, wanted) in zip(receipt.purchases, purchases) {
      let webOrder = wanted["web_order_line_item_id"] as? Int64 ?? 0
      expectEqual(found.productID, wanted["product_id"] as? String)
      expectEqual(found.transactionID, wanted["transaction_id"] as? String)
      expectEqual(found.originalTransactionID, wanted["original_transaction_id"] as? String)
      expectEqual(found.quantity, (wanted["quantity"] as? Int).map(String.init))
      expectEqual(found.webOrderLineItemID, (webOrder == 0 ? nil : String(webOrder)))
      expectEqual(found.purchaseDateMs, milliseconds(wanted["purchase_date"]))
      expectEqual(found.originalPurchaseDateMs, milliseconds(wanted["original_purchase_date"]))
      expectEqual(found.expiresDateMs, milliseconds(wanted["expires_date"]))
      expectEqual(found.cancellationDateMs, milliseconds(wanted["cancellation_date"]))
    }
  }

  @Test("the transaction receipt has the expected content, its environment unbelieved")
  func transactionContent() throws {
    let name = "transaction-v2-sandbox"
    let receipt = try ReceiptFile.decode(try Fixtures.receipt(name))
    let expected = try Fixtures.expected(name).compactMapValues { $0 as? String }
    expectEqual(receipt.style, .transaction)
    #expect(receipt.environment == nil)
    expectEqual(receipt.bundleID, expected["bid"])
    expectEqual(receipt.applicationVersion, expected["bvrs"])
    let purchase = try #require(receipt.purchases.first)
    expectEqual(receipt.purchases.count, 1)
    expectEqual(purchase.productID, expected["product_id"])
    expectEqual(purchase.transactionID, expected["transaction_id"])
    expectEqual(purchase.originalTransactionID, expected["original_transaction_id"])
    expectEqual(purchase.webOrderLineItemID, expected["web_order_line_item_id"])
    expectEqual(purchase.quantity, expected["quantity"])
    expectEqual(purchase.purchaseDateMs, expected["purchase_date_ms"].flatMap { Int64($0) })
    expectEqual(
      purchase.originalPurchaseDateMs, expected["original_purchase_date_ms"].flatMap { Int64($0) })
    expectEqual(purchase.expiresDateMs, expected["expires_date"].flatMap { Int64($0) })
  }

  // The file's name promises 35; an independent decoder finds 7 attributes of type 17 as well.
  @Test("the receipt with many purchases holds 7, each with its ids and dates")
  func manyPurchases() throws {
    let receipt = try ReceiptFile.decode(try Fixtures.receipt("unified-with-35-purchases"))
    expectEqual(receipt.purchases.count, 7)
    for purchase in receipt.purchases {
      #expect(purchase.productID != nil)
      #expect(purchase.transactionID != nil)
      #expect(purchase.originalTransactionID != nil)
      #expect(purchase.purchaseDateMs != nil)
    }
  }

  /// Foundation's reading of an RFC 3339 time, independent of the tested one.
  private func milliseconds(_ value: Any?) -> Int64? {
    guard let text = value as? String, !text.isEmpty else { return nil }
    return ISO8601DateFormatter().date(from: text).map { Int64($0.timeIntervalSince1970 * 1_000) }
  }
}

// A stand-in with an authority, and receipts for its calls.
import AppStore
import AppStoreAuthority
import AppStoreStandIn
import Base
import Glibc
import Testing

struct StandInShop {
  static let nowMs: Int64 = 1_795_000_000_000

  let authority: TestAuthority
  let server: StandInServer

  init(sharedSecret: String? = nil, controls: [String] = []) throws {
    authority = try TestAuthority.shared.get()
    var options = StandInOptions()
    options.sharedSecret = sharedSecret
    options.controls = controls.map { Array($0.utf8) }
    server = try StandInServer(authority: authority, options: options)
  }

  static func purchase(
    _ product: String, _ id: String, type: Int, atMs: Int64 = nowMs - 86_400_000,
    expiresMs: Int64? = nil
  ) -> ReceiptPurchase {
    var purchase = ReceiptPurchase()
    purchase.productID = product
    purchase.transactionID = id
    purchase.originalTransactionID = id
    purchase.quantity = "1"
    purchase.purchaseDateMs = atMs
    purchase.originalPurchaseDateMs = atMs
    purchase.productType = type
    purchase.expiresDateMs = expiresMs
    purchase.webOrderLineItemID = expiresMs == nil ? nil : "77\(id)"
    return purchase
  }

  static func receipt(
    _ purchases: [ReceiptPurchase], environment: String = "Production"
  ) -> Receipt {
    Receipt(
      style: .unified, environment: environment, bundleID: "com.example.game",
      applicationVersion: "4.2", originalApplicationVersion: "1.0", creationDateMs: nowMs,
      purchases: purchases)
  }

  /// Coins, and a subscription that runs for years to come.
  static let coins = purchase("coins", "1001", type: 1)
  static let plus = purchase("plus", "2001", type: 3, expiresMs: nowMs + 3_650 * 86_400_000)
  /// A subscription of one day that ended three and a half days ago, by the machine's clock.
  static func past(_ id: String) -> ReceiptPurchase {
    let clockMs = Int64(time(nil)) * 1000
    return purchase(
      "daily", id, type: 3, atMs: clockMs - 9 * 43_200_000, expiresMs: clockMs - 7 * 43_200_000)
  }

  func unified(_ purchases: ReceiptPurchase..., environment: String = "Production") throws -> String
  {
    let signer = ReceiptSigner(authority: authority)
    return Base64.text(
      try signer.unified(Self.receipt(purchases, environment: environment)))
  }

  func transaction(_ purchase: ReceiptPurchase, environment: String = "Production") throws -> String
  {
    let signer = ReceiptSigner(authority: authority)
    return Base64.text(
      try signer.transaction(Self.receipt([purchase], environment: environment)))
  }

  func post(
    _ receiptText: String, to path: String = "/verifyReceipt", password: String? = nil
  ) throws -> HTTPClient.Answer? {
    let password = password.map { ",\"password\":\"\($0)\"" } ?? ""
    let body = "{\"receipt-data\":\"\(receiptText)\"\(password)}"
    return try HTTPClient(port: server.port).exchange("POST", path, Array(body.utf8))
  }

  func reply(
    _ receiptText: String, to path: String = "/verifyReceipt", password: String? = nil
  ) throws -> ReplyView {
    let answer = try #require(try post(receiptText, to: path, password: password))
    #expect(answer.status == 200 && !answer.isCut)
    return try ReplyView(answer.body)
  }
}

/// A reply as the ledger decodes it, and as it was sent.
struct ReplyView {
  let status: Int64?
  let isLegacy: Bool
  /// `source:product:transaction`, by the order of rule R2.
  let rows: [String]
  /// For each row, `+` if it is cancelled, `f` if it is shared.
  let marks: [String]
  let json: JSONValue

  init(_ body: [UInt8]) throws {
    json = try JSONValue(body)
    let keeper = TextKeeper()
    (status, isLegacy, rows, marks) = try body.withUnsafeBytes { bytes in
      let reply = try Reply(bytes, keeper)
      func text(_ bytes: JSONBytes?) -> String {
        bytes.map { String(decoding: $0, as: UTF8.self) } ?? "-"
      }
      return (
        reply.status, reply.isLegacy,
        reply.rows.map { "\($0.source.rawValue):\(text($0.productID)):\(text($0.transactionID))" },
        reply.rows.map {
          ($0.cancellationDateMs == nil ? "" : "+\(text($0.cancellationReason))")
            + ($0.isFamilyShared ? "f" : "")
        }
      )
    }
  }
}

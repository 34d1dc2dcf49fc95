// verifyReceipt without its misbehaviour: a posted body in, a reply out.
import AppStore
import AppStoreAuthority
import Base

/// Answers requests as the App Store does.
struct FakeVerifyReceipt: Sendable {
  /// A reply and the status that it bears.
  struct Answer {
    let status: Int
    let body: [UInt8]

    init(status: Int, body: [UInt8]) {
      self.status = status
      self.body = body
    }

    /// A status alone, as the App Store sends it for most refusals.
    init(status: Int) {
      self.init(status: status, body: Array("{\"status\":\(status)}".utf8))
    }
  }

  let signer: ReceiptSigner
  let verifier: ReceiptVerifier
  /// What `password` must be for receipts with subscriptions; nil accepts any.
  let sharedSecret: String?

  init(authority: TestAuthority, sharedSecret: String?) throws {
    signer = ReceiptSigner(authority: authority)
    verifier = try authority.verifier()
    self.sharedSecret = sharedSecret
  }

  func answer(
    _ body: [UInt8], at endpoint: AppStoreEndpoint, memory: StoreMemory, nowMs: Int64,
    isTyped: Bool
  ) -> Answer {
    guard let request = try? JSONValue(body), case .object = request else {
      return Answer(status: 21000)
    }
    // `try?` here and below: the App Store gives no cause either.
    guard let text = request["receipt-data"]?.stringValue,
      let file = try? Base64.decode(Array(text.utf8)), let receipt = try? ReceiptFile.decode(file)
    else { return Answer(status: 21002) }
    if case .invalid = verifier.verify(file, receipt: receipt) { return Answer(status: 21003) }

    let legacy = receipt.style == .transaction ? LegacyFields(file) : nil
    let environment = receipt.environment ?? legacy?.environment ?? "Production"
    let isSandbox = environment.contains("Sandbox")
    if isSandbox, endpoint == .production { return Answer(status: 21007) }
    if !isSandbox, endpoint == .sandbox { return Answer(status: 21008) }
    let hasSubscription = receipt.purchases.contains { $0.expiresDateMs != nil }
    if hasSubscription, let sharedSecret, request["password"]?.stringValue != sharedSecret {
      return Answer(status: 21004)
    }
    do {
      if let legacy {
        let reply = TransactionReply(
          receipt: receipt, fields: legacy.purchaseInfo, memory: memory, signer: signer,
          isSandbox: isSandbox, nowMs: nowMs)
        return try reply.answer()
      }
      let reply = UnifiedReply(
        receipt: receipt, receiptText: Array(text.utf8), memory: memory, signer: signer,
        nowMs: nowMs, isTyped: isTyped)
      return Answer(status: 0, body: try reply.bytes())
    } catch {
      return Answer(status: 21009)
    }
  }
}

/// What the two property lists of a transaction receipt say.
private struct LegacyFields {
  var environment: String?
  var purchaseInfo: [String: String] = [:]

  init(_ file: [UInt8]) {
    let outer = Self.texts(file)
    environment = outer["environment"]
    if let text = outer["purchase-info"], let info = try? Base64.decode(Array(text.utf8)) {
      purchaseInfo = Self.texts(info)
    }
  }

  private static func texts(_ bytes: [UInt8]) -> [String: String] {
    bytes.withUnsafeBytes { (try? PropertyList.texts(in: $0)) ?? [:] }
  }
}

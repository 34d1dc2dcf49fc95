// Reads a receipt, signed transactions or a notification; local verifications and forged receipts.
package import AppStore
import Base
package import Ledger

/// Reads the property `receipt`.
struct ReceiptReader {
  private let advice: String
  /// Its name in problems.
  private let field: String
  private var text: [UInt8]?
  private var file: [UInt8] = []
  /// Whether it is present, valid or not; `null` counts as absent.
  private(set) var isGiven = false

  init(signedObjectAdvice advice: String, field: String = "receipt") {
    (self.advice, self.field) = (advice, field)
  }

  mutating func read(
    from cursor: inout JSONCursor, _ client: inout ClientFieldReader
  ) throws(JSONError) {
    let problemCount = client.problems.count
    guard let content = try client.text(field, &cursor) else {
      isGiven = client.problems.count > problemCount
      return
    }
    isGiven = true
    var text = content.bytes
    if text.withUnsafeBytes({ SignedObject.looksLike($0) }) {
      return client.add(
        FieldProblem(field, .signedObject, "is a signed object (JWS), not a receipt: \(advice)")
      )
    }
    do throws(Base64Error) {
      // Nearly all texts are intact: looking for damage first would cost more than decoding.
      if let decoded = try? Base64.decode(text) {
        file = decoded
      } else {
        text = ReceiptText.normalize(text)
        file = try Base64.decode(text)
      }
    } catch {
      return client.add(FieldProblem(field, .notBase64, "is not base64 (\(error))"))
    }
    if text.isEmpty {
      client.add(FieldProblem(field, .missing, "is empty"))
    } else if text.count > UploadLimits.receiptTextBytes {
      client.add(FieldProblem(field, .tooLarge, "is larger than 4 MiB"))
    } else {
      self.text = text
    }
  }

  /// The upload; nil if there are problems.
  func fields(_ client: ClientFieldReader) -> UploadFields? {
    guard client.problems.isEmpty, let text else { return nil }
    return UploadFields(receiptText: text, receiptFile: file, client: client.finish())
  }
}

/// Reads the properties `signed_transactions` and `app_transaction`.
struct SignedTransactionsReader {
  private var transactions: [SignedObject] = []
  private var appTransaction: SignedObject?
  /// Whether a list is present, valid or not; `null` counts as absent.
  private(set) var isGiven = false

  mutating func readList(
    from cursor: inout JSONCursor, _ client: inout ClientFieldReader
  ) throws(JSONError) {
    if try cursor.consumeNull() { return }
    isGiven = true
    guard try cursor.kind() == .array else {
      try cursor.skipValue()
      return client.add(
        FieldProblem("signed_transactions", .wrongType, "is not an array"))
    }
    let limit = UploadLimits.signedTransactions
    var count = 0
    try cursor.beginArray()
    while try cursor.nextElement() {
      if count < limit {
        if let object = try client.signedObject(.transaction(count), &cursor) {
          transactions.append(object)
        }
      } else {
        try cursor.skipValue()
      }
      count += 1
    }
    if count == 0 {
      client.add(FieldProblem("signed_transactions", .missing, "is empty"))
    } else if count > limit {
      client.add(
        FieldProblem("signed_transactions", .tooLarge, "has more than \(limit) entries"))
    }
  }

  mutating func readAppTransaction(
    from cursor: inout JSONCursor, _ client: inout ClientFieldReader
  ) throws(JSONError) {
    if try cursor.consumeNull() { return }
    appTransaction = try client.signedObject(.appTransaction, &cursor)
  }

  /// The upload; nil if there are problems.
  func fields(_ client: ClientFieldReader) -> SignedUploadFields? {
    guard client.problems.isEmpty, !transactions.isEmpty else { return nil }
    return SignedUploadFields(
      transactions: transactions, appTransaction: appTransaction, client: client.finish())
  }
}

/// Reads the property `notification`.
struct NotificationReader {
  private(set) var object: SignedObject?
  /// Whether it is present, valid or not; `null` counts as absent.
  private(set) var isGiven = false

  mutating func read(
    from cursor: inout JSONCursor, _ client: inout ClientFieldReader
  ) throws(JSONError) {
    if try cursor.consumeNull() { return }
    isGiven = true
    object = try client.signedObject(.notification, &cursor)
  }
}

extension ClientFieldReader {
  /// A signed object; nil for anything else, which is recorded as a problem.
  fileprivate mutating func signedObject(
    _ place: SignedObjectPlace, _ cursor: inout JSONCursor
  ) throws(JSONError) -> SignedObject? {
    guard try cursor.kind() == .string else {
      try cursor.skipValue()
      add(FieldProblem(place.description, .wrongType, "is not a string"))
      return nil
    }
    let text = try cursor.readString().bytes
    do throws(SignedObjectFault) { return try SignedObject(text) } catch {
      add(FieldProblem(place, error))
      return nil
    }
  }
}

// MARK: - Local verification

/// The result of a local check of a receipt's signature, as recorded.
package struct LocalVerification: Equatable, Sendable {
  package let outcome: Outcome
  package let reason: String?
  /// Whether the fault lies in this ledger's trust, not in the receipt: another configuration may find it good.
  package var isOfTrust = false

  package static let valid = LocalVerification(outcome: .valid, reason: nil)
  /// Forged or damaged.
  package static let signatureInvalid = LocalVerification(
    outcome: .invalid, reason: FieldProblem.Code.signatureInvalid.rawValue)

  /// Signed by an authority that is not trusted here.
  package static let signatureUntrusted = LocalVerification(
    outcome: .invalid, reason: signatureInvalid.reason, isOfTrust: true)

  /// The receipt's app is not in the uploader's app family.
  package static let bundleIDMismatch = LocalVerification(
    outcome: .invalid, reason: "bundle_id_mismatch")

  /// The chain fails only because of dates. This is not fraud: the App Store decides.
  package static func timeOnly(_ anomaly: String) -> LocalVerification {
    LocalVerification(outcome: .unreachable, reason: anomaly)
  }

  /// The data of the event, without the upload's position.
  /// - Parameters:
  ///   - receipt: nil if it cannot be decoded.
  ///   - occurredAtMs: the time of the check, in epoch milliseconds.
  package func data(of receipt: Receipt?, occurredAtMs: Int64) -> [UInt8] {
    var event = ReceiptVerified(
      authority: .local, outcome: outcome, occurredAtMs: occurredAtMs)
    // Unsigned text may have any length, and the projections keep every name.
    event.environment = receipt.flatMap(PendingEnvironment.named).flatMap {
      $0.utf8.count <= EventLimits.environmentBytes ? $0 : nil
    }
    event.reason = reason
    return event.data(upload: nil, reply: .none)
  }
}

/// Checks the signatures of receipts.
package protocol SignatureChecker {
  /// Checks the signature of a receipt file that was decoded as `receipt`.
  func check(_ receiptFile: UnsafeRawBufferPointer, _ receipt: Receipt) -> LocalVerification
}

extension ReceiptVerifier: SignatureChecker {
  package func check(
    _ receiptFile: UnsafeRawBufferPointer, _ receipt: Receipt
  ) -> LocalVerification {
    switch verify(receiptFile, receipt: receipt) {
    case .valid: .valid
    case .invalid(let fault): fault.isOfTrust ? .signatureUntrusted : .signatureInvalid
    case .timeOnly(let fault), .undecided(let fault): .timeOnly(fault.rawValue)
    }
  }
}

// MARK: - Forged receipts

/// What an event keeps of a receipt that was altered or made up: a small one whole, of a large one a bounded set of
/// facts.
package enum ForgedReceipt {
  /// Files of at least this size are reduced to facts.
  package static let reducedFromBytes = 256 << 10
  /// The author of a forged receipt decides how much it contains.
  private static let purchaseCountMax = 20
  private static let textBytesMax = 255

  /// Facts of its first purchases as one JSON object, without texts that no genuine receipt has.
  static func facts(of receipt: Receipt, eventStyle: String, eventBundleID: String) -> [UInt8] {
    var kept = receipt
    kept.environment = bounded(receipt.environment)
    kept.purchases = receipt.purchases.prefix(purchaseCountMax).map { purchase in
      var kept = purchase
      kept.productID = bounded(purchase.productID)
      kept.transactionID = bounded(purchase.transactionID)
      kept.originalTransactionID = bounded(purchase.originalTransactionID)
      kept.webOrderLineItemID = bounded(purchase.webOrderLineItemID)
      kept.quantity = bounded(purchase.quantity)
      return kept
    }
    return kept.keptFacts(eventStyle: eventStyle, eventBundleID: eventBundleID)
  }

  private static func bounded(_ text: String?) -> String? {
    text.flatMap { $0.utf8.count <= textBytesMax ? $0 : nil }
  }
}

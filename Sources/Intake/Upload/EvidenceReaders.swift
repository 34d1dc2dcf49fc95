// Reads what an upload or an import line is about: a receipt, signed transactions, or a notification.
import AppStore
import Base
import JSON

/// Reads the property `receipt`.
struct ReceiptReader {
  private let advice: String
  /// As problems name it.
  private let field: String
  private var text: [UInt8]?
  private var file: [UInt8] = []
  /// Whether there is one, good or not. `null` is none.
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
      return client.note(
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
      return client.note(FieldProblem(field, .notBase64, "is not base64 (\(error))"))
    }
    if text.isEmpty {
      client.note(FieldProblem(field, .missing, "is empty"))
    } else if text.count > UploadLimits.receiptTextBytes {
      client.note(FieldProblem(field, .tooLarge, "is larger than 4 MiB"))
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
  /// Whether there is a list, good or not. `null` is none.
  private(set) var isGiven = false

  mutating func readList(
    from cursor: inout JSONCursor, _ client: inout ClientFieldReader
  ) throws(JSONError) {
    if try cursor.takeNull() { return }
    isGiven = true
    guard try cursor.kind() == .array else {
      try cursor.skipValue()
      return client.note(
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
      client.note(FieldProblem("signed_transactions", .missing, "is empty"))
    } else if count > limit {
      client.note(
        FieldProblem("signed_transactions", .tooLarge, "has more than \(limit) entries"))
    }
  }

  mutating func readAppTransaction(
    from cursor: inout JSONCursor, _ client: inout ClientFieldReader
  ) throws(JSONError) {
    if try cursor.takeNull() { return }
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
  /// Whether there is one, good or not. `null` is none.
  private(set) var isGiven = false

  mutating func read(
    from cursor: inout JSONCursor, _ client: inout ClientFieldReader
  ) throws(JSONError) {
    if try cursor.takeNull() { return }
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
      note(FieldProblem(place.description, .wrongType, "is not a string"))
      return nil
    }
    let text = try cursor.readString().bytes
    do throws(SignedObjectFault) { return try SignedObject(text) } catch {
      note(FieldProblem(place, error))
      return nil
    }
  }
}

// Signed transactions and notifications of a test chain, as clients, import files and the App Store send them.
package import AppStoreAuthority

/// Makes signed objects of one app.
package struct SignedSample: Sendable {
  package static let authority = SignedObjectAuthority.shared
  /// When transactions and notifications were signed.
  package static let signedDateMs = ms("2026-01-05") + 1000
  /// Of notifications.
  package static let uuid = "002e14d5-51f5-4503-b5a8-c3a1af68eb20"

  /// A UUID that goes by a number.
  package static func uuid(_ number: Int) -> String {
    let digits = String(number)
    return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
  }

  private let bundleID: String

  package init(bundleID: String = "app") { self.bundleID = bundleID }

  /// A transaction's payload: members by name, JSON by value; nil leaves out one of the usual.
  package func payload(
    _ transaction: String = "1", _ changes: [String: String?] = [:]
  ) -> String {
    let dateMs = ms("2026-01-05")
    return Self.object(
      [
        "transactionId": "\"\(transaction)\"", "originalTransactionId": "\"\(transaction)\"",
        "bundleId": "\"\(bundleID)\"", "productId": "\"coins\"", "purchaseDate": "\(dateMs)",
        "originalPurchaseDate": "\(dateMs)", "quantity": "1", "type": "\"Consumable\"",
        "environment": "\"Production\"", "signedDate": "\(Self.signedDateMs)",
        "storefront": "\"DEU\"", "price": "990", "currency": "\"EUR\"",
      ], changes)
  }

  /// A notification's payload whose subject is `data` unless another is named, with changes of that subject.
  package func notificationPayload(
    uuid: String? = SignedSample.uuid, type: String? = "DID_RENEW", subtype: String? = nil,
    subject: String = "data", signedDate: String = "\(SignedSample.signedDateMs)",
    _ changes: [String: String?] = [:]
  ) -> String {
    Self.object([
      "notificationType": type.map { "\"\($0)\"" }, "subtype": subtype.map { "\"\($0)\"" },
      "notificationUUID": uuid.map { "\"\($0)\"" }, "version": "\"2.0\"",
      "signedDate": signedDate,
      subject: Self.object(
        ["bundleId": "\"\(bundleID)\"", "environment": "\"Production\""], changes),
    ])
  }

  private static func object(
    _ members: [String: String?], _ changes: [String: String?] = [:]
  ) -> String {
    let texts = members.merging(changes) { $1 }
      .compactMap { name, value in value.map { "\"\(name)\":\($0)" } }
    return "{\(texts.sorted().joined(separator: ","))}"
  }

  package func sign(
    _ payload: String, by authority: SignedObjectAuthority? = nil,
    _ form: SignedObjectForm = SignedObjectForm()
  ) throws -> String {
    let signer = try authority ?? Self.authority.get()
    return String(decoding: try signer.sign(payload: Array(payload.utf8), form), as: UTF8.self)
  }

  package func transaction(
    _ transaction: String = "1", _ changes: [String: String?] = [:]
  ) throws -> String {
    try sign(payload(transaction, changes))
  }

  package func notification(
    uuid: String? = SignedSample.uuid, type: String? = "DID_RENEW", subject: String = "data",
    _ changes: [String: String?] = [:]
  ) throws -> String {
    try sign(notificationPayload(uuid: uuid, type: type, subject: subject, changes))
  }
}

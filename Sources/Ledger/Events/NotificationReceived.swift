// notification.received: a server notification (version 2) of the App Store.
package import Base

/// The content of a notification's event. Only notifications whose signed objects are all valid become events.
package struct NotificationReceived: Sendable {
  /// The verdict on a signed object inside the notification's payload; the payload itself holds the object.
  package struct Inner: Equatable, Sendable {
    package var verdict: SignedObjectRecord.Verdict
    /// Epoch milliseconds; nil if it has no `signedDate` from 1970 to 9999.
    package var signedAtMs: Int64?

    package init(verdict: SignedObjectRecord.Verdict, signedAtMs: Int64?) {
      self.verdict = verdict
      self.signedAtMs = signedAtMs.flatMap { Timestamp.fixedRangeMs.contains($0) ? $0 : nil }
    }
  }

  /// `notificationUUID`, as sent: the same notification has the same one each time that it comes.
  package var notificationUUID: String
  package var appFamilyID: String
  package var bundleID: String
  package var environment: String
  /// When it was received, in epoch milliseconds.
  package var occurredAtMs: Int64
  package var origin: ReceiptUploaded.Origin
  /// `notificationType`, as sent.
  package var type: String
  package var subtype: String?
  /// The verdict on `signedTransactionInfo`; nil if there is none.
  package var transaction: Inner?
  /// The verdict on `signedRenewalInfo`; nil if there is none.
  package var renewal: Inner?
  package var notification: SignedObjectRecord

  package init(
    notificationUUID: String, appFamilyID: String, bundleID: String, environment: String,
    occurredAtMs: Int64, origin: ReceiptUploaded.Origin, type: String, subtype: String?,
    transaction: Inner?, renewal: Inner?, notification: SignedObjectRecord
  ) {
    self.notificationUUID = notificationUUID
    self.appFamilyID = appFamilyID
    self.bundleID = bundleID
    self.environment = environment
    self.occurredAtMs = occurredAtMs
    self.origin = origin
    self.type = type
    self.subtype = subtype
    self.transaction = transaction
    self.renewal = renewal
    self.notification = notification
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.reserve(notification.byteCount + 1024)
    writer.beginObject()
    writer.member("notification_uuid", notificationUUID)
    writer.member("app_family_id", appFamilyID)
    writer.member("bundle_id", bundleID)
    writer.member("environment", environment)
    writer.member("occurred_at", Timestamp.fixedText(ms: occurredAtMs))
    origin.writeMembers(to: &writer)
    writer.member("type", type)
    writer.member("subtype", ifPresent: subtype)
    func verdict(_ name: StaticString, _ inner: Inner?) {
      guard let inner else { return }
      writer.key(name)
      writer.beginObject()
      inner.verdict.writeMembers(to: &writer)
      writer.member("signed_at", ifPresent: inner.signedAtMs.map { Timestamp.fixedText(ms: $0) })
      writer.endObject()
    }
    verdict("transaction", transaction)
    verdict("renewal", renewal)
    writer.key("notification")
    notification.write(to: &writer)
    writer.endObject()
    return writer.bytes
  }
}

/// A notification as the fold reads it: its members point into the event's bytes.
package struct NotificationReceivedView {
  package private(set) var notificationUUID: JSONString?
  package private(set) var appFamilyID: JSONString?
  package private(set) var bundleID: JSONString?
  package private(set) var environment: JSONString?
  /// Epoch milliseconds; nil if the event does not contain it.
  package private(set) var occurredAtMs: Int64?
  package private(set) var isImport = false
  /// Whether it is of a fetched notification history.
  package private(set) var isFetched = false
  package private(set) var line: Int64?
  package private(set) var lineSHA256Hex: JSONString?
  package private(set) var type: JSONString?
  package private(set) var subtype: JSONString?
  /// The verdict on the payload's `data.signedTransactionInfo`.
  package private(set) var transaction: SignedObjectView?
  /// The verdict on the payload's `data.signedRenewalInfo`.
  package private(set) var renewal: SignedObjectView?
  package private(set) var notification: SignedObjectView?

  /// The members in the catalogue's order.
  package static let members = [
    "notification_uuid", "app_family_id", "bundle_id", "environment", "occurred_at", "via", "line",
    "line_sha256", "type", "subtype", "transaction", "renewal", "notification",
  ]
  private static var required: UInt32 { 0b1_0001_0011_1111 }

  /// Whether the event was redacted: what was kept of the objects inside is then with the verdicts on them.
  package let isRedacted: Bool

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  /// - Parameter isRedacted: whether the data is what a redaction kept.
  package init(data: JSONBytes, isRedacted: Bool = false) throws(EventError) {
    self.isRedacted = isRedacted
    var review = MemberValidator()
    do throws(JSONError) {
      var cursor = JSONCursor(data)
      try cursor.beginObject()
      while let key = try cursor.nextKey() { try read(key, &cursor, &review) }
    } catch { throw .malformed(.notificationReceived, error) }
    try review.check(.notificationReceived, required: Self.required, Self.members)
  }

  private mutating func read(
    _ key: JSONString, _ cursor: inout JSONCursor, _ review: inout MemberValidator
  ) throws(JSONError) {
    switch key.raw.count {
    case 4 where key == "line":
      line = try cursor.readIntegerOrSkip()
      review.mark(6, isRight: line != nil)
    case 7 where key == "renewal":
      renewal = try SignedObjectView.verdict(&cursor)
      review.mark(11, isRight: renewal != nil)
    case 11 where key == "transaction":
      transaction = try SignedObjectView.verdict(&cursor)
      review.mark(10, isRight: transaction != nil)
    case 12 where key == "notification":
      notification = try SignedObjectView.object(&cursor, isRedacted: isRedacted)
      review.mark(12, isRight: notification != nil)
    default: try readText(key, &cursor, &review)
    }
  }

  private mutating func readText(
    _ key: JSONString, _ cursor: inout JSONCursor, _ review: inout MemberValidator
  ) throws(JSONError) {
    let text = try cursor.readStringOrSkip()
    switch key.raw.count {
    case 3 where key == "via":
      isImport = text.map { $0 == "import" } ?? false
      isFetched = text.map { $0 == "fetch" } ?? false
      review.mark(5, isRight: isImport || isFetched || text.map { $0 == "http" } ?? false)
    case 4 where key == "type":
      type = text
      review.mark(8, isRight: text != nil)
    case 7 where key == "subtype":
      subtype = text
      review.mark(9, isRight: text != nil)
    case 9 where key == "bundle_id":
      bundleID = text
      review.mark(2, isRight: text != nil)
    case 11 where key == "environment":
      environment = text
      review.mark(3, isRight: text != nil)
    case 11 where key == "occurred_at":
      occurredAtMs = text.flatMap { Timestamp.parseFixed($0.raw) }
      review.mark(4, isRight: occurredAtMs != nil)
    case 11 where key == "line_sha256":
      lineSHA256Hex = text
      review.mark(7, isRight: text != nil)
    case 13 where key == "app_family_id":
      appFamilyID = text
      review.mark(1, isRight: text.map { EventUUID.isOne($0.raw) } ?? false)
    case 17 where key == "notification_uuid":
      notificationUUID = text
      review.mark(0, isRight: text != nil)
    default: break
    }
  }
}

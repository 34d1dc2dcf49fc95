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

  /// The members, in the catalogue's order.
  package enum Member: MemberName, EventMember {
    case notificationUUID = "notification_uuid"
    case appFamilyID = "app_family_id"
    case bundleID = "bundle_id"
    case environment = "environment"
    case occurredAt = "occurred_at"
    case via = "via"
    case line = "line"
    case lineSHA256 = "line_sha256"
    case type = "type"
    case subtype = "subtype"
    case transaction = "transaction"
    case renewal = "renewal"
    case notification = "notification"
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
    writer.member(Member.notificationUUID.name, notificationUUID)
    writer.member(Member.appFamilyID.name, appFamilyID)
    writer.member(Member.bundleID.name, bundleID)
    writer.member(Member.environment.name, environment)
    writer.member(Member.occurredAt.name, Timestamp.fixedText(ms: occurredAtMs))
    origin.writeMembers(to: &writer)
    writer.member(Member.type.name, type)
    writer.member(Member.subtype.name, ifPresent: subtype)
    func verdict(_ member: Member, _ inner: Inner?) {
      guard let inner else { return }
      writer.key(member.name)
      writer.beginObject()
      inner.verdict.writeMembers(to: &writer)
      if let signedAtMs = inner.signedAtMs {
        writer.member(SignedObjectRecord.Member.signedAt.name, Timestamp.fixedText(ms: signedAtMs))
      }
      writer.endObject()
    }
    verdict(.transaction, transaction)
    verdict(.renewal, renewal)
    writer.key(Member.notification.name)
    notification.write(to: &writer)
    writer.endObject()
    return writer.bytes
  }
}

/// A notification as the fold reads it: its members point into the event's bytes.
package struct NotificationReceivedView: EventView {
  typealias Member = NotificationReceived.Member

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

  /// Whether the event was redacted: what was kept of the objects inside is then with the verdicts on them.
  package let isRedacted: Bool

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  /// - Parameter isRedacted: whether the data is what a redaction kept.
  package init(data: JSONBytes, isRedacted: Bool = false) throws(EventError) {
    self.isRedacted = isRedacted
    try read(
      data, of: .notificationReceived,
      required: .through(.via).with(.type).with(.notification))
  }

  mutating func read(_ member: Member, _ cursor: inout JSONCursor) throws(JSONError) -> Bool {
    switch member {
    case .notificationUUID: return try cursor.read(&notificationUUID)
    case .appFamilyID: return try cursor.read(uuid: &appFamilyID)
    case .bundleID: return try cursor.read(&bundleID)
    case .environment: return try cursor.read(&environment)
    case .occurredAt: return try cursor.read(timeMs: &occurredAtMs)
    case .via:
      let word = try cursor.readStringOrSkip()
      (isImport, isFetched) = (word == "import", word == "fetch")
      return isImport || isFetched || word == "http"
    case .line: return try cursor.read(&line)
    case .lineSHA256: return try cursor.read(&lineSHA256Hex)
    case .type: return try cursor.read(&type)
    case .subtype: return try cursor.read(&subtype)
    case .transaction:
      transaction = try SignedObjectView.verdict(&cursor)
      return transaction != nil
    case .renewal:
      renewal = try SignedObjectView.verdict(&cursor)
      return renewal != nil
    case .notification:
      notification = try SignedObjectView.object(&cursor, isRedacted: isRedacted)
      return notification != nil
    }
  }
}

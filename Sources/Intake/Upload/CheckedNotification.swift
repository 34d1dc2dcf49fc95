// Checks the signatures of a notification: its own, and those of the signed objects inside.
package import AppStore
package import Base
package import Ledger

/// A notification after the check of its signatures.
package struct CheckedNotification: Sendable {
  /// `notificationUUID`; empty if it has none, which is a problem.
  package let uuid: String
  /// `notificationType`, as sent; empty if it has none.
  package let type: String
  package let subtype: String?
  package let outer: CheckedSignedObject
  /// The signed objects inside.
  package private(set) var transaction: CheckedSignedObject?
  package private(set) var renewal: CheckedSignedObject?
  package private(set) var appTransaction: CheckedSignedObject?
  /// What is wrong with it apart from signatures.
  package private(set) var problems: [FieldProblem] = []

  /// The longest UUID, type and subtype that are accepted, in bytes. Existing ones are shorter than 40.
  private static let nameBytesMax = 255

  /// Checks the notification and, if it is not forged, the objects inside.
  /// - Parameter nowMs: the time of the check, in epoch milliseconds.
  package init(
    _ object: SignedObject, _ verifier: SignedObjectVerifier, nowMs: Int64
  ) {
    outer = CheckedSignedObject(object, .notification, verifier, TextKeeper(), nowMs: nowMs)
    let keeper = TextKeeper()
    let content = object.payload.withUnsafeBytes { payload in
      Content(try? SignedNotification(payload: payload, keeper))
    }
    (uuid, type, subtype) = (content.uuid, content.type, content.subtype)
    // A forged notification is rejected for that alone.
    guard outer.fault == nil else { return }
    if type.isEmpty {
      problems.append(
        FieldProblem("notification", .signedObjectMalformed, "has no notificationType"))
    }
    if [uuid, type, subtype ?? ""].contains(where: { $0.utf8.count > Self.nameBytesMax }) {
      problems.append(
        FieldProblem(
          "notification", .signedObjectMalformed,
          "has a UUID, a type or a subtype of more than \(Self.nameBytesMax) bytes"))
    }
    transaction = inner(content.transaction, .notifiedTransaction, verifier, nowMs: nowMs)
    renewal = inner(content.renewal, .notifiedRenewal, verifier, nowMs: nowMs)
    appTransaction = inner(
      content.appTransaction, .notifiedAppTransaction, verifier, nowMs: nowMs)
  }

  /// The needed parts of the payload, copied.
  private struct Content {
    let uuid: String
    let type: String
    let subtype: String?
    let transaction: [UInt8]?
    let renewal: [UInt8]?
    let appTransaction: [UInt8]?

    init(_ content: SignedNotification?) {
      func text(_ bytes: JSONBytes?) -> String? {
        bytes.map { String(decoding: $0, as: UTF8.self) }
      }
      uuid = text(content?.notificationUUID) ?? ""
      type = text(content?.type) ?? ""
      subtype = text(content?.subtype)
      transaction = content?.signedTransactionInfo.map(Array.init)
      renewal = content?.signedRenewalInfo.map(Array.init)
      appTransaction = content?.signedAppTransactionInfo.map(Array.init)
    }
  }

  private mutating func inner(
    _ text: [UInt8]?, _ place: SignedObjectPlace, _ verifier: SignedObjectVerifier, nowMs: Int64
  ) -> CheckedSignedObject? {
    guard let text else { return nil }
    do throws(SignedObjectFault) {
      return CheckedSignedObject(
        try SignedObject(text), place, verifier, TextKeeper(), nowMs: nowMs,
        environment: outer.environment)
    } catch {
      problems.append(FieldProblem(place, error))
      return nil
    }
  }

  /// The notification, then the signed objects inside.
  package var objects: [CheckedSignedObject] {
    [outer] + [transaction, renewal, appTransaction].compactMap(\.self)
  }

  /// The event. All objects must be valid.
  /// - Parameter occurredAtMs: when it was received, in epoch milliseconds.
  package func draft(
    appFamily: UUID16, occurredAtMs: Int64, origin: ReceiptUploaded.Origin
  ) throws(JSONError) -> EventDraft {
    precondition(
      problems.isEmpty && objects.allSatisfy { $0.fault == nil }, "the notification is good")
    let event = NotificationReceived(
      notificationUUID: uuid, appFamilyID: appFamily.description, bundleID: outer.bundleID,
      environment: outer.environment, occurredAtMs: occurredAtMs, origin: origin, type: type,
      subtype: subtype, transaction: transaction?.inner, renewal: renewal?.inner,
      notification: try outer.record())
    return EventDraft(.notificationReceived, event.data)
  }
}

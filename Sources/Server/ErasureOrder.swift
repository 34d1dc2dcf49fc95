// Requests to erase as they come over HTTP, and what is said of them: nothing that names whom they are about.
package import Base
import Erasure
import JSON
import Ledger
import Projections

/// A request to erase a user of an app family.
package struct ErasureOrder: Sendable {
  /// As uploads name the user, or `token:` and an `appAccountToken`. No message contains it.
  package let user: String
  /// A code, as events have it.
  package let reason: String
  package let isUrgent: Bool
  /// The app family of the token: only its events go.
  package let appFamily: UUID16
  /// Epoch milliseconds.
  package let receivedAtMs: Int64

  package init(
    user: String, reason: String, isUrgent: Bool, appFamily: UUID16, receivedAtMs: Int64
  ) {
    self.user = user
    self.reason = reason
    self.isUrgent = isUrgent
    self.appFamily = appFamily
    self.receivedAtMs = receivedAtMs
  }

  /// What waits in the ledger.
  var record: ErasureRecord {
    ErasureRecord(
      .user(user, appFamily: appFamily), reason: reason, requestedAtMs: receivedAtMs,
      isUrgent: isUrgent)
  }
}

/// An erasure as HTTP shows it.
enum ErasureResource {
  /// Of a request that was taken.
  static func accepted(_ record: ErasureRecord) -> AnswerBody {
    AnswerBody(
      JSONValue.object([
        .init("id", .string(record.id.description)), .init("state", .string(record.state.rawValue)),
        .init("requested_at", .string(Timestamp.text(ms: record.requestedAtMs))),
      ]).bytes)
  }

  /// Of a request that is asked about.
  static func current(_ record: ErasureRecord) -> AnswerBody {
    AnswerBody(
      JSONValue.object([
        .init("id", .string(record.id.description)), .init("state", .string(record.state.rawValue)),
        .init("reason", .string(record.reason)),
        .init("requested_at", .string(Timestamp.text(ms: record.requestedAtMs))),
        .init("certificate", record.certificate.map { .object($0.members) } ?? .null),
        .init("failure", record.failure.map { .string($0) } ?? .null),
      ]).bytes)
  }
}

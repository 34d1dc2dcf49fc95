// Checks the signatures of an upload's signed objects and reads what decides about it: app, environment, times.
package import AppStore
package import Base
import Ledger

/// An upload of signed transactions after the check of its signatures.
package struct CheckedSignedUpload: Sendable {
  /// The transactions in the order of the list.
  package let transactions: [CheckedSignedObject]
  package let appTransaction: CheckedSignedObject?

  /// What an operator says of those objects that name no environment; nil if each of them names one.
  package let statedEnvironment: String?

  /// Checks all signatures.
  /// - Parameter nowMs: the time of the check, in epoch milliseconds.
  package init(_ fields: SignedUploadFields, _ verifier: SignedObjectVerifier, nowMs: Int64) {
    let keeper = TextKeeper()
    let stated = fields.environment
    transactions = fields.transactions.enumerated().map { index, object in
      CheckedSignedObject(
        object, .transaction(index), verifier, keeper, nowMs: nowMs, environment: stated)
    }
    appTransaction = fields.appTransaction.map { object in
      CheckedSignedObject(
        object, .appTransaction, verifier, keeper, nowMs: nowMs, environment: stated)
    }
    let objects = fields.transactions + (fields.appTransaction.map { [$0] } ?? [])
    statedEnvironment = objects.allSatisfy(\.namesEnvironment) ? nil : stated
  }

  /// The transactions, then the app transaction.
  package var objects: [CheckedSignedObject] { transactions + (appTransaction.map { [$0] } ?? []) }

  /// The id of the upload in an app family: the same for the same list.
  package func id(in appFamily: UUID16) -> UUID16 {
    TransactionsReceived.uploadID(of: objects.map(\.object.text), in: appFamily)
  }

  /// The greatest time at which one of the transactions was signed, in epoch milliseconds.
  package var newestSignedAtMs: Int64? { transactions.compactMap(\.object.signedDateMs).max() }
}

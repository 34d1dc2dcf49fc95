// The payloads of an event's signed objects, decoded on the thread that scans the event.
package import AppStore
package import Base
import Glibc
package import Ledger
package import Revenue

/// The decoded parts of an upload of signed transactions that the fold uses. A class: events of other types would grow
/// to its size.
package final class ReceivedTransactions {
  package let view: TransactionsReceivedView
  /// In the order of the list; nil for an object that is not valid.
  package let transactions: [SignedTransaction?]

  /// Throws `badField` if a payload cannot be read. The texts live as long as the event's bytes and the keeper.
  package init(_ view: TransactionsReceivedView, _ keeper: TextKeeper) throws(EventError) {
    self.view = view
    do throws(JSONError) {
      transactions = try view.transactions.payloads(keeper, view.environment)
    } catch {
      throw .badField(.transactionsReceived, field: "transactions")
    }
  }
}

/// The decoded parts of a fetched page that the fold uses. A class for the same reason.
package final class FetchedTransactions {
  package let view: TransactionsFetchedView
  /// In the order of the list; nil for an object that is not valid.
  package let transactions: [SignedTransaction?]
  /// The valid renewal information, in the order of the list.
  package let renewals: [SignedRenewal]

  /// Throws `badField` if a payload cannot be read. The texts live as long as the event's bytes and the keeper.
  package init(_ view: TransactionsFetchedView, _ keeper: TextKeeper) throws(EventError) {
    self.view = view
    do throws(JSONError) {
      transactions = try view.transactions.payloads(keeper, view.environment)
    } catch {
      throw .badField(.transactionsFetched, field: "transactions")
    }
    var renewals: [SignedRenewal] = []
    do throws(JSONError) {
      for object in view.renewals where object.isValid {
        renewals.append(try SignedRenewal(payload: object.payload, keeper))
      }
    } catch { throw .badField(.transactionsFetched, field: "renewals") }
    self.renewals = renewals
  }
}

extension FetchedTransactions {
  /// What can be read of rejected objects: they count for nothing, but have an owner all the same. The texts live as
  /// long as the event's bytes and the keeper.
  package func refused(
    _ keeper: TextKeeper
  ) -> (transactions: [SignedTransaction], renewals: [SignedRenewal]) {
    (
      view.transactions.filter { !$0.isValid }.compactMap {
        try? SignedTransaction(payload: $0.payload, keeper, environment: view.environment)
      },
      view.renewals.filter { !$0.isValid }.compactMap {
        try? SignedRenewal(payload: $0.payload, keeper)
      }
    )
  }
}

extension [SignedObjectView] {
  /// The payloads as transactions; nil for an object that is not valid.
  /// - Parameter environment: of payloads that name none.
  fileprivate func payloads(
    _ keeper: TextKeeper, _ environment: JSONString?
  ) throws(JSONError) -> [SignedTransaction?] {
    var transactions: [SignedTransaction?] = []
    transactions.reserveCapacity(count)
    for object in self {
      guard object.isValid else {
        transactions.append(nil)
        continue
      }
      transactions.append(
        try SignedTransaction(payload: object.payload, keeper, environment: environment))
    }
    return transactions
  }
}

extension SignedTransaction {
  /// Reads a payload; the event's environment applies to objects that name none (rule R12).
  package init(
    payload: JSONBytes, _ keeper: TextKeeper, environment stated: JSONString?
  ) throws(JSONError) {
    try self.init(payload: payload, keeper)
    if environment == nil { environment = stated.map { keeper.bytes(of: $0) } }
  }
}

/// The decoded parts of a notification that the fold uses. A class for the same reason.
package final class ReceivedNotification {
  package let view: NotificationReceivedView
  /// Nil if it has no valid transaction.
  package let transaction: SignedTransaction?
  /// Nil if it has no valid renewal information.
  package let renewal: SignedRenewal?
  /// The original transaction id of its renewal information, valid or not.
  package let originalTransactionID: Text?

  /// Throws `badField` if the payload cannot be read. The texts live as long as the event's bytes and the keeper.
  package init(_ view: NotificationReceivedView, _ keeper: TextKeeper) throws(EventError) {
    self.view = view
    guard let object = view.notification else {
      preconditionFailure("a decoded notification has a signed object")
    }
    let inner = try Self.inner(view, object, keeper)
    // The objects inside were checked at intake; what can't be read now counts for nothing.
    var transaction: SignedTransaction?
    if object.isValid, view.transaction?.isValid == true, let payload = inner.transaction {
      transaction = try? SignedTransaction(
        payload: payload, keeper, environment: view.environment)
    }
    self.transaction = transaction
    let renewal = inner.renewal.flatMap { try? SignedRenewal(payload: $0, keeper) }
    originalTransactionID = renewal?.info.originalTransactionID
    self.renewal = object.isValid && view.renewal?.isValid == true ? renewal : nil
  }

  /// The payloads of the objects inside, or what a redaction kept of them.
  private static func inner(
    _ view: NotificationReceivedView, _ object: SignedObjectView, _ keeper: TextKeeper
  ) throws(EventError) -> (transaction: JSONBytes?, renewal: JSONBytes?) {
    if view.isRedacted {
      func kept(_ verdict: SignedObjectView?) -> JSONBytes? {
        verdict.flatMap { $0.payload.isEmpty ? nil : $0.payload }
      }
      return (kept(view.transaction), kept(view.renewal))
    }
    let payload: SignedNotification
    do throws(JSONError) {
      payload = try SignedNotification(payload: object.payload, keeper)
    } catch {
      throw .badField(.notificationReceived, field: "notification")
    }
    return (
      self.payload(of: payload.signedTransactionInfo, keeper),
      self.payload(of: payload.signedRenewalInfo, keeper)
    )
  }

  /// The second part of a JWS, decoded; nil if it is not a JSON object.
  private static func payload(of text: JSONBytes?, _ keeper: TextKeeper) -> JSONBytes? {
    guard let text, text.count <= SignedObject.maximumSizeBytes else { return nil }
    guard let first = dot(in: text, from: 0), let second = dot(in: text, from: first + 1),
      dot(in: text, from: second + 1) == nil,
      let payload = try? Base64.decode(JSONBytes(rebasing: text[(first + 1)..<second]), .url)
    else { return nil }
    let isObject = payload.withUnsafeBytes {
      (try? JSONValidator.validate($0, depthLimit: SignedObject.depthLimit)) != nil
    }
    return isObject ? keeper.keep(payload) : nil
  }

  /// The offset of the next dot. Most of a text is certificates, so it is searched by words.
  private static func dot(in text: JSONBytes, from offset: Int) -> Int? {
    guard offset < text.count, let start = text.baseAddress,
      let found = memchr(start + offset, 0x2E, text.count - offset)
    else { return nil }
    return UnsafeRawPointer(found) - start
  }
}

// The signed objects of a fetched page that a later event found good, decoded from the page.
package import AppStore
package import Base
import JSON
package import Ledger
package import Revenue

/// Objects that count from a `signatures.accepted` on.
package struct AcceptedObjects {
  /// Those of the page.
  let environment: JSONString
  let bundleID: JSONString
  package private(set) var transactions: [(transaction: SignedTransaction, root: SHA256Digest)] = []
  private(set) var renewals: [SignedRenewal] = []

  /// Throws `badField` of `page` unless `line` is a fetched page in which these objects were refused for a reason of time or
  /// trust. The texts live as long as the line's bytes and the keeper.
  package init(
    _ accepted: SignaturesAccepted, page line: Text, _ keeper: TextKeeper
  ) throws(EventError) {
    let fault = EventError.badField(.signaturesAccepted, field: "page")
    guard let event = EventLine(line), EventType(event.type) == .transactionsFetched,
      event.version == EventType.transactionsFetched.currentVersion,
      let view = try? TransactionsFetchedView(data: event.data, isRedacted: event.isRedacted),
      let environment = view.environment, let bundleID = view.bundleID
    else { throw fault }
    (self.environment, self.bundleID) = (environment, bundleID)
    for object in accepted.transactions {
      guard let payload = view.transactions.refusedPayload(at: object.index),
        let transaction = try? SignedTransaction(
          payload: payload, keeper, environment: environment)
      else { throw fault }
      transactions.append((transaction, object.root))
    }
    for object in accepted.renewals {
      guard let payload = view.renewals.refusedPayload(at: object.index),
        let renewal = try? SignedRenewal(payload: payload, keeper)
      else { throw fault }
      renewals.append(renewal)
    }
  }
}

extension [SignedObjectView] {
  /// The payload of an object that can become good; nil if there is none at the place, or it can't.
  fileprivate func refusedPayload(at index: Int) -> JSONBytes? {
    indices.contains(index) && self[index].mayBecomeGood ? self[index].payload : nil
  }
}

extension SignedObjectView {
  /// Whether it was refused for a reason of time or trust.
  package var mayBecomeGood: Bool {
    !isValid
      && reason.flatMap { SignedObjectFault(rawValue: $0.string) }?.isOfTimeOrTrust ?? false
  }
}

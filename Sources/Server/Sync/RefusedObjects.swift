// Finds signed objects in fetched pages that were refused for a reason of time or trust, and are good now.
import AppStore
import Base
import Intake
import JSON
import Ledger
import Projections

/// Checks the refused objects of an app's pages again.
struct RefusedObjects {
  private let bundleIDs: Set<String>
  private let verifier: SignedObjectVerifier
  private let nowMs: Int64

  /// - Parameters:
  ///   - bundleIDs: whose pages are looked at.
  ///   - nowMs: the clock, in epoch milliseconds.
  init(ofBundles bundleIDs: Set<String>, _ verifier: SignedObjectVerifier, nowMs: Int64) {
    self.bundleIDs = bundleIDs
    self.verifier = verifier
    self.nowMs = nowMs
  }

  /// What is good now of a page's objects; nil if nothing is, or no more than was accepted already.
  /// - Parameters:
  ///   - line: the page's event, without its line feed.
  ///   - accepted: what earlier events accepted of it.
  func goodNow(
    of line: [UInt8], at page: Position, accepted: [SignaturesAccepted]
  ) -> SignaturesAccepted? {
    line.withUnsafeBytes { line in
      guard let event = EventLine(line), EventType(event.type) == .transactionsFetched,
        event.version == EventType.transactionsFetched.currentVersion,
        let view = try? TransactionsFetchedView(data: event.data, isRedacted: event.isRedacted),
        view.bundleID.map({ bundleIDs.contains($0.string) }) ?? false
      else { return nil }
      let keeper = TextKeeper()
      func good(
        _ objects: [SignedObjectView], _ known: [[SignaturesAccepted.Object]],
        _ place: (Int) -> SignedObjectPlace
      ) -> [SignaturesAccepted.Object] {
        let knownIndexes = Set(known.joined().map(\.index))
        return objects.indices.compactMap { index in
          let object = objects[index]
          // Of what a redaction reduced there is nothing left to check.
          guard object.mayBecomeGood, !object.isReduced, !knownIndexes.contains(index),
            let signed = try? SignedObject(object.text),
            case .valid(let root) = CheckedSignedObject(
              signed, place(index), verifier, keeper, nowMs: nowMs,
              environment: view.environment?.string
            ).verdict
          else { return nil }
          return SignaturesAccepted.Object(index: index, root: root)
        }
      }
      let transactions = good(view.transactions, accepted.map(\.transactions)) { .transaction($0) }
      let renewals = good(view.renewals, accepted.map(\.renewals)) { _ in .notifiedRenewal }
      if transactions.isEmpty, renewals.isEmpty { return nil }
      return SignaturesAccepted(
        page: page, occurredAtMs: nowMs, transactions: transactions, renewals: renewals)
    }
  }
}

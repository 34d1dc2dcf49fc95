// Recorded sources of replies and trust beyond Apple's own; accepted objects; mismatched replies.
package import AppStore
package import Base
package import Ledger
package import Revenue

extension ReplyTrust {
  /// What a verification by the App Store records about its source.
  init(_ result: ReceiptVerifiedView) {
    if let host = result.host {
      self = AppleTrust.isHost(host) ? .appStore : .configured
    } else {
      self = result.isImported ? .imported : .notRecorded
    }
  }
}

extension TrustDeclared {
  /// The trust that is not Apple's own, in words; empty if all is Apple's.
  package var foreignTrust: [String] {
    var words: [String] = []
    for (endpoint, host) in [("production", productionHost), ("sandbox", sandboxHost)]
    where !AppleTrust.isHost(host) { words.append("host \(host) for \(endpoint)") }
    func add(_ kind: String, _ digests: [SHA256Digest]) {
      for digest in digests where !AppleTrust.certificates.contains(digest) {
        words.append("\(kind) \(digest.hex)")
      }
    }
    add("root", roots)
    for certificate in intermediates where !AppleTrust.certificates.contains(certificate.sha256) {
      words.append("intermediate '\(certificate.name)' \(certificate.sha256.hex)")
    }
    add("local testing signer", localTestingSigners)
    return mergedFrom.map { origin in words.map { "\($0), by \(origin)" } } ?? words
  }
}

// MARK: - Accepted objects

/// Signed objects of a fetched page that count from a `signatures.accepted` on, decoded from the page.
package struct AcceptedObjects {
  /// The page's environment.
  let environment: JSONString
  let bundleID: JSONString
  package private(set) var transactions: [(transaction: SignedTransaction, root: SHA256Digest)] = []
  private(set) var renewals: [SignedRenewal] = []

  /// Throws `badField` of `page` unless `line` is a fetched page in which these objects were rejected for a reason of
  /// time or trust. The texts live as long as the line's bytes and the keeper.
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
  /// The payload of an object that can become good; nil if there is none at the index, or if it can't.
  fileprivate func refusedPayload(at index: Int) -> JSONBytes? {
    indices.contains(index) && self[index].mayBecomeGood ? self[index].payload : nil
  }
}

extension SignedObjectView {
  /// Whether it was rejected for a reason of time or trust.
  package var mayBecomeGood: Bool {
    !isValid
      && reason.flatMap { SignedObjectFault(rawValue: $0.string) }?.isOfTimeOrTrust ?? false
  }
}

// MARK: - Mismatched replies

/// Detects replies that do not belong to their receipts (rule R9, `reply_mismatch`). Events record what intake found
/// when it compared them. Events of earlier versions do not, so their receipts are read; only a log with such events
/// has that cost.
final class ReplyComparison {
  private let catalogue: AppCatalogue
  private let readEvent: EventAccess
  /// The base64 of the uploads' receipts, kept once an event without that record was found.
  private var receipts: RecentEvents?

  init(_ catalogue: AppCatalogue, _ readEvent: @escaping EventAccess) {
    self.catalogue = catalogue
    self.readEvent = readEvent
  }

  /// Keeps an upload's receipt for its verification, which may need it.
  func note(_ upload: ReceiptUploadedView, at position: Position) {
    guard let receipts, let receipt = upload.receipt else { return }
    receipts.keep(Array(receipt.raw), at: position)
  }

  /// Why a reply does not fit; nil if it fits or was rejected for another reason.
  func mismatch(
    of reply: Reply, _ result: ReceiptVerifiedView, ofFamily family: Text, receiptBundle: Text
  ) throws(LedgerError) -> ReplyMismatch? {
    if let found = result.mismatch {
      // The usual case, handled without creating a string.
      if found == "none" { return nil }
      return ReplyMismatch(rawValue: String(decoding: found.bytes, as: UTF8.self))
    }
    // A reused reply was given for the same receipt.
    guard result.outcome == .valid, result.replyOf == nil else { return nil }
    guard let bundle = reply.bundleID else {
      return ReceiptSubject(try receipt(ofUpload: result.upload)).mismatchOfNameless(reply)
    }
    // The bundle ids of an unregistered family are unknown.
    guard
      bundle.equals(receiptBundle) || catalogue.isOfFamily(family, bundle: bundle)
        || !catalogue.isRegistered(family)
    else { return .bundle }
    if reply.rows.isEmpty { return nil }
    let receipt = try receipt(ofUpload: result.upload)
    return ReceiptSubject(receipt).showsOtherTransactions(reply.rows) ? .transactions : nil
  }

  /// R2: the bundle that a reply names, otherwise the receipt's if it shows any of it, otherwise empty.
  func bundle(
    of reply: Reply?, _ result: ReceiptVerifiedView, receiptBundle: () throws -> Text
  ) throws -> Text {
    if let named = reply?.bundleID { return named }
    guard let reply, result.authority == .appStore, result.outcome == .valid, !reply.rows.isEmpty,
      let receipt = try receipt(ofUpload: result.upload),
      ReceiptSubject(receipt).shares(reply.rows)
    else { return Text(start: nil, count: 0) }
    return try receiptBundle()
  }

  /// The receipt of an upload; nil if it cannot be read.
  private func receipt(ofUpload position: Position) throws(LedgerError) -> Receipt? {
    let known = receipts ?? RecentEvents()
    receipts = known
    if let text = known.line(at: position) { return text.withUnsafeBytes { Self.receipt($0) } }
    let line = try readEvent(position)
    return PendingReceipts.file(of: line)
  }

  private static func receipt(_ base64: Text) -> Receipt? {
    guard let content = try? Base64.decode(base64) else { return nil }
    return try? content.withUnsafeBytes { try ReceiptFile.decode($0) }
  }
}

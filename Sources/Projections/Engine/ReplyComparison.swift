// Replies that are not about their receipt (rule R9, `reply_mismatch`): by what intake found, or found out here.
import AppStore
import Base
import JSON
import Ledger
import Revenue

/// Tells which replies do not fit their receipts. Events record what intake found when comparing them. Those of earlier
/// versions do not, so their receipts are read: only a log with such events pays for that.
final class ReplyComparison {
  private let catalogue: AppCatalogue
  private let readEvent: EventAccess
  /// The base64 of the uploads' receipts, once an event without that record was met.
  private var receipts: RecentEvents?

  init(_ catalogue: AppCatalogue, _ readEvent: @escaping EventAccess) {
    self.catalogue = catalogue
    self.readEvent = readEvent
  }

  /// Keeps an upload's receipt for its verification, where one may be asked for.
  func note(_ upload: ReceiptUploadedView, at position: Position) {
    guard let receipts, let receipt = upload.receipt else { return }
    receipts.keep(Array(receipt.raw), at: position)
  }

  /// What speaks against a reply; nil where it fits, or was not believed for another reason.
  func mismatch(
    of reply: Reply, _ result: ReceiptVerifiedView, ofFamily family: Text, receiptBundle: Text
  ) throws(LedgerError) -> ReplyMismatch? {
    if let found = result.mismatch {
      // The usual case: no text is created for it.
      if found == "none" { return nil }
      return ReplyMismatch(rawValue: String(decoding: found.bytes, as: UTF8.self))
    }
    // A reply that is taken over was given for the same receipt.
    guard result.outcome == .valid, result.replyOf == nil else { return nil }
    let catalogue = catalogue
    let fitsBundle = ReceiptSubject.fitsBundle(reply) { bundle in
      bundle.equals(receiptBundle) || catalogue.isOfFamily(family, bundle: bundle)
    }
    // The bundle ids of a family that no event registered are unknown.
    guard fitsBundle || !catalogue.isRegistered(family) else { return .bundle }
    if reply.rows.isEmpty { return nil }
    let receipt = try receipt(ofUpload: result.upload)
    return ReceiptSubject(receipt).showsOtherTransactions(reply.rows) ? .transactions : nil
  }

  /// The receipt that an upload brought; nil where it can't be read.
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

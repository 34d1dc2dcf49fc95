// Finds replies that do not belong to their receipt (rule R9, `reply_mismatch`), recorded at intake or detected here.
import AppStore
import Base
import JSON
import Ledger
import Revenue

/// Detects replies that do not fit their receipts. Events record what intake found when it compared them. Events of
/// earlier versions do not, so their receipts are read; only a log with such events has that cost.
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

  /// R2: the bundle that a reply names, otherwise the receipt's where it shows something of it, otherwise empty.
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

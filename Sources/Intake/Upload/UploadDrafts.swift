// The drafts of uploads and of their verifications, however they came.
import AppStore
import Base
import Ledger

/// Makes events that are appended together.
enum UploadDrafts {
  /// What an upload's event says beside the request's own fields.
  struct Context {
    var identity: ReceiptIdentity
    var appFamily: UUID16
    var style: ReceiptStyle
    var bundleID: String
    /// Epoch milliseconds.
    var occurredAtMs: Int64
    var origin: ReceiptUploaded.Origin
    /// The client's address, for uploads that neither name nor withhold one.
    var peerAddress: String?
  }

  /// The upload itself.
  static func upload(_ fields: UploadFields, _ context: Context) -> EventDraft {
    var event = ReceiptUploaded(
      receiptID: context.identity.receiptID.description,
      appFamilyID: context.appFamily.description, style: context.style.rawValue,
      bundleID: context.bundleID, receiptSHA256Hex: context.identity.sha256.hex,
      occurredAtMs: context.occurredAtMs, origin: context.origin)
    event.countryCode = fields.countryCode
    event.identifierForVendor = fields.identifierForVendor
    event.userIdentifier = fields.userIdentifier
    switch fields.clientAddress {
    case .absent: event.ipAddress = context.peerAddress
    case .withheld: break
    case .address(let address): event.ipAddress = address
    }
    event.metadata = fields.metadata
    let data = fields.receiptText.withUnsafeBytes { event.data(receipt: $0) }
    return EventDraft(
      type: EventType.receiptUploaded.rawValue,
      version: EventType.receiptUploaded.currentVersion, data: data)
  }

  /// A verification of an upload that stands among the drafts of the same append.
  /// - Parameter data: without the upload's position.
  static func verification(_ data: [UInt8], ofDraftAt index: Int) -> EventDraft {
    draft(
      data,
      [PositionReference(offsetBytes: ReceiptVerified.uploadOffsetBytes, eventIndex: index)])
  }

  /// A verification of an upload that the ledger holds.
  static func verification(_ data: [UInt8]) -> EventDraft { draft(data, []) }

  /// A verification of an upload that the ledger holds, by a reply that stands first among the drafts
  /// of the same append.
  /// - Parameter data: without the reply's position.
  static func verificationByFirstDraft(_ data: [UInt8]) -> EventDraft {
    draft(data, [PositionReference(offsetBytes: data.count - 1, eventIndex: 0)])
  }

  private static func draft(_ data: [UInt8], _ references: [PositionReference]) -> EventDraft {
    EventDraft(
      type: EventType.receiptVerified.rawValue,
      version: EventType.receiptVerified.currentVersion, data: data, references: references)
  }
}

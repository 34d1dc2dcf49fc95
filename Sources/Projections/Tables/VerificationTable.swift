// The table `verifications`, and what each result changes about its receipt and upload.
import AppStore
import Base
import Ledger
import Revenue

/// Writes verifications as they arrive, and updates the state of the receipts that they are about.
final class VerificationTable {
  private let rows: RowWriter
  private let target: RowTarget
  private let symbols: StringInterner
  private let keeper: TextKeeper
  private let receipts: ReceiptTable
  private let openUploads: OpenUploads
  private let replies: RecentReplies
  private let verdicts: UploadVerdicts
  private let answerTimes: ResponseTimes?
  private var recentHost: Symbol = .none

  /// - Parameters:
  ///   - keeper: keeps a text until the next event.
  ///   - answerTimes: receives final replies; nil if not needed.
  init(
    _ rows: RowWriter, _ symbols: StringInterner, _ keeper: TextKeeper, _ receipts: ReceiptTable,
    _ openUploads: OpenUploads, _ replies: RecentReplies, _ answerTimes: ResponseTimes?
  ) throws(DatabaseError) {
    self.rows = rows
    self.symbols = symbols
    self.keeper = keeper
    self.receipts = receipts
    self.openUploads = openUploads
    self.replies = replies
    self.answerTimes = answerTimes
    verdicts = try UploadVerdicts(rows)
    target = try rows.target("INSERT INTO verifications", valueCount: 15)
  }

  /// Writes a row for a verification.
  func add(
    _ result: ReceiptVerifiedView, _ event: EventLine, receipt: Int32, environment: Symbol,
    occurredAtMs: Int64, requestDateMs: Int64?, replyPosition: Int
  ) throws(DatabaseError) {
    rows.begin(target)
    rows.add(event.position)
    rows.add(result.upload)
    rows.add(Int(receipt))
    rows.add(result.authority == .appStore ? 1 : 0)
    rows.add(Int(OutcomeCode(result.outcome).rawValue))
    rows.add(result.status)
    rows.add(Int(environment))
    rows.add(text: result.reason.map { keeper.bytes(of: $0) })
    rows.add(result.attempt)
    rows.add(result.endpoint.map { $0 == .sandbox ? 1 : 0 })
    rows.add(occurredAtMs)
    rows.add(requestDateMs)
    rows.add(position: replyPosition)
    rows.add(
      symbol: result.host.map { symbols.symbol(keeper.bytes(of: $0), recent: &recentHost) }
        ?? .none)
    rows.add(replyPosition < 0 ? nil : Int64(ReplyTrust(result).rawValue))
    try rows.end()
  }

  /// Records that an upload is fraudulent, as earlier events prove.
  func convict(
    _ number: Int32, _ result: ReceiptVerifiedView, _ reason: FraudReason, _ event: EventLine
  ) throws(DatabaseError) {
    let fraud = Fraud(reason: symbols.symbol(reason.rawValue), position: event.position)
    try verdicts.add(upload: result.upload, receipt: number, fraud)
    try receipts.update(number) { receipt in
      if receipt.uploadFraud.reason == .none { receipt.uploadFraud = fraud }
    }
  }

  /// Applies a verification's result to its receipt and upload.
  func settle(
    _ result: ReceiptVerifiedView, _ number: Int32, _ environment: Symbol, _ event: EventLine,
    purchases: Int?, _ held: HeldReply
  ) throws(DatabaseError) {
    // A reply that is not about this receipt leaves it pending, whatever the status.
    let isFinal =
      result.authority == .appStore && result.outcome != .unreachable
      && ReplyStatus.isFinal(result.status)
    try openUploads.note(
      result, isFinal: isFinal || result.authority == .appStore && result.outcome == .valid)
    let fraud = fraud(result, event)
    if fraud.reason != .none { try verdicts.add(upload: result.upload, receipt: number, fraud) }
    var earlier = held.position
    try receipts.update(number) { receipt in
      receipt.lastPosition = event.position
      receipt.updatedAtMs = event.recordedAtMs
      if isFinal { receipt.isFinal = true }
      if isFinal {
        earlier = receipt.answerPosition
        receipt.answerPosition = held.position
        answerTimes?.note(receipt.receiptID, atMs: result.occurredAtMs ?? event.recordedAtMs)
      }
      switch (result.authority, result.outcome) {
      case (.appStore, .valid):
        receipt.state = .valid
        receipt.ownFraud = .none
        receipt.replyPosition = held.position
        receipt.purchases = purchases ?? 0
        receipt.environment = environment
      case (.appStore, .invalid):
        receipt.state = result.status == ReplyStatus.notAuthenticated ? .invalid : .unavailable
        receipt.note(ownFraud: fraud)
        receipt.environment = environment
      case (.local, .invalid):
        receipt.state = .invalid
        receipt.note(ownFraud: fraud)
      case (.local, .valid):
        receipt.isLocallyValid = true
        if receipt.environment == .none { receipt.environment = environment }
      case (_, .unreachable):
        if receipt.environment == .none { receipt.environment = environment }
      }
    }
    if earlier == held.position { return }
    if earlier >= 0 { replies.remove(at: earlier, ofReceipt: number) }
    // A reply that is used again late is not kept again.
    if held.position == event.position {
      replies.add(held, ofReceipt: number, recordedAtMs: event.recordedAtMs)
    }
  }

  /// The fraud that a verification itself proves.
  private func fraud(_ result: ReceiptVerifiedView, _ event: EventLine) -> Fraud {
    guard result.outcome == .invalid else { return .none }
    let standard: FraudReason
    switch result.authority {
    case .local: standard = .signatureInvalid
    case .appStore:
      guard result.status == ReplyStatus.notAuthenticated else { return .none }
      standard = .notAuthenticated
    }
    let reason =
      result.reason.map { symbols.symbol(keeper.bytes(of: $0)) }
      ?? symbols.symbol(standard.rawValue)
    return Fraud(reason: reason, position: event.position)
  }
}

/// How the table `verifications` encodes outcomes.
enum OutcomeCode: Int8 {
  case valid, invalid, unreachable

  init(_ outcome: Outcome) {
    switch outcome {
    case .valid: self = .valid
    case .invalid: self = .invalid
    case .unreachable: self = .unreachable
    }
  }
}

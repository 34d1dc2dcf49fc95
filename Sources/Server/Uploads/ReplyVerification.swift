// What a reply of the App Store, or its absence, means for the waiting uploads.
package import AppStore
import Base
package import HTTPClient
import Intake
package import Ledger
import Projections

/// Why no call was made.
package enum NoCallReason: String, Sendable {
  /// The limit of calls in progress was reached.
  case callsExhausted = "calls_exhausted"
  /// The circuit breaker is open.
  case circuitOpen = "circuit_open"
  case shuttingDown = "shutting_down"
}

/// What an operator must fix.
package enum OperatorAlarm: String, Sendable, CaseIterable {
  case requestNotPost = "status_21000"
  case requestMalformed = "status_21001"
  case wrongSharedSecret = "status_21004"
  case replyMismatch = "reply_mismatch"
  case webhookDisabled = "webhook_disabled"
  case webhookCursorMissing = "webhook_cursor_missing"
  case forgeriesBounded = "forgeries_bounded"
  case syncRefused = "sync_refused"
  case retentionHeld = "retention_held"

  /// The alarm for a status; nil for most statuses.
  init?(status: Int64) { self.init(rawValue: "status_\(status)") }

  /// Its label in metrics.
  package var metricLabel: String { rawValue }

  /// Whether retrying is useless until the operator has fixed it.
  var waitsForOperator: Bool { self != .replyMismatch }

  /// For display; the app family's id precedes it.
  package var text: String {
    switch self {
    case .requestNotPost:
      "the App Store rejects the request (status 21000): check its URL"
    case .requestMalformed:
      "the App Store rejects the request (status 21001): check its URL"
    case .wrongSharedSecret:
      "the App Store rejects the shared secret as wrong or missing (status 21004)"
    case .replyMismatch:
      "a reply does not match its receipt (reply_mismatch): check the App Store's URL, and "
        + "that no proxy mixes up replies"
    case .webhookDisabled:
      "the webhook is disabled (webhook_disabled): 'ledgerctl webhook list' shows why, 'ledgerctl app edit "
        + "--webhook' enables it"
    case .webhookCursorMissing:
      "the webhook's cursor is missing (webhook_cursor_missing), so it stops: 'ledgerctl webhook replay "
        + "--from' sets where it begins"
    case .forgeriesBounded:
      "more forgeries were uploaded today than verification.forged_bytes_daily_max keeps whole "
        + "(forgeries_bounded): the access log shows their senders"
    case .syncRefused:
      "a synchronization refused signed objects (sync_refused): check the clock, and trust in config.json"
    case .retentionHeld:
      "far more than earlier passes took (retention_held), so they wait: is the clock right? "
        + "'ledgerctl redact --retention' removes their fields"
    }
  }
}

/// A verification's result, without the upload that it is for.
package struct ReplyVerification {
  package private(set) var outcome = Outcome.unreachable
  package private(set) var status: Int64?
  package private(set) var environment: String?
  package private(set) var reason: String?
  package private(set) var endpoint: Endpoint?
  package private(set) var reply = ReceiptVerified.Reply.none
  package private(set) var alarm: OperatorAlarm?
  private var mismatch: String?
  private var host: String?

  /// No call was made.
  package init(_ reason: NoCallReason) { self.reason = reason.rawValue }

  /// - Parameter compare: checks whether a reply with a valid status belongs to the receipt.
  package init(_ answer: VerifyReceiptResponse, compare: (Reply) -> ReplyMismatch? = { _ in nil }) {
    endpoint = Endpoint(answer.endpoint)
    host = answer.host
    switch answer.content {
    case .none(let failure):
      reason = failure.rawValue
      endpoint = nil
      host = nil
    case .other(let bytes): setOther(bytes)
    case .json(let bytes): read(bytes, compare)
    }
  }

  /// Whether it is a final reply, so that the App Store is not asked again.
  package var isFinal: Bool { outcome != .unreachable }

  /// Whether there is a reply to keep.
  package var hasReply: Bool { if case .none = reply { false } else { true } }

  /// The reply for uploads that reuse it.
  /// - Parameters:
  ///   - position: that of the verification that holds the reply.
  ///   - occurredAtMs: epoch milliseconds.
  func earlierReply(at position: Position, _ occurredAtMs: Int64) -> RecentReply {
    RecentReply(
      position: position, outcome: outcome, status: status, environment: environment,
      endpoint: endpoint, reason: reason, source: source, occurredAtMs: occurredAtMs)
  }

  private var source: ReplySource? { host.map { .host($0) } }

  /// Rejected as not authentic, which counts only when the App Store repeats it.
  package var isNotAuthenticated: Bool { status == ReplyStatus.notAuthenticated }

  /// Its label in metrics.
  package var metricLabel: String {
    switch status {
    case nil: reason ?? "none"
    case .some(ReplyStatus.internalFailures): "internal"
    case .some(let status) where status == 0 || 21000...21010 ~= status: "status_\(status)"
    case .some: "other_status"
    }
  }

  /// The event's data.
  /// - Parameters:
  ///   - upload: the upload's position; nil leaves it out, for an upload of the same append.
  ///   - occurredAtMs: when the reply came, in epoch milliseconds.
  func data(
    upload: Position?, attempt: Int, occurredAtMs: Int64, reply: ReceiptVerified.Reply
  ) -> [UInt8] {
    var event = ReceiptVerified(
      authority: .appStore, outcome: outcome, occurredAtMs: occurredAtMs, attempt: attempt)
    event.status = status
    event.environment = environment
    event.reason = reason
    event.endpoint = endpoint
    event.mismatch = mismatch
    event.source = source
    return event.data(upload: upload, reply: reply)
  }

  private mutating func setOther(_ bytes: [UInt8]) {
    reason = "not_json"
    reply = .other(base64: bytes.prefix(64 << 10).withUnsafeBytes { Base64.encode($0) })
  }

  private mutating func read(_ bytes: [UInt8], _ compare: (Reply) -> ReplyMismatch?) {
    guard bytes.count <= EventLimits.replyBytes else {
      reason = AppStoreFailure.answerTooLarge.rawValue
      return
    }
    let keeper = TextKeeper()
    let isRead: Bool = bytes.withUnsafeBytes { text in
      guard let decoded = try? Reply(text, keeper) else { return false }
      outcome = decoded.outcome
      status = decoded.status
      // The reply also contains it: an invalid name need not be stored twice.
      environment = decoded.environment.flatMap { name in
        name.count <= EventLimits.environmentBytes ? String(decoding: name, as: UTF8.self) : nil
      }
      reason = decoded.status == nil ? "no_status" : decoded.fraudReason
      if outcome == .valid { apply(compare(decoded)) }
      return true
    }
    guard isRead else { return setOther(bytes) }
    reply = .json(bytes)
    alarm = alarm ?? status.flatMap(OperatorAlarm.init(status:))
  }

  /// A reply about something else proves nothing about the receipt: the App Store is asked again.
  private mutating func apply(_ found: ReplyMismatch?) {
    mismatch = found?.rawValue ?? ReceiptVerified.noMismatch
    guard found != nil else { return }
    outcome = .unreachable
    reason = OperatorAlarm.replyMismatch.rawValue
    alarm = .replyMismatch
  }
}

extension RecentReply {
  /// The event's data for an upload that reuses this reply.
  func data(upload: Position?, occurredAtMs: Int64) -> [UInt8] {
    var event = ReceiptVerified(
      authority: .appStore, outcome: outcome, occurredAtMs: occurredAtMs)
    event.status = status
    event.environment = environment
    event.reason = reason
    event.endpoint = endpoint
    event.source = source
    return event.data(upload: upload, reply: .reused(position))
  }
}

// receipt.verified: one result of one verification of an upload.
package import Base

/// Who gave a verification's result.
package enum Authority: String, Sendable {
  /// This program checked the receipt's signature.
  case local
  /// The App Store answered.
  case appStore = "app_store"
}

/// The outcome of a verification.
package enum Outcome: String, Sendable {
  case valid, invalid, unreachable
}

/// The App Store's endpoint that answered.
package enum Endpoint: String, Sendable {
  case production, sandbox
}

/// Where a reply came from.
package enum ReplySource: Equatable, Sendable {
  /// The host that answered, with its port if the URL contains one.
  case host(String)
  /// An import brought it; this program sent no request.
  case imported

  /// The `via` of a verification whose reply an import brought.
  package static let importWord = "import"
}

/// The content of a verification's event.
package struct ReceiptVerified {
  /// The members, in the catalogue's order; a reply is the last.
  package enum Member: MemberName, EventMember {
    case upload = "upload"
    case authority = "authority"
    case outcome = "outcome"
    case environment = "environment"
    case status = "status"
    case reason = "reason"
    case attempt = "attempt"
    case endpoint = "endpoint"
    case mismatch = "mismatch"
    case host = "host"
    case via = "via"
    case occurredAt = "occurred_at"
    case notification = "notification"
    case reply = "reply"
    case replyBase64 = "reply_base64"
    case replyOf = "reply_of"
  }

  /// The App Store's reply.
  package enum Reply {
    case none
    /// One JSON value as sent, without white space between tokens.
    case json([UInt8])
    /// The first 64 KiB, in base64, of a reply that is not JSON.
    case other(base64: [UInt8])
    /// The position of an earlier verification whose reply was reused.
    case reused(Int)
    /// The same for a verification in the same append: its position is inserted before the last byte.
    case reusedOfSameAppend
  }

  package var authority: Authority
  package var outcome: Outcome
  package var environment: String?
  package var status: Int64?
  package var reason: String?
  package var attempt: Int
  package var endpoint: Endpoint?
  /// `none` if the reply matches the receipt, otherwise why it does not. Nil if they were not compared, and in events
  /// of older programs.
  package var mismatch: String?
  /// Where the reply came from; nil if there is none or its source was not recorded.
  package var source: ReplySource?
  /// What is kept of the version 1 notification that brought the reply, one JSON object; nil for any other.
  package var notification: [UInt8]?
  /// Epoch milliseconds.
  package var occurredAtMs: Int64

  /// The version of a result with `notification`, which older programs would pass over; that of all others is 1.
  package static let notifiedVersion = 2

  /// The event's version.
  package var version: Int { notification == nil ? 1 : Self.notifiedVersion }

  package init(authority: Authority, outcome: Outcome, occurredAtMs: Int64, attempt: Int = 1) {
    self.authority = authority
    self.outcome = outcome
    self.occurredAtMs = occurredAtMs
    self.attempt = attempt
  }

  /// The `mismatch` of a reply that matches the receipt.
  package static let noMismatch = "none"

  /// The offset in `data(upload: nil, …)` at which the digits of the upload's position are inserted.
  package static let uploadOffsetBytes = #"{"upload":"#.utf8.count

  /// The event's data. The reply comes last, so that a reader need not scan it to find its end.
  /// - Parameter upload: the upload's position; nil omits it, for insertion at `uploadOffsetBytes`.
  package func data(upload: Int?, reply: Reply) -> [UInt8] {
    var writer = JSONWriter()
    if case .json(let bytes) = reply { writer.reserve(bytes.count + 320) }
    writer.beginObject()
    writer.key(Member.upload.name)
    if let upload { writer.integer(upload) } else { writer.raw(JSONBytes(start: nil, count: 0)) }
    writer.member(Member.authority.name, authority.rawValue)
    writer.member(Member.outcome.name, outcome.rawValue)
    writer.member(Member.environment.name, ifPresent: environment)
    writer.member(Member.status.name, ifPresent: status)
    writer.member(Member.reason.name, ifPresent: reason)
    writer.member(Member.attempt.name, attempt)
    writer.member(Member.endpoint.name, ifPresent: endpoint?.rawValue)
    writer.member(Member.mismatch.name, ifPresent: mismatch)
    switch source {
    case .host(let host):
      writer.member(Member.host.name, host)
    case .imported:
      writer.member(Member.via.name, ReplySource.importWord)
    case nil: break
    }
    writer.member(Member.occurredAt.name, Timestamp.fixedText(ms: occurredAtMs))
    if let notification { writer.member(Member.notification.name, json: notification) }
    write(reply, to: &writer)
    writer.endObject()
    return writer.bytes
  }

  private func write(_ reply: Reply, to writer: inout JSONWriter) {
    switch reply {
    case .none: break
    case .json(let bytes): writer.member(Member.reply.name, json: bytes)
    case .other(let base64):
      writer.key(Member.replyBase64.name)
      base64.withUnsafeBytes { writer.string($0) }
    case .reused(let position):
      writer.member(Member.replyOf.name, position)
    case .reusedOfSameAppend:
      writer.key(Member.replyOf.name)
      writer.raw(JSONBytes(start: nil, count: 0))
    }
  }
}

/// A verification as the fold reads it: its members point into the event's bytes.
package struct ReceiptVerifiedView: EventView {
  typealias Member = ReceiptVerified.Member

  /// The upload's position.
  package private(set) var upload = -1
  package private(set) var authority: Authority = .local
  package private(set) var outcome: Outcome = .unreachable
  package private(set) var environment: JSONString?
  package private(set) var status: Int64?
  package private(set) var reason: JSONString?
  package private(set) var attempt: Int64 = 1
  package private(set) var endpoint: Endpoint?
  /// `none`, or why the reply does not fit the receipt; nil if they were not compared.
  package private(set) var mismatch: JSONString?
  /// The host that answered.
  package private(set) var host: JSONString?
  /// Whether an import brought the reply.
  package private(set) var isImported = false
  /// Epoch milliseconds; nil if the event does not contain it.
  package private(set) var occurredAtMs: Int64?
  /// What is kept of the version 1 notification that brought the reply, one JSON object.
  package private(set) var notification: JSONBytes?
  /// The reply as sent, one JSON value.
  package private(set) var reply: JSONBytes?
  package private(set) var hasOtherReply = false
  /// The position of the verification whose reply was reused.
  package private(set) var replyOf: Int64?

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  /// Does not check what is at the positions that it names, or that the reply, which is last, is one JSON value; the
  /// caller must.
  package init(data: JSONBytes) throws(EventError) {
    try read(
      data, of: .receiptVerified,
      required: .through(.outcome).with(.attempt).with(.occurredAt))
  }

  /// The same result with other positions in place of those that it names.
  package func naming(upload: Position, replyOf: Position?) -> ReceiptVerifiedView {
    var view = self
    view.upload = upload
    view.replyOf = replyOf.map { Int64($0) }
    return view
  }

  mutating func read(_ member: Member, _ cursor: inout JSONCursor) throws(JSONError) -> Bool {
    switch member {
    case .upload:
      let position = try cursor.readIntegerOrSkip() ?? -1
      upload = Int(position)
      return position >= 0
    case .authority:
      let word = try cursor.readStringOrSkip()
      authority = word == "app_store" ? .appStore : .local
      return authority == .appStore || word == "local"
    case .outcome:
      let word = try cursor.readStringOrSkip().flatMap { Outcome($0) }
      outcome = word ?? .unreachable
      return word != nil
    case .environment: return try cursor.read(&environment)
    case .status: return try cursor.read(&status)
    case .reason: return try cursor.read(&reason)
    case .attempt:
      let number = try cursor.readIntegerOrSkip()
      attempt = number ?? 1
      return number != nil
    case .endpoint:
      let word = try cursor.readStringOrSkip()
      endpoint = word == "sandbox" ? .sandbox : .production
      return endpoint == .sandbox || word == "production"
    case .mismatch: return try cursor.read(&mismatch)
    case .host: return try cursor.read(nonEmpty: &host)
    case .via:
      isImported = try cursor.readStringOrSkip() == "import"
      return isImported
    case .occurredAt: return try cursor.read(timeMs: &occurredAtMs)
    case .notification: return try cursor.read(object: &notification)
    case .reply:
      // Decoding it scans it, so it is not scanned here.
      reply = try cursor.readLast()
      return true
    case .replyBase64:
      hasOtherReply = try cursor.readStringOrSkip() != nil
      return hasOtherReply
    case .replyOf:
      replyOf = try cursor.readIntegerOrSkip()
      return replyOf ?? -1 >= 0
    }
  }
}

extension Outcome {
  fileprivate init?(_ word: JSONString) {
    switch word {
    case "valid": self = .valid
    case "invalid": self = .invalid
    case "unreachable": self = .unreachable
    default: return nil
    }
  }
}

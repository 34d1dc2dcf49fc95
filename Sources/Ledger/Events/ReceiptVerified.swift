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
    writer.key("upload")
    if let upload { writer.integer(upload) } else { writer.raw(JSONBytes(start: nil, count: 0)) }
    writer.member("authority", authority.rawValue)
    writer.member("outcome", outcome.rawValue)
    writer.member("environment", ifPresent: environment)
    writer.member("status", ifPresent: status)
    writer.member("reason", ifPresent: reason)
    writer.member("attempt", attempt)
    writer.member("endpoint", ifPresent: endpoint?.rawValue)
    writer.member("mismatch", ifPresent: mismatch)
    switch source {
    case .host(let host):
      writer.member("host", host)
    case .imported:
      writer.member("via", ReplySource.importWord)
    case nil: break
    }
    writer.member("occurred_at", Timestamp.fixedText(ms: occurredAtMs))
    if let notification {
      writer.key("notification")
      notification.withUnsafeBytes { writer.raw($0) }
    }
    write(reply, to: &writer)
    writer.endObject()
    return writer.bytes
  }

  private func write(_ reply: Reply, to writer: inout JSONWriter) {
    switch reply {
    case .none: break
    case .json(let bytes):
      writer.key("reply")
      bytes.withUnsafeBytes { writer.raw($0) }
    case .other(let base64):
      writer.key("reply_base64")
      base64.withUnsafeBytes { writer.string($0) }
    case .reused(let position):
      writer.member("reply_of", position)
    case .reusedOfSameAppend:
      writer.key("reply_of")
      writer.raw(JSONBytes(start: nil, count: 0))
    }
  }
}

/// A verification as the fold reads it: its members point into the event's bytes.
package struct ReceiptVerifiedView {
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

  /// The members in the catalogue's order.
  package static let members = [
    "upload", "authority", "outcome", "environment", "status", "reason", "attempt", "endpoint",
    "mismatch", "host", "via", "occurred_at", "notification", "reply", "reply_base64", "reply_of",
  ]
  private static var required: UInt32 { 0b1000_0100_0111 }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  /// Does not check what is at the positions that it names, or that the reply, which is last, is one JSON value; the
  /// caller must.
  package init(data: JSONBytes) throws(EventError) {
    var review = MemberValidator()
    do throws(JSONError) {
      var cursor = JSONCursor(data)
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        if key == "upload" {
          let position = try cursor.readIntegerOrSkip() ?? -1
          upload = Int(position)
          review.mark(0, isRight: position >= 0)
        } else if key.raw.count == 5, key == "reply" {
          // The reply is last, and decoding it scans it, so it is not scanned here.
          reply = try cursor.readRest()
          break
        } else {
          try read(key, &cursor, &review)
        }
      }
    } catch { throw .malformed(.receiptVerified, error) }
    try review.check(.receiptVerified, required: Self.required, Self.members)
  }

  /// The same result with other positions in place of those that it names.
  package func naming(upload: Position, replyOf: Position?) -> ReceiptVerifiedView {
    var view = self
    view.upload = upload
    view.replyOf = replyOf.map { Int64($0) }
    return view
  }

  private mutating func read(
    _ key: JSONString, _ cursor: inout JSONCursor, _ review: inout MemberValidator
  ) throws(JSONError) {
    // The length alone distinguishes most keys.
    switch key.raw.count {
    case 3 where key == "via":
      isImported = try cursor.readStringOrSkip().map { $0 == "import" } ?? false
      review.mark(10, isRight: isImported)
    case 4 where key == "host":
      host = try cursor.readStringOrSkip()
      review.mark(9, isRight: host.map { !$0.raw.isEmpty } ?? false)
    case 6 where key == "status":
      status = try cursor.readIntegerOrSkip()
      review.mark(4, isRight: status != nil)
    case 6 where key == "reason":
      reason = try cursor.readStringOrSkip()
      review.mark(5, isRight: reason != nil)
    case 7 where key == "outcome":
      let word = try cursor.readStringOrSkip().flatMap { Outcome($0) }
      outcome = word ?? .unreachable
      review.mark(2, isRight: word != nil)
    case 7 where key == "attempt":
      let number = try cursor.readIntegerOrSkip()
      attempt = number ?? 1
      review.mark(6, isRight: number != nil)
    case 8 where key == "endpoint":
      let word = try cursor.readStringOrSkip()
      let isSandbox = word.map { $0 == "sandbox" } ?? false
      endpoint = isSandbox ? .sandbox : .production
      review.mark(7, isRight: isSandbox || word.map { $0 == "production" } ?? false)
    case 8 where key == "mismatch":
      mismatch = try cursor.readStringOrSkip()
      review.mark(8, isRight: mismatch != nil)
    case 8 where key == "reply_of":
      replyOf = try cursor.readIntegerOrSkip()
      review.mark(15, isRight: replyOf.map { $0 >= 0 } ?? false)
    case 9 where key == "authority":
      let word = try cursor.readStringOrSkip()
      let isAppStore = word.map { $0 == "app_store" } ?? false
      authority = isAppStore ? .appStore : .local
      review.mark(1, isRight: isAppStore || word.map { $0 == "local" } ?? false)
    case 11 where key == "environment":
      environment = try cursor.readStringOrSkip()
      review.mark(3, isRight: environment != nil)
    case 11 where key == "occurred_at":
      occurredAtMs = try cursor.readStringOrSkip().flatMap { Timestamp.parseFixed($0.raw) }
      review.mark(11, isRight: occurredAtMs != nil)
    case 12 where key == "reply_base64":
      hasOtherReply = try cursor.readStringOrSkip() != nil
      review.mark(14, isRight: hasOtherReply)
    case 12 where key == "notification":
      let isObject = try cursor.kind() == .object
      notification = try cursor.readRaw()
      review.mark(12, isRight: isObject)
    default: try cursor.skipValue()
    }
  }
}

extension Outcome {
  fileprivate init?(_ word: JSONString) {
    if word == "valid" {
      self = .valid
    } else if word == "invalid" {
      self = .invalid
    } else if word == "unreachable" {
      self = .unreachable
    } else {
      return nil
    }
  }
}

// receipt.verified: one result of one verification of an upload.
package import JSON
import Time

/// Who gave a verification's result.
package enum Authority: String, Sendable {
  /// This program checked the receipt's signature.
  case local
  /// The App Store answered.
  case appStore = "app_store"
}

/// What a verification came to.
package enum Outcome: String, Sendable {
  case valid, invalid, unreachable
}

/// The App Store's endpoint that answered.
package enum Endpoint: String, Sendable {
  case production, sandbox
}

/// What a verification's result is made of when it is recorded.
package struct ReceiptVerified {
  /// What the App Store said, if it said anything.
  package enum Reply {
    case none
    /// One JSON value as sent, without white space between tokens.
    case json([UInt8])
    /// What is no JSON: its first 64 KiB, in base64.
    case other(base64: [UInt8])
    /// The position of an earlier verification whose reply was used again.
    case reused(Int)
    /// That of a verification of the same append: its position is to be put in before the last byte.
    case reusedOfSameAppend
  }

  package var authority: Authority
  package var outcome: Outcome
  package var environment: String?
  package var status: Int64?
  package var reason: String?
  package var attempt: Int
  package var endpoint: Endpoint?
  /// Epoch milliseconds.
  package var occurredAtMs: Int64

  package init(authority: Authority, outcome: Outcome, occurredAtMs: Int64, attempt: Int = 1) {
    self.authority = authority
    self.outcome = outcome
    self.occurredAtMs = occurredAtMs
    self.attempt = attempt
  }

  /// The place in `data(upload: nil, …)` where the digits of the upload's position belong.
  package static let uploadOffsetBytes = #"{"upload":"#.utf8.count

  /// The event's data. The reply stands last, so that a reader need not walk through it to find its end.
  /// - Parameter upload: the upload's position; nil leaves it out, to be put in at `uploadOffsetBytes`.
  package func data(upload: Int?, reply: Reply) -> [UInt8] {
    var writer = JSONWriter()
    if case .json(let bytes) = reply { writer.reserve(bytes.count + 320) }
    writer.beginObject()
    writer.key("upload")
    if let upload { writer.integer(upload) } else { writer.raw(JSONBytes(start: nil, count: 0)) }
    writer.key("authority")
    writer.string(authority.rawValue)
    writer.key("outcome")
    writer.string(outcome.rawValue)
    if let environment {
      writer.key("environment")
      writer.string(environment)
    }
    if let status {
      writer.key("status")
      writer.integer(status)
    }
    if let reason {
      writer.key("reason")
      writer.string(reason)
    }
    writer.key("attempt")
    writer.integer(attempt)
    if let endpoint {
      writer.key("endpoint")
      writer.string(endpoint.rawValue)
    }
    writer.key("occurred_at")
    writer.string(Timestamp.fixedText(ms: occurredAtMs))
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
      writer.key("reply_of")
      writer.integer(position)
    case .reusedOfSameAppend:
      writer.key("reply_of")
      writer.raw(JSONBytes(start: nil, count: 0))
    }
  }
}

/// A verification's result as the fold reads it: places in the event's bytes, nothing copied.
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
  /// Epoch milliseconds; nil where the event names no time of its own.
  package private(set) var occurredAtMs: Int64?
  /// The reply as sent, one JSON value.
  package private(set) var reply: JSONBytes?
  package private(set) var hasOtherReply = false
  /// The position of the verification whose reply was used again.
  package private(set) var replyOf: Int64?

  package init(data: JSONBytes) throws(EventError) {
    var hasUpload = false
    do throws(JSONError) {
      var cursor = JSONCursor(data)
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        if key == "upload" {
          upload = Int(try cursor.readInteger())
          hasUpload = true
        } else if key.raw.count == 5, key == "reply" {
          // It stands last, and whoever decodes it walks through it: it need not be passed over here.
          reply = try cursor.readRest()
          break
        } else {
          try read(key, &cursor)
        }
      }
    } catch { throw .malformed(.receiptVerified, error) }
    guard hasUpload, upload >= 0 else { throw .badField(.receiptVerified, field: "upload") }
  }

  private mutating func read(_ key: JSONString, _ cursor: inout JSONCursor) throws(JSONError) {
    // A key's length tells most of them apart.
    switch key.raw.count {
    case 6 where key == "status": status = try cursor.readInteger()
    case 6 where key == "reason": reason = try cursor.readString()
    case 7 where key == "outcome":
      let text = try cursor.readString()
      outcome = text == "valid" ? .valid : text == "invalid" ? .invalid : .unreachable
    case 7 where key == "attempt": attempt = try cursor.readInteger()
    case 8 where key == "endpoint":
      endpoint = try cursor.readString() == "sandbox" ? .sandbox : .production
    case 8 where key == "reply_of": replyOf = try cursor.readInteger()
    case 9 where key == "authority":
      authority = try cursor.readString() == "app_store" ? .appStore : .local
    case 11 where key == "environment": environment = try cursor.readString()
    case 11 where key == "occurred_at":
      occurredAtMs = Timestamp.parseFixed(try cursor.readString().raw)
    case 12 where key == "reply_base64":
      hasOtherReply = true
      try cursor.skipValue()
    default: try cursor.skipValue()
    }
  }
}

// data.redacted: an erasure was begun, or a part of the lines that it redacted.
package import Base

/// The content of an erasure's events. The first, at the erasure's position, opens it; those after it list the lines
/// that it redacts, in order. None of them says whom it is about.
package enum DataRedacted: Equatable, Sendable {
  /// What an erasure was asked for.
  package enum Scope: String, CaseIterable, Sendable {
    case user, receipt, position, retention
  }

  /// The beginning of an erasure.
  package struct Opening: Equatable, Sendable {
    /// The request's id: a random UUID.
    package var request: UUID16
    package var scope: Scope
    /// `[a-z][a-z0-9_]*`, at most 32 bytes.
    package var reason: String

    package init(request: UUID16, scope: Scope, reason: String) {
      (self.request, self.scope, self.reason) = (request, scope, reason)
    }

    /// Opens an erasure of what a restored backup brought back, or of replies that came while a pass was under way.
    package init(ofNoRequest reason: String) {
      self.init(request: .random(), scope: .position, reason: reason)
    }

    /// Whether a pass made it by itself.
    package var isOfNoRequest: Bool {
      switch scope {
      case .retention: true
      case .position: reason == DataRedacted.restoredReason || reason == DataRedacted.lateReason
      case .user, .receipt: false
      }
    }
  }

  /// A line that lost its data.
  package struct Line: Equatable, Sendable {
    package var position: Position
    /// The SHA-256 of the new salt followed by what was kept.
    package var digest: SHA256Digest

    package init(position: Position, digest: SHA256Digest) {
      (self.position, self.digest) = (position, digest)
    }
  }

  /// A part of the lines of an erasure, by position.
  package struct Listing: Equatable, Sendable {
    /// The position of the event that opened the erasure.
    package var erasure: Position
    /// From 1 to `partCount`.
    package var part: Int
    package var partCount: Int
    package var reason: String
    package var lines: [Line]

    package init(
      erasure: Position, part: Int, partCount: Int, reason: String, lines: [Line]
    ) {
      self.erasure = erasure
      self.part = part
      self.partCount = partCount
      self.reason = reason
      self.lines = lines
    }
  }

  case opening(Opening)
  case listing(Listing)

  /// The reasons of erasures that no request asked for.
  package static let restoredReason = "restored"
  package static let lateReason = "late_reply"

  /// The most lines of one event, which keeps it below 8 MiB.
  package static let lineCountMax = 60_000

  /// Whether a text can be a reason.
  package static func isReason(_ text: String) -> Bool {
    guard 1...32 ~= text.utf8.count, let first = text.utf8.first, 0x61...0x7A ~= first else {
      return false
    }
    return text.utf8.allSatisfy { 0x61...0x7A ~= $0 || 0x30...0x39 ~= $0 || $0 == 0x5F }
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    switch self {
    case .opening(let opening):
      writer.member("request", opening.request.description)
      writer.member("scope", opening.scope.rawValue)
      writer.member("reason", opening.reason)
    case .listing(let listing):
      writer.reserve(listing.lines.count * 110 + 128)
      writer.member("erasure", listing.erasure)
      writer.member("part", listing.part)
      writer.member("parts", listing.partCount)
      writer.member("reason", listing.reason)
      writer.key("lines")
      writer.beginArray()
      for line in listing.lines {
        writer.beginObject()
        writer.member("position", line.position)
        writer.member("sha256", line.digest.hex)
        writer.endObject()
      }
      writer.endArray()
    }
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let members = try EventMembers(.dataRedacted, data)
    let reason = try members.string("reason")
    guard Self.isReason(reason) else { throw members.fault("reason") }
    if let text = try members.optionalString("request") {
      guard let request = UUID16(text), request.description == text else {
        throw members.fault("request")
      }
      guard let scope = Scope(rawValue: try members.string("scope")) else {
        throw members.fault("scope")
      }
      self = .opening(Opening(request: request, scope: scope, reason: reason))
      return
    }
    let partCount = try members.count("parts")
    let part = try members.count("part")
    guard 1...max(1, partCount) ~= part else { throw members.fault("part") }
    var lines: [Line] = []
    for object in try members.objects("lines") {
      let position = try object.count("position")
      if let last = lines.last, last.position >= position { throw members.fault("lines") }
      lines.append(Line(position: position, digest: try object.digest("sha256")))
    }
    guard lines.count <= Self.lineCountMax else { throw members.fault("lines") }
    self = .listing(
      Listing(
        erasure: try members.count("erasure"), part: part, partCount: partCount, reason: reason,
        lines: lines))
  }
}

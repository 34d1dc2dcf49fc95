// A signed object (JWS) inside an event: its verdict, its payload and header as JSON, and what gives back its text.
package import Base

/// A signed object as an event stores it.
package struct SignedObjectRecord: Equatable, Sendable {
  /// The members, in the catalogue's order.
  package enum Member: MemberName, EventMember {
    case outcome = "outcome"
    case reason = "reason"
    case root = "root_sha256"
    case signer = "signer_sha256"
    case signedAt = "signed_at"
    case payload = "payload"
    case payloadBase64URL = "payload_base64url"
    case signature = "signature"
    case header = "header"
    case headerBase64URL = "header_base64url"
  }

  /// The deepest nesting of a payload or header.
  package static let depthLimit = 32

  /// What the check of its signature said.
  package enum Verdict: Equatable, Sendable {
    /// The chain ends in this trusted root.
    case valid(root: SHA256Digest)
    /// It is of Xcode or LocalTesting, and this named certificate signed it.
    case locallyValid(signer: SHA256Digest)
    /// A stable word says why.
    case invalid(reason: String)
  }

  package let verdict: Verdict
  /// The payload's `signedDate` in epoch milliseconds; nil if it has none from 1970 to 9999.
  package let signedAtMs: Int64?
  /// Without white space between tokens.
  private let payload: [UInt8]
  private let header: [UInt8]
  /// In base64url; nil if `payload` holds the bytes as sent.
  private let payloadBase64URL: [UInt8]?
  private let headerBase64URL: [UInt8]?
  private let signatureBase64URL: [UInt8]

  /// - Parameters:
  ///   - header: the decoded bytes of the first part, as sent.
  ///   - payload: the decoded bytes of the second part, as sent.
  ///   - signature: the decoded bytes of the third part.
  /// Throws unless header and payload are JSON objects of at most `depthLimit` levels.
  package init(
    header: [UInt8], payload: [UInt8], signature: [UInt8], verdict: Verdict, signedAtMs: Int64?
  ) throws(JSONError) {
    self.verdict = verdict
    self.signedAtMs = signedAtMs.flatMap { Timestamp.fixedRangeMs.contains($0) ? $0 : nil }
    (self.payload, payloadBase64URL) = try Self.stored(payload)
    (self.header, headerBase64URL) = try Self.stored(header)
    signatureBase64URL = Base64.encode(signature, .url)
  }

  /// The object without white space, and its exact bytes where they differ.
  private static func stored(_ bytes: [UInt8]) throws(JSONError) -> ([UInt8], [UInt8]?) {
    let compact = try SignedObjectText.compactObject(bytes)
    return (compact, compact == bytes ? nil : Base64.encode(bytes, .url))
  }

  /// How many bytes it takes in an event.
  package var byteCount: Int {
    let parts = [
      payload, header, payloadBase64URL ?? [], headerBase64URL ?? [], signatureBase64URL,
    ]
    return parts.reduce(320) { $0 + $1.count }
  }

  /// Writes it as one value.
  func write(to writer: inout JSONWriter) {
    writer.beginObject()
    verdict.writeMembers(to: &writer)
    if let signedAtMs { writer.member(Member.signedAt.name, Timestamp.fixedText(ms: signedAtMs)) }
    func text(_ member: Member, _ bytes: [UInt8]?) {
      guard let bytes else { return }
      writer.key(member.name)
      bytes.withUnsafeBytes { writer.string($0) }
    }
    writer.member(Member.payload.name, json: payload)
    text(.payloadBase64URL, payloadBase64URL)
    text(.signature, signatureBase64URL)
    writer.member(Member.header.name, json: header)
    text(.headerBase64URL, headerBase64URL)
    writer.endObject()
  }
}

extension [SignedObjectRecord] {
  /// Writes them as one value.
  func write(to writer: inout JSONWriter) {
    writer.beginArray()
    for object in self { object.write(to: &writer) }
    writer.endArray()
  }
}

extension SignedObjectRecord.Verdict {
  /// The words of `outcome`.
  static let (validWord, invalidWord) = ("valid", "invalid")

  package var isValid: Bool {
    if case .invalid = self { return false }
    return true
  }

  /// Writes `outcome` and what goes with it.
  func writeMembers(to writer: inout JSONWriter) {
    typealias Member = SignedObjectRecord.Member
    writer.member(Member.outcome.name, isValid ? Self.validWord : Self.invalidWord)
    switch self {
    case .valid(let root): writer.member(Member.root.name, root.hex)
    case .locallyValid(let signer): writer.member(Member.signer.name, signer.hex)
    case .invalid(let reason): writer.member(Member.reason.name, reason)
    }
  }
}

/// A signed object as readers of an event see it: its members point into the event's bytes.
package struct SignedObjectView: EventView {
  typealias Member = SignedObjectRecord.Member

  /// The object as the event holds it.
  package private(set) var bytes = JSONBytes(start: nil, count: 0)
  package private(set) var isValid = false
  /// Why it is not valid.
  package private(set) var reason: JSONString?
  /// The root that the chain ends in.
  package private(set) var root: SHA256Digest?
  /// The named certificate that signed an object of Xcode or LocalTesting.
  package private(set) var signer: SHA256Digest?
  /// Epoch milliseconds; nil if the event does not contain it.
  package private(set) var signedAtMs: Int64?
  /// The payload, one JSON object; empty in the verdict on an object that is stored elsewhere.
  package private(set) var payload = JSONBytes(start: nil, count: 0)
  package private(set) var payloadBase64URL: JSONString?
  /// In base64url.
  package private(set) var signature: JSONString?
  package private(set) var header = JSONBytes(start: nil, count: 0)
  package private(set) var headerBase64URL: JSONString?

  private init() {}

  /// Reads a signed object and moves past it; nil, and past it too, if the value violates the catalogue.
  static func object(
    _ cursor: inout JSONCursor, isRedacted: Bool
  ) throws(JSONError) -> SignedObjectView? {
    let required = MemberSet<Member>.through(.outcome).with(.payload)
    // What a redaction took facts from has neither signature nor header any more.
    return try read(
      &cursor, required: isRedacted ? required : required.with(.signature).with(.header))
  }

  /// Reads the verdict on an object that is stored elsewhere, in the same way.
  static func verdict(_ cursor: inout JSONCursor) throws(JSONError) -> SignedObjectView? {
    try read(&cursor, required: .through(.outcome))
  }

  /// Reads a list of signed objects; nil, and past it too, if it is none or longer than `max`.
  static func list(
    _ cursor: inout JSONCursor, max: Int, isRedacted: Bool
  ) throws(JSONError) -> [SignedObjectView]? {
    guard try cursor.kind() == .array else {
      try cursor.skipValue()
      return nil
    }
    var list: [SignedObjectView] = []
    var areRight = true
    try cursor.beginArray()
    while try cursor.nextElement() {
      guard areRight, list.count < max else {
        areRight = false
        try cursor.skipValue()
        continue
      }
      if let object = try object(&cursor, isRedacted: isRedacted) {
        list.append(object)
      } else {
        areRight = false
      }
    }
    return areRight ? list : nil
  }

  private static func read(
    _ cursor: inout JSONCursor, required: MemberSet<Member>
  ) throws(JSONError) -> SignedObjectView? {
    guard try cursor.kind() == .object else {
      try cursor.skipValue()
      return nil
    }
    var view = SignedObjectView()
    try cursor.beginObject()
    let first = cursor.offset - 1
    let validator = try view.readMembers(&cursor)
    view.bytes = cursor.passed(since: first)
    return validator.fault(required: required) == nil ? view : nil
  }

  mutating func read(_ member: Member, _ cursor: inout JSONCursor) throws(JSONError) -> Bool {
    switch member {
    case .outcome:
      let word = try cursor.readStringOrSkip()
      isValid = word == "valid"
      return isValid || word == "invalid"
    case .reason: return try cursor.read(&reason)
    case .root: return try cursor.read(digest: &root)
    case .signer: return try cursor.read(digest: &signer)
    case .signedAt: return try cursor.read(timeMs: &signedAtMs)
    case .payload: return try cursor.read(object: &payload)
    case .payloadBase64URL: return try cursor.read(&payloadBase64URL)
    case .signature: return try cursor.read(&signature)
    case .header: return try cursor.read(object: &header)
    case .headerBase64URL: return try cursor.read(&headerBase64URL)
    }
  }

  /// Whether only facts of it are left, so that its signature can't be judged again.
  package var isReduced: Bool { signature == nil }

  /// The recorded verdict.
  package var verdict: SignedObjectRecord.Verdict? {
    if !isValid { return reason.map { .invalid(reason: $0.string) } }
    if let root { return .valid(root: root) }
    return signer.map { .locallyValid(signer: $0) }
  }

  /// The object in compact serialization, as it was sent: what was signed, and the signature.
  package var text: [UInt8] {
    var text = Self.part(header, headerBase64URL)
    text.append(UInt8(ascii: "."))
    text += Self.part(payload, payloadBase64URL)
    text.append(UInt8(ascii: "."))
    signature?.append(to: &text)
    return text
  }

  private static func part(_ object: JSONBytes, _ exact: JSONString?) -> [UInt8] {
    exact?.bytes ?? Base64.encode(object, .url)
  }
}

enum SignedObjectText {
  /// One JSON object without white space between its tokens.
  static func compactObject(_ bytes: [UInt8]) throws(JSONError) -> [UInt8] {
    var compact: [UInt8] = []
    let result: Result<Void, JSONError> = bytes.withUnsafeBytes { raw in
      do throws(JSONError) {
        try JSONValidator.compact(raw, depthLimit: SignedObjectRecord.depthLimit, to: &compact)
        return .success(())
      } catch { return .failure(error) }
    }
    try result.get()
    guard compact.first == UInt8(ascii: "{") else { throw JSONError(.wrongKind, at: 0) }
    return compact
  }
}

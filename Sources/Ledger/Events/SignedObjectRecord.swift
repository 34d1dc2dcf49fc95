// A signed object (JWS) inside an event: its verdict, its payload and header as JSON, and what gives back its text.
package import Base

/// A signed object as an event stores it.
package struct SignedObjectRecord: Equatable, Sendable {
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
    writer.member("signed_at", ifPresent: signedAtMs.map { Timestamp.fixedText(ms: $0) })
    func part(_ name: StaticString, _ bytes: [UInt8]) {
      writer.key(name)
      bytes.withUnsafeBytes { writer.raw($0) }
    }
    func text(_ name: StaticString, _ bytes: [UInt8]?) {
      guard let bytes else { return }
      writer.key(name)
      bytes.withUnsafeBytes { writer.string($0) }
    }
    part("payload", payload)
    text("payload_base64url", payloadBase64URL)
    text("signature", signatureBase64URL)
    part("header", header)
    text("header_base64url", headerBase64URL)
    writer.endObject()
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
    writer.member("outcome", isValid ? Self.validWord : Self.invalidWord)
    switch self {
    case .valid(let root): writer.member("root_sha256", root.hex)
    case .locallyValid(let signer): writer.member("signer_sha256", signer.hex)
    case .invalid(let reason): writer.member("reason", reason)
    }
  }
}

/// A signed object as readers of an event see it: its members point into the event's bytes.
package struct SignedObjectView {
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

  /// A bit for each required member, in the catalogue's order.
  private static var requiredOfObject: UInt32 { 0b01_1010_0001 }
  private static var requiredOfVerdict: UInt32 { 0b00_0000_0001 }
  /// What a redaction took facts from has neither signature nor header any more.
  private static var requiredOfRedacted: UInt32 { 0b00_0010_0001 }

  private init() {}

  /// Reads a signed object and moves past it; nil, and past it too, if the value violates the catalogue.
  static func object(
    _ cursor: inout JSONCursor, isRedacted: Bool
  ) throws(JSONError) -> SignedObjectView? {
    try read(&cursor, required: isRedacted ? requiredOfRedacted : requiredOfObject)
  }

  /// Reads the verdict on an object that is stored elsewhere, in the same way.
  static func verdict(_ cursor: inout JSONCursor) throws(JSONError) -> SignedObjectView? {
    try read(&cursor, required: requiredOfVerdict)
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
    _ cursor: inout JSONCursor, required: UInt32
  ) throws(JSONError) -> SignedObjectView? {
    guard try cursor.kind() == .object else {
      try cursor.skipValue()
      return nil
    }
    var view = SignedObjectView()
    var review = MemberValidator()
    try cursor.beginObject()
    let first = cursor.offset - 1
    while let key = try cursor.nextKey() { try view.read(key, &cursor, &review) }
    view.bytes = cursor.passed(since: first)
    return review.isRight(required: required) ? view : nil
  }

  private mutating func read(
    _ key: JSONString, _ cursor: inout JSONCursor, _ review: inout MemberValidator
  ) throws(JSONError) {
    // The length alone distinguishes most keys.
    switch key.raw.count {
    case 6 where key == "reason":
      reason = try cursor.readStringOrSkip()
      review.mark(1, isRight: reason != nil)
    case 6 where key == "header":
      header = try readObject(8, &cursor, &review)
    case 7 where key == "outcome":
      let word = try cursor.readStringOrSkip()
      isValid = word.map { $0 == "valid" } ?? false
      review.mark(
        0, isRight: isValid || word.map { $0 == "invalid" } ?? false)
    case 7 where key == "payload":
      payload = try readObject(5, &cursor, &review)
    case 9 where key == "signed_at":
      signedAtMs = try cursor.readStringOrSkip().flatMap { Timestamp.parseFixed($0.raw) }
      review.mark(4, isRight: signedAtMs != nil)
    case 9 where key == "signature":
      signature = try cursor.readStringOrSkip()
      review.mark(7, isRight: signature != nil)
    case 11 where key == "root_sha256":
      root = try cursor.readStringOrSkip().flatMap { SHA256Digest(hex: $0.raw) }
      review.mark(2, isRight: root != nil)
    case 13 where key == "signer_sha256":
      signer = try cursor.readStringOrSkip().flatMap { SHA256Digest(hex: $0.raw) }
      review.mark(3, isRight: signer != nil)
    case 16 where key == "header_base64url":
      headerBase64URL = try cursor.readStringOrSkip()
      review.mark(9, isRight: headerBase64URL != nil)
    case 17 where key == "payload_base64url":
      payloadBase64URL = try cursor.readStringOrSkip()
      review.mark(6, isRight: payloadBase64URL != nil)
    default: try cursor.skipValue()
    }
  }

  private func readObject(
    _ place: Int, _ cursor: inout JSONCursor, _ review: inout MemberValidator
  ) throws(JSONError) -> JSONBytes {
    let isObject = try cursor.kind() == .object
    let bytes = try cursor.readRaw()
    review.mark(place, isRight: isObject)
    return bytes
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

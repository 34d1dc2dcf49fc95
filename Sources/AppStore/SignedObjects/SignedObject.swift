// One signed object of the App Store: a JWS in compact serialization, parsed but not verified.
package import Base

/// Header, payload and signature of a JWS (RFC 7515), as App Store Server Library and StoreKit 2 use it: ES256,
/// with the certificates in the header.
package struct SignedObject: Sendable {
  /// The decoded bytes as sent: each is one JSON object without duplicate keys.
  package let header: [UInt8]
  package let payload: [UInt8]
  /// 64 bytes, R then S.
  package let signature: [UInt8]
  /// The whole object as sent.
  package let text: [UInt8]

  /// Where the signed text ends: before the second dot.
  let signedCount: Int
  /// The certificates in DER, one after another, in the order of `x5c`.
  let certificates: [UInt8]
  /// The end of each in `certificates`.
  let certificateEnds: [Int]
  let facts: SignedObjectFacts

  /// The largest text that is read.
  package static let maximumSizeBytes = 131_072
  /// The most levels of arrays and objects in header and payload.
  package static let depthLimit = 32
  /// The most certificates in a header.
  static let certificateLimit = 3

  /// Parses a text. It checks the form alone, never a signature.
  package init(_ text: [UInt8]) throws(SignedObjectFault) {
    guard text.count <= Self.maximumSizeBytes else { throw .tooLarge }
    let parts = try text.withBytes { (bytes) throws(SignedObjectFault) in
      try Parts(bytes)
    }
    let header = try parts.header.withBytes { (bytes) throws(SignedObjectFault) in
      try SignedObjectHeader(bytes)
    }
    guard parts.signature.count == Self.signatureSizeBytes else { throw .malformedSignature }
    facts = try parts.payload.withBytes { (bytes) throws(SignedObjectFault) in
      guard isObject(bytes) else { throw .payloadNotJSON }
      do { return try SignedObjectFacts(bytes) } catch { throw .payloadNotJSON }
    }
    self.header = parts.header
    payload = parts.payload
    signature = parts.signature
    signedCount = parts.signedCount
    certificates = header.certificates
    certificateEnds = header.certificateEnds
    self.text = text
  }

  /// Parses a text within another.
  package init(_ text: UnsafeRawBufferPointer) throws(SignedObjectFault) {
    guard text.count <= Self.maximumSizeBytes else { throw .tooLarge }
    try self.init([UInt8](text))
  }

  private static let signatureSizeBytes = 64

  /// Epoch milliseconds of `signedDate`; nil if it is missing or unreadable.
  package var signedDateMs: Int64? { facts.signedDateMs }
  /// Whether the payload names an environment, known or not.
  package var namesEnvironment: Bool { facts.environment != .missing }

  /// The text of an object from its parts.
  /// - Parameter signature: the third part as sent.
  package static func text(header: [UInt8], payload: [UInt8], signature: [UInt8]) -> [UInt8] {
    var text = Base64.encode(header, .url)
    text.append(dot)
    text += Base64.encode(payload, .url)
    text.append(dot)
    return text + signature
  }

  /// The text's third part as sent.
  package var signatureText: ArraySlice<UInt8> { text[(signedCount + 1)...] }

  /// Whether a text has the form of a signed object: three parts in base64url's alphabet, the first beginning as a JSON
  /// object does in base64. No receipt has this form.
  package static func looksLike(_ text: UnsafeRawBufferPointer) -> Bool {
    guard text.count > 4, text[0] == UInt8(ascii: "e"), text[1] == UInt8(ascii: "y") else {
      return false
    }
    var dotCount = 0
    for byte in text {
      switch byte {
      case dot: dotCount += 1
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        continue
      default: return false
      }
    }
    return dotCount == 2
  }

  fileprivate static let dot = UInt8(ascii: ".")

  /// The certificate at this index of `x5c`.
  func certificateRange(_ index: Int) -> Range<Int> {
    (index == 0 ? 0 : certificateEnds[index - 1])..<certificateEnds[index]
  }

  /// The three parts, decoded.
  private struct Parts {
    let header: [UInt8]
    let payload: [UInt8]
    let signature: [UInt8]
    let signedCount: Int

    init(_ text: UnsafeRawBufferPointer) throws(SignedObjectFault) {
      guard let first = text.firstIndex(of: SignedObject.dot),
        let second = text[(first + 1)...].firstIndex(of: SignedObject.dot),
        !text[(second + 1)...].contains(SignedObject.dot)
      else { throw .notThreeParts }
      do {
        header = try Base64.decode(UnsafeRawBufferPointer(rebasing: text[..<first]), .url)
        payload = try Base64.decode(
          UnsafeRawBufferPointer(rebasing: text[(first + 1)..<second]), .url)
        signature = try Base64.decode(
          UnsafeRawBufferPointer(rebasing: text[(second + 1)...]), .url)
      } catch { throw .notBase64URL }
      signedCount = second
    }
  }
}

/// Whether bytes are one JSON object that every reader understands alike.
private func isObject(_ bytes: JSONBytes) -> Bool {
  guard bytes.first(where: { $0 > 0x20 }) == UInt8(ascii: "{") else { return false }
  do {
    try JSONValidator.validate(bytes, depthLimit: SignedObject.depthLimit)
    return true
  } catch { return false }
}

/// The content of the header: ES256, and the certificates.
private struct SignedObjectHeader {
  private(set) var certificates: [UInt8] = []
  private(set) var certificateEnds: [Int] = []
  private var isES256 = false

  init(_ header: JSONBytes) throws(SignedObjectFault) {
    guard isObject(header) else { throw .headerNotJSON }
    do { try read(header) } catch {
      throw (error as? SignedObjectFault) ?? .headerNotJSON
    }
    guard isES256 else { throw .wrongAlgorithm }
    guard !certificateEnds.isEmpty else { throw .missingCertificates }
  }

  private mutating func read(_ header: JSONBytes) throws {
    var cursor = JSONCursor(header)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "alg" {
        guard try cursor.kind() == .string else { throw SignedObjectFault.wrongAlgorithm }
        isES256 = try cursor.readString() == "ES256"
      } else if key == "crit" {
        // RFC 7515 §4.1.11: an object with critical headers that the reader does not know must be rejected.
        throw SignedObjectFault.criticalHeader
      } else if key == "x5c" {
        guard try cursor.kind() == .array else { throw SignedObjectFault.missingCertificates }
        try cursor.beginArray()
        while try cursor.nextElement() { try readCertificate(&cursor) }
      } else {
        try cursor.skipValue()
      }
    }
  }

  private mutating func readCertificate(_ cursor: inout JSONCursor) throws {
    guard certificateEnds.count < SignedObject.certificateLimit else {
      throw SignedObjectFault.unexpectedCertificates
    }
    guard try cursor.kind() == .string else { throw SignedObjectFault.malformedCertificate }
    let text = try cursor.readString()
    let der: [UInt8]
    do {
      der = try text.hasEscapes ? Base64.decode(text.bytes) : Base64.decode(text.raw)
    } catch { throw SignedObjectFault.malformedCertificate }
    guard !der.isEmpty, der.count <= Certificate.maximumSizeBytes else {
      throw SignedObjectFault.malformedCertificate
    }
    certificates += der
    certificateEnds.append(certificates.count)
  }
}

extension [UInt8] {
  /// `withUnsafeBytes` for closures with typed errors.
  func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withUnsafeBufferPointer { (buffer) throws(Failure) in
      try body(UnsafeRawBufferPointer(buffer))
    }
  }
}

// MARK: - Kinds, and certificates for display

/// The kind of a payload, by the members that only one kind has.
package enum SignedObjectKind: String, Sendable {
  case transaction
  case renewalInfo = "renewal_info"
  case appTransaction = "app_transaction"
  case notification
  /// It has no member that identifies its kind.
  case unknown
}

extension SignedObject {
  package var kind: SignedObjectKind {
    payload.withUnsafeBytes { bytes in
      var kind = SignedObjectKind.unknown
      var cursor = JSONCursor(bytes)
      do throws(JSONError) {
        try cursor.beginObject()
        while let key = try cursor.nextKey() {
          if key == "notificationUUID" || key == "notificationType" { return .notification }
          if key == "receiptType" { return .appTransaction }
          if key == "autoRenewStatus" || key == "autoRenewProductId" { return .renewalInfo }
          if key == "transactionId" || key == "bundleId" { kind = .transaction }
          try cursor.skipValue()
        }
      } catch { return .unknown }
      return kind
    }
  }

  /// The fact that a transaction, an app transaction or a notification must contain and this one lacks; nil if it lacks
  /// none, or is of another kind. A transaction without an environment may still be inside an object that names it.
  package var missingFact: SignedObjectFault? {
    let keeper = TextKeeper()
    return payload.withUnsafeBytes { bytes in
      do throws(JSONError) {
        switch kind {
        case .transaction:
          return try SignedTransaction(payload: bytes, keeper)
            .missingFact(hasEnvironment: true)
        case .notification: return try SignedNotification(payload: bytes, keeper).missingFact()
        case .appTransaction:
          return try SignedAppTransaction(payload: bytes, keeper)
            .missingFact(hasEnvironment: true)
        case .renewalInfo, .unknown: return nil
        }
      } catch { return .payloadNotJSON }
    }
  }

  /// One certificate of a signed object, from its header: nothing about it is verified.
  package struct CertificateSummary: Sendable {
    /// The subject's common name; empty if there is none or the certificate cannot be read.
    package let name: String
    /// SHA-256 of the certificate.
    package let fingerprint: SHA256Digest
    /// First and last second of validity in epoch milliseconds; nil if the certificate cannot be read.
    package let validityMs: ClosedRange<Int64>?
  }

  /// The certificates in the order of `x5c`.
  package var certificateSummaries: [CertificateSummary] {
    certificates.withUnsafeBytes { bytes in
      certificateEnds.indices.map { index in
        let der = UnsafeRawBufferPointer(rebasing: bytes[certificateRange(index)])
        let certificate = Certificate(der: der)
        return CertificateSummary(
          name: certificate?.commonName ?? "", fingerprint: SHA256.hash(der),
          validityMs: certificate.map {
            $0.validity.lowerBound * 1_000...$0.validity.upperBound * 1_000
          })
      }
    }
  }
}

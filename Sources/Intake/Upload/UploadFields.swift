// The fields of one upload, common to HTTP requests and import lines.
import AppStore
import Base
import Glibc
package import JSON
import Revenue

/// An upload whose fields are all valid.
package struct UploadFields: Sendable {
  /// What an upload says about the user's IP address.
  package enum ClientAddress: Equatable, Sendable {
    case absent
    /// `null` or the text `"NULL"`: the address must not be stored.
    case withheld
    /// IPv4 or IPv6, as sent.
    case address(String)
  }

  /// The receipt's base64, normalised.
  package var receiptText: [UInt8]
  /// The decoded receipt file.
  package var receiptFile: [UInt8]
  /// ISO 3166-1 alpha-2 or `XK`, upper case.
  package var countryCode: String?
  /// At most 255 characters (Unicode scalars).
  package var identifierForVendor: String?
  /// At most 255 characters (Unicode scalars).
  package var userIdentifier: String?
  package var clientAddress: ClientAddress
  /// One JSON object without white space.
  package var metadata: [UInt8]?
}

/// The limits on an upload's fields.
package enum UploadLimits {
  /// The receipt's base64, normalised.
  package static let receiptTextBytes = 4 << 20
  /// The metadata, without white space.
  package static let metadataBytes = 64 << 10
  /// Nesting levels of the metadata, including its outermost object.
  package static let metadataLevels = 32
  /// Unicode scalars in an identifier: the user's or the vendor's.
  package static let identifierCharacters = 255
}

/// Reads an upload's properties one by one and finds every problem, not only the first. The JSON text must
/// have been validated and have no white space between tokens.
package struct UploadFieldReader {
  /// The problems found so far.
  package private(set) var problems: [FieldProblem] = []
  private var receiptText: [UInt8]?
  private var receiptFile: [UInt8] = []
  private var isReceiptSeen = false
  private var countryCode: String?
  private var identifierForVendor: String?
  private var userIdentifier: String?
  private var misspelledUserIdentifier: String?
  private var clientAddress = UploadFields.ClientAddress.absent
  private var metadata: [UInt8]?

  package init() {}

  /// Whether the upload, as far as it has been read, asks not to store its client's address.
  package var withholdsClientAddress: Bool { clientAddress == .withheld }

  /// Reads the value at the cursor if `key` is a property of an upload.
  /// - Returns: false, with the value unread, for any other key.
  package mutating func take(
    _ key: JSONString, from cursor: inout JSONCursor
  ) throws(JSONError) -> Bool {
    if key == "receipt" {
      try takeReceipt(&cursor)
    } else if key == "country_code" {
      try takeCountry(&cursor)
    } else if key == "identifier_for_vendor" {
      identifierForVendor = try identifier("identifier_for_vendor", &cursor)
    } else if key == "user_identifier" {
      userIdentifier = try identifier("user_identifier", &cursor)
    } else if key == "ip_address" {
      try takeAddress(&cursor)
    } else if key == "metadata" {
      try takeMetadata(&cursor)
    } else {
      return false
    }
    return true
  }

  /// Reads `user_identifer`, a misspelling found in old histories. The correct spelling wins.
  package mutating func takeMisspelledUserIdentifier(
    from cursor: inout JSONCursor
  ) throws(JSONError) {
    misspelledUserIdentifier = try identifier("user_identifer", &cursor)
  }

  /// Whether the misspelled property supplies the user, as far as the upload has been read.
  var takesMisspelledUserIdentifier: Bool {
    userIdentifier == nil && misspelledUserIdentifier != nil
  }

  /// Adds a problem found outside the upload's own properties.
  package mutating func note(_ problem: FieldProblem) { problems.append(problem) }

  /// Finishes reading. Returns nil if there are problems.
  package mutating func finish() -> UploadFields? {
    if !isReceiptSeen { note(FieldProblem("receipt", .missing, "is missing")) }
    guard problems.isEmpty, let receiptText else { return nil }
    return UploadFields(
      receiptText: receiptText, receiptFile: receiptFile, countryCode: countryCode,
      identifierForVendor: identifierForVendor,
      userIdentifier: userIdentifier ?? misspelledUserIdentifier,
      clientAddress: clientAddress, metadata: metadata)
  }

  // MARK: One field each

  /// A string; nil for `null`, and for any other kind, which is recorded as a problem.
  private mutating func text(
    _ field: String, _ cursor: inout JSONCursor
  ) throws(JSONError) -> JSONString? {
    if try cursor.takeNull() { return nil }
    guard try cursor.kind() == .string else {
      try cursor.skipValue()
      note(FieldProblem(field, .wrongType, "is not a string"))
      return nil
    }
    return try cursor.readString()
  }

  private mutating func takeReceipt(_ cursor: inout JSONCursor) throws(JSONError) {
    let problemCount = problems.count
    guard let content = try text("receipt", &cursor) else {
      isReceiptSeen = problems.count > problemCount
      return
    }
    isReceiptSeen = true
    var text = content.bytes
    do throws(Base64Error) {
      // Nearly all texts are intact: looking for damage first would cost more than decoding.
      if let file = try? Base64.decode(text) {
        receiptFile = file
      } else {
        text = ReceiptText.normalize(text)
        receiptFile = try Base64.decode(text)
      }
    } catch {
      return note(FieldProblem("receipt", .notBase64, "is not base64 (\(error))"))
    }
    if text.isEmpty {
      note(FieldProblem("receipt", .missing, "is empty"))
    } else if text.count > UploadLimits.receiptTextBytes {
      note(FieldProblem("receipt", .tooLarge, "is larger than 4 MiB"))
    } else {
      receiptText = text
    }
  }

  private mutating func takeCountry(_ cursor: inout JSONCursor) throws(JSONError) {
    guard let content = try text("country_code", &cursor) else { return }
    guard let country = content.bytes.withUnsafeBytes({ Country.parse($0) }) else {
      note(
        FieldProblem(
          "country_code", .unknownCountry, "is neither an ISO 3166-1 alpha-2 code nor XK"))
      return
    }
    countryCode = country.description
  }

  private mutating func identifier(
    _ field: String, _ cursor: inout JSONCursor
  ) throws(JSONError) -> String? {
    guard let content = try text(field, &cursor) else { return nil }
    let bytes = content.bytes
    let limit = UploadLimits.identifierCharacters
    // Each scalar has exactly one byte that is not a continuation byte.
    if bytes.count > limit, bytes.count(where: { $0 & 0xC0 != 0x80 }) > limit {
      note(FieldProblem(field, .tooLong, "is longer than \(limit) characters"))
      return nil
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private mutating func takeAddress(_ cursor: inout JSONCursor) throws(JSONError) {
    if try cursor.kind() == .null {
      clientAddress = .withheld
      return try cursor.skipValue()
    }
    guard let content = try text("ip_address", &cursor) else { return }
    if content == "NULL" {
      clientAddress = .withheld
    } else if let address = Self.address(content) {
      clientAddress = .address(address)
    } else {
      note(
        FieldProblem("ip_address", .invalidAddress, "is neither an IPv4 nor an IPv6 address"))
    }
  }

  private static func address(_ content: JSONString) -> String? {
    let bytes = content.bytes
    // No address is longer, and C would treat a NUL as the end.
    guard bytes.count < Int(INET6_ADDRSTRLEN), !bytes.contains(0) else { return nil }
    let text = String(decoding: bytes, as: UTF8.self)
    var parsed = in6_addr()
    let isAddress =
      inet_pton(AF_INET, text, &parsed) == 1 || inet_pton(AF_INET6, text, &parsed) == 1
    return isAddress ? text : nil
  }

  private mutating func takeMetadata(_ cursor: inout JSONCursor) throws(JSONError) {
    if try cursor.takeNull() { return }
    guard try cursor.kind() == .object else {
      try cursor.skipValue()
      return note(FieldProblem("metadata", .wrongType, "is not an object"))
    }
    let object = try cursor.readRaw()
    guard object.count <= UploadLimits.metadataBytes else {
      return note(FieldProblem("metadata", .tooLarge, "is larger than 64 KiB"))
    }
    do throws(JSONError) {
      try JSONValidator.validate(object, depthLimit: UploadLimits.metadataLevels)
      metadata = Array(object)
    } catch {
      note(
        FieldProblem(
          "metadata", .tooDeep, "has more than \(UploadLimits.metadataLevels) levels"))
    }
  }
}

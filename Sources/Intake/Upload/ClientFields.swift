// The fields that a client sends with a receipt or signed transactions, their problems, and the limits of events.
import Base
import Glibc
import Revenue

/// The optional fields of an upload, all valid.
package struct ClientFields: Equatable, Sendable {
  /// What an upload states about the user's IP address.
  package enum Address: Equatable, Sendable {
    case absent
    /// `null` or the text `"NULL"`: the address must not be stored.
    case withheld
    /// IPv4 or IPv6, as sent.
    case given(String)
  }

  /// ISO 3166-1 alpha-2 or `XK`, upper case.
  package var countryCode: String?
  /// At most 255 characters (Unicode scalars).
  package var identifierForVendor: String?
  /// At most 255 characters (Unicode scalars).
  package var userIdentifier: String?
  package var address = Address.absent
  /// One JSON object without white space.
  package var metadata: [UInt8]?

  /// The address that may be stored.
  /// - Parameter peer: the client's, for uploads that neither give nor withhold one.
  package func storedAddress(peer: String?) -> String? {
    switch address {
    case .absent: peer
    case .withheld: nil
    case .given(let address): address
    }
  }
}

/// Reads the optional fields one by one and finds every problem. The JSON text must have been validated and
/// have no white space between tokens.
struct ClientFieldReader {
  private(set) var fields = ClientFields()
  /// The problems found so far, including those added from outside.
  private(set) var problems: [FieldProblem] = []
  private var misspelledUserIdentifier: String?

  /// Reads the value at the cursor if `key` is one of these fields.
  /// - Returns: false, with the value unread, for any other key.
  mutating func read(
    _ key: JSONString, from cursor: inout JSONCursor
  ) throws(JSONError) -> Bool {
    if key == "country_code" {
      try readCountry(&cursor)
    } else if key == "identifier_for_vendor" {
      fields.identifierForVendor = try identifier("identifier_for_vendor", &cursor)
    } else if key == "user_identifier" {
      fields.userIdentifier = try userIdentifier("user_identifier", &cursor)
    } else if key == "ip_address" {
      try readAddress(&cursor)
    } else if key == "metadata" {
      try readMetadata(&cursor)
    } else {
      return false
    }
    return true
  }

  /// Reads `user_identifer`, a misspelling found in old histories. The correct spelling takes precedence.
  mutating func readMisspelledUserIdentifier(
    from cursor: inout JSONCursor
  ) throws(JSONError) {
    misspelledUserIdentifier = try userIdentifier("user_identifer", &cursor)
  }

  /// Whether the misspelled property supplies the user, as far as the upload has been read.
  var takesMisspelledUserIdentifier: Bool {
    fields.userIdentifier == nil && misspelledUserIdentifier != nil
  }

  /// The fields, with the user by either spelling.
  func finish() -> ClientFields {
    var fields = fields
    fields.userIdentifier = fields.userIdentifier ?? misspelledUserIdentifier
    return fields
  }

  /// Drops the fields, which do not apply to what the upload turned out to be about.
  mutating func removeFields() {
    fields = ClientFields()
    misspelledUserIdentifier = nil
  }

  /// Adds a problem found outside these fields.
  mutating func add(_ problem: FieldProblem) { problems.append(problem) }

  /// Drops the problems of ignored properties.
  mutating func removeProblems(where isIgnored: (FieldProblem) -> Bool) {
    if !problems.isEmpty { problems.removeAll(where: isIgnored) }
  }

  // MARK: Single fields

  /// A string; nil for `null`, and for any other kind, which is recorded as a problem.
  mutating func text(
    _ field: String, _ cursor: inout JSONCursor
  ) throws(JSONError) -> JSONString? {
    if try cursor.consumeNull() { return nil }
    guard try cursor.kind() == .string else {
      try cursor.skipValue()
      add(FieldProblem(field, .wrongType, "is not a string"))
      return nil
    }
    return try cursor.readString()
  }

  private mutating func readCountry(_ cursor: inout JSONCursor) throws(JSONError) {
    guard let content = try text("country_code", &cursor) else { return }
    guard let country = content.bytes.withUnsafeBytes({ Country.parse($0) }) else {
      add(
        FieldProblem(
          "country_code", .unknownCountry, "is neither an ISO 3166-1 alpha-2 code nor XK"))
      return
    }
    fields.countryCode = country.description
  }

  private mutating func identifier(
    _ field: String, _ cursor: inout JSONCursor
  ) throws(JSONError) -> String? {
    guard let content = try text(field, &cursor) else { return nil }
    let bytes = content.bytes
    let limit = UploadLimits.identifierCharacters
    // Each scalar has exactly one byte that is not a continuation byte.
    if bytes.count > limit, bytes.count(where: { $0 & 0xC0 != 0x80 }) > limit {
      add(FieldProblem(field, .tooLong, "is longer than \(limit) characters"))
      return nil
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// An identifier that is neither the name of an erased user nor that of a user known by an app account token alone:
  /// claims for such names count differently (rules R6 and R12).
  private mutating func userIdentifier(
    _ field: String, _ cursor: inout JSONCursor
  ) throws(JSONError) -> String? {
    guard var user = try identifier(field, &cursor) else { return nil }
    if user.withUTF8({ ErasedUser.isName(JSONBytes($0)) }) {
      add(
        FieldProblem(field, .invalidValue, "has the form of the name that an erasure gives"))
      return nil
    }
    if user.utf8.starts(with: "token:".utf8) {
      add(
        FieldProblem(
          field, .invalidValue, "begins with \"token:\", which names users by an appAccountToken"))
      return nil
    }
    return user
  }

  private mutating func readAddress(_ cursor: inout JSONCursor) throws(JSONError) {
    if try cursor.kind() == .null {
      fields.address = .withheld
      return try cursor.skipValue()
    }
    guard let content = try text("ip_address", &cursor) else { return }
    if content == "NULL" {
      fields.address = .withheld
    } else if let address = Self.address(content) {
      fields.address = .given(address)
    } else {
      add(
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

  private mutating func readMetadata(_ cursor: inout JSONCursor) throws(JSONError) {
    if try cursor.consumeNull() { return }
    guard try cursor.kind() == .object else {
      try cursor.skipValue()
      return add(FieldProblem("metadata", .wrongType, "is not an object"))
    }
    let object = try cursor.readRaw()
    guard object.count <= UploadLimits.metadataBytes else {
      return add(FieldProblem("metadata", .tooLarge, "is larger than 64 KiB"))
    }
    do throws(JSONError) {
      try JSONValidator.validate(object, depthLimit: UploadLimits.metadataLevels)
      fields.metadata = Array(object)
    } catch {
      add(
        FieldProblem(
          "metadata", .tooDeep, "has more than \(UploadLimits.metadataLevels) levels"))
    }
  }
}

// MARK: - Problems of fields

/// One reason to reject an upload or an import line, or to warn about it, for display and for programs. It never
/// contains the field's value: receipts and user identifiers are secrets.
package struct FieldProblem: Equatable, Sendable, CustomStringConvertible {
  /// The kinds of problems, for programs.
  package enum Code: String, Sendable {
    case missing
    case wrongType = "wrong_type"
    case tooLong = "too_long"
    case tooLarge = "too_large"
    case tooDeep = "too_deep"
    case notBase64 = "not_base64"
    case receiptMalformed = "receipt_malformed"
    case sandboxNotAccepted = "sandbox_not_accepted"
    case unknownCountry = "unknown_country"
    case invalidAddress = "invalid_address"
    case invalidTime = "invalid_time"
    case invalidValue = "invalid_value"
    case bundleNotRegistered = "bundle_not_registered"
    case notJSON = "not_json"
    case bundleIDMismatch = "bundle_id_mismatch"
    case wrongAppAppleID = "wrong_app_apple_id"
    case signatureInvalid = "signature_invalid"
    case signedObject = "signed_object"
    case signedObjectMalformed = "signed_object_malformed"
    case signatureOutOfTime = "signature_out_of_time"
    case environmentNotAccepted = "environment_not_accepted"
    case unknownProperty = "unknown_property"
    case misspelled
    case replyMismatch = "reply_mismatch"
    case tooManyPurchases = "too_many_purchases"
    /// A file of an archive that cannot be opened or read.
    case unreadable
  }

  /// The property's name, with dots between levels; empty means the whole text.
  package let field: String
  package let code: Code
  /// A clause that continues the field's name: "is longer than 255 characters".
  package let message: String

  package init(_ field: String, _ code: Code, _ message: String) {
    self.field = field
    self.code = code
    self.message = message
  }

  package var description: String { field.isEmpty ? message : "\(field) \(message)" }
}

// MARK: - Limits of events

/// The limits on what intake puts into one event.
package enum EventLimits {
  /// The largest data of an event: its line, at most 16 MiB, also has other members.
  package static let dataBytes = (16 << 20) - 1024
  /// The largest reply: a verification also has other members.
  package static let replyBytes = dataBytes - 1024
  /// The longest bundle id; the App Store accepts no longer one.
  package static let bundleIDBytes = 255
  /// The longest text that is accepted as the name of an environment.
  package static let environmentBytes = 64
}

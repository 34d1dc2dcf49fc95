// Reads the members of rare events: their data is small and is parsed into memory as a whole.
import Base

/// The members of an event's data, or of an object inside it. A missing or wrong member throws `badField`.
struct EventMembers {
  private let type: EventType
  private let value: JSONValue
  /// The outermost member that contains this object, which errors name. Nil for the data itself.
  private let field: String?

  private init(_ type: EventType, _ value: JSONValue, in field: String?) {
    (self.type, self.value, self.field) = (type, value, field)
  }

  /// Throws `malformed` for invalid JSON.
  init(_ type: EventType, _ data: JSONBytes) throws(EventError) {
    do throws(JSONError) { self.init(type, try JSONValue(data), in: nil) } catch {
      throw .malformed(type, error)
    }
  }

  /// The error for a member.
  func fault(_ name: String) -> EventError { .badField(type, field: field ?? name) }

  func string(_ name: String) throws(EventError) -> String {
    guard let text = value[name]?.stringValue else { throw fault(name) }
    return text
  }

  func optionalString(_ name: String) throws(EventError) -> String? {
    value[name] == nil ? nil : try string(name)
  }

  /// A number of events or of checkpoints.
  func count(_ name: String) throws(EventError) -> Int {
    guard let count = value.count(name) else { throw fault(name) }
    return count
  }

  /// A number from 1; nil if it is missing.
  func optionalCount(_ name: String) throws(EventError) -> Int? {
    guard value[name] != nil else { return nil }
    let count = try count(name)
    guard count >= 1 else { throw fault(name) }
    return count
  }

  /// The root of a tree, in base64.
  func root(_ name: String) throws(EventError) -> SHA256Digest {
    guard let root = value.root(name) else { throw fault(name) }
    return root
  }

  /// A SHA-256 in hex.
  func digest(_ name: String) throws(EventError) -> SHA256Digest {
    guard let digest = value[name]?.digest else { throw fault(name) }
    return digest
  }

  /// An array of SHA-256 in hex.
  func digests(_ name: String) throws(EventError) -> [SHA256Digest] {
    try array(name, \.digest)
  }

  func strings(_ name: String) throws(EventError) -> [String] {
    try array(name, \.stringValue)
  }

  /// An array of objects.
  func objects(_ name: String) throws(EventError) -> [EventMembers] {
    try array(name) { EventMembers(type, $0, in: field ?? name) }
  }

  /// An object inside this one; nil if there is none.
  func optionalObject(_ name: String) -> EventMembers? {
    value[name].map { EventMembers(type, $0, in: field ?? name) }
  }

  /// An object whose keys are names: all its members, in order.
  func named<Value>(
    _ name: String, _ read: (JSONValue) -> Value?
  ) throws(EventError) -> [(name: String, value: Value)] {
    guard case .object(let members)? = value[name] else { throw fault(name) }
    var result: [(name: String, value: Value)] = []
    for member in members {
      guard let value = read(member.value) else { throw fault(name) }
      result.append((member.key, value))
    }
    return result
  }

  /// The same; empty if it is missing.
  func optionalNamed<Value>(
    _ name: String, _ read: (JSONValue) -> Value?
  ) throws(EventError) -> [(name: String, value: Value)] {
    value[name] == nil ? [] : try named(name, read)
  }

  private func array<Element>(
    _ name: String, _ read: (JSONValue) -> Element?
  ) throws(EventError) -> [Element] {
    guard let array = value[name]?.arrayValue else { throw fault(name) }
    let elements = array.compactMap(read)
    guard elements.count == array.count else { throw fault(name) }
    return elements
  }
}

/// Member types shared by events and the file of signed heads.
extension JSONValue {
  /// A number of events or of checkpoints.
  func count(_ name: String) -> Int? {
    guard let number = self[name]?.integerValue, number >= 0 else { return nil }
    return Int(number)
  }

  /// The root of a tree, in base64.
  func root(_ name: String) -> SHA256Digest? {
    guard let text = self[name]?.stringValue, let bytes = try? Base64.decode(Array(text.utf8))
    else { return nil }
    return bytes.withUnsafeBytes { SHA256Digest($0) }
  }

  /// The value as a SHA-256 in hex.
  fileprivate var digest: SHA256Digest? {
    guard let text = stringValue else { return nil }
    return Array(text.utf8).withUnsafeBytes { SHA256Digest(hex: $0) }
  }
}

// MARK: - Collects missing and invalid members while an event is decoded

/// The members of one event that were present, and those that were invalid, by their index in the catalogue's list.
struct MemberValidator {
  private var met: UInt32 = 0
  private var wrong: UInt32 = 0

  /// Records that a member is present and whether it is valid.
  @inline(__always)
  mutating func mark(_ place: Int, isRight: Bool) {
    let bit = UInt32(1) << UInt32(place)
    met |= bit
    if !isRight { wrong |= bit }
  }

  /// Whether no member is invalid, or missing although required.
  @inline(__always)
  func isRight(required: UInt32) -> Bool { wrong | (required & ~met) == 0 }

  /// Throws `badField` for the first member, in the catalogue's order, that is invalid, or missing although required.
  /// - Parameters:
  ///   - required: a bit for each required member.
  ///   - names: the members in the catalogue's order.
  @inline(__always)
  func check(
    _ type: EventType, required: UInt32, _ names: @autoclosure () -> [String]
  ) throws(EventError) {
    let faults = wrong | (required & ~met)
    if faults == 0 { return }
    throw .badField(type, field: names()[faults.trailingZeroBitCount])
  }
}

extension JSONCursor {
  /// Reads a string; skips a value of any other kind and returns nil.
  @inline(__always)
  mutating func readStringOrSkip() throws(JSONError) -> JSONString? {
    if try kind() == .string { return try readString() }
    try skipValue()
    return nil
  }

  /// Reads an integer within 64 bits; skips any other value and returns nil.
  @inline(__always)
  mutating func readIntegerOrSkip() throws(JSONError) -> Int64? {
    if try kind() == .number { return JSONNumber.integer(try readNumber()) }
    try skipValue()
    return nil
  }
}

/// The form of UUIDs in events: 36 bytes, lower-case digits.
enum EventUUID {
  static func isOne(_ text: JSONBytes) -> Bool {
    guard text.count == 36 else { return false }
    for place in 0..<36 {
      let byte = text[place]
      switch place {
      case 8, 13, 18, 23: if byte != 0x2D { return false }
      default:
        guard (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte) else { return false }
      }
    }
    return true
  }

  static func isOne(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { isOne(JSONBytes($0)) }
  }
}

// Reads the members of rare events: their data is small and is parsed into memory as a whole.
package import Base
import Glibc

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
  package func root(_ name: String) -> SHA256Digest? {
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

// MARK: - The members of frequent events: an enumeration for each type, and views that allocate nothing

/// A member's name, as it stands in an event: compared byte by byte, and never written with escapes.
package struct MemberName: Equatable, ExpressibleByStringLiteral {
  /// Empty for the name of a member that is read.
  fileprivate let literal: StaticString
  private let start: UnsafeRawPointer
  private let byteCount: Int

  @inline(__always)
  package init(stringLiteral name: StaticString) {
    (literal, start) = (name, UnsafeRawPointer(name.utf8Start))
    byteCount = name.utf8CodeUnitCount
  }

  @inline(__always)
  init(_ key: JSONString) {
    literal = ""
    start = key.raw.baseAddress ?? UnsafeRawPointer(literal.utf8Start)
    byteCount = key.raw.count
  }

  @inline(__always)
  package static func == (left: MemberName, right: MemberName) -> Bool {
    left.byteCount == right.byteCount && memcmp(left.start, right.start, left.byteCount) == 0
  }
}

/// The members of a type of events, or of an object inside it, in the catalogue's order: at most 32.
package protocol EventMember: RawRepresentable, CaseIterable, Equatable, Sendable
where RawValue == MemberName {}

extension EventMember {
  /// The member of this name; nil if the type has none.
  @inline(__always)
  package init?(_ key: JSONString) { self.init(rawValue: MemberName(key)) }

  package var name: StaticString { rawValue.literal }

  /// A case's tag is its index: a test compares.
  @inline(__always)
  package var bit: UInt32 { 1 << UInt32(unsafeBitCast(self, to: UInt8.self)) }
}

/// Members of one type.
struct MemberSet<Member: EventMember> {
  fileprivate var bits: UInt32 = 0

  /// The members up to this one.
  static func through(_ last: Member) -> MemberSet { MemberSet(bits: last.bit << 1 &- 1) }
  func with(_ member: Member) -> MemberSet { MemberSet(bits: bits | member.bit) }
  func without(_ member: Member) -> MemberSet { MemberSet(bits: bits & ~member.bit) }
}

/// The members of one event that were present, and those that were invalid.
struct MemberValidator<Member: EventMember> {
  fileprivate var present: UInt32 = 0
  fileprivate var invalid: UInt32 = 0

  /// The first member, in the catalogue's order, that is invalid, or missing although required.
  @inline(__always)
  func fault(required: MemberSet<Member>) -> Member? {
    let faults = invalid | (required.bits & ~present)
    return faults == 0 ? nil : Member.allCases.first { faults & $0.bit != 0 }
  }
}

/// An event, or an object inside it, as the fold reads it: its members point into the event's bytes.
protocol EventView {
  associatedtype Member: EventMember

  /// Reads the value of a member and moves past it; returns whether the value is valid.
  mutating func read(_ member: Member, _ cursor: inout JSONCursor) throws(JSONError) -> Bool
}

extension EventView {
  /// Reads the members of the object that the cursor has entered, and moves past it.
  @inline(__always)
  mutating func readMembers(
    _ cursor: inout JSONCursor
  ) throws(JSONError) -> MemberValidator<Member> {
    var validator = MemberValidator<Member>()
    while let key = try cursor.nextKey() {
      guard let member = Member(key) else {
        try cursor.skipValue()
        continue
      }
      validator.present |= member.bit
      if try !read(member, &cursor) { validator.invalid |= member.bit }
    }
    return validator
  }

  /// Reads an event's data. Throws `badField` for the first member that is missing or violates the catalogue,
  /// `malformed` for invalid JSON.
  @inline(__always)
  mutating func read(
    _ data: JSONBytes, of type: EventType, required: MemberSet<Member>
  ) throws(EventError) {
    let validator: MemberValidator<Member>
    do throws(JSONError) {
      var cursor = JSONCursor(data)
      try cursor.beginObject()
      validator = try readMembers(&cursor)
    } catch { throw .malformed(type, error) }
    if let fault = validator.fault(required: required) {
      throw .badField(type, field: fault.name.description)
    }
  }
}

/// Each function moves past a value, puts it where it belongs, and returns whether it is valid.
extension JSONCursor {
  mutating func read(_ text: inout JSONString?) throws(JSONError) -> Bool {
    text = try readStringOrSkip()
    return text != nil
  }

  mutating func read(uuid text: inout JSONString?) throws(JSONError) -> Bool {
    text = try readStringOrSkip()
    return text.map { EventUUID.isOne($0.raw) } ?? false
  }

  mutating func read(nonEmpty text: inout JSONString?) throws(JSONError) -> Bool {
    text = try readStringOrSkip()
    return text.map { !$0.raw.isEmpty } ?? false
  }

  /// The value stays nil if the text is empty.
  mutating func read(possiblyEmpty text: inout JSONString?) throws(JSONError) -> Bool {
    let value = try readStringOrSkip()
    text = value.flatMap { $0.raw.isEmpty ? nil : $0 }
    return value != nil
  }

  mutating func read(timeMs: inout Int64?) throws(JSONError) -> Bool {
    timeMs = try readStringOrSkip().flatMap { Timestamp.parseFixed($0.raw) }
    return timeMs != nil
  }

  mutating func read(digest: inout SHA256Digest?) throws(JSONError) -> Bool {
    digest = try readStringOrSkip().flatMap { SHA256Digest(hex: $0.raw) }
    return digest != nil
  }

  mutating func read(_ number: inout Int64?) throws(JSONError) -> Bool {
    number = try readIntegerOrSkip()
    return number != nil
  }

  mutating func read(object bytes: inout JSONBytes) throws(JSONError) -> Bool {
    let isObject = try kind() == .object
    bytes = try readRaw()
    return isObject
  }

  mutating func read(object bytes: inout JSONBytes?) throws(JSONError) -> Bool {
    let isObject = try kind() == .object
    bytes = try readRaw()
    return isObject
  }

  /// The value of the last member, without looking at it: what reads it finds its end.
  @inline(__always)
  mutating func readLast() throws(JSONError) -> JSONBytes {
    let rest = try readRest()
    // Back before the brace, where `nextKey` finds the object's end.
    offset -= 1
    return rest
  }

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

/// So that a `switch` may have words as cases.
@inline(__always)
func ~= (word: StaticString, text: JSONString) -> Bool { text == word }

extension JSONString? {
  @inline(__always)
  static func == (left: JSONString?, right: StaticString) -> Bool {
    left.map { $0 == right } ?? false
  }
}

/// The form of UUIDs in events: 36 bytes, lower-case digits.
enum EventUUID {
  static func isOne(_ text: JSONBytes) -> Bool {
    guard text.count == 36 else { return false }
    for index in 0..<36 {
      let byte = text[index]
      switch index {
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

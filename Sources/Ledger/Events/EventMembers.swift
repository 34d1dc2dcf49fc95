// Reads the members of rare events: their data is small and is parsed into memory as a whole.
import Base
import JSON

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

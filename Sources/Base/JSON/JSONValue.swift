// A JSON value in memory, for small texts such as configuration. Member order and digits stay as written.

/// One JSON value. Objects keep the order of their members, numbers their digits.
package indirect enum JSONValue: Equatable, Sendable {
  case object([Member])
  case array([JSONValue])
  case string(String)
  /// A number as written.
  case number(String)
  case boolean(Bool)
  case null

  package struct Member: Equatable, Sendable {
    package var key: String
    package var value: JSONValue

    package init(_ key: String, _ value: JSONValue) {
      self.key = key
      self.value = value
    }
  }

  /// Parses one strict JSON text.
  package init(_ bytes: JSONBytes) throws(JSONError) {
    try JSONValidator.validate(bytes)
    var cursor = JSONCursor(bytes)
    self = try Self.read(&cursor)
  }

  /// Parses one strict JSON text.
  package init(_ bytes: [UInt8]) throws(JSONError) {
    let result: Result<JSONValue, JSONError> = bytes.withUnsafeBytes { raw in
      do throws(JSONError) { return .success(try JSONValue(raw)) } catch { return .failure(error) }
    }
    self = try result.get()
  }

  private static func read(_ cursor: inout JSONCursor) throws(JSONError) -> JSONValue {
    switch try cursor.kind() {
    case .object:
      var members: [Member] = []
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        members.append(Member(key.string, try read(&cursor)))
      }
      return .object(members)
    case .array:
      var elements: [JSONValue] = []
      try cursor.beginArray()
      while try cursor.nextElement() { elements.append(try read(&cursor)) }
      return .array(elements)
    case .string: return .string(try cursor.readString().string)
    case .number: return .number(String(decoding: try cursor.readNumber(), as: UTF8.self))
    case .boolean: return .boolean(try cursor.readBoolean())
    case .null:
      _ = try cursor.consumeNull()
      return .null
    }
  }

  /// The value of an object's member; nil if there is none or this is not an object.
  package subscript(_ key: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.key.utf8.elementsEqual(key.utf8) }?.value
  }

  /// The text, if this is a string.
  package var stringValue: String? {
    if case .string(let text) = self { return text }
    return nil
  }

  /// The value, if this is an integer that fits in 64 bits.
  package var integerValue: Int64? {
    if case .number(let digits) = self { return Int64(digits) }
    return nil
  }

  /// The elements, if this is an array.
  package var arrayValue: [JSONValue]? {
    if case .array(let elements) = self { return elements }
    return nil
  }

  /// Writes the value without white space.
  package func write(to writer: inout JSONWriter) {
    switch self {
    case .object(let members):
      writer.beginObject()
      for member in members {
        writer.key(member.key)
        member.value.write(to: &writer)
      }
      writer.endObject()
    case .array(let elements):
      writer.beginArray()
      for element in elements { element.write(to: &writer) }
      writer.endArray()
    case .string(let text): writer.string(text)
    case .number(let digits):
      var digits = digits
      digits.withUTF8 { writer.raw(JSONBytes($0)) }
    case .boolean(let value): writer.boolean(value)
    case .null: writer.null()
    }
  }

  /// The value's canonical bytes.
  package var bytes: [UInt8] {
    var writer = JSONWriter()
    write(to: &writer)
    return writer.bytes
  }
}

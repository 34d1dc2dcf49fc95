// The client API's resources as JSON: a receipt and the purchases that it shows.
import AppStore
import Base
import Revenue

/// Writes resources. Every value follows from events; keys and their order are fixed.
struct ReceiptResource {
  /// A value that may occur in many places.
  struct SharedValue {
    fileprivate let index: Int
  }

  private var writer = JSONWriter()
  private var instant: [UInt8] = []
  private var name = JSONWriter()
  private var values: [[UInt8]] = []
  private var valuesByHash: [UInt64: Int] = [:]
  private var places: [ResponseBody.Place] = []

  /// A value with more bytes is stored once, and referenced where it occurs.
  static let inlineByteCountMax = 512

  init() {
    writer.reserve(2048)
    instant.reserveCapacity(32)
    name.reserve(128)
  }

  /// Writes a purchase's UUID: version 5, named within the app family by the canonical JSON array of what identifies
  /// the sale (rule R3): environment, bundle id, kind of key, key.
  mutating func addPurchaseID(
    family: UUID16, environment: Text, bundle: Text, kind: KeyKind, key: Text
  ) {
    name.removeAll()
    name.beginArray()
    name.string(environment)
    name.string(bundle)
    name.string(kind == .lineItem ? "line_item" : "transaction")
    name.string(key)
    name.endArray()
    let id = name.bytes.withUnsafeBytes { UUID16.named($0, in: family) }
    add("id", id)
  }

  /// The client API's name for an environment of the App Store: all but production itself is its sandbox. Nil while it
  /// is not known.
  static func environment(_ text: Text) -> StaticString? {
    if isUnknown(text) { return nil }
    let production = EnvironmentName.production.text
    return text.elementsEqual(production) || text.elementsEqual("ProductionVPP".utf8)
      ? "production" : "sandbox"
  }

  /// Whether only the App Store can determine the environment.
  static func isUnknown(_ environment: Text) -> Bool {
    environment.elementsEqual(PendingEnvironment.unknown.text)
  }

  // MARK: Shared values

  /// Adds one JSON value that may occur in many places; equal ones are shared.
  mutating func share(_ json: Text) -> SharedValue {
    let hash = json.placeHash()
    if let known = valuesByHash[hash], values[known].withUnsafeBytes({ json.equals($0) }) {
      return SharedValue(index: known)
    }
    values.append(Array(json))
    valuesByHash[hash] = values.count - 1
    return SharedValue(index: values.count - 1)
  }

  /// Adds a shared value.
  mutating func add(_ key: StaticString, shared value: SharedValue?) {
    writer.key(key)
    guard let value else { return writer.null() }
    if values[value.index].count <= Self.inlineByteCountMax {
      values[value.index].withUnsafeBytes { writer.raw($0) }
    } else {
      writer.raw(Text(start: nil, count: 0))
      places.append(
        ResponseBody.Place(textByteCount: writer.bytes.count, value: value.index))
    }
  }

  /// The bytes of the text so far, without large shared values.
  var byteCount: Int { writer.bytes.count }

  /// Reserves capacity for a number of bytes in addition to the shared values.
  mutating func reserve(_ byteCount: Int) { writer.reserve(byteCount) }

  /// Finishes the resource.
  consuming func finish() -> ResponseBody {
    // An array that has grown may reserve twice the memory that it uses.
    var text = writer.bytes
    if text.capacity - text.count > max(4096, text.count / 4) {
      text = text.withUnsafeBytes { Array($0) }
    }
    for index in values.indices where values[index].count <= Self.inlineByteCountMax {
      values[index] = []
    }
    return ResponseBody(text: text, values: places.isEmpty ? [] : values, places: places)
  }

  // MARK: Values

  mutating func begin() { writer.beginObject() }

  mutating func begin(_ key: StaticString) {
    writer.key(key)
    writer.beginObject()
  }

  mutating func end() { writer.endObject() }

  mutating func beginArray(_ key: StaticString) {
    writer.key(key)
    writer.beginArray()
  }

  mutating func endArray() { writer.endArray() }

  mutating func add(_ key: StaticString, text: Text?) {
    writer.key(key)
    if let text { writer.string(text) } else { writer.null() }
  }

  mutating func add(_ key: StaticString, word: StaticString?) { add(key, text: word?.text) }

  mutating func add(_ key: StaticString, _ value: String?) {
    writer.key(key)
    if let value { writer.string(value) } else { writer.null() }
  }

  mutating func add(_ key: StaticString, _ id: UUID16) {
    writer.key(key)
    id.withText { writer.string($0) }
  }

  mutating func add(_ key: StaticString, _ value: Int64) {
    writer.key(key)
    writer.integer(value)
  }

  mutating func add(_ key: StaticString, _ value: Int64?) {
    writer.key(key)
    if let value { writer.integer(value) } else { writer.null() }
  }

  mutating func add(_ key: StaticString, _ value: Bool?) {
    writer.key(key)
    if let value { writer.boolean(value) } else { writer.null() }
  }

  /// Adds an instant as RFC 3339 text in UTC.
  mutating func add(_ key: StaticString, timeMs: Int64?) {
    writer.key(key)
    guard let timeMs else { return writer.null() }
    instant.removeAll(keepingCapacity: true)
    Timestamp.append(ms: timeMs, to: &instant)
    instant.withUnsafeBytes { writer.string($0) }
  }

  mutating func add(_ key: StaticString, positions: [Int]) {
    writer.key(key)
    writer.beginArray()
    for position in positions { writer.integer(position) }
    writer.endArray()
  }

  mutating func add(_ key: StaticString, texts: [[UInt8]]) {
    writer.key(key)
    writer.beginArray()
    for text in texts { text.withUnsafeBytes { writer.string($0) } }
    writer.endArray()
  }

  /// Adds what is wrong with an upload's objects, in the form in which requests are rejected; nothing if nothing is
  /// wrong.
  mutating func add(_ refusals: [ObjectRefusal]) {
    if refusals.isEmpty { return }
    beginArray("errors")
    for refusal in refusals {
      begin()
      add("field", refusal.field)
      add("code", refusal.code)
      add("message", refusal.message)
      end()
    }
    endArray()
  }

  /// Adds one JSON value unchanged.
  mutating func add(_ key: StaticString, json: Text?) {
    writer.key(key)
    if let json { writer.raw(json) } else { writer.null() }
  }

  /// Adds an instant in both forms: `{"utc":"2018-02-26 10:35:47 UTC","ms":1519641347834}`.
  mutating func add(_ key: StaticString, instantMs: Int64?) {
    writer.key(key)
    guard let instantMs else { return writer.null() }
    writer.beginObject()
    writer.key("utc")
    instant.removeAll(keepingCapacity: true)
    Timestamp.appendAppStore(ms: instantMs, to: &instant)
    instant.withUnsafeBytes { writer.string($0) }
    writer.key("ms")
    writer.integer(instantMs)
    writer.endObject()
  }
}

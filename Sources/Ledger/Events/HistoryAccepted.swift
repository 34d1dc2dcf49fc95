// history.accepted: an operator accepted the log as it is, though something recorded another one.
package import Base
package import JSON

/// The history that was given up: only this event records it from then on.
package struct HistoryAccepted: Equatable, Sendable {
  /// A position in a history.
  package struct Head: Equatable, Sendable {
    package var size: Int
    package var root: SHA256Digest

    package init(size: Int, root: SHA256Digest) { (self.size, self.root) = (size, root) }
  }

  /// The log's head when it was accepted.
  package var log: Head
  /// How far the projections had come, and on which history; nil where they rested on this one, or there were none.
  package var projections: Head?
  /// The signed heads that were remembered; nil where they agreed with the log and the kept checkpoints.
  package var heads: SignedHeads?

  package init(log: Head, projections: Head?, heads: SignedHeads?) {
    self.log = log
    self.projections = projections
    self.heads = heads
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    func object(_ key: StaticString, count: Int?, _ size: Int, _ root: SHA256Digest) {
      writer.key(key)
      writer.beginObject()
      if let count {
        writer.key("checkpoints")
        writer.integer(count)
      }
      writer.key("size")
      writer.integer(size)
      writer.key("root")
      writer.string(Base64.text(root.bytes))
      writer.endObject()
    }
    object("log", count: nil, log.size, log.root)
    if let projections { object("projections", count: nil, projections.size, projections.root) }
    if let heads { object("heads", count: heads.count, heads.size, heads.root) }
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` where a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let type = EventType.historyAccepted
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(data) } catch { throw .malformed(type, error) }
    func head(_ name: String) throws(EventError) -> Head? {
      guard let member = value[name] else { return nil }
      guard let size = member.eventCount("size"), let root = member.root("root") else {
        throw .badField(type, field: name)
      }
      return Head(size: size, root: root)
    }
    guard let log = try head("log") else { throw .badField(type, field: "log") }
    let projections = try head("projections")
    var heads: SignedHeads?
    if let newest = try head("heads") {
      guard let count = value["heads"]?.eventCount("checkpoints") else {
        throw .badField(type, field: "heads")
      }
      heads = SignedHeads(count: count, size: newest.size, root: newest.root)
    }
    self.init(log: log, projections: projections, heads: heads)
  }
}

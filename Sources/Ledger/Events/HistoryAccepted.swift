// history.accepted: an operator accepted the log although other records held another history.
package import Base

/// The history that was given up. From then on only this event records it.
package struct HistoryAccepted: Equatable, Sendable {
  /// A position in a history.
  package struct Head: Equatable, Sendable {
    package var size: Int
    package var root: SHA256Digest

    package init(size: Int, root: SHA256Digest) { (self.size, self.root) = (size, root) }

    fileprivate init(_ members: EventMembers) throws(EventError) {
      (size, root) = (try members.count("size"), try members.root("root"))
    }
  }

  /// The log's head when it was accepted.
  package var log: Head
  /// The projections' position in the other history; nil if they agreed with the log or did not exist.
  package var projections: Head?
  /// The recorded signed heads; nil if they agreed with the log and the kept checkpoints.
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
      writer.member("checkpoints", ifPresent: count)
      writer.member("size", size)
      writer.member("root", Base64.text(root.bytes))
      writer.endObject()
    }
    object("log", count: nil, log.size, log.root)
    if let projections { object("projections", count: nil, projections.size, projections.root) }
    if let heads { object("heads", count: heads.count, heads.size, heads.root) }
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let members = try EventMembers(.historyAccepted, data)
    guard let log = members.optionalObject("log") else { throw members.fault("log") }
    self.log = try Head(log)
    if let head = members.optionalObject("projections") { projections = try Head(head) }
    if let newest = members.optionalObject("heads") {
      heads = SignedHeads(
        count: try newest.count("checkpoints"), size: try newest.count("size"),
        root: try newest.root("root"))
    }
  }
}

// signatures.accepted: signed objects of an earlier event that were judged invalid, and are good now.
package import Base
package import JSON

/// Objects of one fetched page whose signatures were refused for a reason of time or trust, and were found good later.
/// They count from this event's position on.
package struct SignaturesAccepted: Equatable, Sendable {
  /// An object of the page, and the verdict on it.
  package struct Object: Equatable, Sendable {
    /// Its place in the page's list, from 0.
    package var index: Int
    /// The fingerprint of the root that its chain ends in.
    package var root: SHA256Digest

    package init(index: Int, root: SHA256Digest) { (self.index, self.root) = (index, root) }
  }

  /// The position of the `transactions.fetched`.
  package var page: Position
  /// When they were found good, in epoch milliseconds.
  package var occurredAtMs: Int64
  /// Of its `transactions`, in rising order.
  package var transactions: [Object]
  /// Of its `renewals`, in rising order.
  package var renewals: [Object]

  package init(
    page: Position, occurredAtMs: Int64, transactions: [Object], renewals: [Object]
  ) {
    self.page = page
    self.occurredAtMs = occurredAtMs
    self.transactions = transactions
    self.renewals = renewals
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("page", page)
    writer.member("occurred_at", Timestamp.fixedText(ms: occurredAtMs))
    func list(_ name: StaticString, _ objects: [Object]) {
      writer.key(name)
      writer.beginArray()
      for object in objects {
        writer.beginObject()
        writer.member("index", object.index)
        SignedObjectRecord.Verdict.valid(root: object.root).writeMembers(to: &writer)
        writer.endObject()
      }
      writer.endArray()
    }
    list("transactions", transactions)
    list("renewals", renewals)
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let members = try EventMembers(.signaturesAccepted, data)
    page = try members.count("page")
    var time = try members.string("occurred_at")
    guard let occurredAtMs = time.withUTF8({ Timestamp.parseFixed(JSONBytes($0)) }) else {
      throw members.fault("occurred_at")
    }
    self.occurredAtMs = occurredAtMs
    func list(_ name: String) throws(EventError) -> [Object] {
      var objects: [Object] = []
      for object in try members.objects(name) {
        let index = try object.count("index")
        guard try object.string("outcome") == SignedObjectRecord.Verdict.validWord,
          index > objects.last?.index ?? -1
        else { throw members.fault(name) }
        objects.append(Object(index: index, root: try object.digest("root_sha256")))
      }
      return objects
    }
    transactions = try list("transactions")
    renewals = try list("renewals")
  }
}

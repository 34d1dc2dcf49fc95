// Everything that a ledger holds about a user, for an access request.
package import Base
package import Ledger
package import Projections

/// Collects what an erasure of a user would find, and writes it as JSON, one event at a time.
package struct UserExport {
  private let reader: LogReader
  private let plan: ErasurePlan

  /// - Parameter database: projections at the reader's head.
  package init(
    _ identifier: String, appFamily: UUID16?, _ reader: LogReader, _ database: Database
  ) throws(ErasureError) {
    self.reader = reader
    do {
      plan = try ErasurePlanner(
        database, reader, before: reader.head.size, isCancelled: { false }
      ).plan(.user(identifier, appFamily: appFamily), requestedAtMs: 0)
    } catch { throw Eraser.erasureError(error) }
  }

  /// How many events hold data about the user.
  package var eventCount: Int { plan.targets.count }

  /// Passes on each event as one JSON object: `position`, `type`, `recorded_at`, and `data` as the ledger holds it. An
  /// event that is also about others has, instead of `data`, `transactions`: what it shows of the user's purchases.
  package func write(_ body: ([UInt8]) throws -> Void) throws(ErasureError) {
    do {
      let extents = Dictionary(
        plan.targets.map { ($0.position, $0.extent) }, uniquingKeysWith: { first, _ in first })
      try reader.readEvents(at: plan.targets.map(\.position), isCancelled: { false }) { event in
        guard let extent = extents[event.position], let object = object(of: event, extent) else {
          return
        }
        try body(object)
      }
    } catch { throw Eraser.erasureError(error) }
  }

  private func object(of event: EventLine, _ extent: ErasureExtent) -> [UInt8]? {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("position", event.position)
    writer.member("type", String(decoding: event.type, as: UTF8.self))
    writer.member("recorded_at", Timestamp.text(ms: event.recordedAtMs))
    switch extent {
    case .objects, .ownObjects, .withToken:
      let own = PurchaseFacts.objects(of: event) { plan.ownership.holds($0) }
      if own.isEmpty { return nil }
      writer.key("transactions")
      writer.beginArray()
      for object in own { object.withUnsafeBytes { writer.raw($0) } }
      writer.endArray()
    default:
      writer.key("data")
      if let data = withoutWaitingReceipt(event) {
        data.withUnsafeBytes { writer.raw($0) }
      } else {
        writer.raw(event.data)
      }
    }
    writer.endObject()
    return writer.bytes
  }

  /// The data without a receipt that an erasure kept for the App Store alone; nil if there is none.
  private func withoutWaitingReceipt(_ event: EventLine) -> [UInt8]? {
    guard event.isRedacted, case .object(let members)? = try? JSONValue(Array(event.data)),
      members.contains(where: { $0.key == "receipt_until" })
    else { return nil }
    return JSONValue.object(members.filter { $0.key != "receipt" }).bytes
  }
}

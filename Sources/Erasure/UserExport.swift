// All that a ledger holds about a user, for an access request.
import AppStore
package import Base
import JSON
package import Ledger
package import Projections

/// Collects what an erasure of a user would find, and writes it as JSON, an event at a time.
package struct UserExport {
  private let reader: LogReader
  private let plan: ErasurePlan

  /// - Parameter database: projections at the reader's head.
  package init(
    _ identifier: String, appFamily: UUID16?, _ reader: LogReader, _ database: Database
  ) throws(ErasureError) {
    self.reader = reader
    do {
      plan = try ErasurePlanner(database, reader, before: reader.head.size)
        .plan(.user(identifier, appFamily: appFamily))
    } catch { throw Eraser.erasureError(error) }
  }

  /// How many events hold data about the user.
  package var eventCount: Int { plan.targets.count }

  /// Passes on each event as one JSON object: `position`, `type`, `recorded_at`, and `data` as the ledger holds it. Of
  /// an event that is about others too, instead of `data`, `transactions`: the payloads that are about the user.
  package func write(_ body: ([UInt8]) throws -> Void) throws(ErasureError) {
    do {
      for target in plan.targets {
        let line = try reader.event(at: target.position)
        if let object = try line.withUnsafeBytes({ try object(of: $0, line, target.extent) }) {
          try body(object)
        }
      }
    } catch { throw Eraser.erasureError(error) }
  }

  private func object(
    of bytes: UnsafeRawBufferPointer, _ line: [UInt8], _ extent: ErasureExtent
  ) throws -> [UInt8]? {
    guard let event = EventLine(bytes) else { return nil }
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("position", event.position)
    writer.member("type", String(decoding: event.type, as: UTF8.self))
    writer.member("recorded_at", Timestamp.text(ms: event.recordedAtMs))
    switch extent {
    case .objects, .ownObjects:
      let own = try SignedFacts.payloads(of: line) { facts in
        facts.withBytes {
          plan.ownership.holds(
            transactionID: $0, originalTransactionID: $1, appAccountToken: $2)
        }
      }
      if own.isEmpty { return nil }
      writer.key("transactions")
      writer.beginArray()
      for payload in own { payload.withUnsafeBytes { writer.raw($0) } }
      writer.endArray()
    case .withToken:
      guard
        plan.ownership.appAccountTokens.contains(where: {
          IdentifierSearch.contains(event.data, $0)
        })
      else { return nil }
      writer.key("data")
      writer.raw(event.data)
    default:
      writer.key("data")
      writer.raw(event.data)
    }
    writer.endObject()
    return writer.bytes
  }
}

// What a redaction keeps of an event that readers pass over: what is wrong with it.
import JSON

/// The data of a malformed event after its redaction. It names the fault, so that the exception stays as it was.
package enum MalformedEvent {
  /// What is kept.
  /// - Parameter field: the faulty member, or `data`, as the exception names it.
  package static func kept(_ field: String) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("malformed", field)
    writer.endObject()
    return writer.bytes
  }

  /// The fault of a redacted event that was malformed; nil for any other event.
  package static func fault(of event: EventLine, _ type: EventType) -> EventError? {
    guard event.isRedacted else { return nil }
    var cursor = JSONCursor(event.data)
    do throws(JSONError) {
      try cursor.beginObject()
      guard let key = try cursor.nextKey(), key == "malformed", try cursor.kind() == .string else {
        return nil
      }
      return .badField(type, field: try cursor.readString().string)
    } catch { return nil }
  }
}

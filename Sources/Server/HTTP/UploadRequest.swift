// The body of an upload: decodes JSON into fields, or gives every reason why not.
import Intake
import JSON

enum UploadRequest {
  private typealias Outcome = (fields: Result<UploadFields, HTTPAnswer>, isClientWithheld: Bool)

  /// Reads a body. Invalid JSON gets 400, JSON that is not a valid upload 422. Unknown properties are
  /// skipped: an import warns of them, but a response has no place for a warning.
  /// - Parameter isClientWithheld: set where the body asks that the client's address not be kept, whether it
  ///   is good or not.
  static func fields(
    _ body: [UInt8], isClientWithheld: inout Bool
  ) throws(HTTPAnswer) -> UploadFields {
    guard !body.isEmpty else { throw HTTPAnswer(400, .notJSON, "the body is empty") }
    let outcome: Outcome = body.withUnsafeBytes { bytes in
      var compact: [UInt8] = []
      compact.reserveCapacity(bytes.count)
      do throws(JSONError) {
        try JSONValidator.compact(bytes, to: &compact)
      } catch {
        return (.failure(notJSON(error)), false)
      }
      return compact.withUnsafeBytes(read)
    }
    isClientWithheld = outcome.isClientWithheld
    return try outcome.fields.get()
  }

  private static func read(_ bytes: UnsafeRawBufferPointer) -> Outcome {
    var reader = UploadFieldReader()
    do throws(JSONError) {
      var cursor = JSONCursor(bytes)
      guard try cursor.kind() == .object else {
        let problem = FieldProblem("", .wrongType, "is not a JSON object")
        return (.failure(HTTPAnswer([problem])), false)
      }
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        if try !reader.take(key, from: &cursor) { try cursor.skipValue() }
      }
    } catch {
      return (.failure(notJSON(error)), reader.withholdsClientAddress)
    }
    let fields = reader.finish()
    return (
      fields.map { .success($0) } ?? .failure(HTTPAnswer(reader.problems)),
      reader.withholdsClientAddress
    )
  }

  private static func notJSON(_ error: JSONError) -> HTTPAnswer {
    HTTPAnswer(400, .notJSON, "the body is not JSON: \(error)")
  }
}

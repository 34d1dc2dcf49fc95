// The body of an upload: JSON into fields, or every reason why not.
import JSON

enum UploadRequest {
  private typealias Outcome = Result<UploadFields, HTTPAnswer>

  /// Reads a body. What is no JSON is answered 400, JSON that is no good upload 422. Unknown properties are
  /// passed over: an import warns of them, but an answer has no place for a warning.
  static func fields(_ body: [UInt8]) throws(HTTPAnswer) -> UploadFields {
    guard !body.isEmpty else { throw HTTPAnswer(400, .notJSON, "the body is empty") }
    let outcome: Outcome = body.withUnsafeBytes { bytes in
      var compact: [UInt8] = []
      compact.reserveCapacity(bytes.count)
      do throws(JSONError) {
        try JSONValidator.compact(bytes, to: &compact)
      } catch {
        return .failure(notJSON(error))
      }
      return compact.withUnsafeBytes(read)
    }
    return try outcome.get()
  }

  private static func read(_ bytes: UnsafeRawBufferPointer) -> Outcome {
    var reader = UploadFieldReader()
    do throws(JSONError) {
      var cursor = JSONCursor(bytes)
      guard try cursor.kind() == .object else {
        return .failure(HTTPAnswer([FieldProblem("", .wrongType, "is not a JSON object")]))
      }
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        if try !reader.take(key, from: &cursor) { try cursor.skipValue() }
      }
    } catch {
      return .failure(notJSON(error))
    }
    guard let fields = reader.finish() else { return .failure(HTTPAnswer(reader.problems)) }
    return .success(fields)
  }

  private static func notJSON(_ error: JSONError) -> HTTPAnswer {
    HTTPAnswer(400, .notJSON, "the body is not JSON: \(error)")
  }
}

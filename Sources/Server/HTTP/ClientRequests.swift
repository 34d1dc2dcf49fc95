// The body of an upload: decodes JSON into fields, or gives every reason why not.
import Intake
import JSON

enum UploadRequest {
  /// Tells where a signed object belongs that is sent as a receipt.
  private static let signedObjectAdvice =
    "send it to \(Route.transactionsPath), in signed_transactions"

  /// Reads the body of an upload of a receipt. Invalid JSON gets 400, JSON that is not a valid upload 422. Unknown
  /// properties are skipped: an import warns of them, but a response has no place for a warning.
  /// - Parameter isClientWithheld: set where the body asks that the client's address not be kept, whether it
  ///   is good or not.
  static func fields(
    _ body: [UInt8], isClientWithheld: inout Bool
  ) throws(HTTPAnswer) -> UploadFields {
    try read(
      body, UploadFieldReader(signedObjectAdvice: signedObjectAdvice), &isClientWithheld)
  }

  /// Reads the body of an upload of signed transactions in the same way.
  static func signedFields(
    _ body: [UInt8], isClientWithheld: inout Bool
  ) throws(HTTPAnswer) -> SignedUploadFields {
    try read(body, SignedUploadFieldReader(), &isClientWithheld)
  }

  private static func read<Reader: FieldReader>(
    _ body: [UInt8], _ reader: Reader, _ isClientWithheld: inout Bool
  ) throws(HTTPAnswer) -> Reader.Fields {
    guard !body.isEmpty else { throw HTTPAnswer(400, .notJSON, "the body is empty") }
    var reader = reader
    let fields: Result<Reader.Fields, HTTPAnswer> = body.withUnsafeBytes { bytes in
      var compact: [UInt8] = []
      compact.reserveCapacity(bytes.count)
      do throws(JSONError) {
        try JSONValidator.compact(bytes, to: &compact)
      } catch {
        return .failure(notJSON(error))
      }
      return compact.withUnsafeBytes { read($0, &reader) }
    }
    isClientWithheld = reader.withholdsClientAddress
    return try fields.get()
  }

  private static func read<Reader: FieldReader>(
    _ bytes: UnsafeRawBufferPointer, _ reader: inout Reader
  ) -> Result<Reader.Fields, HTTPAnswer> {
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
    return reader.finish().map { .success($0) } ?? .failure(HTTPAnswer(reader.problems))
  }

  private static func notJSON(_ error: JSONError) -> HTTPAnswer {
    HTTPAnswer(400, .notJSON, "the body is not JSON: \(error)")
  }
}

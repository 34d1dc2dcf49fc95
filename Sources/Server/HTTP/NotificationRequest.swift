// The path of the App Store's notifications: the body of a request, and the answers.
import Intake
import JSON

enum NotificationRequest {
  /// A signed object of 128 KiB with room around it. Notifications have less than 20 KiB.
  static let bodyBytesMax = 256 << 10

  /// The text of `signedPayload`. Invalid JSON gets 400, JSON that has none 422. Other members are skipped.
  static func text(_ body: [UInt8]) throws(HTTPAnswer) -> [UInt8] {
    guard !body.isEmpty else { throw HTTPAnswer(400, .notJSON, "the body is empty") }
    let text: Result<[UInt8], HTTPAnswer> = body.withUnsafeBytes { bytes in
      var compact: [UInt8] = []
      compact.reserveCapacity(bytes.count)
      do throws(JSONError) { try JSONValidator.compact(bytes, to: &compact) } catch {
        return .failure(notJSON(error))
      }
      return compact.withUnsafeBytes(read)
    }
    return try text.get()
  }

  private static func read(_ bytes: UnsafeRawBufferPointer) -> Result<[UInt8], HTTPAnswer> {
    let field = NotificationJudgement.field
    do throws(JSONError) {
      var cursor = JSONCursor(bytes)
      guard try cursor.kind() == .object else {
        return .failure(HTTPAnswer([FieldProblem("", .wrongType, "is not a JSON object")]))
      }
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        guard key == "signedPayload" else {
          try cursor.skipValue()
          continue
        }
        guard try cursor.kind() == .string else {
          return .failure(HTTPAnswer([FieldProblem(field, .wrongType, "is not a string")]))
        }
        return .success(try cursor.readString().bytes)
      }
    } catch { return .failure(notJSON(error)) }
    return .failure(HTTPAnswer([FieldProblem(field, .missing, "is missing")]))
  }

  private static func notJSON(_ error: JSONError) -> HTTPAnswer {
    HTTPAnswer(400, .notJSON, "the body is not JSON: \(error)")
  }
}

extension HTTPAnswer {
  private static let recorded = HTTPAnswer(status: 200, body: Array(#"{"result":"recorded"}"#.utf8))
  private static let known = HTTPAnswer(status: 200, body: Array(#"{"result":"known"}"#.utf8))

  /// What the App Store is told.
  init(_ answer: NotificationAnswer) {
    switch answer {
    case .recorded: self = .recorded
    case .known: self = .known
    case .refused(let problems): self.init(problems)
    case .forged(let problems): self.init(problems, status: 403)
    case .retry(nil, let seconds): self = .unavailable(retryAfterSeconds: seconds)
    case .retry(let problem?, let seconds): self = .later([problem], afterSeconds: seconds)
    }
  }
}

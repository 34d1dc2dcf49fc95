// Decodes the bodies of requests into fields, or rejects them with every reason.
import Base
import Intake
import Ledger
import Projections

enum UploadRequest {
  /// Advice for a signed object that is sent as a receipt.
  private static let signedObjectAdvice =
    "send it to \(Route.transactionsPath), in signed_transactions"

  /// Decodes the body of an upload of a receipt. Invalid JSON gets 400, JSON that is not a valid upload 422. Unknown
  /// properties are ignored: an import warns of them, but a response has no place for a warning.
  /// - Parameter isClientWithheld: set if the body asks that the client's address not be kept, whether the body is
  ///   valid or not.
  static func fields(
    _ body: [UInt8], isClientWithheld: inout Bool
  ) throws(HTTPResponse) -> UploadFields {
    try read(
      body, UploadFieldReader(signedObjectAdvice: signedObjectAdvice), &isClientWithheld)
  }

  /// Decodes the body of an upload of signed transactions in the same way.
  static func signedFields(
    _ body: [UInt8], isClientWithheld: inout Bool
  ) throws(HTTPResponse) -> SignedUploadFields {
    try read(body, SignedUploadFieldReader(), &isClientWithheld)
  }

  private static func read<Reader: FieldReader>(
    _ body: [UInt8], _ reader: Reader, _ isClientWithheld: inout Bool
  ) throws(HTTPResponse) -> Reader.Fields {
    var reader = reader
    let refusal = JSONBody.refusal(of: body) { key, cursor throws(JSONError) in
      if try !reader.read(key, from: &cursor) { try cursor.skipValue() }
    }
    isClientWithheld = reader.withholdsClientAddress
    if let refusal { throw refusal }
    guard let fields = reader.finish() else { throw HTTPResponse(reader.problems) }
    return fields
  }
}

/// A body that must be a JSON object.
private enum JSONBody {
  static let empty = HTTPResponse(400, .notJSON, "the body is empty")
  static let noObject = HTTPResponse([FieldProblem("", .wrongType, "is not a JSON object")])

  static func notJSON(_ error: JSONError) -> HTTPResponse {
    HTTPResponse(400, .notJSON, "the body is not JSON: \(error)")
  }

  /// Reads the members, whose values `read` reads or skips. Returns why the body is refused; nil if it is good.
  static func refusal(
    of body: [UInt8], _ read: (JSONString, inout JSONCursor) throws(JSONError) -> Void
  ) -> HTTPResponse? {
    if body.isEmpty { return empty }
    var compact: [UInt8] = []
    compact.reserveCapacity(body.count)
    return body.withUnsafeBytes { bytes in
      do throws(JSONError) { try JSONValidator.compact(bytes, to: &compact) } catch {
        return notJSON(error)
      }
      return compact.withUnsafeBytes { bytes in
        do throws(JSONError) {
          var cursor = JSONCursor(bytes)
          guard try cursor.kind() == .object else { return noObject }
          try cursor.beginObject()
          while let key = try cursor.nextKey() { try read(key, &cursor) }
          return nil
        } catch { return notJSON(error) }
      }
    }
  }
}

// MARK: - Notifications

enum NotificationRequest {
  /// A signed object of 128 KiB and room for the rest. Notifications have less than 20 KiB.
  static let bodyBytesMax = 256 << 10

  /// The text of `signedPayload`. Invalid JSON gets 400, JSON without it 422. Other members are ignored.
  static func text(_ body: [UInt8]) throws(HTTPResponse) -> [UInt8] {
    let field = NotificationVerification.field
    var text: [UInt8]?
    var problem = FieldProblem(field, .missing, "is missing")
    let refusal = JSONBody.refusal(of: body) { key, cursor throws(JSONError) in
      guard key == "signedPayload" else { return try cursor.skipValue() }
      if try cursor.kind() == .string {
        text = try cursor.readString().bytes
      } else {
        problem = FieldProblem(field, .wrongType, "is not a string")
        try cursor.skipValue()
      }
    }
    if let refusal { throw refusal }
    guard let text else { throw HTTPResponse([problem]) }
    return text
  }
}

extension HTTPResponse {
  private static let recorded = HTTPResponse(
    status: 200, body: Array(#"{"result":"recorded"}"#.utf8))
  private static let known = HTTPResponse(status: 200, body: Array(#"{"result":"known"}"#.utf8))

  /// The response to the App Store.
  init(_ answer: NotificationResponse) {
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

// MARK: - Questions about a user

struct UserRequest {
  /// A body contains a user and a place in a list.
  static let bodyBytesMax = 16 << 10
  /// The most purchases in one response, and the number if the request gives none.
  static let limitMax = 100
  static let limitDefault = 20

  private let user: String
  private let after: PurchaseCursor?
  private let limit: Int

  /// Decodes a body. Invalid JSON gets 400, JSON that is not a valid question 422. Unknown properties are ignored.
  init(_ body: [UInt8]) throws(HTTPResponse) {
    let value = try Self.object(body)
    var problems: [FieldProblem] = []
    user = Self.user(value["user_identifier"], &problems)
    after = Self.after(value["after"], &problems)
    limit = Self.limit(value["limit"], &problems)
    guard problems.isEmpty else { throw HTTPResponse(problems) }
  }

  /// The question of a path with this body; nil for a path without a question.
  func question(_ route: Route, of appFamily: UUID16) -> UserQuestion? {
    switch route {
    case .purchases:
      UserQuestion(.purchases(after: after, limit: limit), user: user, appFamily: appFamily)
    case .entitlements: UserQuestion(.entitlements, user: user, appFamily: appFamily)
    default: nil
    }
  }

  // MARK: Properties

  /// The JSON object of a body.
  static func object(_ body: [UInt8]) throws(HTTPResponse) -> JSONValue {
    if body.isEmpty { throw JSONBody.empty }
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(body) } catch { throw JSONBody.notJSON(error) }
    guard case .object = value else { throw JSONBody.noObject }
    return value
  }

  /// The user whom a body names; adds a problem if it names none.
  static func user(_ value: JSONValue?, _ problems: inout [FieldProblem]) -> String {
    let field = "user_identifier"
    switch value {
    case nil, .null?, .string("")?: problems.append(FieldProblem(field, .missing, "is missing"))
    case .string(let text)?:
      let limit = UploadLimits.identifierCharacters
      if text.unicodeScalars.count <= limit { return text }
      problems.append(FieldProblem(field, .tooLong, "is longer than \(limit) characters"))
    default: problems.append(FieldProblem(field, .wrongType, "is not a string"))
    }
    return ""
  }

  private static func after(
    _ value: JSONValue?, _ problems: inout [FieldProblem]
  ) -> PurchaseCursor? {
    switch value {
    case nil, .null?: return nil
    case .string(let text)?:
      if let cursor = PurchaseCursor(text) { return cursor }
      problems.append(FieldProblem("after", .invalidValue, "is not the `next` of a response"))
    default: problems.append(FieldProblem("after", .wrongType, "is not a string"))
    }
    return nil
  }

  private static func limit(_ value: JSONValue?, _ problems: inout [FieldProblem]) -> Int {
    switch value {
    case nil, .null?: return limitDefault
    case .number?:
      if let limit = value?.integerValue, (1...Int64(limitMax)).contains(limit) {
        return Int(limit)
      }
      problems.append(
        FieldProblem("limit", .invalidValue, "is not an integer from 1 to \(limitMax)"))
    default: problems.append(FieldProblem("limit", .wrongType, "is not a number"))
    }
    return limitDefault
  }
}

// MARK: - Erasure requests

struct ErasureRequest {
  private let user: String
  private let reason: String
  private let isUrgent: Bool

  /// Decodes a body. Invalid JSON gets 400, JSON that is not a valid request 422. Unknown properties are ignored.
  init(_ body: [UInt8]) throws(HTTPResponse) {
    let value = try UserRequest.object(body)
    var problems: [FieldProblem] = []
    user = UserRequest.user(value["user_identifier"], &problems)
    reason = Self.reason(value["reason"], &problems)
    isUrgent = Self.isUrgent(value["urgent"], &problems)
    guard problems.isEmpty else { throw HTTPResponse(problems) }
  }

  /// The request of an app family's token.
  func order(of appFamily: UUID16, receivedAtMs: Int64) -> ErasureOrder {
    ErasureOrder(
      user: user, reason: reason, isUrgent: isUrgent, appFamily: appFamily,
      receivedAtMs: receivedAtMs)
  }

  private static func reason(_ value: JSONValue?, _ problems: inout [FieldProblem]) -> String {
    let field = "reason"
    switch value {
    case nil, .null?, .string("")?: problems.append(FieldProblem(field, .missing, "is missing"))
    case .string(let text)?:
      if DataRedacted.isReason(text) { return text }
      problems.append(
        FieldProblem(
          field, .invalidValue,
          "is not a code such as user_request: a small letter, then small letters, digits and _, at most 32"
        ))
    default: problems.append(FieldProblem(field, .wrongType, "is not a string"))
    }
    return ""
  }

  private static func isUrgent(_ value: JSONValue?, _ problems: inout [FieldProblem]) -> Bool {
    switch value {
    case nil, .null?: return false
    case .boolean(let isUrgent)?: return isUrgent
    default:
      problems.append(FieldProblem("urgent", .wrongType, "is neither true nor false"))
      return false
    }
  }
}

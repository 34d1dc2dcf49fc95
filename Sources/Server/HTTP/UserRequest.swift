// The body of a question about a user: decodes JSON, or gives every reason why not.
import Base
import Intake
import JSON
import Projections

struct UserRequest {
  /// A body is a user and a place in a list.
  static let bodyBytesMax = 16 << 10
  /// The most purchases in one answer, and how many there are where the request does not say.
  static let limitMax = 100
  static let limitDefault = 20

  private let user: String
  private let after: PurchaseCursor?
  private let limit: Int

  /// Reads a body. Invalid JSON gets 400, JSON that is not a valid question 422. Unknown properties are skipped.
  init(_ body: [UInt8]) throws(HTTPAnswer) {
    let value = try Self.object(body)
    var problems: [FieldProblem] = []
    user = Self.user(value["user_identifier"], &problems)
    after = Self.after(value["after"], &problems)
    limit = Self.limit(value["limit"], &problems)
    guard problems.isEmpty else { throw HTTPAnswer(problems) }
  }

  /// The question that a path asks with this body; nil for a path that asks none.
  func question(_ route: Route, of appFamily: UUID16) -> UserQuestion? {
    switch route {
    case .purchases:
      UserQuestion(.purchases(after: after, limit: limit), user: user, appFamily: appFamily)
    case .entitlements: UserQuestion(.entitlements, user: user, appFamily: appFamily)
    default: nil
    }
  }

  // MARK: Properties

  /// The JSON object that a body is.
  static func object(_ body: [UInt8]) throws(HTTPAnswer) -> JSONValue {
    guard !body.isEmpty else { throw HTTPAnswer(400, .notJSON, "the body is empty") }
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(body) } catch {
      throw HTTPAnswer(400, .notJSON, "the body is not JSON: \(error)")
    }
    guard case .object = value else {
      throw HTTPAnswer([FieldProblem("", .wrongType, "is not a JSON object")])
    }
    return value
  }

  /// The user whom a body names; a problem where it names none.
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

// The body of a request to erase: decodes JSON, or gives every reason why not.
import Base
import Intake
import JSON
import Ledger

struct ErasureRequest {
  private let user: String
  private let reason: String
  private let isUrgent: Bool

  /// Reads a body. Invalid JSON gets 400, JSON that is not a valid request 422. Unknown properties are skipped.
  init(_ body: [UInt8]) throws(HTTPAnswer) {
    let value = try UserRequest.object(body)
    var problems: [FieldProblem] = []
    user = UserRequest.user(value["user_identifier"], &problems)
    reason = Self.reason(value["reason"], &problems)
    isUrgent = Self.isUrgent(value["urgent"], &problems)
    guard problems.isEmpty else { throw HTTPAnswer(problems) }
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

// How the stand-in misbehaves, and for how many calls.
import AppStore
import Base

/// One way to answer otherwise than the App Store should.
enum Behaviour: Sendable, Equatable {
  /// Answers so much later.
  case delay(ms: Int64)
  /// Does not answer for so long, then cuts the connection.
  case hang(ms: Int64)
  /// Closes the connection instead of an answer.
  case cut
  /// Closes it in the middle of the answer's body.
  case cutBody
  /// An HTTP status with a body that is no JSON.
  case httpStatus(Int)
  /// A status of verifyReceipt alone, with members to add (`"is_retryable":false`).
  case status(Int, members: [JSONValue.Member])
  /// An error of the App Store Server API; `retryAfter` is the value of that header.
  case apiError(code: Int, retryAfter: String?)
  /// 200, and a page of HTML.
  case notJSON
  /// 200, and no byte.
  case empty
  /// JSON whose members have types that no reply has.
  case wrongTypes
  /// Numbers and booleans are written as such, as some replies have them.
  case typed
  /// So many bytes of JSON.
  case huge(bytes: Int64)
  /// The answer's bytes over so long.
  case slowBody(ms: Int64)

  /// Whether the answer is the usual one, only altered.
  var isModifier: Bool {
    switch self {
    case .delay, .typed, .cutBody, .slowBody: true
    default: false
    }
  }
}

/// What of the stand-in is called: verifyReceipt in two environments, or the App Store Server API in both.
enum StandInEndpoint: String, Sendable, CaseIterable {
  case production, sandbox
  case serverAPI = "server_api"

  init(_ endpoint: AppStoreEndpoint) { self = endpoint == .production ? .production : .sandbox }
}

/// A behaviour with the calls that it holds for.
struct BehaviourRule: Sendable, Equatable {
  let name: String
  let behaviour: Behaviour
  /// Nil: all.
  let endpoint: StandInEndpoint?
  /// Calls that are left; nil until it is reset.
  var callsLeft: Int?
  /// Of a hundred calls.
  let percent: Int

  /// Whether it holds for a call; `number` counts the calls of all endpoints from 0.
  func holds(at endpoint: StandInEndpoint, number: Int) -> Bool {
    if let own = self.endpoint, own != endpoint { return false }
    if let callsLeft, callsLeft <= 0 { return false }
    // Spread evenly, and the same each time.
    return number * 37 % 100 < percent
  }
}

/// Why a control request was refused.
struct ControlError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

extension BehaviourRule {
  /// Reads `{"behaviour":"delay","ms":50,"count":10,"endpoint":"sandbox","percent":30}`.
  init(_ object: JSONValue, named name: String) throws(ControlError) {
    self.name = name
    behaviour = try Self.behaviour(name, object)
    callsLeft = try object.optionalInteger("count", 1...1_000_000_000).map { Int($0) }
    percent = Int(try object.optionalInteger("percent", 1...100) ?? 100)
    if let text = object["endpoint"] {
      guard let endpoint = text.stringValue.flatMap(StandInEndpoint.init(rawValue:)) else {
        throw ControlError("endpoint must be one of \"production\", \"sandbox\", \"server_api\"")
      }
      self.endpoint = endpoint
    } else {
      endpoint = nil
    }
  }

  private static func behaviour(
    _ name: String, _ object: JSONValue
  ) throws(ControlError) -> Behaviour {
    let hour: Int64 = 3_600_000
    switch name {
    case "delay": return .delay(ms: try object.integer("ms", 0...hour))
    case "hang": return .hang(ms: try object.optionalInteger("ms", 0...hour) ?? 60_000)
    case "cut": return .cut
    case "cut_body": return .cutBody
    case "http_status":
      return .httpStatus(Int(try object.optionalInteger("status", 200...599) ?? 503))
    case "status":
      let status = Int(try object.integer("status", 0...99_999))
      let extra = ["is_retryable", "is-retryable", "environment", "exception"]
      return .status(
        status,
        members: extra.compactMap { key in object[key].map { JSONValue.Member(key, $0) } })
    case "api_error":
      let code = Int(try object.optionalInteger("code", 4_000_000...5_999_999) ?? 5_000_000)
      let after = object["retry_after"] == nil ? nil : try object.text("retry_after")
      return .apiError(code: code, retryAfter: after)
    case "not_json": return .notJSON
    case "empty": return .empty
    case "wrong_types": return .wrongTypes
    case "typed": return .typed
    case "huge": return .huge(bytes: try object.optionalInteger("bytes", 64...1 << 40) ?? 64 << 20)
    case "slow_body": return .slowBody(ms: try object.integer("ms", 0...hour))
    default: throw ControlError("there is no behaviour \"\(name)\"")
    }
  }
}

extension JSONValue {
  func optionalInteger(
    _ key: String, _ range: ClosedRange<Int64>
  ) throws(ControlError) -> Int64? {
    guard let value = self[key] else { return nil }
    guard let number = value.integerValue, range.contains(number) else {
      throw ControlError(
        "\(key) must be an integer from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  func integer(_ key: String, _ range: ClosedRange<Int64>) throws(ControlError) -> Int64 {
    guard let number = try optionalInteger(key, range) else {
      throw ControlError("\(key) is missing")
    }
    return number
  }

  func text(_ key: String) throws(ControlError) -> String {
    guard let text = self[key]?.stringValue, !text.isEmpty else {
      throw ControlError("\(key) must be text")
    }
    return text
  }

  func flag(_ key: String) throws(ControlError) -> Bool {
    guard case .boolean(let value) = self[key] else {
      throw ControlError("\(key) is neither true nor false")
    }
    return value
  }
}

// All that can be changed while the stand-in runs, and what it has counted.
import Base

/// What one call is to get.
struct CallPlan: Sendable {
  let number: Int
  let memory: StoreMemory
  let nowMs: Int64
  /// In the order in which they were asked for; of those that replace the answer the first alone.
  let behaviours: [Behaviour]
}

struct StandInState: Sendable {
  var clock = Clock()
  var memory = StoreMemory()
  var rules: [BehaviourRule] = []
  /// Raised by `reset`: whoever hangs or waits from before then is let go.
  var resetCount = 0
  private(set) var calls: [StandInEndpoint: EndpointCounts] = [:]
  private(set) var callCount = 0
  private(set) var inFlight = 0
  private(set) var inFlightMost = 0
  /// What is left of the second's calls of the App Store Server API, by environment.
  var rates: [String: CallRate] = [:]
  /// Where notifications are to go from now on; nil where nothing was asked for.
  var notificationsAddress: PostAddress?
  /// Connections accepted.
  var connectionCount = 0

  struct EndpointCounts: Sendable {
    var total = 0
    var byStatus: [Int: Int] = [:]
    /// By the name of the call; of the App Store Server API alone.
    var byCall: [String: Int] = [:]
    /// By the name of the behaviour.
    var misbehaved: [String: Int] = [:]
  }

  /// - Parameter name: the call of the App Store Server API.
  mutating func beginCall(at endpoint: StandInEndpoint, _ name: String? = nil) -> CallPlan {
    var behaviours: [Behaviour] = []
    var isReplaced = false
    for index in rules.indices where rules[index].holds(at: endpoint, number: callCount) {
      let rule = rules[index]
      if !rule.behaviour.isModifier {
        if isReplaced { continue }
        isReplaced = true
      }
      behaviours.append(rule.behaviour)
      calls[endpoint, default: EndpointCounts()].misbehaved[rule.name, default: 0] += 1
      if let left = rule.callsLeft { rules[index].callsLeft = left - 1 }
    }
    rules.removeAll { $0.callsLeft == 0 }
    defer { callCount += 1 }
    calls[endpoint, default: EndpointCounts()].total += 1
    if let name { calls[endpoint, default: EndpointCounts()].byCall[name, default: 0] += 1 }
    inFlight += 1
    inFlightMost = max(inFlightMost, inFlight)
    return CallPlan(
      number: callCount, memory: memory, nowMs: clock.nowMs, behaviours: behaviours)
  }

  /// `status`: of verifyReceipt, or of HTTP at the App Store Server API; nil where the answer bore none.
  mutating func endCall(at endpoint: StandInEndpoint, status: Int?) {
    inFlight -= 1
    if let status { calls[endpoint, default: EndpointCounts()].byStatus[status, default: 0] += 1 }
  }

  /// Takes one of the second's calls of the App Store Server API; nil if there was one, else the time from which on
  /// there is, in epoch milliseconds.
  mutating func takeCall(of environment: String, callsPerSecond: Int?, nowMs: Int64) -> Int64? {
    guard let callsPerSecond else { return nil }
    var rate =
      rates[environment] ?? CallRate(callsPerSecond: callsPerSecond, nowMs: nowMs)
    defer { rates[environment] = rate }
    return rate.take(nowMs: nowMs)
  }

  /// Forgets what was asked for and counted; time stays where it was put.
  mutating func reset() {
    memory = StoreMemory()
    rules = []
    calls = [:]
    callCount = 0
    inFlightMost = inFlight
    connectionCount = 0
    resetCount += 1
  }

  /// The counters as JSON.
  var countsJSON: [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    json.key("calls")
    json.beginObject()
    for endpoint in StandInEndpoint.allCases {
      let counts = calls[endpoint] ?? EndpointCounts()
      json.key(endpoint.rawValue)
      json.beginObject()
      json.key("total")
      json.integer(counts.total)
      Self.write(
        "by_status", counts.byStatus.sorted { $0.key < $1.key }.map { (String($0.key), $0.value) },
        to: &json)
      if endpoint == .serverAPI {
        Self.write(
          "by_call", counts.byCall.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }, to: &json)
      }
      Self.write(
        "misbehaved", counts.misbehaved.sorted { $0.key < $1.key }.map { ($0.key, $0.value) },
        to: &json)
      json.endObject()
    }
    json.endObject()
    json.key("in_flight")
    json.integer(inFlight)
    json.key("in_flight_most")
    json.integer(inFlightMost)
    json.key("connections")
    json.integer(connectionCount)
    json.key("rules")
    json.integer(rules.count)
    json.key("now_ms")
    json.integer(clock.nowMs)
    json.endObject()
    return json.bytes
  }

  private static func write(
    _ key: StaticString, _ counts: [(String, Int)], to json: inout JSONWriter
  ) {
    json.key(key)
    json.beginObject()
    for (name, count) in counts {
      json.key(name)
      json.integer(count)
    }
    json.endObject()
  }
}

/// A clock that can be put forward.
struct Clock: Sendable {
  /// Milliseconds.
  var aheadMs: Int64 = 0

  /// Epoch milliseconds.
  var nowMs: Int64 { Timestamp.now() + aheadMs }
}

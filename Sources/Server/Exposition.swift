// The metrics as Prometheus reads them: text format 0.0.4.
import Base

extension Metrics {
  package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  /// Everything that was counted and measured so far.
  package func exposition() -> [UInt8] {
    let now = values.withLock { $0 }
    var text = ""
    for counter in Counter.allCases {
      text += Self.heading(counter.rawValue, "counter", counter.help)
      let counts = now.counters[counter] ?? [:]
      for (label, count) in counts.sorted(by: { $0.key < $1.key }) {
        text += "\(counter.rawValue)\(Self.labels(counter.labelName, label)) \(count)\n"
      }
    }
    for gauge in Gauge.allCases {
      text += Self.heading(gauge.rawValue, "gauge", gauge.help)
      text += "\(gauge.rawValue) \(Self.number(now.gauges[gauge] ?? 0))\n"
    }
    for histogram in Histogram.allCases {
      text += Self.heading(histogram.rawValue, "histogram", histogram.help)
      text += Self.lines(histogram.rawValue, now.histograms[histogram] ?? Distribution())
    }
    return Array(text.utf8)
  }

  private static func heading(_ name: String, _ type: String, _ help: String) -> String {
    "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
  }

  private static func labels(_ name: String?, _ value: String) -> String {
    guard let name, !value.isEmpty else { return "" }
    var escaped = ""
    for character in value.unicodeScalars {
      switch character {
      case "\\": escaped += "\\\\"
      case "\"": escaped += "\\\""
      case "\n": escaped += "\\n"
      default: escaped.unicodeScalars.append(character)
      }
    }
    return "{\(name)=\"\(escaped)\"}"
  }

  private static func lines(_ name: String, _ distribution: Distribution) -> String {
    var text = ""
    var total: UInt64 = 0
    for (index, count) in distribution.counts.enumerated() {
      total += count
      let bound = index < bucketSeconds.count ? number(bucketSeconds[index]) : "+Inf"
      text += "\(name)_bucket{le=\"\(bound)\"} \(total)\n"
    }
    return text + "\(name)_sum \(number(distribution.sumSeconds))\n\(name)_count \(total)\n"
  }

  private static func number(_ value: Double) -> String {
    if value == .infinity { return "+Inf" }
    if value == -.infinity { return "-Inf" }
    if value.isNaN { return "NaN" }
    let whole = value.rounded(.towardZero)
    return value == whole && abs(value) < 1e15 ? String(Int64(value)) : String(value)
  }
}

extension Metrics.Counter {
  var help: String {
    switch self {
    case .requests: "Requests answered over HTTP."
    case .uploads: "Uploads accepted over HTTP."
    case .forgeries: "Uploads that are frauds by themselves, by how much of them is kept."
    case .questions: "Questions about users over HTTP."
    case .notifications: "Notifications of the App Store that were answered."
    case .appendedEvents: "Events appended to the log."
    case .appStoreCalls: "Calls to the App Store."
    case .alarms: "Problems that an operator must fix."
    case .webhookDeliveries: "Attempts to deliver to webhooks."
    case .syncCalls: "Calls of the App Store Server API."
    case .syncNotifications: "Notifications that a synchronization found missing, and appended."
    case .syncHistories: "Histories of customers that were fetched to their end."
    case .erasuresDone: "Requests to erase that were carried out."
    case .redactedEvents: "Events that lost data in an erasure."
    case .replicationSteps: "Steps of the copy that were confirmed."
    case .replicationBytes: "Bytes that were stored in the copy."
    case .replicationLost: "Objects and steps of the copy that were found missing or wrong."
    }
  }

  /// Nil for a counter without labels.
  var labelName: String? {
    switch self {
    case .requests: "status"
    case .uploads: "kind"
    case .forgeries: "kept"
    case .questions: "result"
    case .notifications: "result"
    case .appendedEvents: nil
    case .appStoreCalls: "outcome"
    case .alarms: "alarm"
    case .webhookDeliveries: "result"
    case .syncCalls: "result"
    case .syncNotifications, .syncHistories, .erasuresDone, .redactedEvents,
      .replicationSteps, .replicationBytes, .replicationLost:
      nil
    }
  }
}

extension Metrics.Gauge {
  var help: String {
    switch self {
    case .queueLength: "Receipts that wait for a reply from the App Store."
    case .queueAgeSeconds: "How long the oldest receipt in the queue has waited."
    case .headPosition: "Number of events in the log."
    case .projectionLag: "Events that the projections have not folded yet."
    case .unsealedBytes: "Bytes of full tails not yet sealed."
    case .ready: "1 while an upload would be accepted."
    case .connections: "Open HTTP connections."
    case .bodyBytes: "Bytes of request bodies in memory."
    case .answerBytes: "Bytes of responses in memory that clients have not read yet."
    case .appStoreCallsInFlight: "Calls to the App Store in progress."
    case .circuitOpen: "1 while the circuit breaker for the App Store is open."
    case .undeclaredProducts: "Products that are sold but not declared by their apps."
    case .clockSetBackSeconds:
      "The most that the clock was behind the last event's time, since the start."
    case .webhookWaiting: "Deliveries to webhooks that have not succeeded yet."
    case .webhookLag: "Events after the oldest one that a webhook has not been told of."
    case .webhooksDisabled: "Webhooks to which nothing is sent until an operator acts."
    case .syncEndSeconds:
      "When a whole synchronization with the App Store last ended well, in epoch seconds."
    case .erasuresWaiting: "Requests to erase that are not done."
    case .replicationLagBytes: "Bytes of the log that the copy does not hold yet."
    case .replicationLagEvents: "Events that the copy does not hold yet."
    case .replicationLagSeconds: "How long the oldest event has waited for the copy."
    case .replicationSize: "Number of events that the copy holds."
    case .replicationUp: "1 while the copy's store answers."
    case .replicationReplaced: "Objects of the copy that were replaced and are not deleted yet."
    case .replicationMissing: "Objects and steps that the copy is known to lack."
    case .replicationWhole: "When the copy was last found whole; 0 before that."
    }
  }
}

extension Metrics.Histogram {
  var help: String {
    switch self {
    case .requestSeconds: "From a request line to the end of its response."
    case .commitSeconds: "How long a durable append took."
    case .appStoreSeconds: "How long a call to the App Store took."
    }
  }
}

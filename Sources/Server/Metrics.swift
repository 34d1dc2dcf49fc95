// Counts and times of a running server, exposed for Prometheus.
import Base

/// Counters, gauges and histograms. Safe to use from several threads at once.
package final class Metrics: Sendable {
  /// Values that only grow. A label's values are few and fixed: never an id, a path or an address.
  package enum Counter: String, CaseIterable, Sendable {
    case requests = "receipt_ledger_http_requests_total"
    case uploads = "receipt_ledger_uploads_total"
    case forgeries = "receipt_ledger_forgeries_total"
    case questions = "receipt_ledger_questions_total"
    case notifications = "receipt_ledger_notifications_total"
    case appendedEvents = "receipt_ledger_appended_events_total"
    case appStoreCalls = "receipt_ledger_app_store_calls_total"
    case alarms = "receipt_ledger_operator_alarms_total"
    case webhookDeliveries = "receipt_ledger_webhook_deliveries_total"
    case syncCalls = "receipt_ledger_app_store_sync_calls_total"
    case syncNotifications = "receipt_ledger_app_store_sync_notifications_total"
    case syncHistories = "receipt_ledger_app_store_sync_histories_total"
    case erasuresDone = "receipt_ledger_erasures_done_total"
    case redactedEvents = "receipt_ledger_redacted_events_total"
    case replicationSteps = "receipt_ledger_replication_steps_total"
    case replicationBytes = "receipt_ledger_replication_bytes_total"
    case replicationLost = "receipt_ledger_replication_lost_objects_total"

    /// What it counts; the name of its label, nil without one; and the labels that alerts use. They are 0 from the
    /// start: to increase() and rate() a series that begins at 1 has not grown.
    var description: (help: String, label: String?, watched: [String]) {
      switch self {
      case .requests: ("Requests answered over HTTP.", "status", ["401", "402", "503"])
      case .uploads: ("Uploads accepted over HTTP.", "kind", UploadKind.allCases.map(\.rawValue))
      case .forgeries:
        (
          "Uploads that are frauds by themselves, by how much of them is kept.", "kept",
          ForgeryKept.allCases.map(\.rawValue)
        )
      case .questions:
        ("Questions about users over HTTP.", "result", QuestionResult.allCases.map(\.rawValue))
      case .notifications:
        (
          "Notifications of the App Store that were answered.", "result",
          NotificationResult.allCases.map(\.rawValue)
        )
      case .appendedEvents: ("Events appended to the log.", nil, [""])
      case .appStoreCalls: ("Calls to the App Store.", "outcome", [])
      case .alarms:
        ("Problems that an operator must fix.", "alarm", OperatorAlarm.allCases.map(\.metricLabel))
      case .webhookDeliveries:
        ("Attempts to deliver to webhooks.", "result", ["delivered", "failed", "gone"])
      case .syncCalls:
        (
          "Calls of the App Store Server API.", "result",
          ["unauthorized", "unreachable", "refused"]
        )
      case .syncNotifications:
        ("Notifications that a synchronization found missing, and appended.", nil, [""])
      case .syncHistories: ("Histories of customers that were fetched to their end.", nil, [""])
      case .erasuresDone: ("Requests to erase that were carried out.", nil, [""])
      case .redactedEvents: ("Events that lost data in an erasure.", nil, [""])
      case .replicationSteps: ("Steps of the copy that were confirmed.", nil, [""])
      case .replicationBytes: ("Bytes that were stored in the copy.", nil, [""])
      case .replicationLost:
        ("Objects and steps of the copy that were found missing or wrong.", nil, [""])
      }
    }
  }

  /// The content of an upload.
  package enum UploadKind: String, CaseIterable, Sendable {
    case receipt
    case signedTransactions = "signed_transactions"
  }

  /// How much is kept of an upload that is fraudulent by itself.
  package enum ForgeryKept: String, CaseIterable, Sendable {
    case whole
    /// The digest and facts of its receipt.
    case reduced
    /// Nothing: the client is asked to send it again.
    case refused
  }

  /// The result of a question about a user.
  package enum QuestionResult: String, CaseIterable, Sendable {
    case answered
    /// The user has too many purchases.
    case refused
    /// Too much was in progress, or the response could not be read.
    case unavailable
  }

  /// Values that rise and fall.
  package enum Gauge: String, CaseIterable, Sendable {
    case queueLength = "receipt_ledger_verification_queue_receipts"
    case queueAgeSeconds = "receipt_ledger_verification_queue_oldest_seconds"
    case headPosition = "receipt_ledger_head_position"
    case projectionLag = "receipt_ledger_projection_lag_events"
    case unsealedBytes = "receipt_ledger_unsealed_tails_bytes"
    case ready = "receipt_ledger_ready"
    case connections = "receipt_ledger_http_connections"
    case bodyBytes = "receipt_ledger_http_body_bytes"
    case answerBytes = "receipt_ledger_http_answer_bytes"
    case appStoreCallsInFlight = "receipt_ledger_app_store_calls_in_flight"
    case circuitOpen = "receipt_ledger_app_store_circuit_open"
    case undeclaredProducts = "receipt_ledger_undeclared_products"
    case clockSetBackSeconds = "receipt_ledger_clock_set_back_seconds"
    case webhookWaiting = "receipt_ledger_webhook_waiting_deliveries"
    case webhookLag = "receipt_ledger_webhook_lag_events"
    case webhooksDisabled = "receipt_ledger_webhooks_disabled"
    case syncEndSeconds = "receipt_ledger_app_store_sync_end_timestamp_seconds"
    case erasuresWaiting = "receipt_ledger_erasures_waiting"
    case replicationLagBytes = "receipt_ledger_replication_lag_bytes"
    case replicationLagEvents = "receipt_ledger_replication_lag_events"
    case replicationLagSeconds = "receipt_ledger_replication_lag_seconds"
    case replicationSize = "receipt_ledger_replication_confirmed_events"
    case replicationUp = "receipt_ledger_replication_up"
    case replicationReplaced = "receipt_ledger_replication_replaced_objects"
    case replicationMissing = "receipt_ledger_replication_missing_objects"
    case replicationWhole = "receipt_ledger_replication_whole_timestamp_seconds"
  }

  /// How long something took, in seconds.
  package enum Histogram: String, CaseIterable, Sendable {
    case requestSeconds = "receipt_ledger_http_request_seconds"
    case commitSeconds = "receipt_ledger_commit_seconds"
    case appStoreSeconds = "receipt_ledger_app_store_call_seconds"
  }

  /// Upper bounds of the histograms' buckets, in seconds.
  package static let bucketSeconds: [Double] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
  ]

  struct Values {
    var counters: [Counter: [String: UInt64]] = Dictionary(
      uniqueKeysWithValues: Counter.allCases.map { counter in
        (counter, Dictionary(uniqueKeysWithValues: counter.description.watched.map { ($0, 0) }))
      })
    var gauges: [Gauge: Double] = [:]
    var histograms: [Histogram: Distribution] = [:]
  }

  struct Distribution {
    /// One for each bound, and one for larger values.
    var counts = [UInt64](repeating: 0, count: Metrics.bucketSeconds.count + 1)
    var sumSeconds = 0.0
  }

  let values = Monitor(Values())

  package init() {}

  /// Adds to a counter.
  package func count(_ counter: Counter, label: String = "", by amount: Int = 1) {
    precondition(amount >= 0, "a counter never falls")
    values.withLock { $0.counters[counter, default: [:]][label, default: 0] += UInt64(amount) }
  }

  /// Sets a gauge.
  package func set(_ gauge: Gauge, _ value: Double) {
    values.withLock { $0.gauges[gauge] = value }
  }

  /// Records how long something took.
  package func observe(_ histogram: Histogram, seconds: Double) {
    let bucket = Metrics.bucketSeconds.firstIndex { seconds <= $0 } ?? Metrics.bucketSeconds.count
    values.withLock { values in
      values.histograms[histogram, default: Distribution()].counts[bucket] += 1
      values.histograms[histogram, default: Distribution()].sumSeconds += seconds
    }
  }
}

// MARK: - Exposition

extension Metrics {
  package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  /// Everything that was counted and measured so far, in Prometheus's text format 0.0.4.
  package func exposition() -> [UInt8] {
    let now = values.withLock { $0 }
    var text = ""
    for counter in Counter.allCases {
      text += Self.heading(counter.rawValue, "counter", counter.description.help)
      let counts = now.counters[counter] ?? [:]
      for (label, count) in counts.sorted(by: { $0.key < $1.key }) {
        text += "\(counter.rawValue)\(Self.labels(counter.description.label, label)) \(count)\n"
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
    for (metric, value) in ProcessMetric.current() {
      text += Self.heading(metric.rawValue, metric.type, metric.help)
      text += "\(metric.rawValue) \(Self.number(value))\n"
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
    case .webhookLag: "Events after the oldest one that was not delivered to a webhook."
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

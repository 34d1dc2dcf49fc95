// What a run came to: latencies in a histogram, and the report.
import Base

struct Report {
  let result: LoadResult

  private static let quantiles: [(name: String, perMillion: UInt64)] = [
    ("p50", 500_000), ("p90", 900_000), ("p99", 990_000), ("p99_9", 999_000),
  ]

  private var perSecond: UInt64 {
    let ms = max(result.durationNs / 1_000_000, 1)
    return result.answeredCount * 1000 / ms
  }

  var json: String {
    var json = JSONWriter()
    func field(_ key: StaticString, _ value: some FixedWidthInteger) {
      json.key(key)
      json.integer(value)
    }
    json.beginObject()
    field("planned", result.planned)
    field("sent", result.sent)
    field("answered", result.answeredCount)
    field("unanswered", result.unanswered)
    json.key("by_status")
    json.beginObject()
    for (status, count) in result.answered.enumerated() where count > 0 {
      json.key(String(status))
      json.integer(count)
    }
    json.endObject()
    json.key("latency_us")
    json.beginObject()
    for quantile in Self.quantiles {
      json.key(quantile.name)
      json.integer(result.latency.quantileUs(perMillion: quantile.perMillion))
    }
    field("max", result.latency.maxUs)
    field("mean", result.latency.meanUs)
    json.endObject()
    field("sent_late", result.sentLate)
    field("answers_per_second", perSecond)
    field("duration_ms", result.durationNs / 1_000_000)
    field("connections_made", result.connectionsMade)
    field("connections_failed", result.connectionsFailed)
    field("own_processor_ms", result.processorMs)
    json.endObject()
    return String(decoding: json.bytes, as: UTF8.self) + "\n"
  }

  var table: String {
    func milliseconds(_ us: UInt64) -> String {
      let hundredths = (us + 5) / 10
      let rest = hundredths % 100
      return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest) ms"
    }
    var rows: [(String, String)] = [
      ("planned", String(result.planned)), ("sent", String(result.sent)),
      ("answered", String(result.answeredCount)),
    ]
    for (status, count) in result.answered.enumerated() where count > 0 {
      rows.append(("  \(status)", String(count)))
    }
    rows.append(("unanswered", String(result.unanswered)))
    rows.append(("sent more than 2 ms late", String(result.sentLate)))
    rows.append(("answers a second", String(perSecond)))
    for quantile in Self.quantiles {
      let value = result.latency.quantileUs(perMillion: quantile.perMillion)
      rows.append(
        (
          "latency " + quantile.name.split(separator: "_").joined(separator: "."),
          milliseconds(value)
        ))
    }
    rows.append(("latency max", milliseconds(result.latency.maxUs)))
    rows.append(
      ("connections made, failed", "\(result.connectionsMade), \(result.connectionsFailed)"))
    rows.append(("duration", milliseconds(result.durationNs / 1_000)))
    rows.append(("own processor time", "\(result.processorMs) ms"))
    let width = rows.map { $0.0.utf8.count }.max() ?? 0
    return rows.map { name, value in
      name + String(repeating: " ", count: width - name.utf8.count + 2) + value + "\n"
    }.joined()
  }
}

/// A histogram of microseconds, from 0 to about 19 hours; what is longer counts as that.
package struct Histogram: Sendable {
  /// Values of one power of two fall into so many buckets.
  private static let bucketsPerOctave = 128
  private static let octaves = 30
  private static let capUs = UInt64(bucketsPerOctave) << (octaves - 1) - 1

  private var counts = [UInt64](repeating: 0, count: bucketsPerOctave * octaves)
  package private(set) var total: UInt64 = 0
  package private(set) var maxUs: UInt64 = 0
  private var sumUs: UInt64 = 0

  package init() {}

  package mutating func record(us: UInt64) {
    counts[Self.bucket(min(us, Self.capUs))] += 1
    total += 1
    maxUs = max(maxUs, us)
    sumUs &+= us
  }

  package var meanUs: UInt64 { total == 0 ? 0 : sumUs / total }

  /// The value that so many of a million are at most (rounded up to its bucket's end); 0 if empty.
  package func quantileUs(perMillion: UInt64) -> UInt64 {
    if total == 0 { return 0 }
    let (high, low) = total.multipliedFullWidth(by: perMillion)
    let product = UInt64(1_000_000).dividingFullWidth((high, low))
    let rank = max(product.quotient + (product.remainder > 0 ? 1 : 0), 1)
    var seen: UInt64 = 0
    for (index, count) in counts.enumerated() where count > 0 {
      seen += count
      if seen >= rank { return min(Self.lastValue(of: index), maxUs) }
    }
    return maxUs
  }

  private static func bucket(_ us: UInt64) -> Int {
    let width = UInt64.bitWidth - us.leadingZeroBitCount
    // The first two octaves have buckets of one microsecond.
    let shift = max(width - 8, 0)
    return shift * bucketsPerOctave + Int(us >> UInt64(shift))
  }

  private static func lastValue(of bucket: Int) -> UInt64 {
    if bucket < 2 * bucketsPerOctave { return UInt64(bucket) }
    let shift = bucket / bucketsPerOctave - 1
    let leading = UInt64(bucket - shift * bucketsPerOctave)
    return (leading + 1) << UInt64(shift) - 1
  }
}

// `--as-of`: a moment in the ledger's history, and the books as they were known then.
import Base
import Ledger
import Projections

/// A moment, what was recorded in it included.
enum PointInTime: Equatable, Sendable {
  /// After the event at this position.
  case position(Int)
  /// Once all was recorded that has this time, or an earlier one.
  case recordedAtMs(Int64)

  /// Reads a position, a day (UTC), whose end is meant, or an RFC 3339 time, of which the millisecond counts.
  init?(_ text: String) {
    if let position = positionValue(text) {
      self = .position(position)
    } else if let day = try? CivilDate(parsing: text) {
      self = .recordedAtMs(Int64(day.dayNumber) * Timestamp.dayMs + Timestamp.dayMs - 1)
    } else if let timeMs = try? Timestamp.parse(text, cutsDecimals: true) {
      self = .recordedAtMs(timeMs)
    } else {
      return nil
    }
  }
}

extension Option {
  static let asOf = Option(
    "as-of", value: .init("PLACE"),
    help:
      "the books as they were known after the event at a position, at the end of a day (UTC), or at an "
      + "RFC 3339 time, by the times at which events were recorded")
}

extension Invocation {
  /// The moment that an option names.
  func moment(_ name: String) throws(UsageError) -> PointInTime? {
    try value(name, "is no position, no day and no RFC 3339 time", read: PointInTime.init)
  }
}

extension OpenLedger {
  /// How many events had been recorded at a moment. A position must be there; a time that is not over yet is
  /// taken, and that is said.
  func size(at moment: PointInTime, _ option: String) throws -> Int {
    try reader.refresh()
    switch moment {
    case .position(let position):
      guard position < reader.head.size else {
        if let damage = reader.damage { throw damage }
        throw Failure(
          operation: "find position", object: "--\(option) \(position)",
          cause: reader.head.size == 0
            ? "the log is empty" : "the last position is \(reader.head.size - 1)")
      }
      return position + 1
    case .recordedAtMs(let timeMs):
      // What lies behind the damage may have been recorded before that time.
      if timeMs >= reader.head.lastEventAtMs, let damage = reader.damage { throw damage }
      if timeMs > Timestamp.now() {
        say(
          "--\(option): this time is not over yet; what is recorded until then is not in the books")
      }
      let size = try reader.firstPosition(recordedFromMs: timeMs + 1)
      if size == 0 { say("--\(option): \(try nothingRecorded())") }
      return size
    }
  }

  /// What is said of a moment before the first event. Imported history is older than its recording.
  private func nothingRecorded() throws -> String {
    guard reader.head.size > 0,
      let first = try reader.event(at: 0).withUnsafeBytes({ EventLine($0)?.recordedAtMs })
    else { return "nothing had been recorded by then" }
    return "nothing had been recorded by then: the first event was recorded at \(timeText(first))"
  }

  /// The projections as they were known at a moment; without one, brought up to date.
  func projections(asOf moment: PointInTime?) throws -> Database {
    guard let moment else { return try projections() }
    return try projector().books(at: try size(at: moment, "as-of"))
  }

  /// Questions to the projections as they were known at a moment; without one, brought up to date.
  func queries(asOf moment: PointInTime?) throws -> LedgerQueries {
    guard moment != nil else { return try queries() }
    let reader = reader
    return try LedgerQueries(try projections(asOf: moment)) { try reader.event(at: $0) }
  }
}

// `--as-of`, `--since`, `--until`: a point in time and its projections; and the lookups of an import.
import Base
import Intake
import Ledger
import Projections

/// A point in time, including what was recorded at it.
enum PointInTime: Equatable, Sendable {
  /// After the event at this position.
  case position(Int)
  /// After all events recorded at this time or earlier.
  case recordedAtMs(Int64)
  /// After the events behind the report whose manifest is at this path.
  case manifest(path: String)

  /// The message for a value that is none of these.
  static let problem = "is not a position, a day, an RFC 3339 time or the file of a manifest"

  /// Parses a position, a day (UTC) for its end, an RFC 3339 time, truncated to the millisecond, or the path of a
  /// manifest: any text that contains a `/` or ends in `.json`.
  init?(_ text: String) {
    if text.contains("/") || text.hasSuffix(".json") {
      self = .manifest(path: text)
    } else if let position = positionValue(text) {
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
    "as-of", value: .init("POINT"),
    help:
      "the state at a position, at the end of a day (UTC), at an RFC 3339 time or of a manifest's "
      + "file, by the times at which events were recorded")
}

extension Invocation {
  /// The point in time of `--as-of`; nil for the present.
  func asOf() throws(UsageError) -> PointInTime? { try moment("as-of") }

  /// The point in time that an option names.
  func moment(_ name: String) throws(UsageError) -> PointInTime? {
    try value(name, PointInTime.problem, read: PointInTime.init)
  }
}

extension OpenLedger {
  /// How many events had been recorded at a point in time. A position must exist; a future time is accepted, with a
  /// warning. The events that a manifest names must be the log's.
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
      // Events after the damage may have been recorded before that time.
      if timeMs >= reader.head.lastEventAtMs, let damage = reader.damage { throw damage }
      if timeMs > Timestamp.now() {
        log("--\(option): this time is in the future; events recorded until then are not included")
      }
      let size = try reader.firstPosition(recordedFromMs: timeMs + 1)
      if size == 0 { log("--\(option): \(try nothingRecorded())") }
      return size
    case .manifest(let path):
      let head = try ManifestHead(path: path)
      try head.check(
        directory.identity, reader, operation: "find position",
        object: "--\(option) \(ShownArgument.text(path))")
      return head.size
    }
  }

  /// The note for a point in time before the first event. Imported history is older than its recording.
  private func nothingRecorded() throws -> String {
    guard reader.head.size > 0,
      let first = try reader.event(at: 0).withUnsafeBytes({ EventLine($0)?.recordedAtMs })
    else { return "no event was recorded by then" }
    return "no event was recorded by then; the first one was recorded at \(timeText(first))"
  }

  /// The projections as of a point in time; without one, brought up to date.
  func projections(asOf moment: PointInTime?) throws -> Database {
    guard let moment else { return try projections() }
    return try projector().books(at: try size(at: moment, "as-of"))
  }

  /// Queries on the projections as of a point in time; without one, brought up to date.
  func queries(asOf moment: PointInTime?) throws -> LedgerQueries {
    guard moment != nil else { return try queries() }
    let reader = reader
    return try LedgerQueries(try projections(asOf: moment)) { try reader.event(at: $0) }
  }
}

// MARK: - Lookups of an import

/// Known lines, known notifications and app families from the projections. If they cannot be read, the import ends:
/// what may be known must not be appended again.
final class Lookup: KnownLines, KnownNotifications, AppFamilies {
  private let lookup: IntakeLookup
  /// The first failure; after it, every result prevents an append.
  private(set) var failure: DatabaseError?
  private let stop: StopFlag

  init(_ lookup: IntakeLookup, stop: StopFlag) {
    self.lookup = lookup
    self.stop = stop
  }

  func contains(_ digest: SHA256Digest) -> Bool {
    do throws(DatabaseError) { return try lookup.containsLine(digest) } catch {
      record(error)
      return true
    }
  }

  func contains(notificationUUID: String) -> Bool {
    do throws(DatabaseError) { return try lookup.containsNotification(notificationUUID) } catch {
      record(error)
      return true
    }
  }

  func id(forBundleID bundleID: String) -> String? {
    do throws(DatabaseError) { return try lookup.appFamilyID(ofBundle: bundleID) } catch {
      record(error)
      return nil
    }
  }

  func appAppleID(ofFamily id: String) -> Int64? {
    do throws(DatabaseError) { return try lookup.appAppleID(ofFamily: id) } catch {
      record(error)
      return nil
    }
  }

  private func record(_ error: DatabaseError) {
    if failure == nil { failure = error }
    stop.set()
  }
}

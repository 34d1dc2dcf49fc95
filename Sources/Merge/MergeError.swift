// Why ledgers cannot be merged.
package import Base
package import Ledger

/// Why a merge was refused or ended.
package enum MergeError: ReportableError, Equatable, CustomStringConvertible {
  /// A source is itself a merged ledger.
  case mergedSource(String)
  /// Two sources are one ledger, or have one name.
  case sameLedger(String, String)
  /// The ledger to merge into has events of its own.
  case notMerged(String)
  /// Other sources than in the earlier runs.
  case otherSources(missing: [String], joined: [String])
  /// A source no longer begins with the events that an earlier run took.
  case otherHistory(origin: String, size: Int)
  /// A source has an event before a time up to which all was merged.
  case lateEvent(origin: String, position: Position, beforeMs: Int64)
  /// Users were told apart by another prefix.
  case otherPrefix(origin: String)
  /// App families that were merged apart share a bundle id by now.
  case joinedFamilies(String, String)
  /// A source has no events: nothing says up to which time all is known.
  case emptySource(String)
  /// What an unfinished run wrote is not what the sources say now.
  case otherRun(position: Position)
  case unreadableEvent(origin: String, position: Position, EventError)
  case tooLarge(origin: String, position: Position)
  /// A line lost its data, and the log has no erasure that says so.
  case unprovenRedaction(origin: String, position: Position)
  /// The merged ledger holds an event that no run has written.
  case unknownEvent(position: Position)
  /// A prefix was given for a ledger that is not merged.
  case unknownOrigin(String)

  package var exitCode: ExitCode {
    switch self {
    case .mergedSource, .sameLedger, .notMerged, .emptySource, .tooLarge: .failed
    case .unprovenRedaction, .unknownEvent: .corrupted
    case .unknownOrigin: .usage
    case .otherSources, .otherHistory, .lateEvent, .otherPrefix, .joinedFamilies, .otherRun:
      .mismatch
    case .unreadableEvent(_, _, let error): error.isOfLaterProgram ? .newerFormat : .failed
    }
  }

  package var hint: String? {
    exitCode == .mismatch ? "Merge into a new directory." : nil
  }

  package var description: String {
    switch self {
    case .mergedSource(let path): "\(path): it is itself merged from other ledgers"
    case .sameLedger(let one, let other): "\(one) and \(other) have the same origin or id"
    case .notMerged(let path): "\(path): it is a ledger that was not merged from others"
    case .otherSources(let missing, let joined):
      (missing.map { "\($0) was merged before and is not given" }
        + joined.map { "\($0) was not part of earlier merges" }).joined(separator: "; ")
    case .otherHistory(let origin, let size):
      "\(origin): its first \(size) events are not those that were merged"
    case .lateEvent(let origin, let position, let beforeMs):
      "\(origin): position \(position) was recorded before \(Timestamp.text(ms: beforeMs)), up to "
        + "which all was merged"
    case .otherPrefix(let origin): "\(origin): its users were merged with another prefix"
    case .joinedFamilies(let one, let other):
      "the app families \(one) and \(other) were merged as two and share a bundle id now"
    case .emptySource(let origin):
      "\(origin): it has no events; --until says up to which time the others are merged"
    case .otherRun(let position):
      "an unfinished run wrote another event at position \(position) than the ledgers give now"
    case .unreadableEvent(let origin, let position, let error):
      "\(origin): position \(position): \(error)"
    case .unprovenRedaction(let origin, let position):
      "\(origin): position \(position): its data is missing, and no erasure says so"
    case .unknownEvent(let position):
      "position \(position): the merged ledger holds an event that no source has"
    case .unknownOrigin(let origin): "--user-prefix: no ledger given has the origin \(origin)"
    case .tooLarge(let origin, let position):
      "\(origin): position \(position): merged, its line would be larger than an event may be"
    }
  }
}

// How far a ledger's copy is, as `status` shows it.
import Base
import Ledger
import Replication
import Server

/// What a ledger knows of its copy. The store is not asked.
struct CopyStanding {
  private let target: String?
  private let mode: String?
  /// Whether config.json can't be used: whether there is to be a copy is then unknown.
  private let isUnknown: Bool
  private let recorded: ReplicationRecord?
  private let standby: Standby?
  private let size: Int
  /// How many bytes of the log the copy does not hold.
  private let lagBytes: Int
  private let oldestAtMs: Int64?

  /// Nil if there is no copy, was none, and the ledger may be written to.
  init?(_ ledger: OpenLedger) throws {
    let directory = ledger.directory
    let configuration: Configuration.Replication?
    do throws(ConfigurationError) {
      configuration = try ConfigurationFile(directory).read().replication
      isUnknown = false
    } catch {
      configuration = nil
      isUnknown = true
    }
    recorded = try ReplicationRecord(of: directory)
    standby = try Standby(of: directory)
    if configuration == nil, recorded == nil, standby == nil { return nil }
    target = configuration?.target
    mode = configuration?.mode.rawValue
    let reader = ledger.reader
    size = reader.head.size
    let confirmed = min(recorded?.size ?? 0, size)
    lagBytes = try reader.byteCount(from: confirmed)
    oldestAtMs =
      confirmed == size
      ? nil
      : try reader.event(at: confirmed).withUnsafeBytes { EventLine($0)?.recordedAtMs }
  }

  private var lag: Int { max(0, size - (recorded?.size ?? 0)) }
  private var lagSeconds: Int64 { oldestAtMs.map { max(0, Timestamp.now() - $0) / 1000 } ?? 0 }

  var fields: Fields {
    var fields: Fields = []
    switch standby?.reason {
    case .restored:
      fields.append(
        ("standby", "restored from step \(standby?.step ?? 0) of a copy; nothing may be appended"))
    case .fenced:
      fields.append(
        (
          "standby",
          "another writer has taken over with step \(standby?.step ?? 0), epoch \(standby?.epoch ?? 0)"
        ))
    case nil: break
    }
    if isUnknown, recorded != nil {
      fields.append(
        ("copy", "unknown: 'ledgerctl config check' says what is wrong with config.json"))
    }
    guard let target else { return fields }
    fields.append(("copy", "\(target), \(mode ?? "")"))
    if let recorded, let step = recorded.step {
      let state =
        lag == 0
        ? "all events"
        : "\(recorded.size) of \(counted(size, "event")), \(sizeText(lagBytes)) and \(lagSeconds) s behind"
      fields.append(("confirmed", "\(state) (step \(step), epoch \(recorded.epoch))"))
      fields.append(("found whole", recorded.wholeAtMs.map(timeText) ?? "not yet"))
    } else {
      fields.append(("confirmed", "nothing yet"))
    }
    return fields
  }

  var record: Record {
    [
      "target": target, "mode": mode, "epoch": recorded?.epoch, "step": recorded?.step,
      "confirmed_events": recorded?.size, "lag_events": lag, "lag_bytes": lagBytes,
      "lag_seconds": Int(lagSeconds), "whole_at": recorded?.wholeAtMs.map(timeText),
      "standby": standby?.reason.rawValue,
    ]
  }
}

// The options that name a copy, the store behind them, and the state of a copy for `status`.
import Base
import Ledger
import Replication
import Server

extension Option {
  /// The option for the copy.
  static func copy(_ name: String, isRequired: Bool = false, help: String) -> Option {
    Option(name, value: .init("TARGET"), isRequired: isRequired, help: help)
  }

  /// What S3 needs in addition to the target.
  static let copyAccess = [
    Option("endpoint", value: .init("URL"), help: "of S3: the server's URL, if it is not Amazon's"),
    Option("region", value: .init("NAME"), help: "of S3: the region"),
    Option(
      "credentials-file", value: .init("FILE"),
      help: "of S3: a file with mode 0600, as docs/replication.md describes it"),
  ]
}

extension Invocation {
  /// The copy that an option names; nil if it is not given.
  func givenCopy(_ option: String) throws -> Configuration.Replication? {
    guard let target = value(option) else {
      for name in ["endpoint", "region", "credentials-file"] where has(name) {
        throw UsageError("--\(name)", "requires --\(option)", command: command.name)
      }
      return nil
    }
    do throws(Configuration.Replication.ArgumentFault) {
      return try Configuration.Replication(
        argument: target, option: option, endpoint: value("endpoint"), region: value("region"),
        credentialsFile: value("credentials-file"))
    } catch {
      // A file may be missing, or be wrong; all else is wrong on its face.
      if error.option == "credentials-file" {
        throw Failure(operation: command.name, object: "--\(error.option)", cause: error.cause)
      }
      throw UsageError("--\(error.option)", error.cause, command: command.name)
    }
  }

  /// The copy that an option names, otherwise the copy of `config.json`.
  func copy(_ option: String, of directory: LedgerDirectory) throws -> Configuration.Replication {
    if let given = try givenCopy(option) { return given }
    if let configured = try ConfigurationFile(directory).read().replication { return configured }
    throw Failure(
      operation: command.name, object: "config.json",
      cause: "it names no copy (replication); give --\(option) TARGET")
  }
}

extension Context {
  private static let watchMs: Int64 = 100

  /// Calls `body` with a copy's store. A signal ends the calls in progress.
  func withStore<Result>(
    _ copy: Configuration.Replication, _ body: (RetryingStore) throws -> Result
  ) throws -> Result {
    let store: RetryingStore
    do { store = RetryingStore(try copy.store()) } catch {
      throw Failure(operation: "open store", object: copy.target, cause: error.cause)
    }
    let isDone = Monitor(false, conditionCount: 1)
    let interruption = interruption
    let watch = try WorkerThread.start {
      while !interruption.isRequested {
        let done = isDone.wait(on: 0, limitMs: Self.watchMs) { $0 ? true : nil }
        if done == true { return }
      }
      store.cancel()
    }
    defer {
      isDone.withLock { $0 = true }
      isDone.broadcast(0)
      watch.join()
    }
    do { return try body(store) } catch {
      if interruption.isRequested { throw Interrupted() }
      throw error
    }
  }
}

/// Progress that several threads report.
final class SharedProgress: Sendable {
  private nonisolated(unsafe) let progress: Progress
  private let turn = Monitor(())

  init(_ label: String, context: Context) {
    progress = Progress(label, unit: .bytes, context: context)
  }

  func update(_ done: Int, of total: Int) {
    turn.withLock { _ in progress.update(done, of: total) }
  }
  func erase() { turn.withLock { _ in progress.erase() } }
}

/// The record of a fault of a copy.
func record(of fault: CopyFault) -> Record { ["object": fault.object, "cause": fault.cause] }

// MARK: - State of a copy

/// What a ledger records about its copy, for `status`. The store is not asked.
struct CopyStanding {
  let target: String?
  private let mode: String?
  /// Whether config.json is unusable, so that it is unknown whether there should be a copy.
  private let isUnknown: Bool
  let recorded: ReplicationRecord?
  let standby: Standby?
  let size: Int
  /// How many bytes of the log the copy does not hold.
  private let lagBytes: Int
  private let oldestAtMs: Int64?

  /// Nil if there is no copy, there was none, and the ledger may be written to.
  init?(_ directory: LedgerDirectory, _ reader: LogReader) throws {
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
    size = reader.head.size
    let confirmed = min(recorded?.size ?? 0, size)
    lagBytes = try reader.byteCount(from: confirmed)
    oldestAtMs =
      confirmed == size
      ? nil
      : try reader.event(at: confirmed).withUnsafeBytes { EventLine($0)?.recordedAtMs }
  }

  private var lag: Int { max(0, size - (recorded?.size ?? 0)) }
  private var lagSeconds: Int64 { lagMs(Timestamp.now()) / 1000 }

  /// How long the oldest event has waited for the copy, in milliseconds.
  func lagMs(_ nowMs: Int64) -> Int64 { oldestAtMs.map { max(0, nowMs - $0) } ?? 0 }

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
        ("copy", "unknown: 'ledgerctl config check' shows what is wrong with config.json"))
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

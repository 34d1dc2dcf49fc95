// The errors of a ledger (operation, object and cause) with their exit codes; the type of positions.
package import Base
import Glibc

/// Why an operation on a ledger failed. Never contains event data, receipts, tokens or identifiers.
package struct LedgerError: ReportableError, Sendable, Equatable, CustomStringConvertible {
  /// The class of failure, which determines the exit code.
  package enum Kind: Sendable, Equatable {
    /// There is no ledger at the path given.
    case noLedger
    /// Another process (or another writer of this one) holds the lock.
    case locked
    /// The ledger was made by a newer program.
    case newerFormat
    /// The log is damaged in a way that a crash cannot cause.
    case corruption
    /// The system rejected a call: a full disk, a missing permission, a failed sync.
    case inputOutput
    /// The caller requested something impossible: an oversized event, a position beyond the end.
    case invalidInput
    /// The writer was closed.
    case closed
    /// Nothing may be appended: another ledger continues the history (`Standby`).
    case standby
    /// The events are on this disk, but no copy has confirmed them.
    case unconfirmed
  }

  /// The kind of damage.
  package enum Verdict: String, Sendable, Equatable {
    /// Events or files that must exist do not.
    case missing
    /// The system could not read them.
    case unreadable
    /// Bytes do not match their checksum or break the format.
    case corrupt
    /// The bytes are consistent in themselves, but not with neighbouring parts or the tree.
    case tampered
  }

  /// Where in the log the damage lies.
  package struct Damage: Sendable, Equatable {
    /// What kind of damage it is.
    package let verdict: Verdict
    /// The damaged file's path inside the ledger, or the file that should have existed.
    package let file: String
    /// The block's ordinal in its segment, from 0; nil if no block is affected.
    package let block: Int?
    /// The first position that is not intact.
    package let position: Position?

    package init(verdict: Verdict, file: String, block: Int? = nil, position: Position?) {
      self.verdict = verdict
      self.file = file
      self.block = block
      self.position = position
    }
  }

  /// The class of failure.
  package let kind: Kind
  /// What was attempted, as a verb phrase: "append", "open ledger".
  package let operation: String
  /// What it was attempted on: a path inside the ledger, or a position.
  package let object: String
  /// Why it failed.
  package let cause: String
  /// Where the damage lies; set if and only if `kind` is `corruption`.
  package let damage: Damage?
  /// The value of `errno`; 0 if the failure is not a system error.
  package let code: Int32
  /// Whether the device failed (`EIO`): the file's content on disk is then unknown.
  package var isOfDevice: Bool { code == EIO }

  package init(
    _ kind: Kind, operation: String, object: String, cause: String, code: Int32 = 0
  ) {
    self.kind = kind
    self.operation = operation
    self.object = object
    self.cause = cause
    self.damage = nil
    self.code = code
  }

  package init(_ damage: Damage, operation: String, cause: String) {
    var object = damage.file
    if let block = damage.block { object += ", block \(block)" }
    if let position = damage.position { object += ", position \(position)" }
    self.kind = .corruption
    self.operation = operation
    self.object = object
    self.cause = cause
    self.damage = damage
    code = 0
  }

  package var exitCode: ExitCode {
    switch kind {
    case .noLedger: .noLedger
    case .locked: .locked
    case .newerFormat: .newerFormat
    case .standby: .standby
    case .corruption: .corrupted
    case .inputOutput, .invalidInput, .closed, .unconfirmed: .failed
    }
  }

  package func lines(for command: String) -> [String] { [description] }

  package var description: String {
    guard let damage else { return "\(operation): \(object): \(cause)" }
    return "\(operation): \(object): \(damage.verdict.rawValue): \(cause)"
  }
}

extension WorkerThread {
  /// Starts a thread; reports a failure as a ledger error.
  package static func start(
    _ priority: ThreadPriority = .usual, _ run: sending @escaping () -> Void
  ) throws(LedgerError) -> WorkerThread {
    do { return try WorkerThread(priority, run) } catch {
      throw .system(error.code, "start", "thread")
    }
  }
}

// MARK: - Positions

/// An event's ordinal in the whole ledger, contiguous from 0.
package typealias Position = Int

// Why a copy can't be read, restored, taken over or compared with.
package import Base
package import Ledger

/// A failure of a copy. No text contains event data or credentials.
package enum CopyError: ReportableError, Sendable, Equatable, CustomStringConvertible {
  case store(ObjectStoreError)
  case ledger(LedgerError)
  /// What the copy holds can't be right: objects are missing, damaged, or differ from what a step names. All faults
  /// that were found, by position.
  case faults([CopyFault])
  /// Every object matches the steps, but the log that they make is not sound.
  case audit([AuditFinding])
  /// There is nothing to read.
  case noCopy(store: String)
  case otherLedger(store: String)
  /// The request can't be met.
  case refused(object: String, cause: String)
  /// The ledger holds events that the copy does not have.
  case diverged(store: String, local: Int, copied: Int)
  /// Another ledger has taken over meanwhile.
  case overtaken(step: Int, epoch: Int)
  /// The ledger has no record of a copy.
  case neverReplicated
  /// The ledger lacks events that it has copied.
  case shorter(local: Int, confirmed: Int)
  /// The ledger's log is not the log that it copied.
  case unrelated

  static func fault(_ fault: CopyFault) -> CopyError { .faults([fault]) }

  package var description: String {
    switch self {
    case .store(let error): error.description
    case .ledger(let error): error.description
    case .faults(let faults): faults.map(\.description).joined(separator: "; ")
    case .audit(let findings): findings.first?.cause ?? "the log is not whole"
    case .noCopy(let store): "\(store): there is no copy"
    case .otherLedger(let store): "\(store): the copy is of another ledger"
    case .refused(let object, let cause): "\(object): \(cause)"
    case .diverged(let store, let local, let copied):
      local > copied
        ? "this ledger holds \(local) events, but the copy in \(store) holds \(copied): this ledger holds "
          + "events that the copy does not have"
        : "this ledger holds events that the copy in \(store) does not have"
    case .overtaken(let step, let epoch):
      "another ledger has taken over meanwhile, with step \(step), epoch \(epoch)"
    case .neverReplicated: "this ledger has never written a copy"
    case .shorter(let local, let confirmed):
      "this ledger holds \(local) events, but the copy has \(confirmed) from it"
    case .unrelated: "the log does not begin with the events that the copy has from it"
    }
  }

  package var exitCode: ExitCode {
    switch self {
    case .ledger(let error): error.exitCode
    case .faults, .audit: .corrupted
    case .diverged, .overtaken: .standby
    default: .failed
    }
  }

  package var hint: String? {
    guard case .diverged = self else { return nil }
    return
      "Save what only this ledger holds with 'ledgerctl divergence', and restore a ledger from the copy."
  }

  private static let lineCountMax = 1_000

  package func lines(for command: String) -> [String] {
    let findings: [String]
    switch self {
    case .ledger(let error): return error.lines(for: command)
    case .faults(let faults): findings = faults.map { "\($0.object): \($0.cause)" }
    case .audit(let audit):
      findings = audit.map { "\($0.damage.file): \($0.damage.verdict.rawValue): \($0.cause)" }
    default: findings = [description]
    }
    let shown = findings.prefix(Self.lineCountMax).map { "\(command): \($0)" }
    let rest = findings.count - shown.count
    return rest > 0 ? shown + ["\(command): and \(rest) more"] : shown
  }
}

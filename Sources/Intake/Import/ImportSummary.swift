// What an import came to.
package import Ledger

/// Why an import ended early.
package enum ImportFailure: Error, Equatable, Sendable, CustomStringConvertible {
  /// An input could not be read to its end.
  case input(IntakeError)
  /// The ledger did not take the events.
  case ledger(LedgerError)

  /// What went wrong.
  package var underlying: any Error {
    switch self {
    case .input(let error): error
    case .ledger(let error): error
    }
  }

  package var description: String { "\(underlying)" }
}

/// The counts of an import. They hold also where it ended early.
package struct ImportSummary: Equatable, Sendable {
  /// Lines that were looked at; empty ones are not counted.
  package var lines = 0
  /// Uploads that were appended.
  package var uploads = 0
  /// Lines that the ledger had already.
  package var known = 0
  /// Lines that were refused.
  package var refused = 0
  /// Warnings that were reported.
  package var warnings = 0
  /// App families that were registered on the way.
  package var registered = 0
  /// The first and the last position that were appended; nil where nothing was.
  package var positions: ClosedRange<Position>?
  /// Whether `--strict` kept everything out.
  package var isRefusedAsWhole = false
  package var isInterrupted = false
  package var failure: ImportFailure?

  package init() {}

  /// 0 done, 1 failed or refused as a whole, 3 done with something refused or warned, 130 interrupted,
  /// and the ledger's own codes.
  package var exitCode: Int32 {
    switch failure {
    case .input: return 1
    case .ledger(let error): return error.exitCode
    case nil: break
    }
    if isRefusedAsWhole { return 1 }
    if isInterrupted { return 130 }
    return refused > 0 || warnings > 0 ? 3 : 0
  }
}

/// How far an import has come.
package struct ImportProgress: Equatable, Sendable {
  package enum Phase: Sendable {
    /// The first of two passes: nothing is appended.
    case checking
    case importing
  }

  package var phase: Phase
  /// Bytes of the inputs as they lie on disk, in this pass.
  package var readBytes: Int
  /// Of all inputs; nil where one is a stream.
  package var totalBytes: Int?
  package var lines: Int
  package var uploads: Int
}

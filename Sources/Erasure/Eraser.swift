// Carries out erasures; here only its interface, against which others compile.
package import Ledger
package import Projections

/// How long fields are kept, in milliseconds; nil for ever.
package struct RetentionRules: Equatable, Sendable {
  package var ipAddressMs: Int64?
  package var identifierForVendorMs: Int64?
  package var metadataMs: Int64?

  package init() {}
}

/// Carries out erasures with the ledger's writer, which stays the caller's.
package final class Eraser {
  package init(
    _ directory: LedgerDirectory, _ writer: LedgerWriter, projections: ProjectionSet,
    observer: Projector.Observer, onProjectionsReplaced: @escaping () throws -> Void = {}
  ) {}

  /// Finishes a pass that was interrupted; returns whether there was one.
  package func finishInterrupted() throws(ErasureError) -> Bool { false }

  /// Carries out all open requests in one pass, together with what retention asks for; returns their records.
  package func run(
    retention: RetentionRules?, nowMs: Int64
  ) throws(ErasureError) -> [ErasureRecord] { [] }
}

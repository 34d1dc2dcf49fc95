// Notices when a ledger's file of redacted lines comes and goes.
import Base

/// The redacted lines that a ledger has now, shared by all its readers. Thread-safe.
final class RedactionWatch: Sendable {
  private struct State {
    /// The folder of erasures, once there is one: a look then costs one call.
    var folder: Folder?
    var lines: RedactedLines?
  }

  private let monitor = Monitor(State())

  /// The lines of `erasures/lines`; nil if there is no such file. A file that is known is not read again.
  func current(_ directory: LedgerDirectory) throws(LedgerError) -> RedactedLines? {
    try monitor.withLock { state throws(LedgerError) in
      let name = RedactionFile.directoryName
      if state.folder == nil, try directory.root.status(name) != nil {
        state.folder = try directory.root.folderIfPresent(name)
      }
      guard let status = try state.folder?.status(RedactionFile.leafName) else {
        state.lines = nil
        return nil
      }
      if let lines = state.lines, lines.isOf(status) { return lines }
      state.lines = try RedactedLines.ifPresent(directory)
      return state.lines
    }
  }
}

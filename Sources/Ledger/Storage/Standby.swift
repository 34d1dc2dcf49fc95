// The note in a ledger that nothing may be appended to it because another ledger continues the history.
import Base

/// Why a ledger may not be written to. It is a copy that was restored, or another writer has taken over. `promote`
/// removes the note.
package struct Standby: Sendable, Equatable {
  package enum Reason: String, Sendable {
    /// The ledger was restored from a copy whose writer may still be running.
    case restored
    /// Another writer has taken over the copy of this ledger.
    case fenced
  }

  /// The file's name in the ledger.
  package static let fileName = "standby.json"
  private static let byteCountMax = 4096

  package let reason: Reason
  /// The step that was restored, or with which another writer took over, and its epoch.
  package let step: Int
  package let epoch: Int
  /// When the note was written, in epoch milliseconds.
  package let atMs: Int64

  package init(reason: Reason, step: Int, epoch: Int, atMs: Int64 = Timestamp.now()) {
    (self.reason, self.step, self.epoch, self.atMs) = (reason, step, epoch, atMs)
  }

  /// The note of a ledger; nil if there is none.
  ///
  /// Throws `corruption` if this program would not write such a file.
  package init?(of directory: LedgerDirectory) throws(LedgerError) {
    guard
      let bytes = try directory.readSmallFile(Self.fileName, byteCountMax: Self.byteCountMax)
    else { return nil }
    guard let value = try? JSONValue(bytes),
      let reason = value["reason"]?.stringValue.flatMap(Reason.init),
      let step = value.count("step"),
      let epoch = value.count("epoch"), let at = value["at"]?.stringValue,
      let atMs = try? Timestamp.parse(at)
    else {
      throw LedgerError(
        .init(verdict: .corrupt, file: Self.fileName, position: nil), operation: "read note",
        cause: "it does not say why nothing may be appended")
    }
    self.init(reason: reason, step: step, epoch: epoch, atMs: atMs)
  }

  /// Writes the note, durably, replacing an earlier one.
  package func write(to directory: LedgerDirectory) throws(LedgerError) {
    var lines = JSONLines()
    lines.add("reason") { $0.string(reason.rawValue) }
    lines.add("step") { $0.integer(step) }
    lines.add("epoch") { $0.integer(epoch) }
    lines.add("at") { $0.string(Timestamp.text(ms: atMs)) }
    try directory.replaceFile(Self.fileName, with: lines.bytes)
  }

  /// Removes the note, durably.
  package static func remove(from directory: LedgerDirectory) throws(LedgerError) {
    guard try directory.root.status(fileName) != nil else { return }
    try directory.root.unlink(fileName)
    try directory.root.sync()
  }

  /// Throws `standby` if a ledger has a note.
  package static func refuse(
    _ directory: LedgerDirectory, operation: String
  ) throws(LedgerError) {
    guard let note = try Standby(of: directory) else { return }
    let cause =
      switch note.reason {
      case .restored:
        "it was restored from step \(note.step) of a copy; 'ledgerctl promote' lets it take over"
      case .fenced:
        "another writer has taken over with step \(note.step), epoch \(note.epoch)"
      }
    throw LedgerError(.standby, operation: operation, object: directory.path, cause: cause)
  }
}

// The note of a promotion under way that the ledger's log was found to be the beginning of the copy's.
import Base
import JSON
import Ledger

/// The file `replication/promoting`. While files are put in place, what is in `log/` need not be a log.
struct PromotionMarker: Equatable {
  private static let fileName = "promoting"
  private static let byteCountMax = 4096

  /// How many events the ledger held.
  let localSize: Int
  /// The step with whose state it was compared, and the SHA-256 of its header.
  let step: Int
  let sha256: SHA256Digest

  init(localSize: Int, step: Int, sha256: SHA256Digest) {
    (self.localSize, self.step, self.sha256) = (localSize, step, sha256)
  }

  /// Nil if there is none, or none that can be read: then everything is compared again.
  init?(of folder: Folder) throws(LedgerError) {
    guard try folder.status(Self.fileName) != nil else { return nil }
    let bytes = try folder.openFile(Self.fileName, .readOnly).readSmall(
      byteCountMax: Self.byteCountMax)
    guard let value = try? JSONValue(bytes), let localSize = value.count("local_size"),
      let step = value.count("step"), let sha256 = value.digest("sha256")
    else { return nil }
    self.init(localSize: localSize, step: step, sha256: sha256)
  }

  func write(to folder: Folder) throws(LedgerError) {
    var lines = JSONLines()
    lines.add("local_size") { $0.integer(localSize) }
    lines.add("step") { $0.integer(step) }
    lines.add("sha256") { $0.string(Hex.text(sha256)) }
    try folder.replaceFile(Self.fileName, with: lines.bytes)
  }

  static func remove(from folder: Folder) throws(LedgerError) {
    try folder.unlink(fileName)
    try folder.sync()
  }

  /// Whether the copy continues the history with which the ledger was compared.
  func isOfHistory(_ source: CopySource) throws(CopyError) -> Bool {
    guard step <= source.state.newest.number else { return false }
    return try source.sequence.step(step)?.sha256 == sha256
  }
}

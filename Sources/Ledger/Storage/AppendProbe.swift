// Checks, without appending, that there is room for events.

extension LedgerDirectory {
  private static let probeName = "\(Format.logDirectoryName)/probe\(Format.temporarySuffix)"
  private static let probeByteCount = 1 << 20

  /// Writes, syncs and removes a file in the log's directory. Throws the reason if that fails: no space, no
  /// descriptor, a read-only file system. If a crash leaves the file, the next recovery removes it.
  package func probeAppend() throws(LedgerError) {
    let outcome: Result<Void, LedgerError>
    do throws(LedgerError) {
      let file = try makeFile(Self.probeName)
      let content = [UInt8](repeating: 0, count: Self.probeByteCount)
      try file.write(content, offsetBytes: 0)
      try file.syncData()
      outcome = .success(())
    } catch { outcome = .failure(error) }
    try? unlink(Self.probeName)
    try outcome.get()
  }
}

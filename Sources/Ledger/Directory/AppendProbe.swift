// Whether there is room for events, found out without appending one.

extension LedgerDirectory {
  private static let probeName = "\(Format.logDirectoryName)/probe\(Format.temporarySuffix)"
  private static let probeByteCount = 1 << 20

  /// Writes and syncs a file in the log's directory, and removes it. Throws why it can't: no room, no descriptor, a
  /// file system that is read-only. What a crash leaves of it the next recovery removes.
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

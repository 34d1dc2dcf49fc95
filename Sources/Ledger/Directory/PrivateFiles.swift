// Files beside the log that hold secrets: for those who keep them.

extension LedgerDirectory {
  /// Puts a file in place, durably and whole or not at all; its owner alone may read it. What bore the
  /// name is replaced.
  package func replacePrivateFile(_ name: String, with content: [UInt8]) throws(LedgerError) {
    // One that an earlier attempt left might have other permissions.
    try unlink(name + Format.temporarySuffix)
    try replaceFile(name, with: content)
  }
}

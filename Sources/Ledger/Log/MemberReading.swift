// Reads a member's header even if the bytes after it are unreadable.

extension StorageFile {
  /// The header of the member at an offset, read through a buffer; nil if there is none.
  ///
  /// Throws only if bytes of the header itself cannot be read.
  func memberHeader(
    at offsetBytes: Int, _ buffer: ByteBuffer
  ) throws(LedgerError) -> MemberHeader? {
    do throws(LedgerError) {
      // Reads the longest possible header at once; a shorter one includes bytes after it.
      try fill(buffer, Format.memberHeaderByteCountMax, offsetBytes)
    } catch {
      guard error.operation == LedgerError.readOperation else { throw error }
      try fill(buffer, Format.memberPrefixByteCount, offsetBytes)
      guard let byteCount = MemberHeader.byteCount(prefix: buffer.bytes) else { return nil }
      try fill(buffer, byteCount, offsetBytes)
    }
    return MemberHeader(buffer.bytes)
  }

  private func fill(
    _ buffer: ByteBuffer, _ byteCount: Int, _ offsetBytes: Int
  ) throws(LedgerError) { _ = try readWhole(byteCount, offsetBytes: offsetBytes, into: buffer) }
}

// A full tail that is not sealed yet, and how to read it.

/// A full tail. Its frames are durable; its events are in no other file.
package struct UnsealedTail: Sendable {
  package let first: Position
  let eventCount: Int
  /// The size of its frames.
  let byteCount: Int

  package init(first: Position, eventCount: Int, byteCount: Int) {
    self.first = first
    self.eventCount = eventCount
    self.byteCount = byteCount
  }

  var endPosition: Position { first + eventCount }

  /// Reads its events, without the frame headers.
  ///
  /// Throws `corruption` if the file does not contain exactly what was written to it.
  package func readEvents(
    _ directory: LedgerDirectory, into events: ByteBuffer
  ) throws(LedgerError) {
    func damage(
      _ verdict: LedgerError.Verdict, _ name: String, _ cause: String
    ) -> LedgerError {
      LedgerError(
        .init(verdict: verdict, file: name, position: first), operation: "seal", cause: cause)
    }
    let name = directory.logPath(Format.tailName(first))
    guard let file = try directory.openFileIfPresent(name) else {
      throw damage(.missing, name, "the tail is missing")
    }
    let isThere: Bool
    do throws(LedgerError) {
      isThere = try file.readWhole(byteCount, offsetBytes: 0, into: events)
    } catch { throw error.unreadable(file, at: first) }
    guard isThere, FrameHeader.removeAll(from: events, first: first) == endPosition else {
      throw damage(.corrupt, name, "the tail differs from what was written")
    }
  }
}

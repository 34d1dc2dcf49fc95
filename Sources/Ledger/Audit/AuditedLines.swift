// The checks of a run of lines that need nothing else, on whichever thread has the lines.
import Base

/// The leaves of a run of lines, and what is wrong with its lines.
final class AuditedLines: @unchecked Sendable {
  // Written by the thread that makes it, read by the one that takes it, never by both at a time.
  private(set) var leafHashes: [SHA256Digest] = []
  private(set) var firstEventAtMs: Int64 = 0
  private(set) var lastEventAtMs: Int64 = 0
  /// What the run's events declare of whom verification trusts; malformed ones are left to the projections.
  private(set) var trust: [(position: Position, trust: TrustDeclared, byteCount: Int)] = []
  /// Lines whose digest does not match their data, and the like: the run continues after them.
  private(set) var faults: [(position: Position, cause: String)] = []
  /// Why the run is not the events that it should be; then the leaves are not complete.
  private(set) var breach: (position: Position, cause: String)?

  /// Goes over whole lines: form, positions, times, digests, leaves.
  init(_ bytes: UnsafeRawBufferPointer, firstPosition: Position, count: Int) {
    let hasher = SHA256()
    // The count comes from a header; no line is shorter than this.
    leafHashes.reserveCapacity(min(count, bytes.count / 128 + 1))
    var lines = EventLines(bytes)
    var position = firstPosition
    while let text = lines.next() {
      guard let line = EventLine(text) else {
        breach = (position, "the line is not an event")
        return
      }
      guard line.position == position, position < firstPosition + count else {
        breach = (position, "the line has position \(line.position)")
        return
      }
      if position == firstPosition {
        firstEventAtMs = line.recordedAtMs
      } else if line.recordedAtMs < lastEventAtMs {
        faults.append((position, "the event's time is earlier than the previous event's"))
      }
      lastEventAtMs = max(lastEventAtMs, line.recordedAtMs)
      if !line.verifyDigest(hasher) {
        faults.append((position, "the event's digest does not match its data"))
      }
      leafHashes.append(line.leafHash(hasher))
      if EventType(line.type) == .trustDeclared, let declared = try? TrustDeclared(data: line.data)
      {
        trust.append((position, declared, line.data.count))
      }
      position += 1
    }
    if !lines.isAtEnd || position != firstPosition + count {
      breach = (position, "there are fewer events than the header says")
    }
  }
}

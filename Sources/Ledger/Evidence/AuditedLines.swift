// Checks that a run of lines allows by itself, on any thread.
import Base

/// The leaves of a run of lines, and the faults found in it.
package final class AuditedLines: @unchecked Sendable {
  // One thread fills it in, then another reads it, never both at once.
  private(set) var leafHashes: [SHA256Digest] = []
  private(set) var firstEventAtMs: Int64 = 0
  private(set) var lastEventAtMs: Int64 = 0
  /// Well-formed `trust.declared` events. The projections report malformed ones.
  private(set) var trust: [(position: Position, trust: TrustDeclared, byteCount: Int)] = []
  /// Lines that lost their data.
  private(set) var redactions: [AuditedRedaction] = []
  /// Well-formed `data.redacted` events.
  private(set) var erasureEvents: [(position: Position, event: DataRedacted)] = []
  /// Faults of single lines, such as a digest that does not match; the run continues after them.
  private(set) var faults: [(position: Position, cause: String)] = []
  /// Why the run ends early. Its leaves are then incomplete.
  private(set) var breach: (position: Position, cause: String)?

  private let hasher = SHA256()

  /// For lines that are added one by one.
  /// - Parameter count: the number of lines to reserve memory for.
  package init(count: Int) { leafHashes.reserveCapacity(count) }

  /// Checks the form, positions, times and digests of lines, and hashes their leaves.
  package init(_ bytes: UnsafeRawBufferPointer, firstPosition: Position, count: Int) {
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
      add(line)
      position += 1
    }
    if !lines.isAtEnd || position != firstPosition + count {
      breach = (position, "there are fewer events than the header says")
    }
  }

  /// Checks the time and the digest of the next line, and hashes its leaf.
  package func add(_ line: EventLine) {
    if leafHashes.isEmpty {
      firstEventAtMs = line.recordedAtMs
    } else if line.recordedAtMs < lastEventAtMs {
      faults.append((line.position, "the event's time is earlier than the previous event's"))
    }
    lastEventAtMs = max(lastEventAtMs, line.recordedAtMs)
    if let erasure = line.redactedBy {
      redactions.append(
        AuditedRedaction(
          position: line.position, erasure: erasure, digest: line.contentDigest(hasher)))
    } else if !line.verifyDigest(hasher) {
      faults.append((line.position, "the event's digest does not match its data"))
    }
    leafHashes.append(line.leafHash(hasher))
    if !line.isRedacted { readData(of: line) }
  }

  private func readData(of line: EventLine) {
    switch EventType(line.type) {
    case .trustDeclared:
      guard let declared = try? TrustDeclared(data: line.data) else { return }
      trust.append((line.position, declared, line.data.count))
    case .dataRedacted:
      guard let event = try? DataRedacted(data: line.data) else { return }
      erasureEvents.append((line.position, event))
    default: break
    }
  }
}

// New files of segments, made of blocks that a reader shows with redacted lines.
import Base

/// What a reader makes the new member of a block for.
struct BlockRewriting {
  let segment: SegmentIndex
  let encoders: BlockEncoders
}

/// New files of segments that get redacted lines. A reader that shows these lines fills them: the threads that inflate
/// its blocks deflate the changed ones, so that none is inflated once more for it. Used by the reader's thread.
///
/// It only saves time: `rewriteSegments` writes what is missing here, and everything after a failure. The files have
/// temporary names until `rewriteSegments` puts them in use; the others are removed with this.
package final class RewrittenSegments {
  /// At most this many bytes of segments get new files this way, which exist next to the old ones until the commit.
  static let byteCountMax = 1 << 30

  /// A segment, its new file, and the blocks that are in that so far.
  private struct Part {
    let old: SegmentIndex
    let copy: SegmentCopy
    var firsts: Set<Position> = []
  }

  private let directory: LedgerDirectory
  private let encoders: BlockEncoders
  /// The first positions of the segments.
  private let firsts: Set<Position>
  private var parts: [Part] = []
  /// Where the next block may begin.
  private var end = 0
  private var hasFailed = false

  init(_ directory: LedgerDirectory, firsts: Set<Position>, encoders: BlockEncoders) {
    self.directory = directory
    self.firsts = firsts
    self.encoders = encoders
  }

  deinit { discard() }

  /// How the blocks of a segment get new members; nil if it is not one of these segments. Thread-safe.
  func rewriting(_ segment: SegmentIndex) -> BlockRewriting? {
    firsts.contains(segment.first) ? BlockRewriting(segment: segment, encoders: encoders) : nil
  }

  /// Writes the new member of a block, unless it comes after later ones, or again.
  func add(_ block: BlockLocation, _ rewritten: RewrittenBlock) {
    defer { encoders.recycle(rewritten.member) }
    guard block.first >= end, !hasFailed else { return }
    end = block.endPosition
    let segment = rewritten.segment
    if parts.last?.old.first != segment.first {
      parts.append(Part(old: segment, copy: SegmentCopy(directory, segment)))
    }
    let last = parts.count - 1
    do throws(LedgerError) {
      try parts[last].copy.replace(block, with: rewritten.member.bytes)
      parts[last].firsts.insert(block.first)
    } catch {
      hasFailed = true
      discard()
    }
  }

  /// The new file of a segment; nil if it is not exactly one with these lines, or was taken before. Its caller finishes
  /// or discards it.
  func takeCopy(of segment: SegmentIndex, with lines: RedactedLines) -> SegmentCopy? {
    guard let index = parts.firstIndex(where: { $0.old.first == segment.first }) else {
      return nil
    }
    let part = parts.remove(at: index)
    if part.old.isSameFile(as: segment),
      part.firsts == Set(segment.blocks(holding: lines).map(\.first))
    {
      return part.copy
    }
    part.copy.discard()
    return nil
  }

  private func discard() {
    for part in parts { part.copy.discard() }
    parts = []
  }
}

// Writes the new files of segments while another reader has their redacted blocks at hand.
import Base

/// The new files of segments that hold redacted lines, made from blocks that are read for another purpose: they need
/// not be read and inflated once more. Thread-safe.
///
/// It only saves time: a segment of which not every block came is written anew as without it, and so are all of them
/// after a failure. Its files have temporary names until `rewriteSegments` puts them in use.
package final class SegmentPreparation: Sendable {
  /// How many bytes of segments are prepared at most: their new files exist beside them all at the same time.
  static let byteCountMax = 1 << 30

  /// A segment, and how far its new file is.
  private struct Part {
    let old: SegmentIndex
    /// The blocks that hold redacted lines.
    let blocks: [BlockLocation]
    let copy: SegmentCopy
    var doneCount = 0
  }

  private struct State: @unchecked Sendable {
    // Used under the lock only.
    var parts: [Part] = []
    /// The first part that is not whole.
    var next = 0
    /// Members that wait for blocks before theirs; as many as the reader is ahead.
    var waiting: [Position: ByteBuffer] = [:]
  }

  private let segments: [SegmentIndex]
  private let lines: RedactedLines
  private let encoders: BlockEncoders
  private let monitor = Monitor(State())

  /// - Parameter segments: those that hold redacted lines, in order; they may grow meanwhile, but must not be replaced.
  init(
    _ directory: LedgerDirectory, _ segments: [SegmentIndex], _ lines: RedactedLines,
    _ encoders: BlockEncoders
  ) {
    self.segments = segments
    self.lines = lines
    self.encoders = encoders
    monitor.withLock { state in
      state.parts = self.segments.map { segment in
        Part(
          old: segment, blocks: segment.blocks(holding: lines),
          copy: SegmentCopy(directory, segment))
      }
    }
  }

  /// Takes the lines of a block, with the redacted ones in place. Blocks may come in any order, and more than once;
  /// those that hold no redacted line do not matter.
  package func take(_ events: UnsafeRawBufferPointer, first: Position, count: Int) {
    guard lines.contains(in: first..<first + count), isAwaited(first),
      let segment = segments.last(where: { $0.first <= first }),
      let block = segment.block(holding: first), block.first == first, block.eventCount == count
    else { return }
    do throws(LedgerError) {
      let member = try encoders.encode(block, of: segment, events: events)
      try monitor.withLock { state throws(LedgerError) in
        state.waiting[first] = member
        try write(&state)
      }
    } catch { discard() }
  }

  private func isAwaited(_ first: Position) -> Bool {
    monitor.withLock { state in
      guard state.next < state.parts.count, state.waiting[first] == nil else { return false }
      let part = state.parts[state.next]
      return first >= part.blocks[part.doneCount].first
    }
  }

  /// Writes the members that are next.
  private func write(_ state: inout State) throws(LedgerError) {
    while state.next < state.parts.count {
      let part = state.parts[state.next]
      let block = part.blocks[part.doneCount]
      guard let member = state.waiting.removeValue(forKey: block.first) else { return }
      try part.copy.replace(block, with: member.bytes)
      encoders.recycle(member)
      state.parts[state.next].doneCount += 1
      if part.doneCount + 1 == part.blocks.count { state.next += 1 }
    }
    state.waiting = [:]
  }

  /// The new file of a segment; nil if it is not whole, or was taken before. Its caller finishes or discards it.
  func takeCopy(of segment: SegmentIndex) -> SegmentCopy? {
    monitor.withLock { state in
      guard
        let index = state.parts[..<state.next].firstIndex(where: { $0.old.first == segment.first })
      else { return nil }
      let part = state.parts.remove(at: index)
      state.next -= 1
      if part.old.isSameFile(as: segment) { return part.copy }
      part.copy.discard()
      return nil
    }
  }

  /// Removes the files that were not put in use.
  package func discard() {
    monitor.withLock { state in
      for part in state.parts { part.copy.discard() }
      (state.parts, state.next, state.waiting) = ([], 0, [:])
    }
  }
}

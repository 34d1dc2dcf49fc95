// Writes a segment anew with redacted lines in place of others; whatever does not change is copied byte by byte.
import Base

/// Replaces lines of segments. The caller makes sure that nothing else changes the segment meanwhile.
struct SegmentRewriter {
  private static let workerCount = 2

  let directory: LedgerDirectory
  let lines: RedactedLines
  let encoders: BlockEncoders
  let priority: ThreadPriority
  /// Called with the number of bytes of the old segment that are done.
  let progress: (Int) -> Void
  /// Asked for each block; if it returns true, the segment stays as it is.
  let isCancelled: () -> Bool

  /// Replaces the segment's file durably. Returns what is then known of the segment; nil if all its lines were
  /// redacted already, so that nothing was written.
  ///
  /// If it throws before the new file has its name, the old file is as it was.
  /// - Parameter rewritten: may hold the new file already.
  func rewrite(
    _ old: SegmentIndex, _ rewritten: RewrittenSegments? = nil
  ) throws(LedgerError) -> SegmentIndex? {
    if let copy = rewritten?.takeCopy(of: old, with: lines) {
      do throws(LedgerError) { return try copy.finish(old) } catch {
        copy.discard()
        throw error
      }
    }
    let blocks = old.blocks(holding: lines)
    if blocks.isEmpty { return nil }
    let copy = SegmentCopy(directory, old)
    do throws(LedgerError) {
      try copyBlocks(blocks, of: old, to: copy)
      return try copy.finish(old)
    } catch {
      copy.discard()
      throw error
    }
  }

  private func copyBlocks(
    _ blocks: [BlockLocation], of old: SegmentIndex, to copy: SegmentCopy
  ) throws(LedgerError) {
    let workerCount = min(Self.workerCount, blocks.count)
    let pipeline = try BlockPipeline(
      ListedBlocks(blocks, BlockRewriting(segment: old, encoders: encoders)),
      workerCount: workerCount, priority: priority, redactedLines: lines)
    defer { pipeline.stop() }
    while let block = try pipeline.next() {
      if isCancelled() {
        throw LedgerError(
          .closed, operation: Self.operation, object: old.name, cause: "it was stopped")
      }
      // Unless all its lines were redacted already.
      if let member = block.rewritten?.member {
        try copy.replace(block.block, with: member.bytes)
        encoders.recycle(member)
      }
      progress(block.block.endOffsetBytes)
      pipeline.recycle(block)
    }
  }

  static let operation = "rewrite segment"
}

/// The blocks that hold lines to be replaced.
private final class ListedBlocks: BlockSequence {
  private var blocks: ArraySlice<BlockLocation>
  private let rewriting: BlockRewriting

  init(_ blocks: [BlockLocation], _ rewriting: BlockRewriting) {
    self.blocks = blocks[...]
    self.rewriting = rewriting
  }

  func next() -> BlockItem? {
    blocks.popFirst().map {
      BlockItem(block: $0, file: rewriting.segment.file, rewriting: rewriting)
    }
  }
}

extension SegmentIndex {
  /// The blocks that hold redacted lines.
  func blocks(holding lines: RedactedLines) -> [BlockLocation] {
    blocks.filter { lines.contains(in: $0.first..<$0.endPosition) }
  }

  /// Throws `invalidInput` if a block would become larger than a block may be. Reads only blocks that come near that.
  func checkSizes(with lines: RedactedLines) throws(LedgerError) {
    for block in blocks {
      let range = block.first..<block.endPosition
      guard block.contentByteCount + lines.byteCount(in: range) > Format.blockByteCountMax
      else { continue }
      let events = ByteBuffer(capacity: block.contentByteCount)
      _ = try BlockInflater().inflate(block, of: file, into: events)
      try lines.apply(to: events, first: block.first, count: block.eventCount)
      if events.count > Format.blockByteCountMax {
        throw LedgerError(
          .invalidInput, operation: SegmentRewriter.operation,
          object: "\(name), block \(block.ordinal)",
          cause: "with its redacted lines it would be larger than a block may be")
      }
    }
  }
}

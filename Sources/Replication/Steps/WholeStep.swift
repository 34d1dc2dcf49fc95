// The step that says everything again after earlier ones were lost.
import Base
import Ledger

/// What of a ledger's files is in the store, and may be named.
struct StoredContent {
  var layout: ContentLayout
  var identity: SHA256Digest
  var work: SHA256Digest?
  var checkpoints: [CopiedCheckpoint]
}

extension StoredContent {
  /// The step after a state that says all that the copy holds, and its frames; nil if frames do not lead from what is
  /// stored to the state's size yet.
  ///
  /// All frames are in this step: no step holds fewer events than the one before, and those of others may be lost.
  /// - Parameter frameByteCount: how many bytes of frames are taken at most beyond the state's size.
  func wholeStep(
    after state: CopyState, _ reader: LogReader, as record: ReplicationRecord, frameByteCount: Int
  ) throws(LedgerError) -> (step: Step, frames: [UInt8])? {
    try reader.syncTails()
    let first = layout.end
    var end = first
    var frames: [UInt8] = []
    while end < reader.head.size, frames.count < frameByteCount || end < state.size {
      let room = CopyLayout.framesByteCountMax - frames.count
      guard
        let next = try reader.frames(from: end, byteCountMax: min(frameByteCount, room)),
        next.bytes.count <= room
      else { break }
      frames += next.bytes
      end = next.end
    }
    guard end >= state.size else { return nil }
    var step = Step(
      number: state.newest.number + 1, epoch: record.epoch, writer: record.writer,
      ledger: state.newest.ledger, atMs: Timestamp.now(), previous: state.newestSHA256, size: end,
      root: try reader.frontier(at: end).root)
    step.isComplete = true
    (step.identity, step.work) = (identity, work)
    (step.segments, step.blocks) = (layout.segments, layout.blocks)
    step.checkpoints = checkpoints.filter { $0.size <= end }
    if end > first {
      step.frames = CopiedFrames(
        tail: first, first: first, end: end, byteCount: frames.count,
        sha256: frames.withUnsafeBytes { SHA256.hash($0) })
    }
    return (step, frames)
  }
}

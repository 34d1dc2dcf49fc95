// Which segments and blocks the next step may name.
import Base
import Ledger

/// Segments and blocks that follow each other without gaps from position 0, as a step leaves them.
struct ContentLayout: Equatable {
  var segments: [CopiedSegment] = []
  var blocks: [CopiedBlock] = []

  init(segments: [CopiedSegment] = [], blocks: [CopiedBlock] = []) {
    (self.segments, self.blocks) = (segments, blocks)
  }

  init(_ state: CopyState) { self.init(segments: state.segments, blocks: state.blocks) }

  var segmentsEnd: Position { segments.last?.end ?? 0 }
  var end: Position { blocks.last?.end ?? segmentsEnd }
}

extension CopyState {
  /// Frames as the next step describes them. They join the tail of those before them: a copy's tails need not be those of
  /// this disk, where the log was laid out anew after another writer's.
  func description(of frames: CopyableFrames, behind layout: ContentLayout) -> CopiedFrames {
    let last = self.frames.last { $0.frames.end > layout.end }?.frames
    var tail = frames.tail == frames.first ? frames.tail : frames.first
    if let last, last.tail >= frames.tail || frames.tail < frames.first {
      tail = max(last.tail, frames.tail)
    }
    return CopiedFrames(
      tail: tail, first: frames.first, end: frames.end, byteCount: frames.bytes.count,
      sha256: frames.bytes.withUnsafeBytes { SHA256.hash($0) })
  }
}

extension Step {
  /// Adds to a step what leads from a state to a layout; makes it complete if that can't be said otherwise. False if
  /// the state's frames do not continue the layout: the step is then as it was.
  mutating func lead(from state: CopyState, to layout: ContentLayout) -> Bool {
    if !isComplete {
      var added = self
      let segments = Dictionary(uniqueKeysWithValues: state.segments.map { ($0.first, $0) })
      added.segments = layout.segments.filter { segments[$0.first] != $0 }
      let blocks = Dictionary(uniqueKeysWithValues: state.blocks.map { ($0.first, $0) })
      added.blocks = layout.blocks.filter { blocks[$0.first] != $0 }
      if added.leads(from: state, to: layout) {
        self = added
        return true
      }
    }
    var whole = self
    whole.isComplete = true
    whole.identity = identity ?? state.identity
    whole.work = work ?? state.work
    (whole.segments, whole.blocks) = (layout.segments, layout.blocks)
    whole.checkpoints = CopyState.merged(state.checkpoints, checkpoints)
    whole.earlierFrames = state.frames.filter { $0.frames.end > layout.end }
    guard whole.leads(from: state, to: layout) else { return false }
    self = whole
    return true
  }

  private func leads(from state: CopyState, to layout: ContentLayout) -> Bool {
    var next = state
    let digest = header.withUnsafeBytes { SHA256.hash($0) }
    guard (try? next.apply(self, sha256: digest)) != nil else { return false }
    return ContentLayout(next) == layout
  }
}

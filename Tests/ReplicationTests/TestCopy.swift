// Makes a copy of a ledger as the design says, without a replicator.
import Base
import Ledger
import Replication
import TestSupport

/// Writes the steps of a copy, each when a test asks for it.
final class TestCopy {
  let directory: LedgerDirectory
  let store: MemoryStore
  let writer: UUID16
  let epoch: Int
  private(set) var state: CopyState?
  /// Whether objects that a step replaces are deleted at once.
  var deletesReplaced = true

  init(
    of directory: LedgerDirectory, in store: MemoryStore, writer: UUID16 = .random(),
    epoch: Int = 1, after state: CopyState? = nil
  ) {
    (self.directory, self.store, self.writer) = (directory, store, writer)
    (self.epoch, self.state) = (epoch, state)
  }

  enum Failure: Error { case fenced, noRoot }

  /// Copies everything that the log holds now: a step for all that is in files, then one for the frames of each tail.
  func copyAll(complete: Bool = false) throws {
    if state == nil { try write { _ in nil } }
    try copyFiles(complete: complete)
    try copyFrames()
    let signed = try CheckpointStore(directory).sizes()
    if signed != state?.checkpoints.map(\.size) { try copyFiles() }
  }

  /// Copies frames that the copy lacks; each step has at most this many of each tail.
  func copyFrames(perStep: Int = .max) throws {
    // Frames that have become a block meanwhile come first.
    let tails = try names(Format.tailFirst).compactMap(Format.tailFirst)
    if tails.first ?? .max > state?.size ?? 0 { try copyFiles() }
    for name in try names(Format.tailFirst) {
      guard let tail = Format.tailFirst(name) else { continue }
      let bytes = try read(name)
      var offset = 0
      while offset < bytes.count {
        let start = offset
        var (first, end, count) = (Int?.none, 0, 0)
        var skipped = 0
        while offset < bytes.count, count < perStep,
          let header = bytes[offset...].withUnsafeBytes({ FrameHeader($0) })
        {
          offset += header.frameByteCount
          if header.first < state?.size ?? 0 {
            skipped = offset - start
            continue
          }
          first = first ?? header.first
          end = header.endPosition
          count += 1
        }
        guard let first else { break }
        let frames = Array(bytes[(start + skipped)..<offset])
        try write { step -> [UInt8]? in
          step.size = end
          step.root = try self.root(at: end)
          step.frames = CopiedFrames(
            tail: tail, first: first, end: end, byteCount: frames.count, sha256: digest(frames))
          return frames
        }
      }
    }
  }

  /// Copies segments, blocks, checkpoints and the identity that the copy lacks.
  func copyFiles(complete: Bool = false) throws {
    var segments: [CopiedSegment] = []
    var blocks: [CopiedBlock] = []
    let firsts = try names(Format.segmentFirst)
    for name in firsts {
      let first = Format.segmentFirst(name) ?? 0
      var index = try SegmentIndex(directory, first: first)
      _ = try index.extend()
      let bytes = try read(name)
      if index.isClosed {
        segments.append(
          CopiedSegment(
            first: first, end: index.endPosition, byteCount: bytes.count, sha256: digest(bytes)))
        try put(segments[segments.count - 1].key, bytes)
        continue
      }
      for block in index.blocks {
        let offset = block.ordinal == 0 ? 0 : block.offsetBytes
        let part = Array(bytes[offset..<(block.offsetBytes + block.memberByteCount)])
        let copied = CopiedBlock(
          segment: first, first: block.first, end: block.endPosition, offsetBytes: offset,
          byteCount: part.count, sha256: digest(part))
        blocks.append(copied)
        try put(copied.key, part)
      }
    }
    // Only confirmed heads are signed.
    let end = max(blocks.last?.end ?? segments.last?.end ?? 0, state?.size ?? 0)
    let sizes = try CheckpointStore(directory).sizes().filter { $0 <= end }
    let checkpoints = try sizes.map { size in
      let bytes = try SmallFile.read(
        directory.fullPath(CheckpointStore.fileName(size: size)), byteCountMax: 1 << 20)
      let checkpoint = CopiedCheckpoint(size: size, sha256: digest(bytes))
      try put(checkpoint.key, bytes)
      return checkpoint
    }
    try write { step -> [UInt8]? in
      let end = blocks.last?.end ?? segments.last?.end ?? 0
      if end > step.size {
        step.size = end
        step.root = try self.root(at: end)
      }
      step.isComplete = complete || step.isComplete
      let known = self.state
      func new<Item: Equatable>(_ items: [Item], _ known: [Item]?) -> [Item] {
        step.isComplete ? items : items.filter { known?.contains($0) != true }
      }
      step.segments = new(segments, known?.segments)
      step.blocks = new(blocks, known?.blocks)
      step.checkpoints = new(checkpoints, known?.checkpoints)
      if step.isComplete {
        step.earlierFrames = (known?.frames ?? []).filter { $0.frames.end > end }
      }
      return nil
    }
  }

  /// Creates the next step.
  func write(_ change: (inout Step) throws -> [UInt8]?) throws {
    let identity = try SmallFile.read(directory.fullPath("ledger.json"), byteCountMax: 1 << 20)
    try put(CopyLayout.identityKey(digest(identity)), identity)
    var step = Step(
      number: (state?.newest.number ?? -1) + 1, epoch: epoch, writer: writer,
      ledger: UUID16(directory.identity.id.description) ?? .random(), atMs: 1_770_000_000_000,
      previous: state?.newestSHA256 ?? Step.noDigest, size: state?.size ?? 0,
      root: try state?.root ?? root(at: 0))
    if state == nil { step.isComplete = true }
    let frames = try change(&step)
    if state?.identity != digest(identity) || step.isComplete { step.identity = digest(identity) }
    if step.isComplete { step.work = state?.work }
    let header = step.header
    guard try store.create(step.key, .bytes(header + (frames ?? []))) == .stored else {
      throw Failure.fenced
    }
    guard var next = state else {
      state = try CopyState(complete: step, sha256: digest(header))
      return
    }
    let replaced = try next.apply(step, sha256: digest(header))
    state = next
    if deletesReplaced { try delete(replaced) }
  }

  func delete(_ replaced: CopyState.Replaced) throws {
    for key in replaced.keys { try store.delete(key) }
    for number in replaced.steps {
      let key = CopyLayout.stepKey(number)
      guard let bytes = try store.get(key, byteCountMax: CopyLayout.stepByteCountMax),
        let stored = Step.parse(bytes)
      else { continue }
      try store.put(key, .bytes(stored.step.header))
    }
  }

  // MARK: The ledger

  private func names(_ first: (String) -> Position?) throws -> [String] {
    let names = try directory.folderIfPresent("log")?.names() ?? []
    return names.filter { first($0) != nil }.sorted()
  }

  private func read(_ name: String) throws -> [UInt8] {
    try SmallFile.read(directory.fullPath("log/\(name)"), byteCountMax: 1 << 30)
  }

  private func root(at size: Int) throws -> SHA256Digest {
    try LogReader(directory).frontier(at: size).root
  }

  private func put(_ key: String, _ bytes: [UInt8]) throws { try store.put(key, .bytes(bytes)) }
}

func digest(_ bytes: [UInt8]) -> SHA256Digest { bytes.withUnsafeBytes { SHA256.hash($0) } }

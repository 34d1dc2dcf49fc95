// The contents of a copy according to its steps.
package import Base
package import Ledger

/// Why the steps of a copy can't be right.
package struct CopyFault: Error, Sendable, Equatable, CustomStringConvertible {
  /// The object's key.
  package let object: String
  /// Starts with a lower-case letter.
  package let cause: String

  package init(object: String, cause: String) { (self.object, self.cause) = (object, cause) }

  package var description: String { "\(object): \(cause)" }
}

/// The state of a copy after a step: what the newest complete step and those after it name.
package struct CopyState: Sendable, Equatable {
  /// The newest step, and the SHA-256 of its header.
  package private(set) var newest: Step
  package private(set) var newestSHA256: SHA256Digest
  package private(set) var identity: SHA256Digest
  /// Nil if there is no open work, or none was ever named.
  package private(set) var work: SHA256Digest?
  /// By position, without gaps from 0.
  package private(set) var segments: [CopiedSegment] = []
  /// Of the newest segment, after the closed ones, without gaps.
  package private(set) var blocks: [CopiedBlock] = []
  package private(set) var checkpoints: [CopiedCheckpoint] = []
  /// The steps that hold the frames after the blocks, in order.
  package private(set) var frames: [EarlierFrames] = []
  /// How many steps there were since the newest complete one.
  package private(set) var stepsSinceComplete = 0
  /// How many objects and frames those steps named.
  private(set) var objectsSinceComplete = 0

  /// What a step replaced, and may be deleted now.
  package struct Replaced: Sendable, Equatable {
    package var keys: [String] = []
    /// The steps whose frames are now in blocks.
    package var steps: [Int] = []

    package var isEmpty: Bool { keys.isEmpty && steps.isEmpty }
  }

  /// The position after the last closed segment.
  package var segmentsEnd: Position { segments.last?.end ?? 0 }
  /// The position after the last block.
  package var blocksEnd: Position { blocks.last?.end ?? segmentsEnd }
  /// How many events the copy holds.
  package var size: Int { newest.size }
  package var root: SHA256Digest { newest.root }

  /// The state at a complete step.
  package init(complete step: Step, sha256: SHA256Digest) throws(CopyFault) {
    guard step.isComplete, let identity = step.identity else {
      throw CopyFault(object: step.key, cause: "it is not complete")
    }
    (newest, newestSHA256, self.identity, work) = (step, sha256, identity, step.work)
    _ = replaceAll(by: step)
    try check()
  }

  /// The state from which to continue after steps were lost: the newest step, and what the steps before the gap named.
  /// Only a complete step may follow.
  init(newest: Step, sha256: SHA256Digest, after known: CopyState?) {
    (self.newest, newestSHA256) = (newest, sha256)
    (identity, work) = (known?.identity ?? Step.noDigest, known?.work)
    segments = known?.segments ?? []
    blocks = known?.blocks ?? []
    checkpoints = known?.checkpoints ?? []
  }

  /// Adds the next step. Throws if it does not follow.
  /// - Returns: what it replaced.
  package mutating func apply(
    _ step: Step, sha256: SHA256Digest
  ) throws(CopyFault) -> Replaced {
    func fault(_ cause: String) -> CopyFault { CopyFault(object: step.key, cause: cause) }
    guard step.number == newest.number + 1 else {
      throw fault("it does not follow step \(newest.number)")
    }
    guard step.previous == newestSHA256 else {
      throw fault("it does not name the header of step \(newest.number)")
    }
    guard step.ledger == newest.ledger else { throw fault("it is of another ledger") }
    guard step.epoch == newest.epoch && step.writer == newest.writer || step.epoch > newest.epoch
    else { throw fault("its epoch does not follow that of step \(newest.number)") }
    guard step.epoch == newest.epoch || step.isComplete else {
      throw fault("it begins an epoch and is not complete")
    }
    guard step.size >= newest.size else {
      throw fault("it holds fewer events than those before it")
    }
    guard step.size > newest.size || step.root == newest.root else {
      throw fault("it has another root than step \(newest.number) for the same events")
    }
    var next = self
    (next.newest, next.newestSHA256) = (step, sha256)
    if let identity = step.identity { next.identity = identity }
    if step.isComplete || step.work != nil { next.work = step.work }
    let stepsReplaced = step.isComplete ? next.replaceAll(by: step) : next.add(step)
    var replaced = Replaced(steps: stepsReplaced)
    // Most steps name nothing, and a copy may hold thousands of objects.
    if step.isComplete || step.namesObjects {
      replaced.keys = namedKeys.subtracting(next.namedKeys).sorted()
    }
    next.stepsSinceComplete = step.isComplete ? 0 : stepsSinceComplete + 1
    next.objectsSinceComplete = step.isComplete ? 0 : objectsSinceComplete + step.objectCount
    try next.check()
    self = next
    return replaced
  }

  // MARK: Changes

  /// The keys of all objects that the state names, without steps.
  package var namedKeys: Set<String> {
    Set(segments.map(\.key) + blocks.map(\.key) + checkpoints.map(\.key))
      .union([CopyLayout.identityKey(identity)] + (work.map { [CopyLayout.workKey($0)] } ?? []))
  }

  /// - Returns: the steps whose frames are no longer needed.
  private mutating func replaceAll(by step: Step) -> [Int] {
    (segments, blocks, checkpoints) = (step.segments, step.blocks, step.checkpoints)
    let kept = Set(step.earlierFrames.map(\.step))
    let dropped = frames.map(\.step).filter { !kept.contains($0) }
    frames = step.earlierFrames
    if let frames = step.frames { self.frames.append(EarlierFrames(step: step.number, frames)) }
    return dropped
  }

  private mutating func add(_ step: Step) -> [Int] {
    for segment in step.segments {
      segments.removeAll { segment.first <= $0.first && $0.end <= segment.end }
      let index = segments.firstIndex { $0.first > segment.first } ?? segments.count
      segments.insert(segment, at: index)
    }
    if !step.segments.isEmpty {
      let end = segmentsEnd
      blocks.removeAll { $0.end <= end }
    }
    for block in step.blocks {
      if let index = blocks.firstIndex(where: { $0.first == block.first }) {
        blocks[index] = block
      } else {
        blocks.append(block)
      }
    }
    checkpoints = Self.merged(checkpoints, step.checkpoints)
    let dropped = dropFrames()
    if let frames = step.frames { self.frames.append(EarlierFrames(step: step.number, frames)) }
    return dropped
  }

  /// Merges checkpoints by size; of two with the same size the added one is kept.
  static func merged(
    _ checkpoints: [CopiedCheckpoint], _ added: [CopiedCheckpoint]
  ) -> [CopiedCheckpoint] {
    if added.isEmpty { return checkpoints }
    let sizes = Set(added.map(\.size))
    return (checkpoints.filter { !sizes.contains($0.size) } + added).sorted { $0.size < $1.size }
  }

  /// Drops frames that are in blocks; returns their steps.
  private mutating func dropFrames() -> [Int] {
    let end = blocksEnd
    let dropped = frames.filter { $0.frames.end <= end }.map(\.step)
    frames.removeAll { $0.frames.end <= end }
    return dropped
  }

  private func check() throws(CopyFault) {
    func fault(_ cause: String) -> CopyFault { CopyFault(object: newest.key, cause: cause) }
    var next = 0
    for segment in segments {
      guard segment.first == next else { throw fault("no segment begins at position \(next)") }
      next = segment.end
    }
    let segment = next
    var offset = 0
    for block in blocks {
      guard block.first == next else { throw fault("no block begins at position \(next)") }
      guard block.segment == segment, block.offsetBytes == offset else {
        throw fault("the block at position \(next) does not continue its segment")
      }
      next = block.end
      offset += block.byteCount
    }
    for frames in frames.map(\.frames) {
      guard frames.first == next, frames.tail >= blocksEnd else {
        throw fault("no frames begin at position \(next)")
      }
      next = frames.end
    }
    guard next == newest.size else {
      throw fault("it says \(newest.size) events, but its objects hold \(next)")
    }
  }
}

// MARK: - Digests of copied segments

/// The file `replication/segments`, which saves a start from reading all segments: a line for each segment in the copy
/// with its first position, size, file number, time of change, SHA-256, and `1` once the copy's object was read back. A
/// line that can't be read is ignored.
struct SegmentDigests: Equatable {
  static let fileName = "segments"
  private static let byteCountMax = 64 << 20

  struct Entry: Equatable {
    let stamp: FileStamp
    let sha256: SHA256Digest
    var isVerified: Bool
  }

  var entries: [Position: Entry] = [:]

  init() {}

  init(_ bytes: [UInt8]) {
    for line in bytes.split(separator: 0x0A) {
      let words = line.split(separator: 0x20).map { String(decoding: $0, as: UTF8.self) }
      guard words.count == 6, let first = Int(words[0]), let byteCount = Int(words[1]),
        let fileNumber = UInt64(words[2]), let changedAtNs = Int64(words[3]),
        let sha256 = Array(words[4].utf8).withUnsafeBytes({ SHA256Digest(hex: $0) })
      else { continue }
      entries[first] = Entry(
        stamp: FileStamp(byteCount: byteCount, fileNumber: fileNumber, changedAtNs: changedAtNs),
        sha256: sha256, isVerified: words[5] == "1")
    }
  }

  init(of directory: LedgerDirectory) {
    self.init()
    guard let folder = try? directory.folderIfPresent(ReplicationRecord.folderName),
      let file = try? folder.openFile(Self.fileName, .readOnly),
      let bytes = try? file.readSmall(byteCountMax: Self.byteCountMax)
    else { return }
    self = SegmentDigests(bytes)
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    for (first, entry) in entries.sorted(by: { $0.key < $1.key }) {
      bytes +=
        Array(
          "\(Format.padded(first)) \(entry.stamp.byteCount) \(entry.stamp.fileNumber) ".utf8)
      bytes += Array("\(entry.stamp.changedAtNs) \(Hex.text(entry.sha256)) ".utf8)
      bytes += Array("\(entry.isVerified ? 1 : 0)\n".utf8)
    }
    return bytes
  }

  func write(to directory: LedgerDirectory) throws(LedgerError) {
    guard let folder = try directory.folderIfPresent(ReplicationRecord.folderName) else { return }
    try folder.replaceFile(Self.fileName, with: bytes)
  }
}

// A step, one entry of the sequence that describes a copy, its bytes (docs/replication.md), and the step after a loss.
package import Base
package import Ledger

/// A closed segment in a copy.
package struct CopiedSegment: Sendable, Equatable {
  /// The position of its first event, and the one after its last.
  package var first: Position
  package var end: Position
  package var byteCount: Int
  package var sha256: SHA256Digest

  package init(first: Position, end: Position, byteCount: Int, sha256: SHA256Digest) {
    (self.first, self.end, self.byteCount, self.sha256) = (first, end, byteCount, sha256)
  }

  package var key: String {
    CopyLayout.segmentsPrefix + "\(Format.padded(first))-\(Hex.text(sha256)).jsonl.gz"
  }
}

/// A part of the newest segment in a copy: a block, preceded by the opening member if it is the first.
package struct CopiedBlock: Sendable, Equatable {
  /// The first position of its segment.
  package var segment: Position
  package var first: Position
  package var end: Position
  /// Where the part begins in the segment.
  package var offsetBytes: Int
  package var byteCount: Int
  package var sha256: SHA256Digest

  package init(
    segment: Position, first: Position, end: Position, offsetBytes: Int, byteCount: Int,
    sha256: SHA256Digest
  ) {
    (self.segment, self.first, self.end) = (segment, first, end)
    (self.offsetBytes, self.byteCount, self.sha256) = (offsetBytes, byteCount, sha256)
  }

  package var key: String {
    CopyLayout.blocksPrefix + "\(Format.padded(first))-\(Hex.text(sha256)).jsonl.gz"
  }
}

/// A signed head in a copy.
package struct CopiedCheckpoint: Sendable, Equatable {
  package var size: Int
  package var sha256: SHA256Digest

  package init(size: Int, sha256: SHA256Digest) { (self.size, self.sha256) = (size, sha256) }

  package var key: String {
    CopyLayout.checkpointsPrefix + "\(Format.padded(size))-\(Hex.text(sha256)).txt"
  }
}

/// The frames in a step.
package struct CopiedFrames: Sendable, Equatable {
  /// The first position of their tail.
  package var tail: Position
  package var first: Position
  package var end: Position
  package var byteCount: Int
  package var sha256: SHA256Digest

  package init(
    tail: Position, first: Position, end: Position, byteCount: Int, sha256: SHA256Digest
  ) {
    (self.tail, self.first, self.end) = (tail, first, end)
    (self.byteCount, self.sha256) = (byteCount, sha256)
  }
}

/// Frames of an earlier step.
package struct EarlierFrames: Sendable, Equatable {
  package var step: Int
  package var frames: CopiedFrames

  package init(step: Int, _ frames: CopiedFrames) { (self.step, self.frames) = (step, frames) }
}

/// A step's header.
package struct Step: Sendable, Equatable {
  package var number: Int
  /// From 1.
  package var epoch: Int
  package var writer: UUID16
  package var ledger: UUID16
  /// When it was created, in epoch milliseconds.
  package var atMs: Int64
  /// The SHA-256 of the previous step's header; zeros in step 0.
  package var previous: SHA256Digest
  /// How many events the steps up to this one hold, and the root of their tree.
  package var size: Int
  package var root: SHA256Digest
  /// Whether earlier steps are no longer needed, except for frames.
  package var isComplete = false
  package var identity: SHA256Digest?
  /// The object of open work, which replaces the previous one.
  package var work: SHA256Digest?
  package var segments: [CopiedSegment] = []
  package var blocks: [CopiedBlock] = []
  package var checkpoints: [CopiedCheckpoint] = []
  /// Of a complete step: the frames of earlier steps that follow the last block.
  package var earlierFrames: [EarlierFrames] = []
  package var frames: CopiedFrames?

  package init(
    number: Int, epoch: Int, writer: UUID16, ledger: UUID16, atMs: Int64, previous: SHA256Digest,
    size: Int, root: SHA256Digest
  ) {
    (self.number, self.epoch, self.writer, self.ledger) = (number, epoch, writer, ledger)
    (self.atMs, self.previous, self.size, self.root) = (atMs, previous, size, root)
  }

  /// The header's version: 2 if it names open work, which older programs do not know.
  private static let versionWithWork = 2

  package static let noDigest = SHA256Digest(0, 0, 0, 0)

  package var key: String { CopyLayout.stepKey(number) }

  /// Whether it names objects; a complete one always does.
  var namesObjects: Bool {
    identity != nil || work != nil || !segments.isEmpty || !blocks.isEmpty || !checkpoints.isEmpty
  }

  /// How many objects and frames it names.
  var objectCount: Int {
    segments.count + blocks.count + checkpoints.count + earlierFrames.count
      + (frames == nil ? 0 : 1)
  }

  // MARK: Bytes

  /// The header with its line feed.
  package var header: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("step", number)
    if work != nil { writer.member("version", Self.versionWithWork) }
    writer.member("epoch", epoch)
    writer.member("writer", self.writer.description)
    writer.member("ledger", ledger.description)
    writer.member("at", Timestamp.text(ms: atMs))
    writer.member("previous", Hex.text(previous))
    writer.member("size", size)
    writer.member("root", Hex.text(root))
    if isComplete {
      writer.key("complete")
      writer.boolean(true)
    }
    if let identity { writer.member("identity", Hex.text(identity)) }
    if let work { writer.member("work", Hex.text(work)) }
    list("segments", segments, &writer) { segment, writer in
      writer.member("first", segment.first)
      writer.member("end", segment.end)
      writer.member("bytes", segment.byteCount)
      writer.member("sha256", Hex.text(segment.sha256))
    }
    list("blocks", blocks, &writer) { block, writer in
      writer.member("segment", block.segment)
      writer.member("first", block.first)
      writer.member("end", block.end)
      writer.member("offset", block.offsetBytes)
      writer.member("bytes", block.byteCount)
      writer.member("sha256", Hex.text(block.sha256))
    }
    list("checkpoints", checkpoints, &writer) { checkpoint, writer in
      writer.member("size", checkpoint.size)
      writer.member("sha256", Hex.text(checkpoint.sha256))
    }
    list("earlier_frames", earlierFrames, &writer) { earlier, writer in
      writer.member("step", earlier.step)
      write(earlier.frames, &writer)
    }
    if let frames {
      writer.key("frames")
      writer.beginObject()
      write(frames, &writer)
      writer.endObject()
    }
    writer.endObject()
    return writer.bytes + [0x0A]
  }

  private func write(_ frames: CopiedFrames, _ writer: inout JSONWriter) {
    writer.member("tail", frames.tail)
    writer.member("first", frames.first)
    writer.member("end", frames.end)
    writer.member("bytes", frames.byteCount)
    writer.member("sha256", Hex.text(frames.sha256))
  }

  private func list<Element>(
    _ key: StaticString, _ elements: [Element], _ writer: inout JSONWriter,
    _ body: (Element, inout JSONWriter) -> Void
  ) {
    // In a complete step every list is complete, even an empty one.
    if elements.isEmpty { return }
    writer.key(key)
    writer.beginArray()
    for element in elements {
      writer.beginObject()
      body(element, &writer)
      writer.endObject()
    }
    writer.endArray()
  }

  /// Parses an object under a step's key: the step, its header's SHA-256, and its frames. Nil unless this program would
  /// write these bytes, and the frames, if present, match the header.
  package static func parse(_ bytes: [UInt8]) -> Stored? {
    guard var stored = parseHeader(bytes), let end = bytes.firstIndex(of: 0x0A) else { return nil }
    let content = bytes[(end + 1)...]
    if let frames = stored.step.frames {
      // Superseded frames have been removed.
      guard content.isEmpty || content.count == frames.byteCount,
        content.isEmpty || content.withUnsafeBytes({ SHA256.hash($0) }) == frames.sha256
      else { return nil }
    } else if !content.isEmpty {
      return nil
    }
    if !content.isEmpty { stored.frames = Array(content) }
    return stored
  }

  /// Parses a step's header and ignores what follows it.
  static func parseHeader(_ bytes: [UInt8]) -> Stored? {
    guard let end = bytes.firstIndex(of: 0x0A), end < CopyLayout.stepHeaderByteCountMax,
      let value = try? JSONValue(Array(bytes[..<end])), let step = Step(value),
      step.isConsistent, step.header.elementsEqual(bytes[...end])
    else { return nil }
    return Stored(step: step, sha256: bytes[...end].withUnsafeBytes { SHA256.hash($0) })
  }

  /// Whether an object under a step's key is a step of a later version.
  static func isNewer(_ bytes: [UInt8]) -> Bool {
    guard let end = bytes.firstIndex(of: 0x0A), end < CopyLayout.stepHeaderByteCountMax else {
      return false
    }
    return (try? JSONValue(Array(bytes[..<end])))?.count("version") ?? 0 > versionWithWork
  }

  /// A step as read from the store.
  package struct Stored: Sendable, Equatable {
    package var step: Step
    /// Of the header.
    package var sha256: SHA256Digest
    /// Nil if there are none, or if they were superseded and removed.
    package var frames: [UInt8]?
  }
}

// MARK: Reading

extension Step {
  private init?(_ value: JSONValue) {
    guard let number = value.count("step"), let epoch = value.count("epoch"),
      let writer = value["writer"]?.stringValue.flatMap({ UUID16($0) }),
      let ledger = value["ledger"]?.stringValue.flatMap({ UUID16($0) }),
      let at = value["at"]?.stringValue, let previous = value.digest("previous"),
      let size = value.count("size"), let root = value.digest("root"),
      let atMs = try? Timestamp.parse(at)
    else { return nil }
    self.init(
      number: number, epoch: epoch, writer: writer, ledger: ledger, atMs: atMs, previous: previous,
      size: size, root: root)
    isComplete = value["complete"] == .boolean(true)
    identity = value.digest("identity")
    work = value.digest("work")
    for element in value["segments"]?.arrayValue ?? [] {
      guard let first = element.count("first"), let end = element.count("end"),
        let bytes = element.count("bytes"), let sha256 = element.digest("sha256")
      else { return nil }
      segments.append(CopiedSegment(first: first, end: end, byteCount: bytes, sha256: sha256))
    }
    for element in value["blocks"]?.arrayValue ?? [] {
      guard let segment = element.count("segment"), let first = element.count("first"),
        let end = element.count("end"), let offset = element.count("offset"),
        let bytes = element.count("bytes"), let sha256 = element.digest("sha256")
      else { return nil }
      blocks.append(
        CopiedBlock(
          segment: segment, first: first, end: end, offsetBytes: offset, byteCount: bytes,
          sha256: sha256))
    }
    for element in value["checkpoints"]?.arrayValue ?? [] {
      guard let size = element.count("size"), let sha256 = element.digest("sha256") else {
        return nil
      }
      checkpoints.append(CopiedCheckpoint(size: size, sha256: sha256))
    }
    for element in value["earlier_frames"]?.arrayValue ?? [] {
      guard let step = element.count("step"), let frames = element.frames else { return nil }
      earlierFrames.append(EarlierFrames(step: step, frames))
    }
    if let element = value["frames"] {
      guard let frames = element.frames else { return nil }
      self.frames = frames
    }
  }

  /// Whether the numbers are consistent, so that nothing computed from them can overflow.
  private var isConsistent: Bool {
    func areInOrder(_ ranges: [(first: Position, end: Position)]) -> Bool {
      var next = 0
      for range in ranges {
        guard next <= range.first, range.first < range.end, range.end <= size else { return false }
        next = range.end
      }
      return true
    }
    func isConsistent(_ frames: CopiedFrames) -> Bool {
      frames.tail <= frames.first && frames.first < frames.end
        && 1...CopyLayout.framesByteCountMax ~= frames.byteCount
    }
    return epoch >= 1 && (number > 0 || (isComplete && previous == Step.noDigest))
      && areInOrder(segments.map { ($0.first, $0.end) })
      && areInOrder(blocks.map { ($0.first, $0.end) })
      && blocks.allSatisfy { $0.segment <= $0.first && $0.byteCount > 0 && $0.offsetBytes >= 0 }
      && zip(checkpoints, checkpoints.dropFirst()).allSatisfy { $0.size < $1.size }
      && checkpoints.allSatisfy { $0.size <= size }
      && areInOrder(earlierFrames.map { ($0.frames.first, $0.frames.end) })
      && earlierFrames.allSatisfy { $0.step < number && isConsistent($0.frames) }
      && (earlierFrames.isEmpty || isComplete)
      && (frames.map { $0.end == size && isConsistent($0) } ?? true)
  }
}

extension JSONValue {
  /// A member that is a number from 0, of at most 18 digits.
  func count(_ key: String) -> Int? {
    guard let value = self[key]?.integerValue, (0...999_999_999_999_999_999).contains(value)
    else { return nil }
    return Int(value)
  }

  var frames: CopiedFrames? {
    guard let tail = count("tail"), let first = count("first"), let end = count("end"),
      let bytes = count("bytes"), let sha256 = digest("sha256")
    else { return nil }
    return CopiedFrames(tail: tail, first: first, end: end, byteCount: bytes, sha256: sha256)
  }

  func digest(_ key: String) -> SHA256Digest? {
    guard let text = self[key]?.stringValue else { return nil }
    return Array(text.utf8).withUnsafeBytes { SHA256Digest(hex: $0) }
  }
}

// MARK: - The step after a loss

/// The files of a ledger that are in the store and may be named.
struct StoredContent {
  var layout: ContentLayout
  var identity: SHA256Digest
  var work: SHA256Digest?
  var checkpoints: [CopiedCheckpoint]
}

extension StoredContent {
  /// The step after a state whose steps were lost, and its frames. It names everything that the copy holds. Nil until
  /// frames lead from what is stored to the state's size.
  ///
  /// All frames are in this step: no step holds fewer events than its predecessor, and frames of other steps may be
  /// lost.
  /// - Parameter frameByteCount: the most bytes of frames that are taken beyond the state's size.
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

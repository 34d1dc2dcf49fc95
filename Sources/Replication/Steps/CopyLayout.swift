// The layout of a copy: the keys of its objects (docs/replication.md), and which content the next step may name.
package import Base
import Ledger

/// The keys of a copy's objects, without the target's prefix.
package enum CopyLayout {
  /// The most bytes of a step's header with its line feed.
  package static let stepHeaderByteCountMax = 16 << 20
  /// The most bytes of frames in a step: the collected frames, and one more.
  package static let framesByteCountMax = (8 << 20) + (33 << 20)
  package static let stepByteCountMax = stepHeaderByteCountMax + framesByteCountMax
  /// The most steps from one complete step to the next.
  package static let stepsBetweenCompleteMax = 1_000

  /// The most objects that the steps after a complete one may name together. A writer creates a complete step at half
  /// of it.
  static let objectCountMax = 1_000_000

  /// The number of a step is below this.
  static let stepNumberMax = 1 << 50

  package static let stepsPrefix = "steps/"
  package static let segmentsPrefix = "segments/"
  package static let blocksPrefix = "blocks/"
  package static let checkpointsPrefix = "checkpoints/"
  package static let identityPrefix = "identity/"
  package static let workPrefix = "work/"
  /// The prefixes of objects that steps name.
  package static let contentPrefixes = [
    segmentsPrefix, blocksPrefix, checkpointsPrefix, identityPrefix, workPrefix,
  ]

  package static func stepKey(_ number: Int) -> String { stepsPrefix + Format.padded(number) }

  /// How many objects a store returns per list.
  static let listCountMax = 1_000

  /// The number in a step's key; nil for other keys.
  package static func stepNumber(_ key: String) -> Int? {
    guard key.hasPrefix(stepsPrefix), let number = number(key.dropFirst(stepsPrefix.count)),
      number < stepNumberMax
    else { return nil }
    return number
  }

  /// Whether a key has exactly the form of those that steps name.
  static func isContentKey(_ key: String) -> Bool { object(ofKey: key) != nil }

  /// The object of a key in the form that steps name; nil for any other key.
  static func object(ofKey key: String) -> CopyObject? {
    func parts(_ prefix: String, _ suffix: String) -> (position: Int, isDigest: Bool)? {
      guard key.hasPrefix(prefix), key.hasSuffix(suffix),
        key.utf8.count == prefix.utf8.count + 20 + 1 + 64 + suffix.utf8.count
      else { return nil }
      let name = key.dropFirst(prefix.count).dropLast(suffix.count)
      guard let position = number(name.prefix(20)), name.dropFirst(20).first == "-" else {
        return nil
      }
      return (position, isDigest(name.dropFirst(21)))
    }
    if let found = parts(segmentsPrefix, ".jsonl.gz"), found.isDigest {
      return .segment(found.position)
    }
    if let found = parts(blocksPrefix, ".jsonl.gz"), found.isDigest {
      return .block(found.position)
    }
    if let found = parts(checkpointsPrefix, ".txt"), found.isDigest {
      return .checkpoint(found.position)
    }
    let suffix = ".json"
    for (prefix, object) in [(identityPrefix, CopyObject.identity), (workPrefix, .work)]
    where key.hasPrefix(prefix) && key.hasSuffix(suffix) {
      return isDigest(key.dropFirst(prefix.count).dropLast(suffix.count)) ? object : nil
    }
    return nil
  }

  private static func number(_ digits: Substring) -> Int? {
    guard digits.utf8.count == 20, digits.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
    return Int(digits)
  }

  private static func isDigest(_ text: Substring) -> Bool {
    text.utf8.count == 64 && Array(text.utf8).withUnsafeBytes { SHA256Digest(hex: $0) } != nil
  }

  package static func identityKey(_ digest: SHA256Digest) -> String {
    identityPrefix + "\(Hex.text(digest)).json"
  }

  static func workKey(_ digest: SHA256Digest) -> String {
    workPrefix + "\(Hex.text(digest)).json"
  }
}

extension Hex {
  /// A digest's 64 hex digits.
  static func text(_ digest: SHA256Digest) -> String {
    digest.withUnsafeBytes { text($0) }
  }
}

// MARK: - Content of the next step

/// The segments and blocks of a copy, without gaps from position 0, as a step leaves them.
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
  /// Frames as the next step describes them. They continue the tail of the frames before them: the tails of a copy may
  /// differ from those on this disk if the log was laid out again after another writer's.
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
  /// Adds to a step the changes from a state to a layout; makes the step complete if changes can't express it. False if
  /// the state's frames do not continue the layout: the step is then unchanged.
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

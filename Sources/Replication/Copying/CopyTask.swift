// Tasks that run concurrently with the steps: storing, deleting, sweeping; and the scan for redactions listed later.
import Base
import Ledger

/// An object of the copy that steps name, by its position and without its digest.
enum CopyObject: Hashable, Sendable {
  case identity
  case work
  case segment(Position)
  case block(Position)
  case checkpoint(Int)

  func key(_ sha256: SHA256Digest) -> String {
    switch self {
    case .identity: CopyLayout.identityKey(sha256)
    case .work: CopyLayout.workKey(sha256)
    case .segment(let first):
      CopiedSegment(first: first, end: first, byteCount: 0, sha256: sha256).key
    case .block(let first):
      CopiedBlock(
        segment: first, first: first, end: first, offsetBytes: 0, byteCount: 0, sha256: sha256
      ).key
    case .checkpoint(let size): CopiedCheckpoint(size: size, sha256: sha256).key
    }
  }
}

/// The objects that a state names, by position.
struct NamedObjects {
  var segments: [Position: CopiedSegment] = [:]
  var blocks: [Position: CopiedBlock] = [:]
  var checkpoints: [Int: SHA256Digest] = [:]
  var identity: SHA256Digest?
  var work: SHA256Digest?

  init() {}

  init(_ state: CopyState) {
    segments = Dictionary(uniqueKeysWithValues: state.segments.map { ($0.first, $0) })
    blocks = Dictionary(uniqueKeysWithValues: state.blocks.map { ($0.first, $0) })
    checkpoints = Dictionary(
      uniqueKeysWithValues: state.checkpoints.map { ($0.size, $0.sha256) })
    identity = state.identity
    work = state.work
  }

  func digest(_ object: CopyObject) -> SHA256Digest? {
    switch object {
    case .identity: identity
    case .work: work
    case .segment(let first): segments[first]?.sha256
    case .block(let first): blocks[first]?.sha256
    case .checkpoint(let size): checkpoints[size]
    }
  }
}

/// One object to be stored.
struct Upload: Sendable {
  enum Source: Sendable {
    case bytes([UInt8])
    /// A closed segment, as its file is when the task begins.
    case segment(Position)
    case part(StorageFile, offsetBytes: Int, byteCount: Int)
  }

  let object: CopyObject
  let source: Source
  /// The stamp of the file when the task was planned.
  let stamp: FileStamp
  /// The digest of what the copy has at this position: the same bytes need not be stored again. Nil if they must be.
  let stored: SHA256Digest?
  /// The number of the task; later tasks have greater numbers.
  let number: Int
}

/// An object that was stored, or was there already.
struct Stored: Sendable {
  let sha256: SHA256Digest
  let byteCount: Int
  /// The stamp of the file when it was read.
  let stamp: FileStamp
  /// Whether this upload stored it.
  let isNew: Bool
}

/// An object and its expected contents.
struct ExpectedObject: Sendable, Hashable {
  let object: CopyObject
  let key: String
  let sha256: SHA256Digest
  /// Nil for small objects whose size no step records.
  let byteCount: Int?

  /// The most bytes that are read from an object.
  var byteCountMax: Int { byteCount ?? (object == .work ? OpenWork.byteCountMax : 1 << 20) }
}

/// A step whose frames were superseded.
struct SupersededStep: Sendable {
  /// Longer headers are not kept in memory.
  static let headerByteCountMax = 4 << 10

  let number: Int
  /// The positions of the frames.
  let positions: Range<Position>
  /// Nil if it is no longer in memory and must be read from the store.
  let header: [UInt8]?
}

/// What steps have replaced; it may be deleted once its replacement was read back.
struct Cleanup: Sendable {
  var keys: [String] = []
  /// Steps whose frames are to be deleted.
  var steps: [SupersededStep] = []
  var expected: [ExpectedObject] = []
  /// The objects that were read back intact.
  var verified: [ExpectedObject] = []
  /// The objects that do not have their expected contents.
  var damaged: [ExpectedObject] = []

  var isDone: Bool { keys.isEmpty && steps.isEmpty }
  var count: Int { keys.count + steps.count }
}

/// What a list of all objects is compared with.
struct Sweep: Sendable {
  /// Which contents are read back.
  enum Reading: Sendable {
    case keys(Set<String>)
    /// A part of all objects and steps, chosen at random.
    case sample(Double)
  }

  let state: CopyState
  /// Superseded frames before this step are already deleted.
  let firstStep: Int
  /// The sizes of checkpoints, which no step records.
  let sizes: [String: Int]
  let reading: Reading
  /// On the wall clock.
  let startedAtMs: Int64
}

/// What a sweep found.
struct SweepFinding: Sendable {
  /// Objects that no step names.
  var keys: [String] = []
  var steps: [SupersededStep] = []
  /// Whether there are more of them.
  var isPartial = false
  /// Objects that steps name and the store lacks or has with other contents.
  var lost: [ExpectedObject] = []
  /// Needed steps that are missing, empty or damaged.
  var lostSteps: [CopyFault] = []
  /// How many objects were read back.
  var readCount = 0
  var readByteCount = 0
}

extension CopyState {
  /// The objects that the state names, without steps.
  var expectedObjects: [ExpectedObject] {
    var expected = segments.map {
      ExpectedObject(
        object: .segment($0.first), key: $0.key, sha256: $0.sha256, byteCount: $0.byteCount)
    }
    expected += blocks.map {
      ExpectedObject(
        object: .block($0.first), key: $0.key, sha256: $0.sha256, byteCount: $0.byteCount)
    }
    expected += checkpoints.map {
      ExpectedObject(
        object: .checkpoint($0.size), key: $0.key, sha256: $0.sha256, byteCount: nil)
    }
    for (object, sha256) in [(CopyObject.identity, identity as SHA256Digest?), (.work, work)] {
      guard let sha256 else { continue }
      expected.append(
        ExpectedObject(object: object, key: object.key(sha256), sha256: sha256, byteCount: nil))
    }
    return expected
  }
}

enum CopyTask: Sendable {
  case upload(Upload)
  case clean(Cleanup)
  case sweep(Sweep)
}

enum CopyResult: Sendable {
  case uploaded(Upload, Result<Stored, LedgerError>)
  /// What remains of a cleanup.
  case cleaned(Cleanup)
  /// Nil if the objects could not be listed.
  case swept(Sweep, SweepFinding?)
}

// MARK: - Redacted lines and their listing

/// Finds redacted lines that their erasure lists only later: a redacted line is proven once an event has listed it.
struct RedactionScan {
  /// Redacted lines that no event has listed yet, and their erasures.
  private var unlisted: [Position: Position] = [:]
  /// The next event.
  private(set) var next: Position = 0
  /// The first end, from the wanted one on, at which every redacted line is listed.
  private(set) var soundEnd: Position?
  private let wanted: Position

  init(wanted: Position) { self.wanted = wanted }

  var unlistedCount: Int { unlisted.count }

  /// Reads to the end of a log, or until a sound end is found.
  mutating func read(_ reader: LogReader) throws {
    if next == wanted, unlisted.isEmpty { soundEnd = wanted }
    if soundEnd != nil || next >= reader.head.size { return }
    var scan = self
    try reader.read(from: next, to: reader.head.size) { chunk in
      try chunk.forEachEvent { scan.add($0) }
      return scan.soundEnd == nil
    }
    self = scan
  }

  private mutating func add(_ line: EventLine) {
    if soundEnd != nil { return }
    if let erasure = line.redactedBy {
      unlisted[line.position] = erasure
    } else if EventType(line.type) == .dataRedacted,
      case .listing(let listing)? = try? DataRedacted(data: line.data)
    {
      for listed in listing.lines where unlisted[listed.position] == listing.erasure {
        unlisted[listed.position] = nil
      }
    }
    next = line.position + 1
    if next >= wanted, unlisted.isEmpty { soundEnd = next }
  }
}

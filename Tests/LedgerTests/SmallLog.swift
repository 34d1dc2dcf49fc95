// A log of a few hundred bytes a file, in memory, in which tests may damage every byte.
import Ledger
import TestSupport
import Testing

/// Three closed segments of three blocks, an open one with two, and a tail of three frames; a block or frame is one
/// event.
final class SmallLog {
  struct Segment {
    let path: String
    let first: Int
    /// The opening, the blocks, and the closing member of a closed segment.
    let members: [[UInt8]]

    var content: [UInt8] { Array(members.joined()) }
    /// The file's path inside the ledger.
    var name: String { String(path.dropFirst("/ledger/".count)) }
  }

  static let blockCount = 11
  static let eventCount = 14

  let storage: FaultyStorage
  let directory: LedgerDirectory
  private(set) var segments: [Segment] = []
  private(set) var tailPath = ""
  private(set) var frames: [[UInt8]] = []
  /// All lines, in order.
  private(set) var lines: [[UInt8]] = []

  init(origin: String = "receipts.example/small") throws {
    storage = FaultyStorage()
    directory = try LedgerDirectory.create(path: "/ledger", origin: origin, storage: storage)
    var options = LedgerFixture.smallOptions(block: 1, segment: 1090)
    options.clock = { 1_767_323_045_679 }
    var writer = try LedgerWriter.open(directory, options: options)
    func append(_ index: Int) throws {
      let data = Array("{\"n\":\(index % 10)}".utf8)
      _ = try writer.append([EventDraft(type: "test.small", version: 1, data: data)])
    }
    for index in 0..<SmallLog.blockCount { try append(index) }
    try writer.close()
    // Opened with the same options, the next append would make the last tail a block.
    writer = try LedgerWriter.open(directory, options: options)
    try append(SmallLog.blockCount)
    try writer.close()
    options.blockByteCount = 1 << 20
    writer = try LedgerWriter.open(directory, options: options)
    for index in SmallLog.blockCount + 1..<SmallLog.eventCount { try append(index) }
    try writer.close()
    for path in storage.paths {
      if path.hasSuffix(".jsonl.gz") {
        let content = storage.content(path)
        segments.append(
          Segment(
            path: path, first: Int(path.dropFirst("/ledger/log/".count).prefix(20)) ?? -1,
            members: try memberPlaces(content).map { Array(content[$0]) }))
      } else if path.contains("/tail-") {
        tailPath = path
        frames = FrameBytes.split(storage.content(path)).map(\.bytes)
      }
    }
    try #require(segments.map(\.first) == [0, 3, 6, 9])
    try #require(segments.map(\.members.count) == [5, 5, 5, 3])
    try #require(frames.count == 3)
    lines = try readable().lines
    try #require(lines.count == SmallLog.eventCount)
  }

  /// Paths of the log's files.
  var paths: [String] { segments.map(\.path) + [tailPath] }

  /// The positions of a segment's events.
  func range(_ segment: Int) -> Range<Int> {
    let first = segments[segment].first
    return
      first..<(segment + 1 < segments.count ? segments[segment + 1].first : SmallLog.blockCount)
  }

  /// Puts the files back as they were.
  func restore() {
    for path in storage.paths where path.hasPrefix("/ledger/log/") && !paths.contains(path) {
      storage.remove(path)
    }
    for segment in segments { storage.place(segment.path, segment.content) }
    storage.place(tailPath, Array(frames.joined()))
    storage.setFaults(.init())
  }

  /// The lines that a reader returns, and the error that ends it.
  func readable() throws -> (lines: [[UInt8]], error: LedgerError?) {
    var found: [[UInt8]] = []
    do {
      let reader = try LogReader(directory)
      try reader.read(from: 0, workers: 0) { chunk in
        try chunk.forEachEvent { found.append(Array($0.bytes)) }
        return true
      }
      return (found, nil)
    } catch let error as LedgerError {
      return (found, error)
    }
  }

  /// The lines returned by reading past damage.
  func salvaged() throws -> (lines: [[UInt8]], report: SalvageReport) {
    var found: [[UInt8]] = []
    let report = try LogSalvage(directory).run { found.append(Array($0.bytes)) }
    return (found, report)
  }
}

/// Where the members of a segment lie.
func memberPlaces(_ content: [UInt8]) throws -> [Range<Int>] {
  var places: [Range<Int>] = []
  var offset = 0
  while offset < content.count {
    let size = (0..<4).reduce(0) { $0 | Int(content[offset + 40 + $1]) << (8 * $1) }
    try #require(size > 0)
    places.append(offset..<offset + size)
    offset += size
  }
  return places
}

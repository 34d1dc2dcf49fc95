// Visits all members of all segments, and continues past damage; tails and lines of an audit.
import Base

/// What the walk finds, in the order of the files.
enum AuditStep {
  /// A segment begins; the opening is nil if it is damaged.
  case segment(StorageFile, first: Position, opening: MemberHeader?)
  /// A block's header; the pipeline delivers its content. Only a block at the log's end whose CRC-32
  /// does not match may be torn: opening the log accepts any other.
  case block(MemberHeader, BlockLocation, file: String, mayBeTorn: Bool)
  case closing(MemberHeader, offsetBytes: Int)
  /// Other bytes follow the newest segment's last intact member, up to its end.
  case torn(file: String, block: Int, byteCount: Int)
  /// A segment ends.
  case end(isClosed: Bool, isNewest: Bool)
  case finding(AuditFinding)
}

/// Gives blocks to a pipeline, and queues the steps for the thread that reads the results.
final class AuditWalk: BlockSequence {
  private struct Segment {
    let first: Position
    let file: StorageFile
    var sizeBytes: Int
    var offsetBytes = 0
    var blockCount = 0
    var isClosed = false
    /// The last block. If it is damaged its size may be wrong.
    var lastBlock: BlockLocation?
  }

  private let directory: LedgerDirectory
  /// A segment still ahead. Only the newest is kept open, because only that one may change.
  private struct NextSegment {
    let first: Position
    let name: String
    let file: StorageFile?
    let sizeBytes: Int
  }

  private var segments: ArraySlice<NextSegment>
  private var current: Segment?
  private let steps = Monitor<[AuditStep]>([])
  private var search = MemberSearch()

  /// The size of all segments.
  let byteCount: Int

  /// Lists the segments and opens the newest, so that the audit sees the log at one moment.
  init(_ directory: LedgerDirectory) throws(LedgerError) {
    self.directory = directory
    var segments: [NextSegment] = []
    // Without the folder, the first segment is also missing, which is reported.
    let names = try directory.listIfPresent(Format.logDirectoryName) ?? []
    let firsts = names.compactMap(Format.segmentFirst).sorted()
    for first in firsts {
      let name = directory.logPath(Format.segmentName(first))
      do throws(LedgerError) {
        if first == firsts.last {
          guard let file = try directory.openFileIfPresent(name) else { continue }
          segments.append(
            NextSegment(first: first, name: name, file: file, sizeBytes: try file.sizeBytes()))
        } else if let status = try directory.inspectedStatus(name) {
          segments.append(
            NextSegment(first: first, name: name, file: nil, sizeBytes: status.sizeBytes))
        }
      } catch {
        // A file that must not be used, such as a symbolic link, is not damage.
        if error.kind == .invalidInput { throw error }
        steps.withLock { $0.append(.finding(AuditFinding(error, file: name, at: first))) }
      }
    }
    self.segments = segments[...]
    byteCount = segments.reduce(0) { $0 + $1.sizeBytes }
  }

  /// Removes and returns the steps up to and including the next block, or all that remain.
  func nextSteps() -> [AuditStep] {
    steps.withLock { steps in
      var end = steps.count
      for (index, step) in steps.enumerated() {
        if case .block = step {
          end = index + 1
          break
        }
      }
      defer { steps.removeFirst(end) }
      return Array(steps[..<end])
    }
  }

  private func record(_ step: AuditStep) { steps.withLock { $0.append(step) } }

  private func report(_ finding: AuditFinding) { record(.finding(finding)) }

  func next() -> BlockItem? {
    while true {
      guard var segment = current else {
        guard let next = segments.popFirst() else { return nil }
        begin(next)
        continue
      }
      let item: BlockItem?
      do throws(LedgerError) { item = try advance(&segment) } catch {
        report(AuditFinding(error, file: segment.file.name, block: segment.blockCount, at: nil))
        segment.blockCount += 1
        segment.lastBlock = nil
        segment.offsetBytes = nextMember(after: segment.offsetBytes, segment)
        item = nil
      }
      if segment.offsetBytes >= segment.sizeBytes, item == nil {
        record(.end(isClosed: segment.isClosed, isNewest: segments.isEmpty))
        current = nil
      } else {
        current = segment
      }
      if let item { return item }
    }
  }

  private func begin(_ next: NextSegment) {
    let name = next.name
    let file: StorageFile
    do throws(LedgerError) {
      if let open = next.file {
        file = open
      } else {
        guard let found = try directory.openFileIfPresent(name) else { return }
        file = found
      }
    } catch {
      return report(AuditFinding(error, file: name, at: next.first))
    }
    var segment = Segment(first: next.first, file: file, sizeBytes: next.sizeBytes)
    do throws(LedgerError) {
      // An erasure may have replaced the file of a closed segment since the sizes were noted.
      if next.file == nil { segment.sizeBytes = try file.sizeBytes() }
      let header = try search.header(at: 0, of: segment.file, segment.sizeBytes)
      if let header, case .opening = header.detail, try header.isWhole(in: segment.file, at: 0) {
        segment.offsetBytes = header.memberByteCount
        record(.segment(file, first: next.first, opening: header))
      } else {
        record(.segment(file, first: next.first, opening: nil))
        report(AuditFinding(.corrupt, name, at: next.first, "its opening member is damaged"))
        segment.offsetBytes = nextMember(after: 0, segment)
      }
    } catch {
      record(.segment(file, first: next.first, opening: nil))
      report(AuditFinding(error, file: name, at: next.first))
      segment.offsetBytes = nextMember(after: 0, segment)
    }
    current = segment
  }

  /// Reads one member; returns it if it is a block.
  private func advance(_ segment: inout Segment) throws(LedgerError) -> BlockItem? {
    let offset = segment.offsetBytes
    guard offset < segment.sizeBytes else { return nil }
    guard let header = try search.header(at: offset, of: segment.file, segment.sizeBytes) else {
      skip(&segment)
      return nil
    }
    if segment.isClosed {
      report(AuditFinding(.tampered, segment.file.name, at: nil, "bytes follow its closing member"))
    }
    let endOffset = offset + header.memberByteCount
    switch header.detail {
    case .block:
      let block = BlockLocation(
        first: header.first, eventCount: header.eventCount, ordinal: segment.blockCount,
        offsetBytes: offset, memberByteCount: header.memberByteCount,
        contentByteCount: header.contentByteCount)
      segment.blockCount += 1
      segment.lastBlock = block
      segment.offsetBytes = endOffset
      var mayBeTorn = segments.isEmpty && endOffset == segment.sizeBytes
      // If it cannot be read, inflating it reports that.
      if mayBeTorn { mayBeTorn = (try? header.isWhole(in: segment.file, at: offset)) == false }
      record(.block(header, block, file: segment.file.name, mayBeTorn: mayBeTorn))
      return BlockItem(block: block, file: segment.file)
    case .closing:
      guard try header.isWhole(in: segment.file, at: offset) else {
        skip(&segment)
        return nil
      }
      record(.closing(header, offsetBytes: offset))
      segment.isClosed = true
    case .opening:
      report(
        AuditFinding(
          .tampered, segment.file.name, block: segment.blockCount, at: nil,
          "a second opening member is here"))
    }
    segment.offsetBytes = endOffset
    return nil
  }

  /// Skips bytes that are not a member.
  private func skip(_ segment: inout Segment) {
    var start = segment.offsetBytes
    var isKnown = false
    if let block = segment.lastBlock, block.endOffsetBytes == start {
      // The previous block may be damaged in the field with its size. Then these bytes are part of
      // it, and inflating it reports the damage.
      if !search.isWholeMember(at: block.offsetBytes, of: segment.file, segment.sizeBytes) {
        start = block.offsetBytes
        isKnown = true
      }
    }
    let next = nextMember(after: start, segment)
    if !isKnown {
      let isTorn = next == segment.sizeBytes && segments.isEmpty && !segment.isClosed
      let rest = segment.sizeBytes - start
      if isTorn, rest <= Format.memberByteCountMax {
        record(.torn(file: segment.file.name, block: segment.blockCount, byteCount: rest))
      } else {
        report(
          AuditFinding(
            .corrupt, segment.file.name, block: segment.blockCount, at: nil,
            "the bytes here are not a valid member"))
        segment.blockCount += 1
      }
    }
    segment.lastBlock = nil
    segment.offsetBytes = next
  }

  /// Where the next whole member begins, or the segment's end.
  private func nextMember(after offset: Int, _ segment: Segment) -> Int {
    search.next(after: offset, in: segment.file, segment.sizeBytes) ?? segment.sizeBytes
  }
}

// MARK: - Tails

/// Opens the tails of a log at one moment, as far as the limit of open files allows.
struct AuditTails {
  /// The maximum size of a tail: the events of a block, and the headers of their frames.
  static let byteCountMax = 2 * Format.blockByteCountMax

  struct Tail {
    let first: Position
    let file: TailFile

    /// The file's bytes.
    func content() throws(LedgerError) -> ByteBuffer {
      let file = try file.opened()
      let byteCount = try file.sizeBytes()
      guard byteCount <= AuditTails.byteCountMax else {
        throw LedgerError(
          .init(verdict: .corrupt, file: file.name, position: first), operation: "read tail",
          cause: "it is larger than a tail can be")
      }
      let content = ByteBuffer(capacity: byteCount)
      _ = try file.readWhole(byteCount, offsetBytes: 0, into: content)
      return content
    }
  }

  private(set) var open: [Tail] = []
  private(set) var temporaryNames: [String] = []
  private(set) var findings: [AuditFinding] = []
  /// The size of all tails.
  private(set) var byteCount = 0

  init(_ directory: LedgerDirectory) throws(LedgerError) {
    let names = try directory.listIfPresent(Format.logDirectoryName) ?? []
    temporaryNames = names.filter { $0.hasSuffix(Format.temporarySuffix) }.sorted()
      .map(directory.logPath)
    let keptTailCount = OpenFileLimit.tailCountMax(limit: OpenFileLimit.current)
    for first in names.compactMap(Format.tailFirst).sorted() {
      let name = directory.logPath(Format.tailName(first))
      do throws(LedgerError) {
        guard let file = try directory.openFileIfPresent(name) else { continue }
        byteCount += try file.sizeBytes()
        let isKept = open.count < keptTailCount
        open.append(
          Tail(first: first, file: try TailFile(file, directory, first: first, isKept: isKept)))
      } catch {
        // A file that must not be used, such as a symbolic link, is not damage.
        if error.kind == .invalidInput { throw error }
        findings.append(AuditFinding(error, file: name, at: first))
      }
    }
  }

  /// The next whole frame after the first byte. Without one, the bytes may be a torn frame, unless they
  /// are longer than a frame can be or the search was abandoned.
  static func nextFrame(
    _ bytes: UnsafeRawBufferPointer
  ) -> (frame: (first: Position, offsetBytes: Int)?, isTorn: Bool) {
    var search = ValidPartSearch(bytes, start: 0x23)
    while let candidate = search.next() {
      guard let header = FrameHeader(candidate), header.frameByteCount <= candidate.count
      else { continue }
      guard search.spend(header.frameByteCount) else { return (nil, false) }
      if header.isWhole(in: candidate) {
        return ((header.first, bytes.count - candidate.count), false)
      }
    }
    return (nil, bytes.count <= Format.frameByteCountMax + Format.frameHeaderByteCountMax)
  }
}

// MARK: - Lines

/// The leaves of a run of lines and the faults that the run shows by itself. Checked on any thread.
package final class AuditedLines: @unchecked Sendable {
  // One thread fills it in, then another reads it, never both at once.
  private(set) var leafHashes: [SHA256Digest] = []
  private(set) var firstEventAtMs: Int64 = 0
  private(set) var lastEventAtMs: Int64 = 0
  /// Well-formed `trust.declared` events. The projections report malformed ones.
  private(set) var trust: [(position: Position, trust: TrustDeclared, byteCount: Int)] = []
  /// Lines that lost their data.
  private(set) var redactions: [AuditedRedaction] = []
  /// Well-formed `data.redacted` events.
  private(set) var erasureEvents: [(position: Position, event: DataRedacted)] = []
  /// Faults of single lines, such as a digest that does not match; the run continues after them.
  private(set) var faults: [(position: Position, cause: String)] = []
  /// Why the run ends early. Its leaves are then incomplete.
  private(set) var breach: (position: Position, cause: String)?

  private let hasher = SHA256()

  /// For lines that are added one by one.
  /// - Parameter count: the number of lines to reserve memory for.
  package init(count: Int) { leafHashes.reserveCapacity(count) }

  /// Checks the form, positions, times and digests of lines, and hashes their leaves.
  package init(_ bytes: UnsafeRawBufferPointer, firstPosition: Position, count: Int) {
    // The count comes from a header; no line is shorter than this.
    leafHashes.reserveCapacity(min(count, bytes.count / 128 + 1))
    var lines = EventLines(bytes)
    var position = firstPosition
    while let text = lines.next() {
      guard let line = EventLine(text) else {
        breach = (position, "the line is not an event")
        return
      }
      guard line.position == position, position < firstPosition + count else {
        breach = (position, "the line has position \(line.position)")
        return
      }
      add(line)
      position += 1
    }
    if !lines.isAtEnd || position != firstPosition + count {
      breach = (position, "there are fewer events than the header says")
    }
  }

  /// Checks the time and the digest of the next line, and hashes its leaf.
  package func add(_ line: EventLine) {
    if leafHashes.isEmpty {
      firstEventAtMs = line.recordedAtMs
    } else if line.recordedAtMs < lastEventAtMs {
      faults.append((line.position, "the event's time is earlier than the previous event's"))
    }
    lastEventAtMs = max(lastEventAtMs, line.recordedAtMs)
    if let erasure = line.redactedBy {
      redactions.append(
        AuditedRedaction(
          position: line.position, erasure: erasure, digest: line.contentDigest(hasher)))
    } else if !line.verifyDigest(hasher) {
      faults.append((line.position, "the event's digest does not match its data"))
    }
    leafHashes.append(line.leafHash(hasher))
    if !line.isRedacted { readData(of: line) }
  }

  private func readData(of line: EventLine) {
    switch EventType(line.type) {
    case .trustDeclared:
      guard let declared = try? TrustDeclared(data: line.data) else { return }
      trust.append((line.position, declared, line.data.count))
    case .dataRedacted:
      guard let event = try? DataRedacted(data: line.data) else { return }
      erasureEvents.append((line.position, event))
    default: break
    }
  }
}

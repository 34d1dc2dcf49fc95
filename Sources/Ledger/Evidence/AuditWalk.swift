// Visits all members of all segments, and continues past damage.
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
    // Without the folder the first segment is missing too, which is reported.
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
      // An erasure may have put another file in a closed segment's place since the sizes were noted.
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

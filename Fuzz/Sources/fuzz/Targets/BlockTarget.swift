// Segments: gzip members with our FEXTRA subfield, whole files and single blocks.
@testable import Base
@testable import Ledger

extension FuzzTarget {
  static let block = FuzzTarget(
    name: "block", inputByteCountMax: 3072,
    words: [
      "\u{1F}", "RL", "{\"seq\":", "\",\"digest\":\"", "\",\"salt\":\"", "\",\"data\":{", "}}\n",
    ],
    seeds: {
      var seeds: [[UInt8]] = []
      for (eventCount, block, segment) in [(0, 900, 9000), (1, 1, 9000), (9, 900, 9000)] {
        let files = try SampleLedger.files(
          eventCount: eventCount, block: block, segment: segment, together: 3)
        let content = files[SampleLedger.segmentPath] ?? []
        for form in 0...1 { seeds.append([UInt8(form)] + content) }
      }
      // A segment that is closed.
      let closed = try SampleLedger.files(eventCount: 8, block: 500, segment: 700)
      seeds.append([0] + (closed[SampleLedger.segmentPath] ?? []))
      let tail = try SampleLedger.files(
        eventCount: 3, block: 1 << 20, segment: 1 << 20, together: 3)
      let events = (tail[SampleLedger.tailPath] ?? []).drop { $0 != 0x0A }.dropFirst()
      return seeds + [[2, 3] + events, [2, 2] + events, [3, 3] + events]
    },
    check: { input in
      guard let (form, rest) = split(input) else { return }
      switch form & 3 {
      case 0: BlockCheck.segment(Array(rest))
      case 1: BlockCheck.segment(BlockCheck.withChecksums(Array(rest)))
      default:
        if let (count, events) = split(rest) {
          BlockCheck.block(Array(events), eventCount: Int(count), isTreeReal: form & 1 == 0)
        }
      }
    })
}

enum BlockCheck {
  /// An input as the ledger's first segment.
  static func segment(_ content: [UInt8]) {
    content.withUnsafeBytes { header($0) }
    LogCheck.run([SampleLedger.segmentPath: content])
  }

  private static func header(_ bytes: UnsafeRawBufferPointer) {
    guard let header = MemberHeader(bytes) else { return }
    require(header.headerByteCount <= bytes.count, "a header lies within its bytes")
    require(header.headerByteCount < header.memberByteCount, "a member holds its header")
    require(header.memberByteCount <= Format.memberByteCountMax, "members have a largest size")
    require(header.contentByteCount <= Format.blockByteCountMax, "contents have a largest size")
    switch header.detail {
    case .opening(_, let frontier): require(frontier.size == header.first, "the tree before")
    case .block(let frontier): require(frontier.size == header.endPosition, "the tree after")
    case .closing: break
    }
  }

  /// The members' own checksums made right, member after member: what lies behind them is reached.
  static func withChecksums(_ content: [UInt8]) -> [UInt8] {
    var result = content
    var offset = 0
    while offset < result.count {
      let end = result[offset...].withUnsafeBytes { bytes -> Int? in
        guard let header = MemberHeader(bytes), header.memberByteCount <= bytes.count
        else { return nil }
        return offset + header.memberByteCount
      }
      guard let end else { break }
      let checksum = result[offset..<end].withUnsafeBytes { MemberHeader.checksum($0) }
      withUnsafeBytes(of: checksum.littleEndian) {
        let start = offset + Format.memberChecksumOffsetBytes
        result.replaceSubrange(start..<start + 4, with: $0)
      }
      offset = end
    }
    return result
  }

  /// An input as what a block holds, whatever its header is to say of it.
  static func block(_ events: [UInt8], eventCount: Int, isTreeReal: Bool) {
    guard eventCount > 0, !events.isEmpty else { return }
    let frontier = isTreeReal ? tree(of: events, eventCount) : nil
    let placeholder = [UInt8](
      repeating: 7, count: Frontier.byteCount(size: eventCount))
    guard
      let after = frontier
        ?? placeholder.withUnsafeBytes({
          Frontier(size: eventCount, bytes: $0)
        })
    else { return }
    let member = ByteBuffer()
    guard let deflater = try? BlockDeflater(level: 1) else { return }
    let isMade = events.withUnsafeBytes {
      MemberWriter(member).block(
        events: $0, eventCount: eventCount, deflated: deflater.deflate($0),
        frontierAfter: after, lastEventAtMs: 1_800_000_000_000)
    }
    // A block of fewer bytes than events is none.
    guard isMade, eventCount <= events.count else { return }
    let content = (SampleLedger.emptyFiles[SampleLedger.segmentPath] ?? []) + Array(member.bytes)
    segment(content)
    inflates(events, member, eventCount)
  }

  static func inflates(_ events: [UInt8], _ member: ByteBuffer, _ eventCount: Int) {
    let content = Array(member.bytes)
    let (directory, _) = SampleLedger.directory(replacing: ["\(SampleLedger.path)/log/x": content])
    do {
      guard let file = try directory.openFileIfPresent("log/x"),
        let header = MemberHeader(member.bytes)
      else { return require(false, "a member that was written has a header") }
      let location = BlockLocation(
        first: 0, eventCount: eventCount, ordinal: 0, offsetBytes: 0,
        memberByteCount: header.memberByteCount, contentByteCount: header.contentByteCount)
      let inflated = ByteBuffer()
      _ = try BlockInflater().inflate(location, of: file, into: inflated)
      require(Array(inflated.bytes) == events, "what is compressed inflates to the same")
    } catch { require(false, "a block that was written is read: \(error)") }
  }

  private static func tree(of events: [UInt8], _ eventCount: Int) -> Frontier? {
    events.withUnsafeBytes { bytes in
      var run = EventRun(next: 0, lastEventAtMs: 0)
      var frontier = Frontier()
      let hasher = SHA256()
      let fault = run.fault(bytes, eventCount: eventCount) { line in
        frontier.append(leafHash: line.leafHash(hasher), hasher)
      }
      return fault == nil ? frontier : nil
    }
  }
}

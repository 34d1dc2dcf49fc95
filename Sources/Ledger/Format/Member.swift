// The gzip members of a segment: opening, block and closing, with their RL subfield.
import Base
import CDeflate

/// The kind of a member.
enum MemberKind: UInt8 {
  case opening = 1
  case block = 2
  case closing = 3
}

/// The header of a gzip member, up to its deflate stream.
struct MemberHeader: Equatable {
  /// The fields that only one kind of member has.
  enum Detail: Equatable {
    /// The ledger that the segment belongs to, and the tree before it.
    case opening(ledgerID: LedgerID, frontierBefore: Frontier)
    /// The tree after the block.
    case block(frontierAfter: Frontier)
    /// The number of blocks in the segment, its bytes before this member, and the tree's root after it.
    case closing(blockCount: Int, segmentByteCount: Int, root: SHA256Digest)
  }

  let checksum: UInt32
  /// The position of the first event: of the block, or of the whole segment.
  let first: Position
  /// How many events are in the block or in the closed segment; 0 for an opening.
  let eventCount: Int
  /// The size of the whole member.
  let memberByteCount: Int
  /// The size of the content.
  let contentByteCount: Int
  /// The time of the last event up to the end of this member, 0 if there is none.
  let lastEventAtMs: Int64
  let detail: Detail
  /// The size of everything before the deflate stream.
  let headerByteCount: Int

  var endPosition: Position { first + eventCount }

  /// The length of the header that begins with these bytes; nil if none does.
  static func byteCount(prefix bytes: UnsafeRawBufferPointer) -> Int? {
    guard bytes.count >= Format.memberPrefixByteCount,
      bytes.prefix(10).elementsEqual(Format.memberStart)
    else { return nil }
    let subfieldByteCount = bytes.loadUnaligned(fromByteOffset: 14, as: UInt16.self)
    let byteCount = Format.memberPrefixByteCount + Int(UInt16(littleEndian: subfieldByteCount))
    return byteCount <= Format.memberHeaderByteCountMax ? byteCount : nil
  }

  /// Reads the header at the start of the bytes; nil if it breaks a rule or is incomplete.
  init?(_ bytes: UnsafeRawBufferPointer) {
    let prefixByteCount = Format.memberPrefixByteCount
    guard bytes.count >= prefixByteCount + Format.subfieldFixedByteCount,
      bytes.prefix(10).elementsEqual(Format.memberStart),
      bytes[12..<14].elementsEqual(Format.subfieldIdentifier)
    else { return nil }
    func load<Integer: FixedWidthInteger>(_ offset: Int, as type: Integer.Type) -> Integer {
      Integer(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: type))
    }
    let extraByteCount = Int(load(10, as: UInt16.self))
    let subfieldByteCount = Int(load(14, as: UInt16.self))
    guard extraByteCount == subfieldByteCount + 4,
      bytes.count >= prefixByteCount + subfieldByteCount,
      subfieldByteCount >= Format.subfieldFixedByteCount,
      bytes[16] == UInt8(Format.version), let kind = MemberKind(rawValue: bytes[17]),
      bytes[18] == 0, bytes[19] == 0
    else { return nil }
    let first = load(24, as: UInt64.self)
    let eventCount = load(32, as: UInt64.self)
    guard first <= UInt64(Format.positionMax), eventCount <= UInt64(Format.positionMax) - first
    else { return nil }
    checksum = load(Format.memberChecksumOffsetBytes, as: UInt32.self)
    self.first = Int(first)
    self.eventCount = Int(eventCount)
    memberByteCount = Int(load(40, as: UInt32.self))
    contentByteCount = Int(load(44, as: UInt32.self))
    lastEventAtMs = load(48, as: Int64.self)
    headerByteCount = prefixByteCount + subfieldByteCount
    let detailBytes = UnsafeRawBufferPointer(rebasing: bytes[56..<headerByteCount])
    guard Timestamp.fixedRangeMs ~= lastEventAtMs,
      let detail = MemberHeader.detail(
        kind, detailBytes, first: self.first, eventCount: self.eventCount)
    else { return nil }
    self.detail = detail
    if !hasPlausibleSizes { return nil }
  }

  private var hasPlausibleSizes: Bool {
    let emptyByteCount =
      headerByteCount + Format.emptyDeflate.count + Format.memberFooterByteCount
    switch detail {
    case .opening:
      return eventCount == 0 && contentByteCount == 0 && memberByteCount == emptyByteCount
    case .closing:
      return eventCount > 0 && contentByteCount == 0 && memberByteCount == emptyByteCount
    case .block:
      return eventCount > 0 && eventCount <= contentByteCount
        && contentByteCount <= Format.blockByteCountMax && memberByteCount > emptyByteCount
        && memberByteCount <= Format.memberByteCountMax
    }
  }

  private static func detail(
    _ kind: MemberKind, _ bytes: UnsafeRawBufferPointer, first: Position, eventCount: Int
  ) -> Detail? {
    func part(_ range: Range<Int>) -> UnsafeRawBufferPointer {
      UnsafeRawBufferPointer(rebasing: bytes[range])
    }
    func load(_ offset: Int) -> Int? {
      let value = UInt64(
        littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      return Int(exactly: value)
    }
    switch kind {
    case .opening:
      guard bytes.count >= LedgerID.byteCount,
        let ledgerID = LedgerID(part(0..<LedgerID.byteCount)),
        let frontier = Frontier(size: first, bytes: part(LedgerID.byteCount..<bytes.count))
      else { return nil }
      return .opening(ledgerID: ledgerID, frontierBefore: frontier)
    case .block:
      guard let frontier = Frontier(size: first + eventCount, bytes: bytes) else { return nil }
      return .block(frontierAfter: frontier)
    case .closing:
      guard bytes.count == 48, let blockCount = load(0), let segmentByteCount = load(8),
        let root = SHA256Digest(part(16..<48))
      else { return nil }
      return .closing(blockCount: blockCount, segmentByteCount: segmentByteCount, root: root)
    }
  }

  /// Whether these bytes are one whole member with this header: the right size and CRC.
  func isWhole(in bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.count == memberByteCount && MemberHeader.checksum(bytes) == checksum
  }

  /// The CRC-32 of all bytes of a member except the four that contain it.
  static func checksum(_ member: UnsafeRawBufferPointer) -> UInt32 {
    guard let base = member.baseAddress else { return 0 }
    let offset = Format.memberChecksumOffsetBytes
    let start = libdeflate_crc32(0, base, offset)
    return libdeflate_crc32(start, base + offset + 4, member.count - offset - 4)
  }
}

/// Encodes members into a buffer, which it empties first.
struct MemberWriter {
  private let buffer: ByteBuffer

  init(_ buffer: ByteBuffer) { self.buffer = buffer }

  func opening(ledgerID: LedgerID, frontierBefore: Frontier, lastEventAtMs: Int64) {
    let subfieldByteCount =
      Format.openingFixedByteCount + Frontier.byteCount(size: frontierBefore.size)
    begin(
      .opening, subfieldByteCount, first: frontierBefore.size, eventCount: 0,
      contentByteCount: 0, lastEventAtMs)
    ledgerID.withUnsafeBytes { buffer.append($0) }
    for root in frontierBefore.roots { buffer.append(root) }
    endEmpty()
  }

  func closing(
    first: Position, eventCount: Int, blockCount: Int, segmentByteCount: Int, root: SHA256Digest,
    lastEventAtMs: Int64
  ) {
    begin(
      .closing, Format.closingSubfieldByteCount, first: first, eventCount: eventCount,
      contentByteCount: 0, lastEventAtMs)
    buffer.append(littleEndian: UInt64(blockCount))
    buffer.append(littleEndian: UInt64(segmentByteCount))
    buffer.append(root)
    endEmpty()
  }

  /// A block of events that are already deflated; false if it exceeds the size limit of a member.
  func block(
    events: UnsafeRawBufferPointer, eventCount: Int, deflated: ByteBuffer,
    frontierAfter: Frontier, lastEventAtMs: Int64
  ) -> Bool {
    begin(
      .block, Format.subfieldFixedByteCount + Frontier.byteCount(size: frontierAfter.size),
      first: frontierAfter.size - eventCount, eventCount: eventCount,
      contentByteCount: events.count, lastEventAtMs)
    for root in frontierAfter.roots { buffer.append(root) }
    buffer.append(deflated.bytes)
    buffer.append(littleEndian: libdeflate_crc32(0, events.baseAddress, events.count))
    buffer.append(littleEndian: UInt32(events.count))
    seal()
    return buffer.count <= Format.memberByteCountMax
  }

  private func begin(
    _ kind: MemberKind, _ subfieldByteCount: Int, first: Position, eventCount: Int,
    contentByteCount: Int, _ lastEventAtMs: Int64
  ) {
    buffer.count = 0
    Format.memberStart.withUnsafeBytes { buffer.append($0) }
    buffer.append(littleEndian: UInt16(subfieldByteCount + 4))
    Format.subfieldIdentifier.withUnsafeBytes { buffer.append($0) }
    buffer.append(littleEndian: UInt16(subfieldByteCount))
    buffer.append(littleEndian: UInt8(Format.version))
    buffer.append(littleEndian: kind.rawValue)
    buffer.append(littleEndian: UInt16(0))
    buffer.append(littleEndian: UInt32(0))
    buffer.append(littleEndian: UInt64(first))
    buffer.append(littleEndian: UInt64(eventCount))
    buffer.append(littleEndian: UInt32(0))
    buffer.append(littleEndian: UInt32(contentByteCount))
    buffer.append(littleEndian: lastEventAtMs)
  }

  private func endEmpty() {
    Format.emptyDeflate.withUnsafeBytes { buffer.append($0) }
    buffer.append(littleEndian: UInt64(0))
    seal()
  }

  private func seal() {
    let memberByteCount = UInt32(buffer.count).littleEndian
    buffer.base.storeBytes(of: memberByteCount, toByteOffset: 40, as: UInt32.self)
    let checksum = MemberHeader.checksum(buffer.bytes).littleEndian
    buffer.base.storeBytes(
      of: checksum, toByteOffset: Format.memberChecksumOffsetBytes, as: UInt32.self)
  }
}

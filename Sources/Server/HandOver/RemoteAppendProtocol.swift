// The protocol on ledger.sock, byte by byte; see docs/handover.md.
import Ledger

/// The frames of the hand-over: a length, a kind, content.
enum RemoteAppendProtocol {
  /// Raised when the meaning of a frame changes. Both sides must use the same version.
  static let version: UInt8 = 2
  static let socketName = "ledger.sock"
  /// Length of the content in 4 bytes, then the kind.
  static let headerByteCount = 5
  /// Apart from its data, a draft takes fewer bytes here than its line in the log.
  static let contentByteCountMax = Format.frameByteCountMax + 64
  /// How many past submissions a client may ask the positions of, and how many it may have in flight.
  static let submissionsKept = 1 << 16

  /// The kinds of frames.
  enum Kind: UInt8 {
    // Sent by the client.
    case begin = 1
    case submit = 2
    case positions = 3
    case flush = 4
    case end = 5
    case retry = 6
    case outcomes = 7
    // Sent by the server.
    case begun = 0x81
    case placed = 0x83
    case flushed = 0x84
    case ended = 0x85
    case retried = 0x86
    case told = 0x87
    case failure = 0xC0
  }
}

/// Why a frame's content can't be parsed.
struct RemoteAppendFault: Error {
  let cause: String
}

/// Writes the content of frames; all numbers are little-endian.
struct RemoteAppendWriter {
  private(set) var bytes: [UInt8] = []

  mutating func number(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func block(_ content: [UInt8]) {
    number(UInt32(content.count))
    bytes += content
  }

  mutating func text(_ text: String) { block(Array(text.utf8.prefix(4096))) }

  static func drafts(_ drafts: [EventDraft]) -> [UInt8] {
    var writer = RemoteAppendWriter()
    writer.bytes.reserveCapacity(drafts.reduce(8) { $0 + $1.data.count + 128 })
    writer.number(UInt32(drafts.count))
    for draft in drafts {
      writer.block(Array(draft.type.utf8))
      writer.number(UInt32(clamping: draft.version))
      writer.block(draft.data)
      writer.number(UInt32(draft.references.count))
      for reference in draft.references {
        writer.number(UInt32(clamping: reference.offsetBytes))
        writer.number(UInt32(clamping: reference.eventIndex))
      }
    }
    return writer.bytes
  }

  static func failure(_ error: LedgerError) -> [UInt8] {
    var writer = RemoteAppendWriter()
    writer.number(RemoteAppendReader.kinds.firstIndex(of: error.kind).map(UInt8.init) ?? 0xFF)
    for text in [error.operation, error.object, error.cause] { writer.text(text) }
    return writer.bytes
  }
}

/// Reads the content of frames; never beyond its end.
struct RemoteAppendReader {
  private let bytes: [UInt8]
  private var offset = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The kinds of errors, by number.
  static let kinds: [LedgerError.Kind] = [
    .noLedger, .locked, .newerFormat, .corruption, .inputOutput, .invalidInput, .closed,
    .standby, .unconfirmed,
  ]

  mutating func number<Value: FixedWidthInteger>(
    _ type: Value.Type
  ) throws(RemoteAppendFault) -> Value {
    let count = Value.bitWidth / 8
    guard bytes.count - offset >= count else {
      throw RemoteAppendFault(cause: "a frame is too short")
    }
    var value: Value = 0
    for index in 0..<count { value |= Value(bytes[offset + index]) << (8 * index) }
    offset += count
    return value
  }

  mutating func block() throws(RemoteAppendFault) -> [UInt8] {
    let count = Int(try number(UInt32.self))
    guard bytes.count - offset >= count else {
      throw RemoteAppendFault(cause: "a frame is too short")
    }
    defer { offset += count }
    return Array(bytes[offset..<offset + count])
  }

  mutating func text() throws(RemoteAppendFault) -> String {
    String(decoding: try block(), as: UTF8.self)
  }

  func expectEnd() throws(RemoteAppendFault) {
    if offset != bytes.count { throw RemoteAppendFault(cause: "a frame is too long") }
  }

  mutating func drafts() throws(RemoteAppendFault) -> [EventDraft] {
    let count = Int(try number(UInt32.self))
    var drafts: [EventDraft] = []
    for _ in 0..<count {
      let type = try text()
      let version = Int(try number(UInt32.self))
      let data = try block()
      let referenceCount = Int(try number(UInt32.self))
      var references: [PositionReference] = []
      for _ in 0..<referenceCount {
        let offsetBytes = Int(try number(UInt32.self))
        references.append(
          PositionReference(offsetBytes: offsetBytes, eventIndex: Int(try number(UInt32.self))))
      }
      drafts.append(EventDraft(type: type, version: version, data: data, references: references))
    }
    try expectEnd()
    return drafts
  }

  mutating func failure() throws(RemoteAppendFault) -> LedgerError {
    let number = Int(try number(UInt8.self))
    let (operation, object, cause) = (try text(), try text(), try text())
    try expectEnd()
    guard number < Self.kinds.count else { throw RemoteAppendFault(cause: "an unknown failure") }
    if Self.kinds[number] == .corruption {
      return LedgerError(
        .init(verdict: .corrupt, file: object, position: nil), operation: operation, cause: cause)
    }
    return LedgerError(Self.kinds[number], operation: operation, object: object, cause: cause)
  }
}

// Reads the events of a ledger; an event apart from it, and the positions that its data names.
import Base
import Ledger

/// The events of one ledger, as they stand when it is opened.
final class EventSource {
  let directory: LedgerDirectory
  /// How many there are.
  let count: Int
  private let reader: LogReader
  private var batch: [StoredEvent] = []
  private var batchEnd: Position = 0
  private static let batchCount = 1024

  init(path: String) throws {
    directory = try LedgerDirectory.open(path: path)
    reader = try LogReader(directory)
    if let damage = reader.damage { throw damage }
    count = reader.head.size
  }

  /// The ledger's id, by which ledgers are ordered.
  var id: String { directory.identity.id.description }

  /// The name of the ledger's folder.
  var name: String {
    let parts = directory.path.split(separator: "/").filter { $0 != "." }
    return parts.last.map(String.init) ?? directory.path
  }

  /// Gives every event to `body`, in order.
  func forEach(_ body: (Position, EventLine) throws -> Void) throws {
    try reader.read(from: 0, to: count) { chunk in
      try chunk.forEachEvent { try body($0.position, $0) }
      return true
    }
  }

  /// The event at a position; positions must not fall.
  func event(at position: Position) throws -> StoredEvent {
    if position >= batchEnd {
      batch.removeAll(keepingCapacity: true)
      batchEnd = min(position + Self.batchCount, count)
      try reader.read(from: position, to: batchEnd, workers: 0) { chunk in
        try chunk.forEachEvent { batch.append(StoredEvent($0)) }
        return true
      }
    }
    return batch[position - (batchEnd - batch.count)]
  }

  /// An event out of turn.
  func earlierEvent(at position: Position) throws -> StoredEvent? {
    try reader.event(at: position).withUnsafeBytes { EventLine($0).map(StoredEvent.init) }
  }
}

/// What of an event is the same in every ledger: all but its position, its salt and its digest.
struct StoredEvent {
  let type: String
  let version: Int
  let atMs: Int64
  var data: [UInt8]

  init(_ line: EventLine) {
    type = String(decoding: line.type, as: UTF8.self)
    version = line.version
    atMs = line.recordedAtMs
    data = Array(line.data)
  }

  var isUpload: Bool { type == EventType.receiptUploaded.rawValue }

  /// The positions of other events that the data names, in the order in which they stand: an upload, a
  /// verification whose reply was reused, a page with accepted objects. The sizes in `snapshot.created` and
  /// `history.accepted` belong to heads, which no other ledger has.
  var references: [Reference] {
    let isNaming =
      type == EventType.receiptVerified.rawValue || type == EventType.signaturesAccepted.rawValue
    guard isNaming else { return [] }
    return data.withUnsafeBytes { bytes in
      var found: [Reference] = []
      // Data that is no JSON is malformed in any ledger.
      try? Reference.read(bytes, into: &found)
      return found
    }
  }

  /// The data with other positions in place of those that it names.
  mutating func replace(_ references: [Reference], with position: (Reference) -> Position) {
    for reference in references.reversed() {
      data.replaceSubrange(reference.digits, with: String(position(reference)).utf8)
    }
  }

  /// Puts the reply of another verification in place of the reference to it; false if this data or that has not the
  /// form for it.
  mutating func insertReply(of other: StoredEvent, at reference: Reference) -> Bool {
    guard reference.isOfReply, reference.digits.upperBound == data.count - 1,
      let reply = other.reply
    else { return false }
    data.replaceSubrange(reference.member, with: reply)
    return true
  }

  /// The member that holds the reply, with its name; nil if the verification has none.
  private var reply: [UInt8]? {
    data.withUnsafeBytes { bytes in
      var cursor = JSONCursor(bytes)
      guard (try? cursor.beginObject()) != nil else { return nil }
      while let key = try? cursor.nextKey() {
        guard let value = try? cursor.readRaw() else { return nil }
        guard key == "reply" || key == "reply_base64" else { continue }
        let name = key == "reply" ? #""reply":"# : #""reply_base64":"#
        return Array(name.utf8) + Array(value)
      }
      return nil
    }
  }
}

/// Where the data of a verification names the position of another event.
struct Reference {
  /// Whether it names the verification whose reply was reused, not an upload or a page.
  let isOfReply: Bool
  let position: Position
  /// Where the member stands: its name and its value.
  let member: Range<Int>
  /// Where its digits stand.
  let digits: Range<Int>

  fileprivate static func read(
    _ bytes: UnsafeRawBufferPointer, into found: inout [Reference]
  ) throws(JSONError) {
    var cursor = JSONCursor(bytes)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      // The reply is last: what follows it is not read.
      if key == "reply" { return }
      let isOfReply = key == "reply_of"
      let value = try cursor.readRaw()
      guard isOfReply || key == "upload" || key == "page",
        let position = Position(String(decoding: value, as: UTF8.self)), position >= 0,
        let start = bytes.baseAddress, let name = key.raw.baseAddress, let first = value.baseAddress
      else { continue }
      let digits = first - start..<first - start + value.count
      found.append(
        Reference(
          isOfReply: isOfReply, position: position,
          member: UnsafeRawPointer(name) - start - 1..<digits.upperBound, digits: digits))
    }
  }
}

// Validates drafts from another process before they become a permanent part of the log.
import AppStore
import Base
import Ledger
import Projections

/// Decodes each draft of a submission as a fold would, and looks up the events that it names. Used by one thread.
struct DraftCheck {
  /// Why drafts cannot become events of this program.
  enum Refusal: Error {
    case fault(String)
    /// The log could not be read.
    case ledger(LedgerError)
  }

  /// The event that a member of a verification names.
  private enum Named {
    /// An event of the same submission, by its index.
    case draft(Int)
    case position(Position)
  }

  private let directory: LedgerDirectory
  /// Opened for the first draft that names an event of the log.
  private var reader: LogReader?

  init(_ directory: LedgerDirectory) { self.directory = directory }

  /// Throws unless each draft is an event that a fold can read and names only earlier events of the right type.
  mutating func check(_ drafts: [EventDraft]) throws(Refusal) {
    for index in drafts.indices { try check(drafts[index], at: index, of: drafts) }
  }

  private mutating func check(
    _ draft: EventDraft, at index: Int, of drafts: [EventDraft]
  ) throws(Refusal) {
    guard let type = EventType(rawValue: draft.type), draft.version >= 1,
      draft.version <= type.currentVersion
        || (type != .receiptUploaded && type.reads(draft.version))
    else { throw .fault("a draft has a type or version that the server does not know") }
    let (data, offsets) = try Self.completed(draft)
    if type != .receiptVerified, !offsets.isEmpty {
      throw .fault("a draft of \(type.rawValue) must not name another event")
    }
    do {
      try data.withUnsafeBytes { (bytes) throws in
        try Self.checkForm(bytes)
        try type.checkVersion(draft.version)
        // Only the process that rewrites the lines, or merges the events, may say that it does.
        if type == .dataRedacted || type == .mergedFrom {
          throw EventError.badField(type, field: "type")
        }
        try type.validate(bytes, version: draft.version)
        if type == .signaturesAccepted { try resolve(SignaturesAccepted(data: bytes)) }
        if type == .pricesWithdrawn || type == .ratesWithdrawn {
          try resolve(DeclarationWithdrawn(type, data: bytes), type)
        }
        guard type == .receiptVerified else { return }
        for (member, named) in try Self.named(bytes, offsets, draft) {
          try resolve(member, named, at: index, of: drafts)
        }
      }
    } catch let error as EventError {
      throw .fault("a draft cannot be read: \(error)")
    } catch let error as Refusal {
      throw error
    } catch { throw .fault("a draft cannot be read") }
  }

  /// The data with a digit in place of each position, and the offsets of these digits.
  private static func completed(_ draft: EventDraft) throws(Refusal) -> ([UInt8], [Int]) {
    var data: [UInt8] = []
    data.reserveCapacity(draft.data.count + draft.references.count)
    var offsets: [Int] = []
    var copied = 0
    for reference in draft.references {
      guard reference.offsetBytes > copied, reference.offsetBytes < draft.data.count else {
        throw .fault("a draft's position reference is out of range")
      }
      data += draft.data[copied..<reference.offsetBytes]
      offsets.append(data.count)
      data.append(UInt8(ascii: "0"))
      copied = reference.offsetBytes
    }
    data += draft.data[copied...]
    return (data, offsets)
  }

  private static func checkForm(_ data: JSONBytes) throws(Refusal) {
    var compact: [UInt8] = []
    do throws(JSONError) {
      try JSONValidator.compact(
        data, depthLimit: JSONValidator.greatestDepthLimit, to: &compact)
    } catch { throw .fault("a draft's data is not JSON") }
    guard compact.elementsEqual(data), data.first == UInt8(ascii: "{") else {
      throw .fault("a draft's data is not a compact JSON object")
    }
  }

  // MARK: Named events

  /// The events that a verification names, by member.
  private static func named(
    _ data: JSONBytes, _ offsets: [Int], _ draft: EventDraft
  ) throws -> [(member: String, Named)] {
    var cursor = JSONCursor(data)
    var found: [(String, Named)] = []
    var usedCount = 0
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      guard key == "upload" || key == "reply_of" else {
        try cursor.skipValue()
        continue
      }
      let member = key == "upload" ? "upload" : "reply_of"
      if let index = offsets.firstIndex(of: cursor.offset) {
        try cursor.skipValue()
        usedCount += 1
        found.append((member, .draft(draft.references[index].eventIndex)))
      } else {
        found.append((member, .position(Int(try cursor.readInteger()))))
      }
    }
    guard usedCount == offsets.count else {
      throw Refusal.fault("a draft's position reference is neither upload nor reply_of")
    }
    return found
  }

  /// Throws unless a member names an earlier event of the required kind.
  private mutating func resolve(
    _ member: String, _ named: Named, at index: Int, of drafts: [EventDraft]
  ) throws {
    let isRight: Bool
    switch named {
    case .draft(let other):
      // Earlier drafts were already checked.
      guard 0..<index ~= other else {
        throw EventError.badField(.receiptVerified, field: member)
      }
      let (data, _) = try Self.completed(drafts[other])
      let type = EventType(rawValue: drafts[other].type)
      isRight = data.withUnsafeBytes { bytes in
        type.map { Self.isRight(member, $0, bytes) } ?? false
      }
    case .position(let position): isRight = try holds(position, member)
    }
    if !isRight { throw EventError.badField(.receiptVerified, field: member) }
  }

  /// Throws unless an event of the log has the objects that are accepted.
  private mutating func resolve(_ accepted: SignaturesAccepted) throws {
    guard let line = try line(at: accepted.page) else {
      throw EventError.badField(.signaturesAccepted, field: "page")
    }
    try line.withUnsafeBytes { _ = try AcceptedObjects(accepted, page: $0, TextKeeper()) }
  }

  /// Throws unless an event of the log is what is withdrawn.
  private mutating func resolve(_ withdrawn: DeclarationWithdrawn, _ type: EventType) throws {
    let isRight = try line(at: withdrawn.position)?.withUnsafeBytes { line in
      EventLine(line).flatMap { EventType($0.type) } == withdrawn.declared
    }
    guard isRight == true else { throw EventError.badField(type, field: "position") }
  }

  private mutating func holds(_ position: Position, _ member: String) throws(Refusal) -> Bool {
    guard let line = try line(at: position) else { return false }
    return line.withUnsafeBytes { line in
      guard let event = EventLine(line), let type = EventType(event.type) else { return false }
      return Self.isRight(member, type, event.data)
    }
  }

  /// An event of the log; nil if it has none at the position.
  private mutating func line(at position: Position) throws(Refusal) -> [UInt8]? {
    do throws(LedgerError) {
      let reader = try openReader()
      if position >= reader.head.size { try reader.refresh() }
      guard 0..<reader.head.size ~= position else { return nil }
      let line = try reader.event(at: position)
      try reader.closeSealedTails()
      return line
    } catch { throw .ledger(error) }
  }

  private mutating func openReader() throws(LedgerError) -> LogReader {
    if let reader { return reader }
    let opened = try LogReader(directory)
    reader = opened
    return opened
  }

  /// Whether an event may be named by a member: an upload, or a verification with its own reply.
  private static func isRight(_ member: String, _ type: EventType, _ data: JSONBytes) -> Bool {
    switch type {
    case .receiptUploaded: member == "upload" && (try? ReceiptUploadedView(data: data)) != nil
    case .receiptVerified:
      member == "reply_of"
        && ((try? ReceiptVerifiedView(data: data)).map { $0.reply != nil || $0.hasOtherReply }
          ?? false)
    default: false
    }
  }
}

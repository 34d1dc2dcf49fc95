// Finds where a fenced ledger diverged from its copy, and writes its uploads as lines for an import.
import Base
package import Ledger

/// Where a ledger diverged from its copy.
package struct Divergence: Sendable, Equatable {
  /// The step with which another writer took over.
  package let takeover: Step
  /// The position of the first event that the copy does not have from this ledger.
  package let start: Position
  /// How many events the ledger holds.
  package let size: Int

  /// Finds where the histories diverge; nil if no other writer has taken over.
  ///
  /// Throws `CopyError` and `LedgerError`.
  package static func find(
    _ directory: LedgerDirectory, _ store: RetryingStore
  ) throws -> Divergence? {
    guard let record = try ReplicationRecord(of: directory) else {
      throw CopyError.neverReplicated
    }
    let sequence = StepSequence(store)
    guard let newest = try sequence.newest(),
      let last = try sequence.step(newest)?.step
    else { throw CopyError.noCopy(store: store.name) }
    guard last.ledger.description == directory.identity.id.description else {
      throw CopyError.otherLedger(store: store.name)
    }
    if last.epoch <= record.epoch, last.writer == record.writer { return nil }
    let takeover = try firstForeign(sequence, record, last)
    let reader = try LogReader(directory)
    if let damage = reader.damage { throw damage }
    let size = reader.head.size
    guard size >= takeover.size else {
      throw CopyError.shorter(local: size, confirmed: takeover.size)
    }
    if try reader.frontier(at: takeover.size).root == takeover.root {
      return Divergence(takeover: takeover, start: takeover.size, size: size)
    }
    // Check this ledger's own record before the steps of other writers.
    guard record.step != nil, record.size <= size,
      try reader.frontier(at: record.size).root == record.root
    else { throw CopyError.unrelated }
    return Divergence(takeover: takeover, start: record.size, size: size)
  }

  /// The first step of another writer, after those of this ledger. Epochs never decrease, so a binary search finds it.
  private static func firstForeign(
    _ sequence: StepSequence, _ record: ReplicationRecord, _ last: Step
  ) throws(CopyError) -> Step {
    var (own, foreign, end) = (record.step ?? -1, last, last.number)
    while end - own > 1 {
      let middle = own + (end - own) / 2
      var step: Step?
      // A lost step has no epoch to compare; use the next step that exists.
      var number = middle
      while number < end, step == nil {
        step = try sequence.step(number)?.step
        number += 1
      }
      guard let step else {
        end = middle
        continue
      }
      if step.epoch > record.epoch || step.writer != record.writer && step.epoch == record.epoch {
        (foreign, end) = (step, middle)
      } else {
        own = step.number
      }
    }
    return foreign
  }
}

// MARK: - Diverged uploads as import lines

/// Writes the uploads from a position on as lines of an import file; docs/import-format.md.
package struct DivergedLines {
  /// What happened to the events.
  package struct Report: Sendable, Equatable {
    /// The number of lines by content: `receipts`, `signed_transactions`, `notifications`.
    package var receipts = 0
    package var signedTransactions = 0
    package var notifications = 0
    /// Events that import lines can't express, by type and reason.
    package var left: [LeftOut: Int] = [:]

    package init() {}

    package var lineCount: Int { receipts + signedTransactions + notifications }
    package var leftCount: Int { left.values.reduce(0, +) }
  }

  /// Events of one type that import lines can't express, with the reason.
  package struct LeftOut: Hashable, Sendable {
    package let type: String
    package let reason: String

    package init(type: String, reason: String) {
      self.type = type
      self.reason = reason
    }
  }

  private let reader: LogReader
  private let start: Position

  package init(_ reader: LogReader, from start: Position) {
    (self.reader, self.start) = (reader, start)
  }

  /// A verification that is written into an upload's line.
  private struct Reply {
    /// The event that holds the reply.
    var position: Position
    var occurredAtMs: Int64
    var endpoint: Endpoint?
    var isValid: Bool
  }

  /// Calls the body with each line and its line feed. The order and the bytes are the same each time, so an import
  /// recognises lines that it has already imported.
  package func write(_ body: ([UInt8]) throws -> Void) throws -> Report {
    var report = Report()
    let replies = try replies(&report)
    try reader.read(from: start, to: reader.head.size) { chunk in
      try chunk.forEachEvent { event in
        if let line = try line(of: event, replies[event.position], &report) {
          try body(line + [0x0A])
        }
      }
      return true
    }
    return report
  }

  // MARK: Replies

  /// The App Store's reply for each upload: the newest valid one, otherwise the newest.
  private func replies(_ report: inout Report) throws -> [Position: Reply] {
    var replies: [Position: Reply] = [:]
    var counted = report
    try reader.read(from: start, to: reader.head.size) { chunk in
      try chunk.forEachEvent { event in
        guard EventType(event.type) == .receiptVerified, !event.isRedacted,
          let verified = try? ReceiptVerifiedView(data: event.data)
        else { return }
        if verified.upload < start {
          // The new writer has the upload and asks the App Store itself.
          if verified.authority == .appStore, verified.outcome != .unreachable {
            counted.leave(event, "about an upload that the copy has")
          }
          return
        }
        guard verified.authority == .appStore, verified.reply != nil || verified.replyOf != nil
        else { return }
        let reply = Reply(
          position: verified.replyOf.map { Position($0) } ?? event.position,
          occurredAtMs: verified.occurredAtMs ?? event.recordedAtMs, endpoint: verified.endpoint,
          isValid: verified.outcome == .valid)
        if let known = replies[verified.upload] {
          counted.leave(event, "a line holds one reply")
          if known.isValid, !reply.isValid { return }
        }
        replies[verified.upload] = reply
      }
      return true
    }
    report = counted
    return replies
  }

  /// A recorded reply, one JSON object, and what is kept of the version 1 notification that delivered it.
  private struct RecordedReply {
    var reply: [UInt8]
    var notification: [UInt8]?
  }

  /// Nil if that event has no reply.
  private func recorded(_ position: Position) throws -> RecordedReply? {
    var position = position
    // A verification may refer to the reply of an earlier one.
    for _ in 0..<16 {
      let line = try reader.event(at: position)
      let found = line.withUnsafeBytes { bytes -> (reply: RecordedReply?, next: Position?) in
        guard let event = EventLine(bytes), !event.isRedacted,
          let verified = try? ReceiptVerifiedView(data: event.data)
        else { return (nil, nil) }
        if let replyOf = verified.replyOf { return (nil, Position(replyOf)) }
        // The reply is the last member: the text read so far ends with the closing brace of the event's data.
        let reply = verified.reply.flatMap { Self.object($0) }
        let notification = verified.notification.map { Array($0) }
        return (reply.map { RecordedReply(reply: $0, notification: notification) }, nil)
      }
      if let reply = found.reply { return reply }
      guard let next = found.next, next < position else { return nil }
      position = next
    }
    return nil
  }

  private static func object(_ rest: JSONBytes) -> [UInt8]? {
    var cursor = JSONCursor(rest)
    guard (try? cursor.kind()) == .object, let raw = try? cursor.readRaw() else { return nil }
    return Array(raw)
  }

  // MARK: Lines

  private func line(
    of event: EventLine, _ reply: Reply?, _ report: inout Report
  ) throws -> [UInt8]? {
    let type = EventType(event.type)
    switch type {
    case .receiptVerified, .trustDeclared, .snapshotCreated, .historyAccepted, .mergedFrom:
      return nil
    case .receiptUploaded, .transactionsReceived, .notificationReceived:
      if event.isRedacted {
        report.leave(event, "redacted")
        return nil
      }
    default:
      report.leave(event, "not an upload")
      return nil
    }
    let line: [UInt8]?
    switch type {
    case .receiptUploaded: line = try receiptLine(event, reply)
    case .transactionsReceived: line = transactionsLine(event)
    default: line = notificationLine(event)
    }
    guard let line else {
      report.leave(event, "not valid")
      return nil
    }
    switch type {
    case .receiptUploaded: report.receipts += 1
    case .transactionsReceived: report.signedTransactions += 1
    default: report.notifications += 1
    }
    return line
  }

  private func receiptLine(_ event: EventLine, _ reply: Reply?) throws -> [UInt8]? {
    guard let upload = try? ReceiptUploadedView(data: event.data), let receipt = upload.receipt
    else { return nil }
    let recorded = try reply.flatMap { try self.recorded($0.position) }
    if let recorded, let notification = recorded.notification {
      return Self.notificationLine(
        notification, recorded.reply, atMs: upload.occurredAtMs ?? event.recordedAtMs)
    }
    var writer = Self.begun()
    writer.key("receipt")
    writer.string(receipt.string)
    Self.writeClient(upload, to: &writer)
    Self.writeTime(upload.occurredAtMs ?? event.recordedAtMs, to: &writer)
    if let reply, let recorded {
      writer.key("verification")
      writer.beginObject()
      Self.writeTime(reply.occurredAtMs, to: &writer)
      writer.member("endpoint", ifPresent: reply.endpoint?.rawValue)
      writer.key("reply")
      recorded.reply.withUnsafeBytes { writer.raw($0) }
      writer.endObject()
    }
    writer.endObject()
    return writer.bytes
  }

  /// A version 1 notification, whose reply contains the receipt.
  private static func notificationLine(
    _ kept: [UInt8], _ reply: [UInt8], atMs: Int64
  ) -> [UInt8] {
    var writer = begun()
    writer.key("notification_v1")
    let body = kept.dropLast() + Array(",\"unified_receipt\":".utf8) + reply + [0x7D]
    Array(body).withUnsafeBytes { writer.raw($0) }
    writeTime(atMs, to: &writer)
    writer.endObject()
    return writer.bytes
  }

  /// Nil for what an import rejects: signed transactions that are not valid, and those of Xcode.
  private func transactionsLine(_ event: EventLine) -> [UInt8]? {
    guard let upload = try? TransactionsReceivedView(data: event.data), upload.isValid,
      upload.objects.allSatisfy({ $0.root != nil && !$0.isReduced })
    else { return nil }
    var writer = Self.begun()
    writer.key("signed_transactions")
    writer.beginArray()
    for object in upload.transactions { Self.write(object, to: &writer) }
    writer.endArray()
    if let app = upload.appTransaction {
      writer.key("app_transaction")
      Self.write(app, to: &writer)
    }
    writer.member("environment", ifPresent: upload.environment?.string)
    Self.writeClient(upload, to: &writer)
    Self.writeTime(upload.occurredAtMs ?? event.recordedAtMs, to: &writer)
    writer.endObject()
    return writer.bytes
  }

  private func notificationLine(_ event: EventLine) -> [UInt8]? {
    guard let received = try? NotificationReceivedView(data: event.data),
      let notification = received.notification, notification.root != nil,
      !notification.isReduced
    else { return nil }
    var writer = Self.begun()
    writer.key("notification")
    Self.write(notification, to: &writer)
    Self.writeTime(received.occurredAtMs ?? event.recordedAtMs, to: &writer)
    writer.endObject()
    return writer.bytes
  }

  private static func begun() -> JSONWriter {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("marketplace", "itunes")
    return writer
  }

  private static func write(_ object: SignedObjectView, to writer: inout JSONWriter) {
    object.text.withUnsafeBytes { writer.string($0) }
  }

  private static func writeTime(_ ms: Int64, to writer: inout JSONWriter) {
    writer.member("occurred_at", Timestamp.fixedText(ms: ms))
  }

  private static func writeClient(_ upload: some UploadView, to writer: inout JSONWriter) {
    writer.member("country_code", ifPresent: upload.countryCode?.string)
    writer.member("identifier_for_vendor", ifPresent: upload.identifierForVendor?.string)
    writer.member("user_identifier", ifPresent: upload.userIdentifier?.string)
    writer.member("ip_address", ifPresent: upload.ipAddress?.string)
    if let metadata = upload.metadata {
      writer.key("metadata")
      writer.raw(metadata)
    }
  }
}

extension DivergedLines.Report {
  fileprivate mutating func leave(_ event: EventLine, _ reason: String) {
    let type = EventType(event.type)?.rawValue ?? "of a later program"
    left[DivergedLines.LeftOut(type: type, reason: reason), default: 0] += 1
  }
}

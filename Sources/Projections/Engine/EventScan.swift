// The part of a fold that needs no state: parsing a block's events on the thread that inflated the block.
package import AppStore
import Base
package import Ledger
package import Revenue

/// What can be read from a single event. All pointers refer to its block's bytes.
package struct ScannedEvent {
  /// The decoded data. The fold handles `other`: rare types, old versions, damage.
  package enum Content {
    case uploaded(ReceiptUploadedView)
    case verified(ReceiptVerifiedView, Reply?)
    case received(ReceivedTransactions)
    case notified(ReceivedNotification)
    case fetched(FetchedTransactions)
    case other
  }

  package let line: EventLine
  package let content: Content
}

/// The events of one block, valid as long as the block's bytes are.
package final class EventScan: @unchecked Sendable {
  // One thread writes it and another, the fold's, reads it, never at the same time.
  package private(set) var events: [ScannedEvent] = []
  /// The result of checking the lines; nil if they were not checked.
  let check: AuditedLines?
  private let keeper = TextKeeper()

  /// Reads whole lines. Nil if a line is not an event; the fold then finds and reports that line.
  /// - Parameter isVerified: whether digests and times are checked, and leaves hashed.
  package init?(
    _ bytes: Text, firstPosition: Position, count: Int, isVerified: Bool = false
  ) {
    // The count comes from a header; no line is shorter than 128 bytes.
    let room = min(count, bytes.count / 128 + 1)
    events.reserveCapacity(room)
    check = isVerified ? AuditedLines(count: room) : nil
    var lines = EventLines(bytes)
    var position = firstPosition
    while let text = lines.next() {
      guard let line = EventLine(text), line.position == position else { return nil }
      events.append(ScannedEvent(line: line, content: content(of: line)))
      check?.add(line)
      position += 1
    }
  }

  /// For events that arrive one at a time.
  package init() { check = nil }

  /// Reads one event; the events read before become invalid.
  package func scan(_ line: EventLine) -> ScannedEvent {
    keeper.removeAll()
    return ScannedEvent(line: line, content: content(of: line))
  }

  private func content(of line: EventLine) -> ScannedEvent.Content {
    guard let type = EventType(line.type), type.reads(line.version) else {
      return .other
    }
    switch type {
    case .receiptUploaded:
      guard
        let view = try? ReceiptUploadedView(
          data: line.data, isRedacted: line.isRedacted, version: line.version)
      else { return .other }
      return .uploaded(view)
    case .receiptVerified:
      guard let view = try? ReceiptVerifiedView(data: line.data) else { return .other }
      guard let bytes = view.reply else { return .verified(view, nil) }
      guard let reply = try? Reply(bytes, keeper, notification: view.notification)
      else { return .other }
      return .verified(view, reply)
    case .transactionsReceived:
      guard let view = try? TransactionsReceivedView(data: line.data, isRedacted: line.isRedacted),
        let upload = try? ReceivedTransactions(view, keeper)
      else { return .other }
      return .received(upload)
    case .notificationReceived:
      guard let view = try? NotificationReceivedView(data: line.data, isRedacted: line.isRedacted),
        let notification = try? ReceivedNotification(view, keeper)
      else { return .other }
      return .notified(notification)
    case .transactionsFetched:
      guard let view = try? TransactionsFetchedView(data: line.data, isRedacted: line.isRedacted),
        let page = try? FetchedTransactions(view, keeper)
      else { return .other }
      return .fetched(page)
    default: return .other
    }
  }
}

// MARK: - Origins of events

/// Knows the events of a fold by their positions in the ledgers that they come from. The events of several ledgers can
/// be folded as if they were of one.
package protocol EventOrigins: AnyObject {
  /// The position in the fold of an event that another one names by a position of its own ledger; nil if the fold does
  /// not have it.
  func position(named position: Int, by event: EventLine) -> Position?
  /// The position in the fold of the erasure whose position an event of the fold has in the name of an erased user; nil
  /// if the fold does not have it.
  func position(ofErasure position: Int, namedBy event: Position) -> Position?
  /// How the details of exceptions name an event of the fold.
  func text(of position: Position) -> String
}

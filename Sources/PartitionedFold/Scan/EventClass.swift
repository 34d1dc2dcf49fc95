// Events whose content a scan does not need: declarations, and what cannot be read.
import Ledger

/// What the events are that `EventScan` leaves to the fold.
enum EventClass {
  /// It concerns every partition.
  case declaration
  /// It belongs to an upload, but cannot be decoded; the fold reports it and uses nothing of it.
  case malformed

  /// Throws if a later program wrote the event.
  init(_ line: EventLine) throws(RulesFailure) {
    do throws(EventError) {
      self = try Self.read(line)
    } catch {
      throw RulesFailure(
        error.isOfLaterProgram ? .newerFormat : .failed, operation: "scan",
        object: "position \(line.position)", cause: error.description)
    }
  }

  private static func read(_ line: EventLine) throws(EventError) -> EventClass {
    guard let type = EventType(line.type) else { throw .unknownType }
    try type.checkVersion(line.version)
    do throws(EventError) {
      switch type {
      case .appRegistered: _ = try AppRegistered(data: line.data)
      case .pricesDeclared: _ = try PricesDeclared(data: line.data)
      case .ratesDeclared: _ = try RatesDeclared(data: line.data)
      case .snapshotCreated: _ = try SnapshotCreated(data: line.data)
      case .historyAccepted: _ = try HistoryAccepted(data: line.data)
      case .trustDeclared: _ = try TrustDeclared(data: line.data)
      case .dataRedacted: _ = try DataRedacted(data: line.data)
      case .receiptUploaded, .receiptVerified, .transactionsReceived, .notificationReceived,
        .transactionsFetched, .signaturesAccepted:
        return .malformed
      }
      return .declaration
    } catch { return .malformed }
  }
}

// Which events of several ledgers count: what some of them have in common, once.
import Base
package import Ledger

/// Tells which events are copied, each asked for once and in merged order.
package struct CopiedOnce {
  private var notifications: Set<UInt128> = []
  /// The source that first had all of a file of Apple's, by identity and digest.
  private var files: [String: Int] = [:]

  package init() {}

  /// Whether an event of a source is copied. Asked once for each event.
  package mutating func copies(_ line: EventLine, _ type: EventType, of source: Int) -> Bool {
    switch type {
    case .snapshotCreated, .historyAccepted, .mergedFrom: return false
    case .notificationReceived:
      return Self.notification(line).map { notifications.insert($0).inserted } ?? true
    case .settlementDeclared:
      guard let file = try? SettlementDeclared(data: line.data, readsLines: false) else {
        return true
      }
      let key = "\(file.kind.rawValue) \(file.month) \(file.region ?? "") \(file.sourceSHA256Hex)"
      if let first = files[key] { return first == source }
      if file.part == file.partCount { files[key] = source }
      return true
    case .appRegistered, .receiptUploaded, .receiptVerified, .transactionsReceived,
      .transactionsFetched, .signaturesAccepted, .pricesDeclared, .ratesDeclared, .pricesWithdrawn,
      .ratesWithdrawn, .settlementMapped, .trustDeclared, .dataRedacted:
      return true
    }
  }

  /// Of a notification's UUID, half of its digest; nil if the event names none.
  package static func notification(_ line: EventLine) -> UInt128? {
    let view = try? NotificationReceivedView(data: line.data, isRedacted: line.isRedacted)
    guard let uuid = view?.notificationUUID else { return nil }
    let digest = uuid.bytes.withUnsafeBytes { SHA256.hash($0) }
    return digest.withUnsafeBytes { $0.loadUnaligned(as: UInt128.self) }
  }
}

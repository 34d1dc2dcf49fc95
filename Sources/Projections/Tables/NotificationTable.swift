// The tables `notifications`, which are recognised by their UUIDs, and `fetched_pages`.
import Base
import Ledger
import Revenue

/// Writes notifications as they arrive.
final class NotificationTable {
  private let rows: RowWriter
  private let symbols: StringInterner
  private let keeper: TextKeeping
  private let target: RowTarget
  private var recentType: Symbol = .none
  private var recentSubtype: Symbol = .none
  private var recentFamily: Symbol = .none

  /// - Parameter keeper: keeps a text until the next event.
  init(
    _ rows: RowWriter, _ symbols: StringInterner, _ keeper: @escaping TextKeeping
  ) throws(DatabaseError) {
    self.rows = rows
    self.symbols = symbols
    self.keeper = keeper
    target = try rows.target("INSERT INTO notifications", valueCount: 17)
  }

  /// Unescapes a text, which lives until the next event.
  typealias TextKeeping = (JSONString) -> Text

  /// Writes a notification.
  /// - Parameters:
  ///   - transactionID: of its transaction, if it has one.
  ///   - originalTransactionID: of its transaction or of its renewal information.
  func add(
    _ view: NotificationReceivedView, _ event: EventLine, environment: Symbol, bundle: Symbol,
    transactionID: Text?, originalTransactionID: Text?
  ) throws(DatabaseError) {
    guard let uuid = view.notificationUUID.map(keeper), let type = view.type,
      let family = view.appFamilyID
    else { preconditionFailure("a decoded notification has a UUID, a type and a family") }
    let digest = view.lineSHA256Hex.flatMap { SHA256Digest(hex: $0.raw) }
    let typeSymbol = symbols.symbol(keeper(type), recent: &recentType)
    let subtypeSymbol =
      view.subtype.map { symbols.symbol(keeper($0), recent: &recentSubtype) } ?? .none
    let familySymbol = symbols.symbol(keeper(family), recent: &recentFamily)
    rows.begin(target)
    rows.add(event.position)
    rows.add(uuid.indexHash)
    rows.add(digest?.indexHash)
    rows.add(view.occurredAtMs ?? event.recordedAtMs)
    rows.add(event.recordedAtMs)
    rows.add(view.notification?.signedAtMs)
    rows.add(Int(typeSymbol))
    rows.add(symbol: subtypeSymbol)
    rows.add(Int(environment))
    rows.add(Int(bundle))
    rows.add(Int(familySymbol))
    rows.add(view.line)
    if let digest {
      digest.withUnsafeBytes { rows.add(blob: $0) }
    } else {
      rows.add(blob: nil)
    }
    rows.add(text: uuid)
    rows.add(text: transactionID)
    rows.add(text: originalTransactionID)
    rows.add(view.isFetched ? 1 : 0)
    try rows.end()
  }
}

// MARK: - Fetched pages

/// The numbers of calls in `fetched_pages`, which records which calls of the App Store Server API were answered, and
/// how far.
enum FetchCallCode: Int8, CaseIterable {
  case history = 0
  case transaction = 1
  case statuses = 2
  case refundLookup = 3
  case notificationHistory = 4

  init(_ call: TransactionsFetched.Call) {
    self =
      switch call {
      case .history: .history
      case .transaction: .transaction
      case .statuses: .statuses
      case .refundLookup: .refundLookup
      case .notificationHistory: .notificationHistory
      }
  }

  var call: TransactionsFetched.Call {
    switch self {
    case .history: .history
    case .transaction: .transaction
    case .statuses: .statuses
    case .refundLookup: .refundLookup
    case .notificationHistory: .notificationHistory
    }
  }
}

/// Writes pages as they arrive.
final class FetchedPageTable {
  private let rows: RowWriter
  private let symbols: StringInterner
  private let keeper: NotificationTable.TextKeeping
  private let target: RowTarget
  private var recentFamily: Symbol = .none

  /// - Parameter keeper: keeps a text until the next event.
  init(
    _ rows: RowWriter, _ symbols: StringInterner, _ keeper: @escaping NotificationTable.TextKeeping
  ) throws(DatabaseError) {
    self.rows = rows
    self.symbols = symbols
    self.keeper = keeper
    target = try rows.target("INSERT INTO fetched_pages", valueCount: 13)
  }

  /// Writes a page.
  func add(
    _ view: TransactionsFetchedView, _ event: EventLine, environment: Symbol, bundle: Symbol
  ) throws(DatabaseError) {
    guard let family = view.appFamilyID else {
      preconditionFailure("a decoded page names its app family")
    }
    let transactionID = view.transactionID.map(keeper)
    let familySymbol = symbols.symbol(keeper(family), recent: &recentFamily)
    rows.begin(target)
    rows.add(event.position)
    rows.add(Int(familySymbol))
    rows.add(Int(bundle))
    rows.add(Int(environment))
    rows.add(Int(FetchCallCode(view.call).rawValue))
    rows.add(transactionID?.indexHash)
    rows.add(text: transactionID)
    rows.add(view.fromMs)
    rows.add(view.toMs)
    rows.add(text: view.revision.map(keeper))
    rows.add(view.errorCode)
    rows.add(view.hasMore ? 1 : 0)
    rows.add(view.occurredAtMs ?? event.recordedAtMs)
    try rows.end()
  }
}

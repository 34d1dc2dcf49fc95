// The table `fetched_pages`: which calls of the App Store Server API were answered, and how far.
import Base
import JSON
import Ledger
import Revenue

/// The numbers of calls in `fetched_pages`.
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

/// Writes pages as they come.
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

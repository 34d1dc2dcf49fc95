// The table `notifications`: the App Store's server notifications, known again by their UUIDs.
import Base
import JSON
import Ledger
import Revenue

/// Writes notifications as they come.
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
  ///   - transactionID: that of its transaction, if it has one.
  ///   - originalTransactionID: that of its transaction or of its renewal information.
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

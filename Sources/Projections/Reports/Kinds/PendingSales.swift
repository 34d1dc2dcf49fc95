// The sales of pending receipts, folded together with the confirmed sales (rule R1).
import AppStore
import Base
import Revenue

/// The current pending sales. They never change a confirmed sale and are never stored.
final class PendingSales {
  /// The pending sales, in the order of first observation.
  let sales: [Sale]
  let store: SaleStore
  private(set) var lines: [ReportLine] = []

  init(
    _ database: Database, _ symbols: StringInterner, _ arena: TextArena
  ) throws(ProjectionError) {
    do throws(DatabaseError) {
      let table = SaleTable(database, symbols, isFresh: false)
      let nextSale = Int(try database.nextNumber(of: "sales"))
      store = SaleStore(arena, source: table, nextID: nextSale)
      let revenue = RevenueFold(
        store: store, subscriptions: nil, accounts: AccountStore(arena), symbols: symbols,
        exceptions: NoExceptions(), userIdentifier: { _ in Text(start: nil, count: 0) },
        tokenUser: { _ in -1 })
      try Self.fold(database, symbols, arena, into: revenue)
      let declarations = DeclarationTable(database, nil, symbols, isFresh: false)
      let derived = DerivedPrices(
        store: store, symbols: symbols, priceList: try declarations.sortedPriceList())
      try byRules { try derived.settle { $0.isPending } }
      sales = store.sales.filter(\.isPending)
      for place in store.sales.indices where store.sales[place].isPending {
        let sale = store.sales[place]
        try store.forEachJournalLine(of: sale) { line throws(DatabaseError) in
          var shown = ReportLine(line, of: sale)
          shown.ordinal = Int32(clamping: lines.count)
          lines.append(shown)
        }
      }
      // The store uses the table only within this scope; nothing is fetched afterwards.
      withExtendedLifetime(table) {}
    } catch { throw .database(error) }
  }

  /// Folds each local verification of a pending receipt as an observation of the file's contents.
  private static func fold(
    _ database: Database, _ symbols: StringInterner, _ arena: TextArena, into revenue: RevenueFold
  ) throws(DatabaseError) {
    // A verification follows its receipt's first upload, so older ones can be skipped.
    let first = try database.integer(
      """
      SELECT min(r.first_position) FROM pending_receipts p JOIN receipts r ON r.id = p.receipt
      """)
    guard let first else { return }
    let rows = try database.prepare(
      """
      SELECT v.position, v.occurred_at_ms, p.environment, p.purchases, u.position,
      u.occurred_at_ms, u.country, u.user, u.metadata, u.recorded_at_ms
      FROM pending_receipts p JOIN verifications v ON v.receipt = p.receipt
      JOIN uploads u ON u.position = v.upload
      WHERE v.position > ? AND v.authority = 0 AND v.outcome = 0 ORDER BY v.position
      """)
    rows.bind(1, first)
    let keeper = TextKeeper()
    while try rows.step() {
      keeper.removeAll()
      // This program wrote the file's contents here, so they parse.
      guard let reply = try? Reply(rows.bytes(3), keeper) else { continue }
      let verification = Verification(
        position: try rows.ordinal(0), occurredAtMs: try rows.instant(1),
        recordedAtMs: try rows.instant(9), requestDateMs: nil,
        environment: symbols.symbol(rows.bytes(2)),
        bundle: symbols.symbol(reply.bundleID ?? Text(start: nil, count: 0)),
        upload: UploadEvidence(
          position: try rows.ordinal(4), occurredAtMs: try rows.instant(5),
          country: try rows.symbol(6),
          user: try rows.optionalNumber(7) ?? -1, metadata: rows.bytes(8)),
        trust: .unconfirmed, isPending: true)
      try byRules { try revenue.fold(verification, rows: reply.rows) }
    }
  }
}

/// Discards exceptions, because those of pending sales are not facts yet.
private final class NoExceptions: ExceptionSink {
  func add(_ type: ExceptionType, sale: Sale, detail: Text, position: Int) {}
  func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, product: Text, transaction: Text,
    detail: Text, position: Int
  ) {}
  func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, detail: Text, upload: Int,
    position: Int
  ) {}
  func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, detail: String, position: Int
  ) {}
}

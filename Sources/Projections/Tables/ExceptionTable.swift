// The table `exceptions`, without duplicates.
import Ledger
package import Revenue

/// Writes exceptions as they are found, and skips those already recorded.
package final class ExceptionTable: ExceptionSink {
  private struct Key: Hashable {
    var type: Int8
    var sale: Int
    var environment: Symbol
    var bundle: Symbol
    var product: TextKey
    var transaction: TextKey
    var detail: TextKey
    /// The upload that the exception is about, or −1.
    var upload = -1
  }

  private let database: Database
  private let arena: TextArena
  private let isFresh: Bool
  private var seen: Set<Key> = []
  private let rows: RowWriter
  private let target: RowTarget
  private lazy var selectOfSale = Result { () throws(DatabaseError) in
    try database.prepare("SELECT 1 FROM exceptions WHERE sale = ? AND type = ? AND detail = ?")
  }
  private lazy var selectOfRow = Result { () throws(DatabaseError) in
    try database.prepare(
      """
      SELECT 1 FROM exceptions WHERE sale IS NULL AND type = ? AND transaction_id = ?
      AND product_id = ? AND environment = ? AND bundle = ? AND detail = ?
      """)
  }

  private lazy var selectOfUpload = Result { () throws(DatabaseError) in
    // A literal, so that SQLite can use the index of these exceptions.
    try database.prepare(
      """
      SELECT 1 FROM exceptions e JOIN verifications v ON v.position = e.position
      WHERE e.type = \(ExceptionType.priceUnmatched.rawValue) AND e.detail = ? AND v.upload = ?
      """)
  }

  package init(
    _ database: Database, _ rows: RowWriter, _ arena: TextArena, isFresh: Bool
  ) throws(DatabaseError) {
    self.rows = rows
    self.database = database
    self.arena = arena
    self.isFresh = isFresh
    target = try rows.target("INSERT INTO exceptions", valueCount: 8)
  }

  private let nothing = Text(start: nil, count: 0)

  package func add(
    _ type: ExceptionType, sale: Sale, detail: Text, position: Int
  ) throws(DatabaseError) {
    // Exceptions of pending sales are not facts yet. Reports compute the ones they need.
    if sale.isPending { return }
    let key = Key(
      type: type.rawValue, sale: sale.id, environment: .none, bundle: .none,
      product: TextKey(text: nothing), transaction: TextKey(text: nothing),
      detail: TextKey(text: detail))
    if seen.contains(key) { return }
    if try isStored(type, sale.id, detail) == false {
      try write(
        type, sale.id, sale.environment, sale.bundle, nothing, nothing, detail, position)
    }
    remember(key)
  }

  package func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, product: Text, transaction: Text,
    detail: Text, position: Int
  ) throws(DatabaseError) {
    precondition(type.isOncePerText, "an exception that is kept once must be known as such")
    let key = Key(
      type: type.rawValue, sale: -1, environment: environment, bundle: bundle,
      product: TextKey(text: product), transaction: TextKey(text: transaction),
      detail: TextKey(text: detail))
    if seen.contains(key) { return }
    if try isStored(type, environment, bundle, product, transaction, detail) == false {
      try write(type, -1, environment, bundle, product, transaction, detail, position)
    }
    remember(key)
  }

  package func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, detail: Text, upload: Int,
    position: Int
  ) throws(DatabaseError) {
    precondition(type == .priceUnmatched, "one lookup is for one type")
    // Verifications of one upload can differ in environment and bundle.
    let key = Key(
      type: type.rawValue, sale: -1, environment: .none, bundle: .none,
      product: TextKey(text: nothing), transaction: TextKey(text: nothing),
      detail: TextKey(text: detail), upload: upload)
    if seen.contains(key) { return }
    if try isStored(ofUpload: upload, detail) == false {
      try write(type, -1, environment, bundle, nothing, nothing, detail, position)
    }
    remember(key)
  }

  package func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, detail: String, position: Int
  ) throws(DatabaseError) {
    precondition(!type.isOncePerText, "an exception that is kept once must not be kept again")
    try withText(detail) { detail throws(DatabaseError) in
      try write(type, -1, environment, bundle, nothing, nothing, detail, position)
    }
  }

  private func remember(_ key: Key) {
    var kept = key
    kept.product = TextKey(text: arena.keep(key.product.text))
    kept.transaction = TextKey(text: arena.keep(key.transaction.text))
    kept.detail = TextKey(text: arena.keep(key.detail.text))
    seen.insert(kept)
  }

  private func isStored(
    _ type: ExceptionType, _ sale: Int, _ detail: Text
  ) throws(DatabaseError) -> Bool {
    if isFresh { return false }
    let statement = try selectOfSale.get()
    defer { statement.reset() }
    statement.bind(1, sale)
    statement.bind(2, Int(type.rawValue))
    statement.bind(3, text: detail)
    return try statement.step()
  }

  private func isStored(ofUpload upload: Int, _ detail: Text) throws(DatabaseError) -> Bool {
    if isFresh { return false }
    let statement = try selectOfUpload.get()
    defer { statement.reset() }
    statement.bind(1, text: detail)
    statement.bind(2, upload)
    return try statement.step()
  }

  private func isStored(
    _ type: ExceptionType, _ environment: Symbol, _ bundle: Symbol, _ product: Text,
    _ transaction: Text, _ detail: Text
  ) throws(DatabaseError) -> Bool {
    if isFresh { return false }
    let statement = try selectOfRow.get()
    defer { statement.reset() }
    statement.bind(1, Int(type.rawValue))
    statement.bind(2, text: transaction)
    statement.bind(3, text: product)
    statement.bind(4, Int(environment))
    statement.bind(5, Int(bundle))
    statement.bind(6, text: detail)
    return try statement.step()
  }

  private func write(
    _ type: ExceptionType, _ sale: Int, _ environment: Symbol, _ bundle: Symbol, _ product: Text,
    _ transaction: Text, _ detail: Text, _ position: Int
  ) throws(DatabaseError) {
    rows.begin(target)
    rows.add(Int(type.rawValue))
    rows.add(position: sale)
    rows.add(Int(environment))
    rows.add(Int(bundle))
    rows.add(text: product)
    rows.add(text: transaction)
    rows.add(text: detail)
    rows.add(position)
    try rows.end()
  }
}

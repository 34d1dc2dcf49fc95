// The receipts of a fold: what is known of each, whoever uploaded it.
import JSON
import Ledger

/// What became of a receipt.
enum ReceiptState: Int8, CaseIterable {
  case pending, valid, invalid, unavailable

  /// The word in reports.
  var word: StaticString {
    switch self {
    case .pending: "pending"
    case .valid: "valid"
    case .invalid: "invalid"
    case .unavailable: "unavailable"
    }
  }
}

/// A receipt. Texts belong to the fold's arena.
struct ReceiptRecord {
  var receiptID: Text
  var sha256Hex: Text
  var appFamily: Symbol
  var bundle: Symbol
  var isTransactionStyle: Bool
  var environment: Symbol = .none
  var state: ReceiptState = .pending
  var fraudReason: Symbol = .none
  var country: Symbol = .none
  var user: Int32 = -1
  var uploads = 0
  var purchases = 0
  var firstPosition: Int
  var lastPosition: Int
  /// The verification whose reply says what the receipt holds now, or −1.
  var replyPosition = -1
  var isLocallyValid = false
  /// Whether the App Store's answer is final (rule R1).
  var isFinal = false
  var createdAtMs: Int64
  var updatedAtMs: Int64
  var isChanged = true
}

/// Receipts by their ids. Those that the database has are fetched when they are met.
final class ReceiptTable {
  private let arena: TextArena
  private let database: Database
  private let isFresh: Bool
  private var receipts: [Int32: ReceiptRecord] = [:]
  private var numbers: [TextKey: Int32] = [:]
  private var nextNumber: Int32
  private lazy var selectByID = Result { () throws(DatabaseError) in
    try database.prepare("SELECT \(Self.columns) FROM receipts WHERE receipt_id = ?")
  }
  private lazy var selectByNumber = Result { () throws(DatabaseError) in
    try database.prepare("SELECT \(Self.columns) FROM receipts WHERE id = ?")
  }

  private static let columns = """
    id, receipt_id, sha256, app_family, bundle, style, environment, state, fraud_reason, country, \
    user, uploads, purchases, first_position, last_position, reply_position, is_locally_valid, \
    is_final, created_at_ms, updated_at_ms
    """

  init(_ database: Database, _ arena: TextArena, isFresh: Bool) throws(DatabaseError) {
    self.database = database
    self.arena = arena
    self.isFresh = isFresh
    nextNumber = isFresh ? 0 : Int32(try database.integer("SELECT max(id) + 1 FROM receipts") ?? 0)
  }

  /// The number of the receipt with this id, if it was seen before.
  func find(_ receiptID: Text) throws(DatabaseError) -> Int32? {
    if let known = numbers[TextKey(text: receiptID)] { return known }
    if isFresh { return nil }
    let statement = try selectByID.get()
    statement.bind(1, text: receiptID)
    defer { statement.reset() }
    return try statement.step() ? takeIn(statement) : nil
  }

  /// Adds a receipt; its texts must be of the arena.
  func add(_ receipt: ReceiptRecord) -> Int32 {
    let number = nextNumber
    nextNumber += 1
    numbers[TextKey(text: receipt.receiptID)] = number
    receipts[number] = receipt
    return number
  }

  /// Changes a receipt that was seen before.
  func update(
    _ number: Int32, _ change: (inout ReceiptRecord) -> Void
  ) throws(DatabaseError) {
    if receipts[number] == nil {
      let statement = try selectByNumber.get()
      statement.bind(1, Int(number))
      defer { statement.reset() }
      if try statement.step() { _ = takeIn(statement) }
    }
    guard var receipt = receipts[number] else {
      preconditionFailure("an upload of a receipt that is not there")
    }
    change(&receipt)
    receipt.isChanged = true
    receipts[number] = receipt
  }

  private func takeIn(_ row: Statement) -> Int32 {
    let number = Int32(row.integer(0))
    func symbol(_ index: Int32) -> Symbol { row.optionalInteger(index).map(Symbol.init) ?? .none }
    var receipt = ReceiptRecord(
      receiptID: arena.keep(row.bytes(1)), sha256Hex: arena.keep(row.bytes(2)),
      appFamily: symbol(3), bundle: symbol(4), isTransactionStyle: row.integer(5) == 1,
      firstPosition: Int(row.integer(13)), lastPosition: Int(row.integer(14)),
      createdAtMs: row.integer(18), updatedAtMs: row.integer(19))
    receipt.environment = symbol(6)
    receipt.state = ReceiptState(rawValue: Int8(row.integer(7))) ?? .pending
    receipt.fraudReason = symbol(8)
    receipt.country = symbol(9)
    receipt.user = symbol(10)
    receipt.uploads = Int(row.integer(11))
    receipt.purchases = Int(row.integer(12))
    receipt.replyPosition = Int(row.optionalInteger(15) ?? -1)
    receipt.isLocallyValid = row.integer(16) != 0
    receipt.isFinal = row.integer(17) != 0
    receipt.isChanged = false
    numbers[TextKey(text: receipt.receiptID)] = number
    receipts[number] = receipt
    return number
  }

  /// Writes what has changed.
  func store() throws(DatabaseError) {
    let insert = try database.prepare(
      """
      INSERT OR REPLACE INTO receipts(\(Self.columns))
      VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    for number in receipts.keys.sorted() {
      guard let receipt = receipts[number], receipt.isChanged else { continue }
      bind(receipt, number, insert)
      try insert.run()
      receipts[number]?.isChanged = false
    }
  }

  private func bind(_ receipt: ReceiptRecord, _ number: Int32, _ insert: Statement) {
    insert.bind(1, Int(number))
    insert.bind(2, text: receipt.receiptID)
    insert.bind(3, text: receipt.sha256Hex)
    insert.bind(4, Int(receipt.appFamily))
    insert.bind(5, Int(receipt.bundle))
    insert.bind(6, receipt.isTransactionStyle ? 1 : 0)
    insert.bind(7, symbol: receipt.environment)
    insert.bind(8, Int(receipt.state.rawValue))
    insert.bind(9, symbol: receipt.fraudReason)
    insert.bind(10, symbol: receipt.country)
    insert.bind(11, symbol: receipt.user)
    insert.bind(12, receipt.uploads)
    insert.bind(13, receipt.purchases)
    insert.bind(14, receipt.firstPosition)
    insert.bind(15, receipt.lastPosition)
    insert.bind(16, position: receipt.replyPosition)
    insert.bind(17, receipt.isLocallyValid ? 1 : 0)
    insert.bind(18, receipt.isFinal ? 1 : 0)
    insert.bind(19, receipt.createdAtMs)
    insert.bind(20, receipt.updatedAtMs)
  }
}

extension Statement {
  /// Binds a symbol; none is null.
  func bind(_ index: Int32, symbol: Symbol) {
    bind(index, symbol >= 0 ? Int64(symbol) : nil)
  }

  /// Binds a position; a negative one is null.
  func bind(_ index: Int32, position: Int) {
    bind(index, position >= 0 ? Int64(position) : nil)
  }
}

// The table `receipts`: what is known about each receipt from all its uploads.
import Base
import Ledger
import Revenue

/// The state of a receipt.
enum ReceiptState: Int8, CaseIterable {
  case pending, valid, invalid, unavailable

  /// Its name in reports.
  var word: StaticString {
    switch self {
    case .pending: "pending"
    case .valid: "valid"
    case .invalid: "invalid"
    case .unavailable: "unavailable"
    }
  }
}

/// A receipt. The fold's arena owns its texts.
struct ReceiptRecord {
  /// Receipts are numbered from 0 in the order of their first upload.
  var number: Int32 = -1
  var receiptID: Text
  var appFamily: Symbol
  var bundle: Symbol
  var isTransactionStyle: Bool
  var environment: Symbol = .none
  var state: ReceiptState = .pending
  var country: Symbol = .none
  var user: Int32 = -1
  var uploads = 0
  var purchases = 0
  var firstPosition: Int
  var lastPosition: Int
  /// The verification whose reply shows the receipt's current content, or −1.
  var replyPosition = -1
  var isLocallyValid = false
  /// Whether the App Store's reply is final (rule R1).
  var isFinal = false
  var createdAtMs: Int64
  var updatedAtMs: Int64
  /// The position of the newest upload.
  var lastUpload = -1
  /// The event with the newest final reply, whether valid or invalid, or −1.
  var answerPosition = -1
  /// The fraud that the receipt's own verifications prove, and the first fraud proved for any of its uploads.
  var ownFraud = Fraud.none
  var uploadFraud = Fraud.none
  /// Whether the receipt has a row in `pending_receipts`.
  var isStoredAsPending = false
  /// The stored value of `isFinal`; nil if the receipt has no row.
  var storedIsFinal: Bool?
  var isChanged = true

  /// Whether the receipt was verified locally and is pending (rule R1).
  var isPending: Bool { isLocallyValid && !isFinal }

  /// Applies the verdict of a verification. The first proof of fraud counts until a reply without one clears it.
  mutating func note(ownFraud fraud: Fraud) {
    if fraud.reason == .none || ownFraud.reason == .none { ownFraud = fraud }
  }

  /// Why the receipt is fraudulent: the earlier of the two verdicts.
  var fraudReason: Symbol {
    if ownFraud.reason == .none { return uploadFraud.reason }
    if uploadFraud.reason == .none { return ownFraud.reason }
    return uploadFraud.position < ownFraud.position ? uploadFraud.reason : ownFraud.reason
  }
}

/// A fraud verdict and the position of the event that gave it.
struct Fraud {
  var reason: Symbol
  var position: Int

  static let none = Fraud(reason: .none, position: -1)
}

/// Receipts by id. Receipts already in the database are fetched when first needed.
final class ReceiptTable {
  private let arena: TextArena
  private let database: Database
  private let isFresh: Bool
  private let receipts = ChunkedArray<ReceiptRecord>()
  /// Indexes into `receipts` by receipt id and, where number and index differ, by number.
  private let places = HashIndex()
  private var placesByNumber: [Int32: Int] = [:]
  private var nextNumber: Int32
  /// The first is for rows whose `is_final` is new or changes, the second for all others.
  private var targets: [RowTarget?] = [nil, nil]
  /// How many receipts `storeSettled` has processed.
  private var settledCount = 0
  private lazy var selectByID = Result { () throws(DatabaseError) in
    try database.prepare(
      "SELECT \(Self.columns) FROM receipts WHERE receipt_hash = ? AND receipt_id = ?")
  }
  private lazy var selectByNumber = Result { () throws(DatabaseError) in
    try database.prepare("SELECT \(Self.columns) FROM receipts WHERE id = ?")
  }

  private static let columns = """
    id, receipt_id, app_family, bundle, style, environment, state, fraud_reason, country, \
    user, uploads, purchases, first_position, last_position, reply_position, is_locally_valid, \
    is_final, created_at_ms, updated_at_ms, receipt_hash, last_upload, answer_position, \
    own_fraud_reason, own_fraud_position, upload_fraud_reason, upload_fraud_position
    """

  init(_ database: Database, _ arena: TextArena, isFresh: Bool) throws(DatabaseError) {
    self.database = database
    self.arena = arena
    self.isFresh = isFresh
    nextNumber = isFresh ? 0 : try database.nextNumber(of: "receipts")
  }

  /// The number of the receipt with this id; nil if it is new.
  func find(_ receiptID: Text) throws(DatabaseError) -> Int32? {
    if let place = places.find(receiptID.placeHash(), { receipts[$0].receiptID.equals(receiptID) })
    {
      return receipts[place].number
    }
    if isFresh { return nil }
    let statement = try selectByID.get()
    statement.bind(1, receiptID.indexHash)
    statement.bind(2, text: receiptID)
    defer { statement.reset() }
    return try statement.step() ? receipts[takeIn(statement)].number : nil
  }

  /// Adds a receipt. The arena must own its texts.
  func add(_ receipt: ReceiptRecord) -> Int32 {
    var receipt = receipt
    receipt.number = nextNumber
    nextNumber += 1
    _ = place(receipt)
    return receipt.number
  }

  private func place(_ receipt: ReceiptRecord) -> Int {
    places.insert(receipt.receiptID.placeHash(), receipts.count)
    // A fold from nothing sees receipts in the order of their numbers.
    if !isFresh { placesByNumber[receipt.number] = receipts.count }
    receipts.append(receipt)
    return receipts.count - 1
  }

  /// Changes a known receipt.
  func update(
    _ number: Int32, _ change: (inout ReceiptRecord) -> Void
  ) throws(DatabaseError) {
    receipts.update(try place(of: number)) {
      change(&$0)
      $0.isChanged = true
    }
  }

  /// Whether a known receipt is a transaction receipt.
  func isTransactionStyle(_ number: Int32) throws(DatabaseError) -> Bool {
    receipts[try place(of: number)].isTransactionStyle
  }

  /// The bundle of a known receipt.
  func bundle(of number: Int32) throws(DatabaseError) -> Symbol {
    receipts[try place(of: number)].bundle
  }

  /// The app family of a known receipt.
  func appFamily(of number: Int32) throws(DatabaseError) -> Symbol {
    receipts[try place(of: number)].appFamily
  }

  private func place(of number: Int32) throws(DatabaseError) -> Int {
    if isFresh { return Int(number) }
    if let known = placesByNumber[number] { return known }
    return try fetch(number)
  }

  /// Returns the receipts that have become pending, each with its first upload, and those that are no longer pending.
  /// Marks both as stored.
  func takePendingChanges() -> (added: [(number: Int32, upload: Int)], removed: [Int32]) {
    var added: [(number: Int32, upload: Int)] = []
    var removed: [Int32] = []
    for place in receipts.indices
    where receipts[place].isPending != receipts[place].isStoredAsPending {
      let receipt = receipts[place]
      if receipt.isPending {
        added.append((receipt.number, receipt.firstPosition))
      } else {
        removed.append(receipt.number)
      }
      receipts.update(place) { $0.isStoredAsPending = receipt.isPending }
    }
    return (added, removed)
  }

  private func fetch(_ number: Int32) throws(DatabaseError) -> Int {
    let statement = try selectByNumber.get()
    statement.bind(1, Int(number))
    defer { statement.reset() }
    guard try statement.step() else {
      throw DatabaseError(inconsistency: "an upload refers to a missing receipt")
    }
    return try takeIn(statement)
  }

  private func takeIn(_ row: Statement) throws(DatabaseError) -> Int {
    var receipt = ReceiptRecord(
      receiptID: arena.keep(row.bytes(1)),
      appFamily: try row.symbol(2), bundle: try row.symbol(3),
      isTransactionStyle: try row.flag(4),
      firstPosition: try row.ordinal(12), lastPosition: try row.ordinal(13),
      createdAtMs: try row.instant(17), updatedAtMs: try row.instant(18))
    receipt.environment = try row.symbol(5)
    receipt.number = try row.number(0)
    receipt.state = try row.code(6)
    receipt.country = try row.symbol(8)
    receipt.user = try row.symbol(9)
    receipt.uploads = try row.ordinal(10)
    receipt.purchases = try row.ordinal(11)
    receipt.replyPosition = try row.optionalOrdinal(14) ?? -1
    receipt.isLocallyValid = try row.flag(15)
    receipt.isFinal = try row.flag(16)
    receipt.lastUpload = try row.ordinal(20)
    receipt.answerPosition = try row.optionalOrdinal(21) ?? -1
    receipt.ownFraud = Fraud(reason: try row.symbol(22), position: try row.ordinal(23))
    receipt.uploadFraud = Fraud(reason: try row.symbol(24), position: try row.ordinal(25))
    receipt.isStoredAsPending = receipt.isPending
    receipt.storedIsFinal = receipt.isFinal
    receipt.isChanged = false
    return place(receipt)
  }

  /// Writes the receipts that have changed.
  func store(_ rows: RowWriter) throws(DatabaseError) {
    for place in receipts.indices where receipts[place].isChanged { try write(place, rows) }
  }

  /// Writes, in order, the receipts first seen before a position that no event since then has changed.
  func storeSettled(before position: Position, _ rows: RowWriter) throws(DatabaseError) {
    while settledCount < receipts.count, receipts[settledCount].firstPosition < position {
      if receipts[settledCount].lastPosition < position { try write(settledCount, rows) }
      settledCount += 1
    }
  }

  /// Rewrites receipts that have changed since they were written, but not since a position.
  func storeAgain(before position: Position, _ rows: RowWriter) throws(DatabaseError) {
    for place in 0..<settledCount
    where receipts[place].isChanged && receipts[place].lastPosition < position {
      try write(place, rows)
    }
  }

  private func write(_ place: Int, _ rows: RowWriter) throws(DatabaseError) {
    let receipt = receipts[place]
    rows.begin(try target(of: receipt, rows))
    add(receipt, rows)
    try rows.end()
    receipts.update(place) {
      $0.isChanged = false
      $0.storedIsFinal = receipt.isFinal
    }
  }

  private func target(
    of receipt: ReceiptRecord, _ rows: RowWriter
  ) throws(DatabaseError) -> RowTarget {
    // If `is_final` stays the same, leaving it out of the upsert avoids touching its index. A fold from nothing may
    // write a receipt twice, and the later state must win.
    let isFinalStays = !isFresh && receipt.isFinal == receipt.storedIsFinal
    let index = isFinalStays ? 1 : 0
    if let known = targets[index] { return known }
    let target = try rows.target(
      upserting: "receipts(\(Self.columns))", valueCount: 26, key: "id",
      changing: isFinalStays ? Self.changing : Self.changing + ["is_final"])
    targets[index] = target
    return target
  }

  /// The columns that events change, except `is_final`, which is indexed.
  private static let changing = [
    "environment", "state", "fraud_reason", "country", "user", "uploads", "purchases",
    "last_position", "reply_position", "is_locally_valid", "updated_at_ms", "last_upload",
    "answer_position", "own_fraud_reason", "own_fraud_position", "upload_fraud_reason",
    "upload_fraud_position",
  ]

  private func add(_ receipt: ReceiptRecord, _ rows: RowWriter) {
    rows.add(Int(receipt.number))
    rows.add(kept: receipt.receiptID)
    rows.add(Int(receipt.appFamily))
    rows.add(Int(receipt.bundle))
    rows.add(receipt.isTransactionStyle ? 1 : 0)
    rows.add(symbol: receipt.environment)
    rows.add(Int(receipt.state.rawValue))
    rows.add(symbol: receipt.fraudReason)
    rows.add(symbol: receipt.country)
    rows.add(symbol: receipt.user)
    rows.add(receipt.uploads)
    rows.add(receipt.purchases)
    rows.add(receipt.firstPosition)
    rows.add(receipt.lastPosition)
    rows.add(position: receipt.replyPosition)
    rows.add(receipt.isLocallyValid ? 1 : 0)
    rows.add(receipt.isFinal ? 1 : 0)
    rows.add(receipt.createdAtMs)
    rows.add(receipt.updatedAtMs)
    rows.add(receipt.receiptID.indexHash)
    rows.add(receipt.lastUpload)
    rows.add(position: receipt.answerPosition)
    for fraud in [receipt.ownFraud, receipt.uploadFraud] {
      rows.add(symbol: fraud.reason)
      rows.add(position: fraud.reason >= 0 ? fraud.position : -1)
    }
  }
}

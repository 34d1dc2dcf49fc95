// Replacements for identifiers and unreadable values in one erasure.
import Base
import Projections
import Revenue

/// The names, marks and ids of one erasure: equal values get equal replacements. Used by one thread.
final class Pseudonyms {
  /// How many different unreadable values get their own mark.
  private static let markCountMax = 4096
  private static let transactionDigitsMax = 32

  /// The erasure's position.
  let erasure: Int
  /// The name that replaces the user.
  let user: String
  private let database: Database
  private let lineDigest: (SHA256Digest) -> SHA256Digest
  private let ownership: Ownership
  private var tokens: [[UInt8]: Int] = [:]
  private var accounts: [[UInt8]: Int] = [:]
  private var marks: [[UInt8]: Int] = [:]
  private var ids: [[UInt8]: UUID16] = [:]
  private var products: Set<[UInt8]>?
  private var unusualTransactions: Set<[UInt8]>?

  init(
    erasure: Int, _ ownership: Ownership, _ database: Database,
    lineDigest: @escaping (SHA256Digest) -> SHA256Digest
  ) {
    self.erasure = erasure
    self.ownership = ownership
    user = ErasedUser.name(erasure: erasure)
    self.database = database
    self.lineDigest = lineDigest
  }

  /// What is kept of an app account token: the name that the erasure gives it; another user's token as it is; nil for
  /// text that is not a token.
  func token(_ token: JSONBytes) -> String? {
    TokenUser.canonical(token).map { name($0, &tokens) }
  }

  /// What is kept of an Apple Account's id; nil where the id would assign a purchase without a user to another user.
  func account(of purchase: ShownPurchase) -> String? {
    guard let account = purchase.appTransactionID else { return nil }
    let facts = PurchaseFacts(purchase)
    if ownership.losesAccount(facts), !ownership.holds(facts) { return nil }
    return name(Array(account), &accounts)
  }

  /// A name that an erasure gave is kept.
  private func name(_ text: [UInt8], _ known: inout [[UInt8]: Int]) -> String {
    if ownership.others.contains(text) || text.withUnsafeBytes({ ErasedUser.isName($0) }) {
      return String(decoding: text, as: UTF8.self)
    }
    let ordinal = known[text, default: known.count + 1]
    known[text] = ordinal
    return ErasedUser.name(erasure: erasure, ordinal: ordinal)
  }

  /// Whether an identifier is a name that an erasure gave.
  func isErased(_ identifier: String) -> Bool {
    var identifier = identifier
    return identifier.withUTF8 { ErasedUser.isName(UnsafeRawBufferPointer($0)) }
  }

  /// The mark of a value that no rule can read. A mark is kept as it is.
  func mark(_ value: UnsafeRawBufferPointer) -> String {
    if Self.isMark(value) { return String(decoding: value, as: UTF8.self) }
    if let ordinal = marks[Array(value)] { return Self.mark(ordinal) }
    guard marks.count < Self.markCountMax else { return Self.mark(1) }
    marks[Array(value)] = marks.count + 1
    return Self.mark(marks.count)
  }

  func mark(_ value: String) -> String {
    var value = value
    return value.withUTF8 { mark(UnsafeRawBufferPointer($0)) }
  }

  private static func mark(_ ordinal: Int) -> String { ordinal == 1 ? "?" : "?\(ordinal)" }

  private static func isMark(_ text: UnsafeRawBufferPointer) -> Bool {
    text.first == UInt8(ascii: "?") && text.count <= 6
      && text.dropFirst().allSatisfy { 0x30...0x39 ~= $0 }
  }

  /// A random id to replace one that is derived from a receipt or from signed objects.
  func id(insteadOf id: UnsafeRawBufferPointer) -> UUID16 {
    let new = ids[Array(id), default: .random()]
    ids[Array(id)] = new
    return new
  }

  /// The replacement for an import line's SHA-256.
  func line(_ digest: SHA256Digest) -> SHA256Digest { lineDigest(digest) }

  /// A quantity of at most seven digits, or an empty one, as it is; the mark of any other.
  func quantity(_ text: String, isInteger: Bool) -> String {
    let digitCount = text.utf8.count { $0 != UInt8(ascii: "-") }
    return text.isEmpty || (isInteger && digitCount <= 7) ? text : mark(text)
  }

  // MARK: Text from clients

  /// Whether a text is the product of a sale, or of a receipt that waits for the App Store.
  func isProduct(_ text: UnsafeRawBufferPointer) throws -> Bool {
    if let products { return products.contains(Array(text)) }
    products = try texts(
      """
      SELECT text FROM symbols WHERE id IN (SELECT product FROM sales)
      UNION \(Self.waiting("product_id"))
      """)
    return try isProduct(text)
  }

  /// Whether a text is a transaction's id: digits, or the id of a sale.
  func isTransaction(_ text: UnsafeRawBufferPointer) throws -> Bool {
    if text.count <= Self.transactionDigitsMax, text.allSatisfy({ 0x30...0x39 ~= $0 }) {
      return true
    }
    if let unusualTransactions { return unusualTransactions.contains(Array(text)) }
    let unusual = "GLOB '*[^0-9]*'"
    unusualTransactions = try texts(
      """
      SELECT transaction_id FROM sale_transactions WHERE transaction_id \(unusual)
      UNION SELECT transaction_id FROM sales WHERE transaction_id \(unusual)
      UNION SELECT original_transaction_id FROM sales WHERE original_transaction_id \(unusual)
      UNION SELECT sale_key FROM sales WHERE sale_key \(unusual)
      UNION \(Self.waiting("transaction_id")) UNION \(Self.waiting("original_transaction_id"))
      """)
    return try isTransaction(text)
  }

  /// SQL: a member of the purchases in receipts that wait.
  private static func waiting(_ member: String) -> String {
    """
    SELECT e.value ->> '\(member)' FROM pending_receipts p, json_each(p.purchases, '$.receipt.in_app') e
    WHERE e.value ->> '\(member)' IS NOT NULL
    """
  }

  private func texts(_ sql: String) throws -> Set<[UInt8]> {
    let rows = try database.prepare(sql)
    var texts: Set<[UInt8]> = []
    while try rows.step() { texts.insert(Array(rows.bytes(0))) }
    return texts
  }

  /// A code of the App Store as it is, or a mark for other text.
  func code(_ text: UnsafeRawBufferPointer) -> String {
    let isCode =
      1...32 ~= text.count
      && text.allSatisfy {
        0x30...0x39 ~= $0 || 0x41...0x5A ~= $0 || 0x61...0x7A ~= $0 || $0 == 0x5F || $0 == 0x2D
      }
    return isCode ? String(decoding: text, as: UTF8.self) : mark(text)
  }
}

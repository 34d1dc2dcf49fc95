// The time of the newest statement about a sale, apart from the sale's row: nearly every statement changes it.
import Revenue

/// The time of the newest statement about a sale (rule R12).
struct StatementTime: Equatable, SaleRecord {
  /// Epoch milliseconds; the minimum if no statement had a time.
  var newestMs: Int64

  init(newestMs: Int64) { self.newestMs = newestMs }

  // MARK: As bytes

  static let table: StaticString = "statement_times"
  static let byteCount = 8
  /// Small, because a catch-up rewrites the rows of all sales that it meets.
  static let rowCapacity = 64

  func write(to bytes: UnsafeMutableRawPointer) {
    bytes.storeBytes(of: newestMs.littleEndian, as: Int64.self)
  }

  init?(_ bytes: UnsafeRawPointer) {
    newestMs = Int64(littleEndian: bytes.loadUnaligned(as: Int64.self))
  }

  /// The bytes of the time of a row of `sales`.
  static let ofSaleSQL = """
    (SELECT substr(records, sales.id % \(rowCapacity) * \(byteCount) + 1, \(byteCount))
    FROM \(table) WHERE statement_times.id = sales.id / \(rowCapacity))
    """
}

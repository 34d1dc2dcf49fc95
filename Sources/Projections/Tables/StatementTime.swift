// The times of the newest statements about a sale, apart from the sale's row: nearly every statement changes them.
import Revenue

/// The times of the newest statements about a sale (rules R12 and R13). Epoch milliseconds; the minimum if no such
/// statement had a time.
package struct StatementTime: Equatable, SaleRecord {
  var newestReplyMs: Int64
  /// The time of the event with that reply.
  var newestReplyEventMs: Int64
  var newestSignedMs: Int64
  /// The time of the statement that says when the sale's period ends.
  var periodEndMs: Int64

  package init(
    newestReplyMs: Int64, newestReplyEventMs: Int64, newestSignedMs: Int64, periodEndMs: Int64
  ) {
    (self.newestReplyMs, self.newestReplyEventMs) = (newestReplyMs, newestReplyEventMs)
    (self.newestSignedMs, self.periodEndMs) = (newestSignedMs, periodEndMs)
  }

  init(_ sale: Sale) {
    self.init(
      newestReplyMs: sale.newestReplyMs, newestReplyEventMs: sale.newestReplyEventMs,
      newestSignedMs: sale.newestSignedMs, periodEndMs: sale.periodEndStatementMs)
  }

  // MARK: As bytes

  package static let table: StaticString = "statement_times"
  package static let byteCount = 32
  /// Small, because a catch-up rewrites the rows of all sales that it meets.
  package static let rowCapacity = 64

  package func write(to bytes: UnsafeMutableRawPointer) {
    bytes.storeBytes(of: newestReplyMs.littleEndian, as: Int64.self)
    bytes.storeBytes(of: newestSignedMs.littleEndian, toByteOffset: 8, as: Int64.self)
    bytes.storeBytes(of: periodEndMs.littleEndian, toByteOffset: 16, as: Int64.self)
    bytes.storeBytes(of: newestReplyEventMs.littleEndian, toByteOffset: 24, as: Int64.self)
  }

  package init?(_ bytes: UnsafeRawPointer) {
    newestReplyMs = Int64(littleEndian: bytes.loadUnaligned(as: Int64.self))
    newestSignedMs = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self))
    periodEndMs = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: Int64.self))
    newestReplyEventMs = Int64(
      littleEndian: bytes.loadUnaligned(fromByteOffset: 24, as: Int64.self))
  }

  /// The bytes of the times of a row of `sales`.
  static let ofSaleSQL = """
    (SELECT substr(records, sales.id % \(rowCapacity) * \(byteCount) + 1, \(byteCount))
    FROM \(table) WHERE statement_times.id = sales.id / \(rowCapacity))
    """
}

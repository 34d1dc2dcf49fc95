// The constants of the exchange format, for its writer and its reader.

/// A stream is batches, then one end. All numbers are little-endian.
///
///     batch  = u32 rows, u16 table, u16 columns, then each column: u8 kind and its cells
///     cells  = of integers: rows × i64; of bytes: (rows + 1) × u32 offsets from 0, then the bytes
///     end    = u32 0xFFFFFFFF, u32 size, a JSON text of that size
package enum ExchangeFormat {
  /// The version of the format and of the tables; both sides must have the same.
  package static let version = 1

  package static let batchRowCountMax = 65_536
  /// All cells of bytes of one batch.
  package static let batchByteCountMax = 64 << 20
  package static let columnCountMax = 1_024
  package static let endByteCountMax = 64 << 20

  /// A writer ends a batch at so many rows or bytes.
  static let flushRowCount = 8_192
  static let flushByteCount = 8 << 20

  static let endMark: UInt32 = 0xFFFF_FFFF
}

/// What the cells of a column are.
package enum ExchangeColumnKind: UInt8, Sendable {
  case integer = 0
  case bytes = 1
}

/// Why a stream could not be written or read.
package enum ExchangeError: Error, Equatable, Sendable {
  case system(Int32)
  /// The stream ended before its end.
  case cutShort
  /// The stream breaks a rule of the format.
  case invalid(String)
  /// A cell is larger than a batch may be.
  case cellTooLarge(byteCount: Int)
}

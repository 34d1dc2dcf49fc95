// Writes tables in the exchange format; the format's constants and errors.

/// A stream of tables on an output.
package final class ExchangeWriter {
  fileprivate let output: DescriptorOutput
  private var tables: [ExchangeTableWriter] = []

  package init(_ output: DescriptorOutput) { self.output = output }

  /// Begins a table. Batches of several tables may alternate; the rows of a table keep their order.
  package func table(_ number: UInt16, _ kinds: [ExchangeColumnKind]) -> ExchangeTableWriter {
    precondition(1...ExchangeFormat.columnCountMax ~= kinds.count)
    let table = ExchangeTableWriter(self, number: number, kinds)
    tables.append(table)
    return table
  }

  /// Writes the remaining rows, and the end.
  package func finish(_ json: [UInt8]) throws(ExchangeError) {
    guard json.count <= ExchangeFormat.endByteCountMax else {
      throw .cellTooLarge(byteCount: json.count)
    }
    for table in tables { try table.flush() }
    try output.write(littleEndian: ExchangeFormat.endMark)
    try output.write(littleEndian: UInt32(json.count))
    try output.write(json)
    try output.flush()
  }
}

/// Appends the cells of a table, row after row, each row from its first column to its last.
package final class ExchangeTableWriter {
  private struct Column {
    let kind: ExchangeColumnKind
    /// Cells of integers, or the ends of cells of bytes, from 0.
    var integers: [Int64] = []
    var offsets: [UInt32] = [0]
    var bytes: [UInt8] = []
  }

  private unowned let writer: ExchangeWriter
  private let number: UInt16
  private var columns: [Column]
  private var column = 0
  private var rowCount = 0
  private var byteCount = 0

  fileprivate init(_ writer: ExchangeWriter, number: UInt16, _ kinds: [ExchangeColumnKind]) {
    self.writer = writer
    self.number = number
    columns = kinds.map { Column(kind: $0) }
  }

  package func append(_ value: Int64) throws(ExchangeError) {
    precondition(columns[column].kind == .integer)
    columns[column].integers.append(value)
    try endCell()
  }

  package func append(_ bytes: UnsafeRawBufferPointer) throws(ExchangeError) {
    try appendBytes(bytes.count) { $0.append(contentsOf: bytes) }
  }

  package func append(_ bytes: [UInt8]) throws(ExchangeError) {
    try appendBytes(bytes.count) { $0.append(contentsOf: bytes) }
  }

  /// Appends a cell that consists of two parts.
  package func append(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer
  ) throws(ExchangeError) {
    try appendBytes(first.count + second.count) {
      $0.append(contentsOf: first)
      $0.append(contentsOf: second)
    }
  }

  package func append(_ text: String) throws(ExchangeError) {
    try appendBytes(text.utf8.count) { $0.append(contentsOf: text.utf8) }
  }

  private func appendBytes(
    _ addedByteCount: Int, _ add: (inout [UInt8]) -> Void
  ) throws(ExchangeError) {
    precondition(columns[column].kind == .bytes)
    guard byteCount + addedByteCount <= ExchangeFormat.batchByteCountMax else {
      throw .cellTooLarge(byteCount: addedByteCount)
    }
    add(&columns[column].bytes)
    columns[column].offsets.append(UInt32(columns[column].bytes.count))
    byteCount += addedByteCount
    try endCell()
  }

  private func endCell() throws(ExchangeError) {
    column += 1
    guard column == columns.count else { return }
    column = 0
    rowCount += 1
    if rowCount >= ExchangeFormat.flushRowCount || byteCount >= ExchangeFormat.flushByteCount {
      try flush()
    }
  }

  /// Writes a batch of the rows so far.
  package func flush() throws(ExchangeError) {
    precondition(column == 0, "a row is incomplete")
    guard rowCount > 0 else { return }
    let output = writer.output
    try output.write(littleEndian: UInt32(rowCount))
    try output.write(littleEndian: number)
    try output.write(littleEndian: UInt16(columns.count))
    for index in columns.indices {
      try output.write(littleEndian: columns[index].kind.rawValue)
      switch columns[index].kind {
      case .integer:
        for value in columns[index].integers { try output.write(littleEndian: value) }
        columns[index].integers.removeAll(keepingCapacity: true)
      case .bytes:
        for offset in columns[index].offsets { try output.write(littleEndian: offset) }
        try output.write(columns[index].bytes)
        columns[index].offsets.removeSubrange(1...)
        columns[index].bytes.removeAll(keepingCapacity: true)
      }
    }
    rowCount = 0
    byteCount = 0
  }
}

// MARK: - Format

/// A stream is batches, then one end. All numbers are little-endian.
///
///     batch  = u32 rows, u16 table, u16 columns, then each column: u8 kind and its cells
///     cells  = of integers: rows × i64; of bytes: (rows + 1) × u32 offsets from 0, then the bytes
///     end    = u32 0xFFFFFFFF, u32 size, a JSON text of that size
package enum ExchangeFormat {
  /// The version of the format and of the tables; both sides must have the same.
  package static let version = 1

  package static let batchRowCountMax = 65_536
  /// The most bytes in all cells of bytes of one batch.
  package static let batchByteCountMax = 64 << 20
  package static let columnCountMax = 1_024
  package static let endByteCountMax = 64 << 20

  /// A writer ends a batch at this many rows or bytes.
  static let flushRowCount = 8_192
  static let flushByteCount = 8 << 20

  static let endMark: UInt32 = 0xFFFF_FFFF
}

/// The type of a column's cells.
package enum ExchangeColumnKind: UInt8, Sendable {
  case integer = 0
  case bytes = 1
}

/// Why a stream could not be written or read.
package enum ExchangeError: Error, Equatable, Sendable {
  case system(Int32)
  /// The stream has no end part.
  case cutShort
  /// The stream breaks a rule of the format.
  case invalid(String)
  /// A cell is larger than a batch may be.
  case cellTooLarge(byteCount: Int)
}

// Reads untrusted streams in the exchange format.

/// The next part of a stream.
package enum ExchangePart {
  case batch(ExchangeBatch)
  /// The end, with its JSON text.
  case end([UInt8])
}

/// Reads batches until the end.
package final class ExchangeReader {
  private let input: DescriptorInput

  package init(_ input: DescriptorInput) { self.input = input }

  /// The next batch, or the end, after which nothing may be read. Throws `cutShort` if there is no end.
  package func next() throws(ExchangeError) -> ExchangePart {
    let rowCount = try input.integer(UInt32.self)
    if rowCount == ExchangeFormat.endMark { return .end(try readEnd()) }
    guard 1...ExchangeFormat.batchRowCountMax ~= Int(rowCount) else {
      throw .invalid("a batch has \(rowCount) rows")
    }
    let table = try input.integer(UInt16.self)
    let columnCount = Int(try input.integer(UInt16.self))
    guard 1...ExchangeFormat.columnCountMax ~= columnCount else {
      throw .invalid("a batch has \(columnCount) columns")
    }
    var columns: [ExchangeColumn] = []
    columns.reserveCapacity(columnCount)
    var byteCount = 0
    for _ in 0..<columnCount {
      let column = try readColumn(rowCount: Int(rowCount), byteCountBefore: byteCount)
      byteCount += column.byteCount
      columns.append(column)
    }
    return .batch(ExchangeBatch(table: table, rowCount: Int(rowCount), columns: columns))
  }

  private func readColumn(
    rowCount: Int, byteCountBefore: Int
  ) throws(ExchangeError) -> ExchangeColumn {
    let number = try input.integer(UInt8.self)
    guard let kind = ExchangeColumnKind(rawValue: number) else {
      throw .invalid("a column is of the unknown kind \(number)")
    }
    switch kind {
    case .integer:
      let column = ExchangeColumn(.integer, headByteCount: rowCount * 8)
      try input.read(into: column.head)
      return column
    case .bytes:
      let column = ExchangeColumn(.bytes, headByteCount: (rowCount + 1) * 4)
      try input.read(into: column.head)
      guard column.offset(0) == 0,
        (0..<rowCount).allSatisfy({ column.offset($0) <= column.offset($0 + 1) })
      else { throw .invalid("the offsets of a column do not increase from 0") }
      let byteCount = column.offset(rowCount)
      guard byteCountBefore + byteCount <= ExchangeFormat.batchByteCountMax else {
        throw .invalid("a batch has more than \(ExchangeFormat.batchByteCountMax) bytes")
      }
      column.allocateBytes(byteCount)
      try input.read(into: column.data)
      return column
    }
  }

  private func readEnd() throws(ExchangeError) -> [UInt8] {
    let byteCount = Int(try input.integer(UInt32.self))
    guard byteCount <= ExchangeFormat.endByteCountMax else {
      throw .invalid("the end has more than \(ExchangeFormat.endByteCountMax) bytes")
    }
    var json = [UInt8](repeating: 0, count: byteCount)
    let result: Result<Void, ExchangeError> = json.withUnsafeMutableBytes { buffer in
      do throws(ExchangeError) { return .success(try input.read(into: buffer)) } catch {
        return .failure(error)
      }
    }
    try result.get()
    return json
  }
}

/// One column of a batch.
final class ExchangeColumn {
  let kind: ExchangeColumnKind
  /// Integers, or the offsets of cells.
  let head: UnsafeMutableRawBufferPointer
  private(set) var data = UnsafeMutableRawBufferPointer(start: nil, count: 0)

  init(_ kind: ExchangeColumnKind, headByteCount: Int) {
    self.kind = kind
    head = .allocate(byteCount: headByteCount, alignment: 8)
  }

  deinit {
    head.deallocate()
    data.deallocate()
  }

  var byteCount: Int { data.count }

  func allocateBytes(_ count: Int) {
    if count > 0 { data = .allocate(byteCount: count, alignment: 8) }
  }

  func offset(_ index: Int) -> Int {
    Int(UInt32(littleEndian: head.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self)))
  }

  func integer(_ row: Int) -> Int64 {
    Int64(littleEndian: head.loadUnaligned(fromByteOffset: 8 * row, as: Int64.self))
  }
}

/// Rows of one table.
package final class ExchangeBatch {
  package let table: UInt16
  package let rowCount: Int
  private let columns: [ExchangeColumn]

  init(table: UInt16, rowCount: Int, columns: [ExchangeColumn]) {
    self.table = table
    self.rowCount = rowCount
    self.columns = columns
  }

  package var kinds: [ExchangeColumnKind] { columns.map(\.kind) }

  /// Throws `invalid` unless the batch is of this table and has these columns.
  package func require(
    table expected: UInt16, _ expectedKinds: [ExchangeColumnKind]
  ) throws(ExchangeError) {
    guard table == expected, kinds == expectedKinds else {
      throw .invalid("a batch of table \(table) is not of the form that is expected here")
    }
  }

  /// A cell of a column of integers.
  package func integer(column: Int, row: Int) -> Int64 {
    precondition(columns[column].kind == .integer && row < rowCount)
    return columns[column].integer(row)
  }

  /// A cell of a column of bytes; valid as long as the batch.
  package func bytes(column: Int, row: Int) -> UnsafeRawBufferPointer {
    let column = columns[column]
    precondition(column.kind == .bytes && row < rowCount)
    let (start, end) = (column.offset(row), column.offset(row + 1))
    return UnsafeRawBufferPointer(rebasing: column.data[start..<end])
  }
}

// Writes the rows of tables to a file descriptor, as CSV in pieces of one table each.
import Glibc

/// A stream of tables. It consists of pieces and an end:
///
///     piece = TABLE " " BYTES LF, then rows of the table in as many bytes
///     end   = "end " BYTES LF, then a JSON text in as many bytes
///
/// Tabs separate the cells of a row, a line feed ends it. Tables may alternate; the rows of each keep their order.
package final class RowOutput {
  /// The version of this format, of its tables, and of the lines of input; both sides must have the same.
  package static let version = 2

  fileprivate let output: DescriptorOutput
  private var tables: [RowTable] = []

  package init(_ output: DescriptorOutput) { self.output = output }

  /// Begins a table.
  package func table(_ number: Int) -> RowTable {
    let table = RowTable(self, number)
    tables.append(table)
    return table
  }

  /// Writes the remaining rows, and the end.
  package func finish(_ json: [UInt8]) throws(StreamError) {
    for table in tables { try table.flush() }
    try output.write(Array("end \(json.count)\n".utf8))
    try output.write(json)
    try output.flush()
  }
}

/// Appends the cells of a table, row after row.
package final class RowTable {
  private static let tab = UInt8(ascii: "\t")
  private static let lineFeed = UInt8(ascii: "\n")
  private static let quote = UInt8(ascii: "\"")
  private static let flushByteCount = 4 << 20

  private unowned let writer: RowOutput
  private let number: Int
  private var bytes: [UInt8] = []
  private var isInRow = false

  fileprivate init(_ writer: RowOutput, _ number: Int) {
    (self.writer, self.number) = (writer, number)
  }

  private func beginCell() {
    if isInRow { bytes.append(Self.tab) }
    isInRow = true
  }

  package func append(_ value: Int64) {
    beginCell()
    bytes.append(contentsOf: String(value).utf8)
  }

  /// Appends a cell without tabs and line feeds, which may consist of two parts.
  package func append(
    _ cell: UnsafeRawBufferPointer,
    _ second: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
  ) {
    beginCell()
    bytes.append(contentsOf: cell)
    bytes.append(contentsOf: second)
  }

  /// Appends a cell without tabs and line feeds.
  package func append(_ cell: some Sequence<UInt8>) {
    beginCell()
    bytes.append(contentsOf: cell)
  }

  /// Appends a cell in quotes, each quote within it twice: it may contain anything.
  package func append(quoted cell: UnsafeRawBufferPointer) {
    beginCell()
    bytes.append(Self.quote)
    var rest = cell[...]
    while let index = rest.firstIndex(of: Self.quote) {
      bytes.append(contentsOf: rest[...index])
      bytes.append(Self.quote)
      rest = rest[(index + 1)...]
    }
    bytes.append(contentsOf: rest)
    bytes.append(Self.quote)
  }

  package func endRow() throws(StreamError) {
    bytes.append(Self.lineFeed)
    isInRow = false
    if bytes.count >= Self.flushByteCount { try flush() }
  }

  /// Writes the rows so far as a piece.
  package func flush() throws(StreamError) {
    precondition(!isInRow, "a row is incomplete")
    if bytes.isEmpty { return }
    try writer.output.write(Array("\(number) \(bytes.count)\n".utf8))
    try writer.output.write(bytes)
    bytes.removeAll(keepingCapacity: true)
  }
}

/// Writes to an open file or pipe, which it does not close.
package final class DescriptorOutput {
  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private static let capacityBytes = 256 << 10

  package init(_ descriptor: Int32) { self.descriptor = descriptor }

  package func write(_ bytes: UnsafeRawBufferPointer) throws(StreamError) {
    if buffer.count + bytes.count > Self.capacityBytes { try flush() }
    if bytes.count >= Self.capacityBytes { return try writeAll(bytes) }
    buffer.append(contentsOf: bytes)
  }

  package func write(_ bytes: [UInt8]) throws(StreamError) {
    let result: Result<Void, StreamError> = bytes.withUnsafeBytes { bytes in
      do throws(StreamError) { return .success(try write(bytes)) } catch {
        return .failure(error)
      }
    }
    try result.get()
  }

  package func flush() throws(StreamError) {
    let pending = buffer
    buffer.removeAll(keepingCapacity: true)
    let result: Result<Void, StreamError> = pending.withUnsafeBytes { bytes in
      do throws(StreamError) { return .success(try writeAll(bytes)) } catch {
        return .failure(error)
      }
    }
    try result.get()
  }

  private func writeAll(_ bytes: UnsafeRawBufferPointer) throws(StreamError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw .system(errno)
      }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }
}

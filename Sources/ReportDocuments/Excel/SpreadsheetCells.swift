// Reads back the cells of an Excel file that this program wrote.
package import Base
import CZlib

/// The cells of all sheets of an Excel file, as the library writes them: inside `<sheetData>`, each text in its cell.
package struct SpreadsheetCells: Equatable, Sendable {
  /// How many cells each sheet has, and the SHA-256 of their XML.
  package struct WorksheetDigest: Equatable, Sendable {
    package let cellCount: Int
    package let sha256: SHA256Digest
  }

  package let rows: WorksheetDigest
  package let about: WorksheetDigest
  /// Nil if the report has no such sheet.
  package let settlement: WorksheetDigest?

  /// Reads a file, and checks that every part of it is complete.
  /// - Parameter read: fills the buffer from an offset in bytes and returns the count; less only at the file's end.
  package init(
    byteCount: Int, _ read: @escaping (UnsafeMutableRawBufferPointer, Int) throws -> Int
  ) throws {
    let zip = ZipFile(byteCount: byteCount, read)
    var sheets: [[UInt8]: WorksheetDigest] = [:]
    for part in try zip.parts() {
      var scanner = CellScanner()
      try zip.inflate(part) { scanner.add($0) }
      guard scanner.isWhole else { throw ZipFile.damaged }
      if let sheet = scanner.sheet() { sheets[part.name] = sheet }
    }
    guard let rows = sheets[Array("xl/worksheets/sheet1.xml".utf8)],
      let about = sheets[Array("xl/worksheets/sheet2.xml".utf8)]
    else { throw ZipFile.damaged }
    (self.rows, self.about) = (rows, about)
    settlement = sheets[Array("xl/worksheets/sheet3.xml".utf8)]
  }
}

/// Finds the cells in a sheet's XML, piece by piece.
private struct CellScanner {
  /// The name of the current tag, a byte in each 8 bits; nil outside a tag's name.
  private var name: UInt128?
  private var isInside = false
  private var isEnded = false
  private var last: UInt8 = 0
  private var cellCount = 0
  private let hasher = SHA256()

  private static func packed(_ name: StaticString) -> UInt128 {
    name.withUTF8Buffer { $0.reduce(0) { $0 << 8 | UInt128($1) } }
  }

  private static let (cell, start, end) = (packed("c"), packed("sheetData"), packed("/sheetData"))

  /// Whether the text ends with a tag.
  var isWhole: Bool { last == UInt8(ascii: ">") }

  /// The cells; nil for a part other than a sheet.
  func sheet() -> SpreadsheetCells.WorksheetDigest? {
    isEnded ? SpreadsheetCells.WorksheetDigest(cellCount: cellCount, sha256: hasher.finish()) : nil
  }

  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    var first = 0
    for (index, byte) in bytes.enumerated() {
      if byte > 0x20 { last = byte }
      if byte == UInt8(ascii: "<") {
        name = 0
      } else if let read = name {
        if byte != UInt8(ascii: ">"), byte != UInt8(ascii: " ") {
          name = read << 8 | UInt128(byte)
          continue
        }
        name = nil
        switch read {
        case Self.cell where isInside: cellCount += 1
        case Self.start:
          isInside = true
          first = index
        case Self.end where isInside:
          hasher.update(UnsafeRawBufferPointer(rebasing: bytes[first...index]))
          (isInside, isEnded) = (false, true)
        default: break
        }
      }
    }
    if isInside { hasher.update(UnsafeRawBufferPointer(rebasing: bytes[first...])) }
  }
}

/// A zip file, by PKWARE's description, as the library writes it: without a comment, each part deflated.
package struct ZipFile {
  /// A part of the file, from the list of parts.
  package struct Part {
    package let name: [UInt8]
    let crc: UInt
    let compressedCount: Int
    let byteCount: Int
    /// Of the part's own header.
    let offset: Int
  }

  private let byteCount: Int
  private let read: (UnsafeMutableRawBufferPointer, Int) throws -> Int

  /// - Parameter read: fills the buffer from an offset in bytes and returns the count; less only at the file's end.
  package init(
    byteCount: Int, _ read: @escaping (UnsafeMutableRawBufferPointer, Int) throws -> Int
  ) {
    (self.byteCount, self.read) = (byteCount, read)
  }

  fileprivate static let damaged = SpreadsheetError.library(
    operation: "read an Excel file", cause: "it is not whole")

  private static let (endCount, entryCount, headerCount) = (22, 46, 30)
  /// More than any list of parts.
  private static let directoryCountMax = 1 << 16

  private func bytes(at offset: Int, _ count: Int) throws -> [UInt8] {
    guard offset >= 0, 0...Self.directoryCountMax ~= count else { throw Self.damaged }
    var bytes = [UInt8](repeating: 0, count: count)
    guard try bytes.withUnsafeMutableBytes({ try read($0, offset) }) == count
    else { throw Self.damaged }
    return bytes
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  /// All parts in order.
  package func parts() throws -> [Part] {
    let end = try bytes(at: byteCount - Self.endCount, Self.endCount)
    guard end.starts(with: [0x50, 0x4B, 5, 6]) else { throw Self.damaged }
    var rest = try bytes(at: Self.number(end[16..<20]), Self.number(end[12..<16]))[...]
    var parts: [Part] = []
    while !rest.isEmpty {
      let start = rest.startIndex
      func number(_ offset: Int, _ count: Int) -> Int {
        Self.number(rest[start + offset..<start + offset + count])
      }
      guard rest.count >= Self.entryCount, rest.starts(with: [0x50, 0x4B, 1, 2]),
        number(10, 2) == 8
      else { throw Self.damaged }
      let nameEnd = Self.entryCount + number(28, 2)
      let count = nameEnd + number(30, 2) + number(32, 2)
      guard rest.count >= count else { throw Self.damaged }
      parts.append(
        Part(
          name: Array(rest[start + Self.entryCount..<start + nameEnd]), crc: UInt(number(16, 4)),
          compressedCount: number(20, 4), byteCount: number(24, 4), offset: number(42, 4)))
      rest = rest.dropFirst(count)
    }
    return parts
  }

  /// Passes on a part's content in pieces.
  package func inflate(_ part: Part, _ body: (UnsafeRawBufferPointer) -> Void) throws {
    let header = try bytes(at: part.offset, Self.headerCount)
    var offset =
      part.offset + Self.headerCount + Self.number(header[26..<28]) + Self.number(header[28..<30])
    let end = offset + part.compressedCount
    var stream = z_stream()
    guard czlib_inflate_init_raw(&stream) == Z_OK else {
      throw SpreadsheetError.library(operation: "read an Excel file", cause: "out of memory")
    }
    defer { inflateEnd(&stream) }
    let input = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
    let output = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    defer {
      input.deallocate()
      output.deallocate()
    }
    var (crc, result) = (crc32(0, nil, 0), Z_OK)
    while result != Z_STREAM_END {
      if stream.avail_in == 0 {
        let wanted = UnsafeMutableRawBufferPointer(rebasing: input.prefix(end - offset))
        let count = try read(wanted, offset)
        guard count > 0 else { throw Self.damaged }
        offset += count
        stream.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.avail_in = UInt32(count)
      }
      stream.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
      stream.avail_out = UInt32(output.count)
      result = CZlib.inflate(&stream, Z_NO_FLUSH)
      let piece = UnsafeRawBufferPointer(
        rebasing: output[..<(output.count - Int(stream.avail_out))])
      guard result == Z_OK || result == Z_STREAM_END, stream.total_out <= part.byteCount
      else { throw Self.damaged }
      crc = crc32(crc, piece.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt32(piece.count))
      body(piece)
    }
    guard stream.total_out == part.byteCount, crc == part.crc else { throw Self.damaged }
  }
}

// The zip file around an Excel file's parts: read as the library made it, and written with the rows in their place.
import CZlib
import Ledger

/// A part of a zip file.
struct ZipPart {
  let name: [UInt8]
  var crc: UInt
  var byteCount: Int
  /// Compressed bytes: one piece after another.
  var pieces: [Piece]

  enum Piece {
    case bytes([UInt8])
    case rows(CompressedRows)

    var count: Int {
      switch self {
      case .bytes(let bytes): bytes.count
      case .rows(let rows): rows.compressedCount
      }
    }
  }

  var compressedCount: Int { pieces.reduce(0) { $0 + $1.count } }
}

/// What a zip file is made of, by PKWARE's description. All parts are compressed, and all dates are 1 January 1980.
enum ZipFormat {
  static let part: UInt32 = 0x0403_4B50
  static let entry: UInt32 = 0x0201_4B50
  static let end: UInt32 = 0x0605_4B50
  static let endCount = 22
  static let entryCount = 46
  static let partCount = 30
  static let deflated: UInt16 = 8
  static let version: UInt16 = 20
  /// 1 January 1980, midnight.
  static let date: UInt16 = 0x0021
  /// What 32 bits can say; more needs another format, of which Excel may warn.
  static let byteCountMax = Int(UInt32.max) - 1
}

/// Reads the parts of a zip file that the library has made.
struct ZipReader {
  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  private static let damaged = SpreadsheetError.library(
    operation: "read the library's file", cause: "it is not whole")

  /// All parts in their order. Throws if one is not whole.
  func parts() throws(SpreadsheetError) -> [ZipPart] {
    let end = bytes.count - ZipFormat.endCount
    guard end >= 0, number(end, 4) == Int(ZipFormat.end) else { throw Self.damaged }
    var place = number(end + 16, 4)
    var parts: [ZipPart] = []
    for _ in 0..<number(end + 10, 2) {
      guard place + ZipFormat.entryCount <= end, number(place, 4) == Int(ZipFormat.entry),
        number(place + 10, 2) == Int(ZipFormat.deflated)
      else { throw Self.damaged }
      let nameCount = number(place + 28, 2)
      let nameStart = place + ZipFormat.entryCount
      let header = number(place + 42, 4)
      guard nameStart + nameCount <= end, header + ZipFormat.partCount <= end,
        number(header, 4) == Int(ZipFormat.part)
      else { throw Self.damaged }
      let start =
        header + ZipFormat.partCount + number(header + 26, 2) + number(header + 28, 2)
      let count = number(place + 20, 4)
      guard start + count <= end else { throw Self.damaged }
      let part = ZipPart(
        name: Array(bytes[nameStart..<nameStart + nameCount]), crc: UInt(number(place + 16, 4)),
        byteCount: number(place + 24, 4), pieces: [.bytes(Array(bytes[start..<start + count]))])
      // A full disk does not stop the library: it goes on with what it could write.
      guard Self.isWhole(try Self.text(of: part)) else { throw Self.damaged }
      parts.append(part)
      place = nameStart + nameCount + number(place + 30, 2) + number(place + 32, 2)
    }
    return parts
  }

  private func number(_ place: Int, _ count: Int) -> Int {
    guard place >= 0, place + count <= bytes.count else { return -1 }
    return (0..<count).reversed().reduce(0) { $0 << 8 | Int(bytes[place + $1]) }
  }

  /// The bytes of a part before compression.
  static func text(of part: ZipPart) throws(SpreadsheetError) -> [UInt8] {
    guard part.pieces.count == 1, case .bytes(let compressed) = part.pieces[0],
      part.byteCount <= compressed.count * 1100 + 64
    else { throw damaged }
    var text = [UInt8](repeating: 0, count: part.byteCount)
    var stream = z_stream()
    guard czlib_inflate_init_raw(&stream) == Z_OK else { throw damaged }
    defer { inflateEnd(&stream) }
    let result = compressed.withUnsafeBufferPointer { input in
      text.withUnsafeMutableBufferPointer { output in
        stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
        stream.avail_in = UInt32(input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = UInt32(output.count)
        return inflate(&stream, Z_FINISH)
      }
    }
    let crc = text.withUnsafeBufferPointer { crc32(0, $0.baseAddress, UInt32($0.count)) }
    guard result == Z_STREAM_END, Int(stream.total_out) == part.byteCount, crc == part.crc
    else { throw damaged }
    return text
  }

  /// Whether an XML text ends with the element that it begins with.
  private static func isWhole(_ text: [UInt8]) -> Bool {
    let words = String(decoding: text, as: UTF8.self)
    // After the declaration.
    guard let declaration = words.range(of: "?>"),
      let start = words[declaration.upperBound...].firstIndex(of: "<")
    else { return false }
    let name = words[words.index(after: start)...].prefix { !" />\n".contains($0) }
    let end = words[...].trimmedEnd
    return !name.isEmpty && end.hasSuffix("</\(name)>")
  }
}

extension String {
  /// Where a text is found first.
  func range(of words: String) -> Range<String.Index>? {
    var rest = self[...]
    while let place = rest.firstIndex(where: { $0 == words.first }) {
      rest = rest[place...]
      if rest.hasPrefix(words) {
        return place..<index(place, offsetBy: words.count)
      }
      rest = rest.dropFirst()
    }
    return nil
  }
}

extension Substring {
  /// Without white space at its end.
  fileprivate var trimmedEnd: Substring {
    var rest = self
    while let last = rest.last, last.isWhitespace { rest = rest.dropLast() }
    return rest
  }
}

/// Writes a zip file from its beginning to its end.
struct ZipWriter {
  private let sink: (UnsafeRawBufferPointer) throws -> Void
  private var offset = 0
  private var directory: [UInt8] = []
  private var partCount = 0

  init(_ sink: @escaping (UnsafeRawBufferPointer) throws -> Void) { self.sink = sink }

  mutating func add(_ part: ZipPart) throws {
    let compressedCount = part.compressedCount
    guard part.byteCount <= ZipFormat.byteCountMax,
      offset + compressedCount + part.name.count + 1024 <= ZipFormat.byteCountMax
    else { throw SpreadsheetError.tooLarge }
    var common: [UInt8] = []
    for value in [ZipFormat.version, 0, ZipFormat.deflated, 0, ZipFormat.date] {
      common.append(little: value)
    }
    for value in [part.crc, UInt(compressedCount), UInt(part.byteCount)] {
      common.append(little: UInt32(truncatingIfNeeded: value))
    }
    common.append(little: UInt16(part.name.count))
    common.append(little: UInt16(0))
    directory.append(little: ZipFormat.entry)
    directory.append(little: ZipFormat.version)
    directory += common
    // No comment, disk 0, no attributes.
    directory.append(contentsOf: repeatElement(0, count: 10))
    directory.append(little: UInt32(offset))
    directory += part.name
    var header: [UInt8] = []
    header.append(little: ZipFormat.part)
    header += common + part.name
    try write(header)
    for piece in part.pieces {
      switch piece {
      case .bytes(let bytes): try write(bytes)
      case .rows(let rows): try copy(rows)
      }
    }
    partCount += 1
  }

  private mutating func write(_ bytes: [UInt8]) throws {
    try bytes.withUnsafeBytes { try sink($0) }
    offset += bytes.count
  }

  private mutating func copy(_ rows: CompressedRows) throws {
    guard let file = rows.file else { return }
    var done = 0
    while done < rows.compressedCount {
      let count = min(rows.compressedCount - done, 1 << 18)
      var bytes = [UInt8](repeating: 0, count: count)
      let readCount = try bytes.withUnsafeMutableBytes { try Self.read(file, into: $0, at: done) }
      guard readCount == count else {
        throw SpreadsheetError.library(operation: "read rows", cause: "the file became shorter")
      }
      try write(bytes)
      done += count
    }
  }

  static func read(
    _ file: StorageFile, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SpreadsheetError) -> Int {
    do throws(LedgerError) { return try file.read(into: buffer, offsetBytes: offset) } catch {
      throw .system(operation: "read rows", code: error.code)
    }
  }

  mutating func end() throws {
    let start = offset
    var end: [UInt8] = directory
    end.append(little: ZipFormat.end)
    end.append(little: UInt32(0))
    end.append(little: UInt16(partCount))
    end.append(little: UInt16(partCount))
    end.append(little: UInt32(directory.count))
    end.append(little: UInt32(start))
    end.append(little: UInt16(0))
    try write(end)
  }
}

extension [UInt8] {
  fileprivate mutating func append(little value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }
}

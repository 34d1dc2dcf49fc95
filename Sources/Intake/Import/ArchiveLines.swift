// Reads an archive as lines of an import file, one after another, with bounded memory.
package import Base

/// Reads the files of an archive in order and makes lines of their content.
package final class ArchiveLines: LineSource {
  private let options: ArchiveOptions
  private let item: ArchiveItem
  private let entries: [ArchiveFiles.Entry]
  private let stop: StopFlag
  private var nextEntry = 0
  private var reader: (any ArchiveFileReader)?
  private var name = ""
  /// Lines that were made and not returned yet, in reverse.
  private var made: [(record: Int, Result<[UInt8], ArchiveFault>)] = []
  private var number = 0
  private var record = 0
  private var bytes = UnsafeMutableRawBufferPointer(start: nil, count: 0)

  /// Throws if one of the paths cannot be read.
  package init(
    _ paths: [String], _ options: ArchiveOptions, stop: StopFlag
  ) throws(Failure) {
    self.options = options
    self.stop = stop
    item = ArchiveItem(environment: options.environment)
    entries = try ArchiveFiles.entries(paths)
  }

  deinit { bytes.deallocate() }

  package var place: (input: String, line: Int)? { (name, record) }

  package func next() throws(Failure) -> LineReader.Line? {
    while true {
      if stop.isSet {
        throw Failure(.interrupted, operation: "read", object: name, cause: "interrupted")
      }
      if let (record, result) = made.popLast() { return hand(result, record) }
      if let reader {
        do throws(ArchiveFault) {
          guard let more = try reader.next() else {
            self.reader = nil
            continue
          }
          made = more.lines.reversed().map { (more.record, .success($0)) }
        } catch {
          if reader.isAtFault { self.reader = nil }
          return hand(.failure(error), reader.record)
        }
      } else if let fault = try open() {
        return hand(.failure(fault), 1)
      } else if reader == nil {
        return nil
      }
    }
  }

  /// Opens the next file; returns a fault if it cannot be read. There is no reader after the last file.
  private func open() throws(Failure) -> ArchiveFault? {
    guard nextEntry < entries.count else { return nil }
    let entry = entries[nextEntry]
    nextEntry += 1
    switch entry {
    case .skipped(let path, let cause):
      name = path
      return ArchiveFault(.unreadable, cause)
    case .file(let path):
      name = path
      do throws(Failure) {
        let (source, size) = try ArchiveFiles.open(path, stop)
        do throws(ArchiveFault) { reader = try fileReader(source, size) } catch { return error }
      } catch {
        if error.exitCode == .interrupted { throw error }
        return ArchiveFault(.unreadable, "cannot be read: \(error.cause)")
      }
      return nil
    }
  }

  private func fileReader(
    _ source: FileSource, _ size: Int
  ) throws(ArchiveFault) -> any ArchiveFileReader {
    if size == 0 { throw ArchiveFault(.missing, "is empty") }
    if let cause = try Self.objection(to: source, options.format == .csv ? .csv : .archive) {
      throw ArchiveFault(.unreadable, cause)
    }
    let item = item
    switch options.format {
    case .receipts:
      let file = try Self.whole(source, size)
      return SingleItem { () throws(ArchiveFault) in [try item.receipt(file)] }
    case .replies:
      return try values(source, size) { (value) throws(ArchiveFault) in [try item.reply(value)] }
    case .transactions:
      return try values(source, size) { (value) throws(ArchiveFault) in
        try item.transactions(value)
      }
    case .notifications:
      return try values(source, size) { (value) throws(ArchiveFault) in
        try item.notifications(value)
      }
    case .csv: return try CSVRows(LineReader(source), rows)
    case .json:
      let rows = rows
      return try values(source, size) { (value) throws(ArchiveFault) in
        [try rows.line(try JSONRow(value))]
      }
    }
  }

  /// Why a file is not of the expected kind; nil if it may be.
  private static func objection(
    to source: FileSource, _ kind: InputKind
  ) throws(ArchiveFault) -> String? {
    let first = UnsafeMutableRawBufferPointer.allocate(
      byteCount: InputKind.byteCountMax, alignment: 1)
    defer { first.deallocate() }
    do throws(Failure) {
      let count = try source.read(into: first)
      try source.rewind()
      return kind.objection(toFile: first[..<count])
    } catch {
      throw ArchiveFault(.unreadable, "cannot be read: \(error.cause)")
    }
  }

  private var rows: TableLines { TableLines(map: options.columns ?? TableMap(), item: item) }

  /// A file of JSON values or signed objects: one document, an array, or one per line.
  private func values(
    _ source: FileSource, _ size: Int,
    _ lines: @escaping (JSONBytes) throws(ArchiveFault) -> [[UInt8]]
  ) throws(ArchiveFault) -> any ArchiveFileReader {
    if size <= ArchiveOptions.wholeBytesMax {
      let file = try Self.whole(source, size)
      if let values = ArchiveValues(document: file, lines) { return values }
      do throws(Failure) { try source.rewind() } catch {
        throw ArchiveFault(.unreadable, "cannot be read: \(error.cause)")
      }
    }
    return ValueLines(LineReader(source), lines)
  }

  private static func whole(_ source: FileSource, _ size: Int) throws(ArchiveFault) -> [UInt8] {
    let limit = ArchiveOptions.wholeBytesMax
    guard size <= limit else { throw ArchiveFault(.tooLarge, "is larger than \(limit >> 20) MiB") }
    var content: [UInt8] = []
    content.reserveCapacity(size)
    let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
    defer { piece.deallocate() }
    while true {
      let count: Int
      do throws(Failure) { count = try source.read(into: piece) } catch {
        throw ArchiveFault(.unreadable, "cannot be read: \(error.cause)")
      }
      if count == 0 { return content }
      content += piece[..<count]
      guard content.count <= limit else {
        throw ArchiveFault(.tooLarge, "is larger than \(limit >> 20) MiB")
      }
    }
  }

  private func hand(_ result: Result<[UInt8], ArchiveFault>, _ record: Int) -> LineReader.Line {
    number += 1
    self.record = record
    switch result {
    case .failure(let fault):
      return .unreadable(number: number, FieldProblem("", fault.code, fault.message))
    case .success(let line):
      if line.count > LineReader.lineBytesMax { return .tooLong(number: number) }
      bytes.deallocate()
      bytes = .allocate(byteCount: line.count, alignment: 1)
      bytes.copyBytes(from: line)
      return .whole(number: number, UnsafeRawBufferPointer(bytes))
    }
  }
}

/// Reads one file of an archive.
protocol ArchiveFileReader: AnyObject {
  /// The lines of the next item in the file; nil at its end. After a fault the next item follows.
  func next() throws(ArchiveFault) -> (record: Int, lines: [[UInt8]])?
  /// The number of the last item, from 1.
  var record: Int { get }
  /// Whether the rest of the file cannot be read.
  var isAtFault: Bool { get }
}

/// A file that is one item.
private final class SingleItem: ArchiveFileReader {
  private let lines: () throws(ArchiveFault) -> [[UInt8]]
  private(set) var record = 0
  var isAtFault: Bool { true }

  init(_ lines: @escaping () throws(ArchiveFault) -> [[UInt8]]) { self.lines = lines }

  func next() throws(ArchiveFault) -> (record: Int, lines: [[UInt8]])? {
    if record == 1 { return nil }
    record = 1
    return (1, try lines())
  }
}

/// A file that is one JSON document: each element of an array is one item.
private final class ArchiveValues: ArchiveFileReader {
  private let document: UnsafeMutableRawBufferPointer
  private let lines: (JSONBytes) throws(ArchiveFault) -> [[UInt8]]
  private var cursor: JSONCursor
  private let isArray: Bool
  private(set) var record = 0
  private(set) var isAtFault = false

  /// Nil if the file is not one JSON document.
  init?(document: [UInt8], _ lines: @escaping (JSONBytes) throws(ArchiveFault) -> [[UInt8]]) {
    var compact: [UInt8] = []
    let first = ArraySlice(document).trimmed.first
    guard let first, [UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "\"")].contains(first),
      (try? document.withUnsafeBytes { try JSONValidator.compact($0, to: &compact) }) != nil
    else { return nil }
    self.document = .allocate(byteCount: compact.count, alignment: 1)
    self.document.copyBytes(from: compact)
    self.lines = lines
    isArray = first == UInt8(ascii: "[")
    cursor = JSONCursor(JSONBytes(self.document))
    if isArray { try? cursor.beginArray() }
  }

  deinit { document.deallocate() }

  func next() throws(ArchiveFault) -> (record: Int, lines: [[UInt8]])? {
    let value: JSONBytes
    do throws(JSONError) {
      guard try isArray ? cursor.nextElement() : record == 0 else { return nil }
      record += 1
      value = try cursor.readRaw()
    } catch {
      isAtFault = true
      throw ArchiveFault(.notJSON, "is not JSON: \(error)")
    }
    return (record, try lines(value))
  }
}

/// A file with one JSON value or signed object per line.
private final class ValueLines: ArchiveFileReader {
  private let reader: LineReader
  private let lines: (JSONBytes) throws(ArchiveFault) -> [[UInt8]]
  private(set) var record = 0
  private(set) var isAtFault = false
  private var compact: [UInt8] = []

  init(
    _ reader: LineReader, _ lines: @escaping (JSONBytes) throws(ArchiveFault) -> [[UInt8]]
  ) {
    (self.reader, self.lines) = (reader, lines)
  }

  func next() throws(ArchiveFault) -> (record: Int, lines: [[UInt8]])? {
    let line: LineReader.Line?
    do throws(Failure) { line = try reader.next() } catch {
      isAtFault = true
      throw ArchiveFault(.unreadable, "cannot be read: \(error.cause)")
    }
    switch line {
    case nil: return nil
    case .tooLong(let number):
      record = number
      throw ArchiveFault(.tooLarge, "is longer than 16 MiB; an array must be one value a line")
    case .unreadable(let number, let problem):
      record = number
      throw ArchiveFault(problem.code, problem.message)
    case .whole(let number, let bytes):
      record = number
      return (number, try lines(ofLine: bytes))
    }
  }

  private func lines(ofLine bytes: UnsafeRawBufferPointer) throws(ArchiveFault) -> [[UInt8]] {
    let text = Array(ArraySlice(bytes).trimmed)
    if text.isEmpty { return [] }
    compact.removeAll(keepingCapacity: true)
    if [UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "\"")].contains(text[0]) {
      do { try text.withUnsafeBytes { try JSONValidator.compact($0, to: &compact) } } catch {
        throw ArchiveFault(.notJSON, "is not JSON: \(error)")
      }
    } else {
      compact = text
    }
    let result: Result<[[UInt8]], ArchiveFault> = compact.withUnsafeBytes { value in
      do throws(ArchiveFault) { return .success(try lines(value)) } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }
}

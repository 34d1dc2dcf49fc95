// What commands print: values with named members, as JSON and as rows of tables.
import Base
import Server

/// A value that a command prints.
protocol Printable {
  func write(to writer: inout JSONWriter)
  /// Its text in a cell of a table.
  var cell: String { get }
}

extension Printable {
  /// Only plain values have a text in cells.
  var cell: String { "" }
}

extension String: Printable {
  func write(to writer: inout JSONWriter) { writer.string(self) }
  var cell: String { self }
}

extension Bool: Printable {
  func write(to writer: inout JSONWriter) { writer.boolean(self) }
  var cell: String { self ? "yes" : "no" }
}

extension Printable where Self: FixedWidthInteger {
  func write(to writer: inout JSONWriter) { writer.integer(self) }
  var cell: String { "\(self)" }
}

extension Int: Printable {}
extension Int64: Printable {}

extension Optional: Printable where Wrapped: Printable {
  func write(to writer: inout JSONWriter) {
    if let self { self.write(to: &writer) } else { writer.null() }
  }
  var cell: String { self?.cell ?? "" }
}

extension Array: Printable where Element: Printable {
  func write(to writer: inout JSONWriter) {
    writer.beginArray()
    for element in self { element.write(to: &writer) }
    writer.endArray()
  }
  var cell: String { map(\.cell).joined(separator: " ") }
}

/// A JSON text, written unchanged.
struct RawJSON: Printable {
  let bytes: [UInt8]

  func write(to writer: inout JSONWriter) { bytes.withUnsafeBytes { writer.raw($0) } }
}

/// Named values in the order of their JSON members; the names are also the columns of tables.
struct Record: Printable, ExpressibleByDictionaryLiteral {
  private(set) var members: [(name: String, value: any Printable)]

  init(dictionaryLiteral elements: (String, any Printable)...) { members = elements }

  /// Members whose names are data.
  init(_ members: [(String, any Printable)]) { self.members = members }

  static func + (left: Record, right: Record) -> Record { Record(left.members + right.members) }

  func write(to writer: inout JSONWriter) {
    writer.beginObject()
    for (name, value) in members {
      writer.key(name)
      value.write(to: &writer)
    }
    writer.endObject()
  }

  /// The text of a member in a table.
  func cell(_ name: String) -> String { members.first { $0.name == name }?.value.cell ?? "" }
}

extension TextTable {
  /// A row for each record; the columns are names of members.
  init(_ columns: [Column], _ records: [Record]) {
    self.init(columns)
    for record in records { append(columns.map { record.cell($0.heading) }) }
  }
}

extension Output {
  /// Writes a value as JSON and a line feed.
  func writeJSON(_ value: some Printable) throws(OutputError) {
    var writer = JSONWriter()
    value.write(to: &writer)
    try write(writer.bytes)
    try writeLine()
  }
}

extension Context {
  /// Prints a record as JSON if the command line asks for that, otherwise what `text` writes.
  func print(
    _ invocation: Invocation, _ record: @autoclosure () throws -> Record,
    text: (inout TextSections) throws -> Void
  ) throws {
    if invocation.isJSON { return try output.writeJSON(record()) }
    var sheet = TextSections(self)
    try text(&sheet)
  }

  /// Prints records as a JSON array if the command line asks for that, otherwise what `text` writes.
  func print(
    _ invocation: Invocation, list: @autoclosure () throws -> [Record],
    text: (inout TextSections) throws -> Void
  ) throws {
    if invocation.isJSON { return try output.writeJSON(list()) }
    var sheet = TextSections(self)
    try text(&sheet)
  }

  /// Writes a message of the program to standard error.
  func log(_ text: String, _ level: LogLevel = .warning) {
    diagnostics.writeLine("ledgerctl: \(text)", level)
  }
}

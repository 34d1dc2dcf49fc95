// `export --package`: `datapackage.json` beside a CSV file, as Frictionless Data defines it (version 1).
import Base
import JSON
import Ledger
import Projections

/// The descriptor of the CSV files of a folder. It names the ledger, so that no other file is taken for one.
struct DataPackage {
  static let fileName = "datapackage.json"
  private static let version: Int64 = 1
  /// The member that tells whose descriptor it is.
  private static let mark = "receipt_ledger"
  private static let byteCountMax = 4 << 20

  /// Where it is written.
  let path: String
  private let identity: LedgerIdentity
  /// What stands there already; members of others are kept.
  private let existing: [JSONValue.Member]

  /// Reads what is there. Throws if that is not a descriptor of the same ledger.
  /// - Parameter reportPath: the CSV file.
  init(beside reportPath: String, _ identity: LedgerIdentity) throws {
    let slash = reportPath.lastIndex(of: "/")
    let name = slash.map { String(reportPath[reportPath.index(after: $0)...]) } ?? reportPath
    path = (slash.map { String(reportPath[...$0]) } ?? "") + Self.fileName
    self.identity = identity
    if name == Self.fileName { throw Self.refusal(path, "the report itself has this name") }
    guard (try? PosixStorage().status(path)) != nil else {
      existing = []
      return
    }
    let bytes = try readSmallFile(path, byteCountMax: Self.byteCountMax)
    guard let json = try? JSONValue(bytes), case .object(let members) = json,
      let mark = json[Self.mark], mark["package"]?.integerValue == Self.version
    else { throw Self.refusal(path, "it is not a data package that this program wrote") }
    guard mark["origin"]?.stringValue == identity.origin,
      mark["id"]?.stringValue == "\(identity.id)"
    else { throw Self.refusal(path, "it describes reports of another ledger") }
    existing = members
  }

  private static func refusal(_ path: String, _ cause: String) -> Failure {
    Failure(operation: "write data package", object: path, cause: cause)
  }

  /// The descriptor with a report added, or put in the place of the one of the same file name.
  func bytes(with report: WrittenReport, file reportPath: String) -> [UInt8] {
    let file = reportPath.split(separator: "/").last.map(String.init) ?? reportPath
    var members = existing.isEmpty ? head : existing
    var resources: [JSONValue] = []
    if case .array(let found)? = members.first(where: { $0.key == "resources" })?.value {
      resources = found
    }
    let place = resources.firstIndex { $0["path"]?.stringValue == file }
    let others = resources.enumerated().filter { $0.offset != place }
    let name = Self.distinct(
      Self.name(file), from: others.compactMap { $0.element["name"]?.stringValue })
    let resource = DataResource(report, file: file, name: name).value
    if let place { resources[place] = resource } else { resources.append(resource) }
    members.removeAll { $0.key == "resources" }
    members.append(JSONValue.Member("resources", .array(resources)))
    return Self.bytes(members)
  }

  private var head: [JSONValue.Member] {
    [
      .init("profile", .string("tabular-data-package")),
      .init("name", .string(Self.name(identity.origin))),
      .init("title", .string("Reports of \(identity.origin)")),
      .init("description", .string(reportNote)),
      .init(
        Self.mark,
        .object([
          .init("package", .number("\(Self.version)")), .init("origin", .string(identity.origin)),
          .init("id", .string("\(identity.id)")),
        ])),
    ]
  }

  /// A member a line, a resource a line.
  private static func bytes(_ members: [JSONValue.Member]) -> [UInt8] {
    func text(_ value: JSONValue) -> String {
      var writer = JSONWriter()
      value.write(to: &writer)
      return String(decoding: writer.bytes, as: UTF8.self)
    }
    let lines = members.map { member in
      if case .array(let elements) = member.value, member.key == "resources" {
        return "\"resources\":[\n\(elements.map(text).joined(separator: ",\n"))\n]"
      }
      return "\(text(.string(member.key))):\(text(member.value))"
    }
    return Array("{\n\(lines.joined(separator: ",\n"))\n}\n".utf8)
  }

  /// A name of lower-case letters, digits and `.`, `-`, `_`, as the specification wants it.
  private static func name(_ text: String) -> String {
    let stem = text.lowercased().hasSuffix(".csv") ? String(text.dropLast(4)) : text
    let scalars = stem.lowercased().unicodeScalars.map { scalar -> Character in
      let isPlain = scalar.isASCII && scalar.properties.isAlphabetic
      let isDigit = ("0"..."9").contains(scalar)
      return isPlain || isDigit || "._-".unicodeScalars.contains(scalar) ? Character(scalar) : "-"
    }
    return scalars.isEmpty ? "report" : String(scalars)
  }

  private static func distinct(_ name: String, from others: [String]) -> String {
    var (candidate, number) = (name, 2)
    while others.contains(candidate) {
      candidate = "\(name)-\(number)"
      number += 1
    }
    return candidate
  }
}

/// The description of one CSV file.
private struct DataResource {
  private let report: WrittenReport
  private let file: String
  private let name: String

  init(_ report: WrittenReport, file: String, name: String) {
    self.report = report
    self.file = file
    self.name = name
  }

  private var request: ReportRequest { report.request }

  var value: JSONValue {
    .object([
      .init("profile", .string("tabular-data-resource")), .init("name", .string(name)),
      .init("path", .string(file)), .init("title", .string(request.kind.rawValue)),
      .init(
        "description",
        .string("A text that a spreadsheet would run as a formula has an apostrophe before it.")),
      .init("format", .string("csv")), .init("mediatype", .string("text/csv")),
      .init("encoding", .string("utf-8")), .init("bytes", .number("\(report.byteCount)")),
      .init("hash", .string("sha256:\(report.sha256.hex)")), .init("dialect", dialect),
      .init("schema", schema),
      .init(
        "receipt_ledger",
        .object([
          .init("report", .string(request.kind.rawValue)),
          .init("report_version", .number("\(request.version)")),
          .init(
            "head",
            .object([
              .init("size", .number("\(report.size)")), .init("root", .string(report.root.base64)),
            ])),
          .init("filters", filters),
        ])),
    ])
  }

  private var filters: JSONValue {
    var writer = JSONWriter()
    request.write(to: &writer)
    return (try? JSONValue(writer.bytes)) ?? .null
  }

  private var dialect: JSONValue {
    .object([
      .init("delimiter", .string(String(UnicodeScalar(request.layout.csv.delimiter)))),
      .init("lineTerminator", .string("\n")), .init("quoteChar", .string("\"")),
      .init("doubleQuote", .boolean(true)), .init("header", .boolean(true)),
      .init("caseSensitiveHeader", .boolean(true)),
    ])
  }

  // MARK: Columns

  private var columns: [ReportColumn] {
    let all = request.columns
    let chosen = request.layout.columns
    return chosen.isEmpty
      ? all : chosen.compactMap { name in all.first { $0.name == name } }
  }

  private var schema: JSONValue {
    var members: [JSONValue.Member] = [
      .init("fields", .array(columns.map(field))), .init("missingValues", .array([.string("")])),
    ]
    let names = Set(columns.map(\.name))
    if let key = Report.primaryKey(of: request), names.isSuperset(of: key) {
      members.append(.init("primaryKey", .array(key.map { .string($0) })))
    }
    return .object(members)
  }

  private func field(_ column: ReportColumn) -> JSONValue {
    var members: [JSONValue.Member] = [.init("name", .string(column.name))]
    func add(_ key: String, _ value: JSONValue) { members.append(.init(key, value)) }
    let csv = request.layout.csv
    switch column.content {
    case .text, .list: add("type", .string("string"))
    case .integer: add("type", .string("integer"))
    case .amount:
      add("type", .string("number"))
      if csv.decimal != UInt8(ascii: ".") {
        add("decimalChar", .string(String(UnicodeScalar(csv.decimal))))
      }
    case .time where csv.dates == .spreadsheet:
      // Milliseconds stand only where there are some, so no single pattern fits.
      add("type", .string("string"))
    case .time: add("type", .string("datetime"))
    case .flag:
      add("type", .string("boolean"))
      add("trueValues", .array([.string("true")]))
      add("falseValues", .array([.string("false")]))
    }
    if let meaning = Report.meaning(of: column.name, in: request.kind) {
      add("description", .string(meaning))
    }
    return .object(members)
  }
}

// The manifest of a report, which binds its bytes to the events of a ledger.
import Base
import Ledger
import Projections
import ReportDocuments
import Revenue

extension ReportRequest: Printable {}

/// The content of `REPORT.manifest.json`.
struct Manifest {
  static let suffix = ".manifest.json"

  let origin: String
  let id: String
  let size: Int
  let root: SHA256Digest
  /// How many of these events the last `rebuild` or `audit` had found whole; nil in a manifest of an earlier version.
  let verifiedUpTo: Int?
  /// A signed note of this head; nil if the ledger had no key.
  let checkpoint: [UInt8]?
  let request: ReportRequest
  let format: ExportOptions.Format
  let reportVersion: Int
  let projectionVersions: [(name: String, version: Int)]
  let timeZoneVersion: String?
  /// What wrote the file's bytes; nil for other formats than xlsx.
  let spreadsheetLibrary: String?
  /// How the file's cells are packed; nil for other formats than xlsx.
  let spreadsheetForm: Int?
  /// Trust other than Apple's own in the events behind the report; nil in a manifest of an earlier version.
  let trust: [Trust]?
  /// The report's file name, without a folder.
  let file: String
  let byteCount: Int
  let sha256: SHA256Digest

  /// What was trusted besides Apple's own, from a position on.
  struct Trust: Equatable {
    let position: Position
    /// Hosts and certificates, as text.
    let names: [String]

    /// The trust that a database's events declare.
    static func all(in database: Database) throws -> [Trust] {
      try TrustQueries(database).foreign().map {
        Trust(position: $0.position, names: $0.trust.foreignTrust)
      }
    }
  }

  /// Describes a report that was just written; signs its head if there is a key.
  init(
    _ output: ReportOutput, _ written: WrittenReport, path: String, _ ledger: OpenLedger,
    _ database: Database
  ) throws {
    let identity = ledger.directory.identity
    origin = identity.origin
    id = "\(identity.id)"
    size = written.size
    root = written.root
    verifiedUpTo = min(VerifiedHead(ledger.reader)?.size ?? 0, written.size)
    let hasKey = try KeyStore(ledger.directory).signingKey() != nil
    let isOnStandby = try Standby(of: ledger.directory) != nil
    if hasKey, isOnStandby {
      ledger.log("\(path): its manifest is not signed: the ledger is on standby")
    }
    if hasKey, !isOnStandby {
      // Another process may have appended and folded since the log was read.
      try ledger.reader.refresh()
      let signed = try ledger.sign(size: written.size)
      guard signed.root == written.root else {
        throw Failure(
          .mismatch, operation: "export", object: "projections",
          cause: "they belong to another history than the log")
      }
      checkpoint = signed.bytes
    } else {
      checkpoint = nil
    }
    request = written.request
    format = output.format
    reportVersion = output.request.version
    projectionVersions = ProjectionSet.ofProgram.versions
    timeZoneVersion = TimeZoneTable.dataVersion()
    spreadsheetLibrary = output.format == .xlsx ? SpreadsheetLibrary.versions : nil
    spreadsheetForm = output.format == .xlsx ? SpreadsheetLibrary.form : nil
    trust = try Trust.all(in: database)
    file = path.split(separator: "/").last.map(String.init) ?? path
    byteCount = written.byteCount
    sha256 = written.sha256
  }

  // MARK: Writing

  var bytes: [UInt8] {
    var record: Record = [
      "manifest": ManifestHead.version, "report": request.kind.rawValue,
      "report_version": reportVersion,
      "file": file, "format": format.rawValue, "bytes": byteCount, "sha256": sha256.hex,
      "ledger": ["origin": origin, "id": id] as Record,
      "head": ["size": size, "root": root.base64] as Record,
      "verified_up_to": verifiedUpTo,
      "checkpoint": checkpoint.map { String(decoding: $0, as: UTF8.self) }, "filters": request,
      "projections": Record(projectionVersions.map { ($0.name, $0.version) }),
      "time_zone_data": timeZoneVersion,
    ]
    if let spreadsheetLibrary, let spreadsheetForm {
      record =
        record
        + ["spreadsheet_library": spreadsheetLibrary, "spreadsheet_form": spreadsheetForm]
    }
    if let trust {
      let declared = trust.map { ["position": $0.position, "not_apple": $0.names] as Record }
      record = record + ["trust": declared]
    }
    if format == .table { record = record + ["table": request.layout.tableVersion] }
    record = record + ["columns": columns, "note": request.note]
    var lines = JSONLines()
    for (name, value) in record.members { lines.add(name) { value.write(to: &$0) } }
    return lines.bytes
  }

  /// The report's columns, each with its type and meaning.
  private var columns: [Record] {
    let all = request.columns
    let chosen = request.layout.columns
    let columns =
      chosen.isEmpty ? all : chosen.compactMap { name in all.first { $0.name == name } }
    return columns.map { column in
      let type =
        switch column.content {
        case .text, .list: "string"
        case .integer: "integer"
        case .amount: "number"
        case .time: "datetime"
        case .flag: "boolean"
        }
      return [
        "name": column.name, "type": type,
        "meaning": Report.meaning(of: column.name, in: request.kind),
      ]
    }
  }

  // MARK: Reading

  /// Whether a file is a manifest, even one that cannot be read.
  static func isOne(_ path: String) -> Bool {
    guard let bytes = try? readSmallFile(path), let json = try? JSONValue(bytes) else {
      return false
    }
    return json["manifest"] != nil
  }

  /// Reads a manifest; throws an error that says why the file is not one.
  init(_ bytes: [UInt8], path: String) throws(Failure) {
    func refusal(_ cause: String) -> Failure {
      Failure(.mismatch, operation: "read manifest", object: path, cause: cause)
    }
    let json: JSONValue
    do throws(JSONError) { json = try JSONValue(bytes) } catch {
      throw refusal("it is not JSON: \(error)")
    }
    func text(_ path: String...) throws(Failure) -> String {
      var value: JSONValue? = json
      for name in path { value = value?[name] }
      guard let text = value?.stringValue
      else { throw refusal("'\(path.joined(separator: "."))' is missing or not text") }
      return text
    }
    func number(_ path: String...) throws(Failure) -> Int {
      var value: JSONValue? = json
      for name in path { value = value?[name] }
      guard let number = value?.integerValue, number >= 0
      else { throw refusal("'\(path.joined(separator: "."))' is missing or not a number") }
      return Int(number)
    }
    let head = try ManifestHead(json, path: path)
    origin = head.origin
    id = head.id
    size = head.size
    root = head.root
    verifiedUpTo = json["verified_up_to"]?.integerValue.map(Int.init)
    switch json["checkpoint"] {
    case .null: checkpoint = nil
    case .string(let note): checkpoint = Array(note.utf8)
    default: throw refusal("'checkpoint' is missing or not text")
    }
    guard let kind = ReportKind(rawValue: try text("report")), let filters = json["filters"]
    else { throw refusal("it does not name a report and its filters") }
    reportVersion = try number("report_version")
    var request: ReportRequest
    do throws(ProjectionError) { request = try ReportRequest(kind, filters: filters) } catch {
      throw refusal(error.description)
    }
    request.version = min(max(reportVersion, 1), kind.version)
    // Tables of earlier versions had all columns.
    request.layout.tableVersion = json["table"]?.integerValue.map(Int.init) ?? 1
    request.layout.spreadsheetForm = json["spreadsheet_form"]?.integerValue.map(Int.init) ?? 1
    self.request = request
    guard let format = ExportOptions.Format(rawValue: try text("format"))
    else { throw refusal("it does not name a format") }
    self.format = format
    guard case .object(let members) = json["projections"]
    else { throw refusal("'projections' is missing") }
    projectionVersions = members.map { ($0.key, Int($0.value.integerValue ?? -1)) }
    timeZoneVersion = json["time_zone_data"]?.stringValue
    spreadsheetLibrary = json["spreadsheet_library"]?.stringValue
    // The first form had no number.
    spreadsheetForm =
      format == .xlsx ? json["spreadsheet_form"]?.integerValue.map(Int.init) ?? 1 : nil
    trust = try Self.trust(json["trust"], refusal("'trust' is not a list of declarations"))
    file = try text("file")
    guard !file.isEmpty, !file.contains("/"), file != ".", file != ".."
    else { throw refusal("'file' is not the name of a file in the same folder") }
    byteCount = try number("bytes")
    let sha256 = Array(try text("sha256").utf8).withUnsafeBytes { SHA256Digest(hex: $0) }
    guard let sha256 else { throw refusal("'sha256' is not 64 hexadecimal digits") }
    self.sha256 = sha256
  }

  private static func trust(
    _ value: JSONValue?, _ refusal: Failure
  ) throws(Failure) -> [Trust]? {
    guard let value else { return nil }
    guard let array = value.arrayValue else { throw refusal }
    var trust: [Trust] = []
    for member in array {
      guard let position = member["position"]?.integerValue,
        let names = member["not_apple"]?.arrayValue
      else { throw refusal }
      let texts = names.compactMap(\.stringValue)
      guard texts.count == names.count else { throw refusal }
      trust.append(Trust(position: Int(position), names: texts))
    }
    return trust
  }

  /// Whether the report is an Excel file in a form, or of a library, that gives other bytes for the same cells.
  var isSpreadsheetOfAnotherForm: Bool {
    guard let spreadsheetForm else { return false }
    return spreadsheetForm != SpreadsheetLibrary.form
      || spreadsheetLibrary != SpreadsheetLibrary.versions
  }

  /// The versions that differ from those with which the report was made; empty if none does.
  var versionDifferences: [String] {
    var differences: [String] = []
    if reportVersion != request.kind.version {
      differences.append("report version \(reportVersion), this program \(request.kind.version)")
    }
    let current = Dictionary(
      ProjectionSet.ofProgram.versions.map { ($0.name, $0.version) },
      uniquingKeysWith: { first, _ in first })
    for (name, version) in projectionVersions where current[name] != version {
      let here = current[name].map { "\($0)" } ?? "none"
      differences.append("projection \(visible(name, limit: 64)) \(version), this program \(here)")
    }
    let here = TimeZoneTable.dataVersion()
    if timeZoneVersion != here, request.zone.name != "UTC" {
      differences.append(
        "time zone data \(visible(timeZoneVersion ?? "unknown", limit: 64)), this system "
          + "\(here ?? "unknown")")
    }
    if let spreadsheetForm, spreadsheetForm != SpreadsheetLibrary.form {
      differences.append(
        "form \(spreadsheetForm) of Excel files, this program \(SpreadsheetLibrary.form)")
    }
    if let spreadsheetLibrary, spreadsheetLibrary != SpreadsheetLibrary.versions {
      differences.append(
        "\(visible(spreadsheetLibrary, limit: 64)), this program \(SpreadsheetLibrary.versions)")
    }
    return differences
  }
}

// `version`: what a report of a bug should say about the program.
import AppStore
import AppStoreClient
import Base
import Glibc
import Intake
import Ledger
import Projections
import ReportDocuments
import Server

let versionCommand = Command(
  "version", summary: "Show the versions of the program, its formats and its libraries",
  details: [
    "Prints what a report of a bug should contain: the version of the program and of the compiler that built it, the "
      + "newest format of a ledger that it reads, the versions of projections and reports, of the libraries that this "
      + "system has, of the time zone data, and of the kernel. It opens no ledger.",
    "`ledgerctl --version` prints the version alone.",
  ],
  options: [.json],
  examples: [Example("ledgerctl version --json", "What to put into a report of a bug")],
  usesLedger: false
) { invocation, context in
  let facts = VersionFacts()
  try context.print(invocation, facts.record) { try facts.write(to: &$0) }
  return .done
}

private struct VersionFacts {
  let projections = ProjectionSet.ofProgram.versions
  let reports = ReportKind.allCases.map { (name: $0.rawValue, version: $0.version) }
  let timeZones = TimeZoneTable.dataVersion()
  let system = VersionFacts.systemName()
  /// A library's name, a space, its version.
  let libraries = [
    DatabaseLibrary.name, GzipLibrary.name, DeflateLibrary.name, CryptoLibrary.name,
    HTTPClientLibrary.name, HTTPServerLibrary.name, SpreadsheetLibrary.name,
  ]

  var record: Record {
    [
      "version": programVersion, "released": programReleaseDate,
      "build": buildConfiguration, "swift": compilerVersion,
      "format_version": Format.versionWithRedactions,
      "projections": Record(projections.map { ($0.name, $0.version) }),
      "reports": Record(reports.map { ($0.name, $0.version) }),
      "libraries": Record(
        libraries.map { name in
          let parts = name.split(separator: " ", maxSplits: 1).map(String.init)
          return (parts.first ?? "", parts.last ?? "")
        }),
      "time_zone_data": timeZones, "system": system,
    ]
  }

  func write(to sheet: inout Sheet) throws {
    try sheet.fields([
      ("ledgerctl", "\(programVersion) of \(programReleaseDate), \(buildConfiguration)"),
      ("Swift", compilerVersion), ("format", "\(Format.versionWithRedactions)"),
      ("projections", listed(projections)), ("reports", listed(reports)),
      ("libraries", libraries.joined(separator: ", ")),
      ("time zone data", timeZones ?? "unknown"), ("system", system),
    ])
  }

  private func listed(_ versions: [(name: String, version: Int)]) -> String {
    versions.map { "\($0.name) \($0.version)" }.joined(separator: ", ")
  }

  /// The kernel and the machine, as `uname -srm` prints them.
  private static func systemName() -> String {
    var names = utsname()
    guard uname(&names) == 0 else { return "unknown" }
    return [text(names.sysname), text(names.release), text(names.machine)].joined(separator: " ")
  }

  /// The text of a field, up to its NUL.
  private static func text<Field>(_ field: Field) -> String {
    withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}

// `init`: creates a new, empty ledger; `version`: what a bug report should contain about the program.
import AppStore
import Base
import Glibc
import HTTPClient
import Intake
import Ledger
import Projections
import ReportDocuments
import Server

let initCommand = Command(
  "init", summary: "Create a ledger",
  details: [
    "Creates an empty ledger in DIR, which must be empty if it exists. Only its owner can read it: receipts "
      + "are secrets.",
    "The origin, the ledger's permanent name, cannot be changed. It looks like a web address without "
      + "`https://`: a domain that you own, then a path without a slash at its end, without white space, `+`, "
      + "`\"` and `\\`.",
  ],
  positionals: [Positional("DIR", help: "the directory of the new ledger")],
  options: [
    Option("origin", value: .init("NAME"), isRequired: true, help: "the ledger's permanent name"),
    .json,
  ],
  examples: [
    Example(
      "ledgerctl init receipts --origin example.com/receipts",
      "Create a ledger in the directory `receipts`")
  ],
  usesLedger: false
) { invocation, context in
  let givenPath = invocation.positionals[0]
  let givenOrigin = try invocation.value(
    "origin", "must be 1 to 255 bytes without white space, control characters, `+`, `\"` and `\\`"
  ) { LedgerIdentity.isValidOrigin($0) && visible($0) == $0 ? $0 : nil }
  if let givenOrigin, !LedgerIdentity.isNewOrigin(givenOrigin) {
    throw invocation.wrong(
      "origin", givenOrigin, "must be written without `https://` and without `/` at its ends")
  }
  var status = stat()
  if stat(givenPath, &status) == 0, status.st_mode & S_IFMT != S_IFDIR {
    throw Failure(
      operation: "create ledger", object: givenPath, cause: "it exists and is not a directory")
  }
  try context.owner.assume(newLedger: givenPath)
  // Resolved before it exists.
  let path = ShownArgument.path(givenPath)
  let identity = try LedgerDirectory.create(path: givenPath, origin: givenOrigin ?? "").identity
  let origin = ShownArgument.path(identity.origin)
  let record: Record = [
    "origin": origin, "id": "\(identity.id)", "path": path,
    "created_at": timeText(identity.createdAtMs),
  ]
  try context.print(invocation, record) { try $0.line("Created ledger \(origin) in \(path).") }
  return .done
}

// MARK: - `version`

let versionCommand = Command(
  "version", summary: "Show the versions of the program, its formats and its libraries",
  details: [
    "Prints what a bug report should contain: the versions of the program, its compiler, the ledger format, "
      + "projections, reports, libraries, time zone data and kernel. It opens no ledger. `ledgerctl --version` "
      + "prints the program's version alone."
  ],
  options: [.json],
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

  func write(to sheet: inout TextSections) throws {
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

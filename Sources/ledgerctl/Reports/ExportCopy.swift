// `export --sqlite`: a copy of the projections for analysts.
import Base
import Ledger
import Projections

extension Option {
  /// What makes `export` write a copy instead of a report.
  static let copies: [Option] = [
    Option(
      "sqlite", value: .init("FILE"),
      help:
        "instead of a report, write all views as tables of a new SQLite file that only its owner may read"
    ),
    Option(
      "anonymous",
      help:
        "with `--sqlite`: without users, metadata, addresses, transaction ids, receipts and free texts, "
        + "to be passed on"
    ),
  ]
}

/// The options of a copy.
struct CopyOptions: Equatable, Sendable {
  let path: String
  let isAnonymous: Bool
  /// Nil is now.
  let asOf: PointInTime?

  /// The options that apply to a copy.
  private static let applicable: Set<String> = ["sqlite", "anonymous", "as-of"]

  /// Nil if the command line asks for a report.
  init?(_ invocation: Invocation) throws(UsageError) {
    isAnonymous = invocation.has("anonymous")
    guard let path = invocation.value("sqlite") else {
      if isAnonymous { throw UsageError("--anonymous", "requires --sqlite FILE") }
      return nil
    }
    if path == "-" { throw UsageError("--sqlite", "requires the name of a file") }
    if !invocation.positionals.isEmpty {
      throw UsageError("--sqlite", "copies all views and takes no report")
    }
    for option in invocation.command.options where invocation.has(option.name) {
      if !Self.applicable.contains(option.name) {
        throw UsageError("--\(option.name)", "can be used with a report, not with --sqlite")
      }
    }
    self.path = path
    asOf = try invocation.asOf()
  }
}

/// Writes the copy. Its folder is private until it is whole; only its owner may read the file.
func exportCopy(
  _ options: CopyOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  let database = try ledger.projections(asOf: options.asOf)
  // Opened first: a path that can't be written is found before the work is done.
  let file = try OutputFile(path: options.path, outside: context.ledgers.opened, isPrivate: true)
  let folder = try TemporaryFolder()
  let name = "copy.sqlite"
  let copy = AnalystCopy(
    of: database, ledger.directory.identity, isAnonymous: options.isAnonymous
  ) { context.interruption.isRequested }
  let tables = try copy.write(to: folder.path(name), .ofProgram)
  try send(try folder.folder.openFile(name, .readOnly), to: file.output, context)
  try context.interruption.check()
  try file.commit()
  let rowCount = tables.reduce(0) { $0 + $1.rowCount }
  let size = try Report.head(of: database).size
  context.diagnostics.writeLine(
    visible(
      "Wrote \(counted(tables.count, "table")) with \(counted(rowCount, "row")) to "
        + "\(options.path)\(options.isAnonymous ? ", anonymous" : ""), from the first "
        + "\(counted(size, "event"))"))
  return .done
}

private func send(_ file: StorageFile, to output: Output, _ context: Context) throws {
  var offset = 0
  try withUnsafeTemporaryAllocation(byteCount: 1 << 18, alignment: 16) { buffer in
    while true {
      let count = try file.read(into: buffer, offsetBytes: offset)
      if count == 0 { return }
      try context.interruption.check()
      try output.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      offset += count
    }
  }
}

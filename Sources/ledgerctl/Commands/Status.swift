// `status`: the state of the ledger and its projections.
import JSON
import Ledger
import Projections

let statusCommand = Command(
  "status", summary: "Show the state of the ledger and its projections",
  details: [
    "Prints the ledger's origin and id, the number of events and their root, the files of the log, and the "
      + "progress of the projections. It changes nothing and takes no lock. Damage found when opening the log is "
      + "shown, and the exit code is then 20; if the projections belong to another history than the log, it is "
      + "21.",
    "If an app declares products and sells one that it does not declare, `status` prints the command that "
      + "declares it: until then, uploads that show it are answered as fraud.",
    "With `--as-of`, shows the state at that point in time. Damaged projections are then rebuilt.",
  ],
  options: [.asOf, .json],
  examples: [Example("ledgerctl status --json", "Print the figures for a program")],
  isReadOnly: true
) { invocation, context in
  try showStatus(StatusOptions(invocation), invocation, context)
}

/// The options of `status`.
struct StatusOptions: Equatable, Sendable {
  let isJSON: Bool
  /// The point in time of `--as-of`; nil is now.
  let asOf: PointInTime?

  init(_ invocation: Invocation) throws(UsageError) {
    isJSON = invocation.has("json")
    asOf = try invocation.moment("as-of")
  }
}

/// The state, all from one read of the log.
private struct Standing {
  let directory: LedgerDirectory
  let head: LogHead
  let files: [LogFile]
  let tornByteCount: Int
  let damage: LedgerError?
  /// Nil if there are none.
  let projections: Result<ProjectionStatus?, ProjectionError>

  var lag: Int { head.size - ((try? projections.get())?.position ?? 0) }
}

private func showStatus(
  _ options: StatusOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context, .whole)
  if let asOf = options.asOf {
    try PastStanding(ledger, asOf).write(isJSON: options.isJSON, context)
    return .done
  }
  let reader = ledger.reader
  let projections: Result<ProjectionStatus?, ProjectionError>
  do throws(ProjectionError) {
    projections = .success(try ledger.lookingProjector().status())
  } catch {
    projections = .failure(error)
  }
  let standing = Standing(
    directory: ledger.directory, head: reader.head, files: try reader.files(),
    tornByteCount: reader.tornTailByteCount, damage: reader.damage, projections: projections)
  if options.isJSON {
    try writeJSON(standing, context)
  } else {
    try write(standing, context)
  }
  if let damage = reader.damage { throw damage }
  if case .success(let status?) = projections, !status.isOfThisLog { return .mismatch }
  return .done
}

// MARK: Text

private func write(_ standing: Standing, _ context: Context) throws {
  let identity = standing.directory.identity
  let head = standing.head
  var sheet = Sheet(context)
  var fields: [(name: String, value: String)] = [
    ("origin", identity.origin), ("id", "\(identity.id)"), ("directory", standing.directory.path),
    ("format version", "\(ledgerFormatVersion)"), ("created", timeText(identity.createdAtMs)),
    ("events", "\(head.size)"), ("root", head.root.base64),
    ("last event", head.size == 0 ? "none" : timeText(head.lastEventAtMs)),
  ]
  if standing.tornByteCount > 0 {
    fields.append(
      (
        "unfinished write",
        "\(counted(standing.tornByteCount, "byte")) of the last tail; the next writer removes them"
      ))
  }
  if let damage = standing.damage { fields.append(("damage", "\(damage)")) }
  try sheet.fields(fields)
  try sheet.table("Log", fileTable(standing.files))
  try sheet.heading("Projections")
  try sheet.fields(projectionFields(standing))
}

/// The state at a point in time.
private struct PastStanding {
  private let identity: LedgerIdentity
  private let size: Int
  private let root: String
  private let lastEventAtMs: Int64?
  private let status: ProjectionStatus

  init(_ ledger: OpenLedger, _ moment: PointInTime) throws {
    identity = ledger.directory.identity
    let database = try ledger.projections(asOf: moment)
    let head = try Report.head(of: database)
    size = head.size
    root = head.root.base64
    lastEventAtMs =
      head.size == 0
      ? nil
      : try ledger.reader.event(at: head.size - 1).withUnsafeBytes { EventLine($0)?.recordedAtMs }
    status = try ledger.lookingProjector().status(of: database)
  }

  func write(isJSON: Bool, _ context: Context) throws {
    if isJSON {
      return try context.output.writeObject { writer in
        writer.member("origin", identity.origin)
        writer.member("id", "\(identity.id)")
        writer.member("events", size)
        writer.member("root", root)
        writer.member("last_event_at", lastEventAtMs.map(timeText))
        writer.key("projections")
        ledgerctl.write(status, lag: 0, &writer)
      }
    }
    var sheet = Sheet(context)
    try sheet.fields([
      ("origin", identity.origin), ("id", "\(identity.id)"), ("events", "\(size)"),
      ("root", root), ("last event", lastEventAtMs.map(timeText) ?? "none"),
    ])
    try sheet.heading("Projections")
    try sheet.fields(status.counts.map(countFields) ?? [])
  }
}

/// How many tails are listed individually.
private let tailRowCountMax = 5

private func fileTable(_ files: [LogFile]) -> TextTable {
  var table = TextTable([
    .init("file"), .init("kind"), .init("first", isNumber: true), .init("events", isNumber: true),
    .init("size", isNumber: true),
  ])
  // After a burst of uploads there are hundreds of tails.
  let tails = files.filter { $0.kind == .tail }
  let shownTailCount = tails.count > tailRowCountMax ? tailRowCountMax - 1 : tails.count
  for file in files.dropLast(tails.count - shownTailCount) {
    table.append([
      file.name, file.kind == .tail ? "tail" : "segment, \(file.kind.rawValue)",
      "\(file.firstPosition)", "\(file.eventCount)", sizeText(file.sizeBytes),
    ])
  }
  let others = tails.dropFirst(shownTailCount)
  if let first = others.first {
    table.append([
      "\(others.count) more", "tails", "\(first.firstPosition)",
      "\(others.reduce(0) { $0 + $1.eventCount })",
      sizeText(others.reduce(0) { $0 + $1.sizeBytes }),
    ])
  }
  return table
}

private func projectionFields(_ standing: Standing) -> [(name: String, value: String)] {
  let status: ProjectionStatus
  switch standing.projections {
  case .failure(.database(let error)):
    let remedy = error.isCorrupt ? "; they will be rebuilt" : ""
    return [("state", "cannot be read: \(error.cause)\(remedy)")]
  case .failure(let error): return [("state", "cannot be read: \(error)")]
  case .success(nil): return [("state", "none yet; the next command that needs them builds them")]
  case .success(let found?): status = found
  }
  var fields = [("events folded", "\(status.position)")]
  if standing.damage != nil {
    fields.append(("state", "not updated while the log is damaged"))
  } else if status.position > standing.head.size {
    fields.append(
      (
        "state",
        "ahead of the log, which lacks events at its end; only 'ledgerctl rebuild --accept-history' "
          + "replaces them"
      ))
  } else if !status.isOfThisLog {
    fields.append(
      (
        "state",
        "of another history than the log; only 'ledgerctl rebuild --accept-history' replaces them"
      ))
  } else if status.counts == nil {
    fields.append(("state", "built by another version of this program; they will be rebuilt"))
  } else {
    let lag = standing.lag
    fields.append(("state", lag == 0 ? "up to date" : "\(counted(lag, "event")) behind"))
  }
  fields.append(
    ("versions", status.versions.map { "\($0.name) \(versionText($0))" }.joined(separator: ", ")))
  return fields + (status.counts.map(countFields) ?? [])
}

private func countFields(_ counts: ProjectionStatus.Counts) -> [(name: String, value: String)] {
  var fields: [(name: String, value: String)] = []
  let states = counts.receipts.map { "\($0.count) \($0.state)" }.joined(separator: ", ")
  fields.append(("receipts", "\(counts.receipts.reduce(0) { $0 + $1.count }): \(states)"))
  fields.append(("uploads", "\(counts.uploads)"))
  fields.append(("verifications", "\(counts.verifications)"))
  let pending = counts.pendingSales == 0 ? "" : ", and \(counts.pendingSales) pending"
  fields.append(("sales", "\(counts.sales)\(pending)"))
  fields.append(("exceptions", "\(counts.exceptions)"))
  for sentence in counts.undeclaredProducts.sentences {
    fields.append(("not declared", sentence))
  }
  return fields
}

// MARK: JSON

private func writeJSON(_ standing: Standing, _ context: Context) throws {
  let identity = standing.directory.identity
  try context.output.writeObject { writer in
    writer.member("origin", identity.origin)
    writer.member("id", "\(identity.id)")
    writer.member("path", standing.directory.path)
    writer.member("format_version", ledgerFormatVersion)
    writer.member("created_at", atMs: identity.createdAtMs)
    writer.member("events", standing.head.size)
    writer.member("root", standing.head.root.base64)
    writer.member(
      "last_event_at", standing.head.size == 0 ? nil : timeText(standing.head.lastEventAtMs))
    writer.member("unfinished_bytes", standing.tornByteCount)
    writer.key("damage")
    if let damage = standing.damage { write(damage, &writer) } else { writer.null() }
    writer.array("files", standing.files) { file, writer in
      writer.object { writer in
        writer.member("name", file.name)
        writer.member("kind", file.kind.rawValue)
        writer.member("first_position", file.firstPosition)
        writer.member("events", file.eventCount)
        writer.member("bytes", file.sizeBytes)
      }
    }
    writer.key("projections")
    switch standing.projections {
    case .failure(let error): writer.object { $0.member("error", "\(error)") }
    case .success(nil): writer.null()
    case .success(let status?): write(status, lag: standing.lag, &writer)
    }
  }
}

private func write(_ damage: LedgerError, _ writer: inout JSONWriter) {
  writer.object { writer in
    writer.member("verdict", damage.damage?.verdict.rawValue)
    writer.member("file", damage.damage?.file)
    writer.member("block", damage.damage?.block)
    writer.member("position", damage.damage?.position)
    writer.member("cause", damage.cause)
  }
}

private func write(_ status: ProjectionStatus, lag: Int, _ writer: inout JSONWriter) {
  writer.object { writer in
    writer.member("position", status.position)
    writer.member("lag", lag)
    writer.member("must_be_rebuilt", status.mustBeRebuilt)
    writer.key("versions")
    writer.object { writer in
      for version in status.versions {
        writer.key(version.name)
        if let stored = version.stored { writer.integer(stored) } else { writer.null() }
      }
    }
    guard let counts = status.counts else { return }
    writer.key("receipts")
    writer.object { writer in
      for entry in counts.receipts {
        writer.key(entry.state)
        writer.integer(entry.count)
      }
    }
    writer.member("uploads", counts.uploads)
    writer.member("verifications", counts.verifications)
    writer.member("sales", counts.sales)
    writer.member("exceptions", counts.exceptions)
    writer.member("pending_sales", counts.pendingSales)
    writer.array("undeclared_products", counts.undeclaredProducts) { $0.write(to: &$1) }
  }
}

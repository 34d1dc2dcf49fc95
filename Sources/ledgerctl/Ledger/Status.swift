// `status`: the state of the ledger and its projections.
import Base
import Erasure
import Ledger
import Projections

let statusCommand = Command(
  "status", summary: "Show the state of the ledger and its projections",
  details: [
    "Prints the origin and id, the number of events and their root, the files of the log, the progress of "
      + "the projections, the lag of the copy, how many requests to erase are open, and the commands that "
      + "declare products that were sold undeclared. It changes nothing and takes no lock; only with `--as-of`, "
      + "damaged projections are rebuilt.",
    "The exit code is 20 if opening the log finds damage, 21 if the projections belong to another history "
      + "than the log.",
  ],
  options: [.asOf, .json],
  isReadOnly: true
) { invocation, context in
  let asOf = try invocation.asOf()
  let ledger = try OpenLedger(invocation, context, .whole)
  if let asOf {
    let past = try PastStanding(ledger, asOf)
    try context.print(invocation, past.record) { try past.write(to: &$0) }
    return .done
  }
  let standing = try StatusReport(ledger)
  try context.print(invocation, standing.record) { try standing.write(to: &$0) }
  if let damage = standing.damage { throw damage }
  if case .success(let status?) = standing.projections, !status.isOfThisLog { return .mismatch }
  return .done
}

/// The state, all from one read of the log.
private struct StatusReport {
  let directory: LedgerDirectory
  let head: LogHead
  let files: [LogFile]
  let tornByteCount: Int
  let damage: LedgerError?
  /// Nil if there are none.
  let projections: Result<ProjectionStatus?, ProjectionError>
  let erasures: Result<ErasureCounts, ErasureError>
  /// Nil if they can't be determined.
  let unfinished: UnfinishedErasures?
  let copy: CopyStanding?

  /// How many of the first events the last `rebuild` or `audit` found intact.
  let verifiedCount: Int

  private var lag: Int { head.size - ((try? projections.get())?.position ?? 0) }
  private var lastEventAt: String? { head.size == 0 ? nil : timeText(head.lastEventAtMs) }

  init(_ ledger: OpenLedger) throws {
    let reader = ledger.reader
    do throws(ProjectionError) {
      projections = .success(try ledger.readOnlyProjector().status())
    } catch {
      projections = .failure(error)
    }
    directory = ledger.directory
    do throws(ErasureError) {
      erasures = .success(ErasureCounts(try ErasureQueue(directory).records()))
    } catch {
      erasures = .failure(error)
    }
    unfinished = reader.damage == nil ? try? UnfinishedErasures(ledger) : nil
    (head, files) = (reader.head, try reader.files())
    verifiedCount = VerifiedHead(reader)?.size ?? 0
    copy = try CopyStanding(ledger.directory, reader)
    (tornByteCount, damage) = (reader.tornTailByteCount, reader.damage)
  }

  func write(to sheet: inout TextSections) throws {
    let identity = directory.identity
    var fields: Fields = [
      ("origin", identity.origin), ("id", "\(identity.id)"), ("directory", directory.path),
      ("format version", "\(identity.formatVersion)"), ("created", timeText(identity.createdAtMs)),
      ("events", "\(head.size)"), ("root", head.root.base64),
      ("last event", lastEventAt ?? "none"),
      ("verified up to", verifiedCount == 0 ? "none" : counted(verifiedCount, "event")),
    ]
    switch erasures {
    case .success(let counts):
      if let text = counts.text { fields.append(("erasures", text)) }
    case .failure(let error): fields.append(("erasures", "cannot be read: \(error)"))
    }
    fields += unfinished?.fields ?? []
    if let copy { fields += copy.fields }
    if tornByteCount > 0 {
      let bytes = counted(tornByteCount, "byte")
      fields.append(("unfinished write", "\(bytes) of the last tail; the next writer removes them"))
    }
    if let damage { fields.append(("damage", "\(damage)")) }
    try sheet.fields(fields)
    try sheet.table("Log", fileTable(files))
    try sheet.heading("Projections")
    try sheet.fields(projectionFields)
  }

  private var projectionFields: Fields {
    let status: ProjectionStatus
    switch projections {
    case .failure(.database(let error)):
      let remedy = error.isCorrupt ? "; they will be rebuilt" : ""
      return [("state", "cannot be read: \(error.cause)\(remedy)")]
    case .failure(let error): return [("state", "cannot be read: \(error)")]
    case .success(nil): return [("state", "none yet; the next command that needs them builds them")]
    case .success(let found?): status = found
    }
    let state =
      if damage != nil {
        "not updated while the log is damaged"
      } else if status.position > head.size {
        "ahead of the log, which lacks events at its end; only 'ledgerctl rebuild --accept-history' "
          + "replaces them"
      } else if !status.isOfThisLog {
        "of another history than the log; only 'ledgerctl rebuild --accept-history' replaces them"
      } else if status.counts == nil {
        "built by another version of this program; they will be rebuilt"
      } else {
        lag == 0 ? "up to date" : "\(counted(lag, "event")) behind"
      }
    let versions = status.versions.map { "\($0.name) \(versionText($0))" }
    return [
      ("events folded", "\(status.position)"), ("state", state),
      ("versions", versions.joined(separator: ", ")),
    ] + (status.counts.map(countFields) ?? [])
  }

  private var erasureRecord: Record {
    switch erasures {
    case .success(let counts):
      ["done": counts.done, "waiting": counts.waiting, "failed": counts.failed]
    case .failure(let error): ["error": "\(error)"]
    }
  }

  var record: Record {
    let identity = directory.identity
    let state: any Printable
    switch projections {
    case .failure(let error): state = ["error": "\(error)"] as Record
    case .success(let status): state = status.map { projectionRecord($0, lag: lag) }
    }
    return [
      "origin": identity.origin, "id": "\(identity.id)", "path": directory.path,
      "format_version": identity.formatVersion, "created_at": timeText(identity.createdAtMs),
      "events": head.size, "root": head.root.base64, "last_event_at": lastEventAt,
      "verified_up_to": verifiedCount, "erasures": erasureRecord,
      "unfinished_erasures": unfinished?.record, "replication": copy?.record,
      "unfinished_bytes": tornByteCount,
      "damage": damage.map { error in
        [
          "verdict": error.damage?.verdict.rawValue, "file": error.damage?.file,
          "block": error.damage?.block, "position": error.damage?.position,
          "cause": error.cause,
        ] as Record
      },
      "files": files.map {
        [
          "name": $0.name, "kind": $0.kind.rawValue, "first_position": $0.firstPosition,
          "events": $0.eventCount, "bytes": $0.sizeBytes,
        ] as Record
      },
      "projections": state,
    ]
  }
}

/// How many erasure requests are done, waiting or failed.
private struct ErasureCounts {
  private(set) var done = 0
  private(set) var waiting = 0
  private(set) var failed = 0

  init(_ records: [ErasureRecord]) {
    for record in records {
      switch record.state {
      case .done: done += 1
      case .waiting, .running: waiting += 1
      case .failed: failed += 1
      }
    }
  }

  /// Nil if there are none.
  var text: String? {
    let counts = [(done, "done"), (waiting, "waiting"), (failed, "failed")].filter { $0.0 > 0 }
    return counts.isEmpty ? nil : counts.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
  }
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
    status = try ledger.readOnlyProjector().status(of: database)
  }

  var record: Record {
    [
      "origin": identity.origin, "id": "\(identity.id)", "events": size, "root": root,
      "last_event_at": lastEventAtMs.map(timeText),
      "projections": projectionRecord(status, lag: 0),
    ]
  }

  func write(to sheet: inout TextSections) throws {
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
  var table = TextTable(["file", "kind", .number("first"), .number("events"), .number("size")])
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

private func countFields(_ counts: ProjectionStatus.Counts) -> Fields {
  let states = counts.receipts.map { "\($0.count) \($0.state)" }.joined(separator: ", ")
  let pending = counts.pendingSales == 0 ? "" : ", and \(counts.pendingSales) pending"
  return [
    ("receipts", "\(counts.receipts.reduce(0) { $0 + $1.count }): \(states)"),
    ("uploads", "\(counts.uploads)"), ("verifications", "\(counts.verifications)"),
    ("notifications", "\(counts.notifications)"),
    ("sales", "\(counts.sales)\(pending)"), ("exceptions", "\(counts.exceptions)"),
  ] + counts.undeclaredProducts.sentences.map { ("not declared", $0) }
}

private func projectionRecord(_ status: ProjectionStatus, lag: Int) -> Record {
  let head: Record = [
    "position": status.position, "lag": lag, "must_be_rebuilt": status.mustBeRebuilt,
    "versions": Record(status.versions.map { ($0.name, $0.stored) }),
  ]
  guard let counts = status.counts else { return head }
  return head + [
    "receipts": Record(counts.receipts.map { ($0.state, $0.count) }), "uploads": counts.uploads,
    "verifications": counts.verifications, "notifications": counts.notifications,
    "sales": counts.sales,
    "exceptions": counts.exceptions, "pending_sales": counts.pendingSales,
    "undeclared_products": counts.undeclaredProducts.map(\.record),
  ]
}

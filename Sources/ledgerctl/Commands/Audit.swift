// `audit`: every byte of the log, and all that rests on it.
import JSON
import Ledger
import Projections

let auditCommand = Command(
  "audit", summary: "Check the whole log, and what rests on it",
  details: [
    "Inflates and hashes everything: checksums, the digest of every event, positions without gaps, times that "
      + "never decrease, the tree against what every block says of it, the links between segments, the tails; "
      + "then every checkpoint that is kept, whether as many are kept as were made, and the root on which the "
      + "projections rest. It changes nothing and needs no lock. Projections that SQLite can't read without "
      + "writing beside them are left out; the exit code is then 3. Projections know which replies are not about "
      + "their receipts (`reply_mismatch`): their number is shown too.",
    "It names every trust that is not Apple's own: hosts, roots, intermediates and signers that the events "
      + "`trust.declared` say were in force, and from which position on.",
    "Of the projections the root alone is compared: their rows are caches, which whoever can write to the ledger "
      + "can edit. `--projections` folds the log from nothing and compares every row of the projections and of "
      + "every snapshot, which takes as long as a rebuild or two. Nothing else proves them.",
    "It goes on past damage and names each: `missing`, `unreadable`, `corrupt` (bytes that do not match their "
      + "checksum), `tampered` (bytes that agree with themselves, but not with what stands around them). The "
      + "exit code is then 20, and 21 where only the projections do not match. A thousand findings are listed, the "
      + "others counted.",
    "`--checkpoint` proves that an earlier signed head is the beginning of today's log. Trust the public key that "
      + "was given to you (`--key`) rather than the one in the ledger. Events that were cut off the very end "
      + "can only be found by a checkpoint, or by projections, that lie beyond it.",
  ],
  options: [
    Option(
      "checkpoint", value: .init("FILE"), isRepeatable: true,
      help: "a checkpoint that was noted earlier"),
    .verifierKeys,
    Option("projections", help: "compare every row of projections and snapshots with the log"),
    .json,
  ],
  examples: [
    Example("ledgerctl audit", "Check the log and what was signed of it"),
    Example("ledgerctl audit --projections", "Check every row that figures are read from, too"),
    Example(
      "ledgerctl audit --checkpoint head-2025.txt --key \(exampleKey)",
      "Prove that nothing was changed since a head that was noted last year"),
  ]
) { invocation, context in
  try audit(AuditOptions(invocation), invocation, context)
}

/// What `audit` was asked for.
struct AuditOptions: Equatable, Sendable {
  let checkpointPaths: [String]
  /// Whose signature on those is trusted; empty: the ledger's own.
  let keys: [VerifierKey]
  /// Whether the rows of projections and snapshots are compared.
  let comparesProjections: Bool
  let isJSON: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    checkpointPaths = invocation.values("checkpoint")
    keys = try invocation.verifierKeys()
    comparesProjections = invocation.has("projections")
    isJSON = invocation.has("json")
    if !keys.isEmpty, checkpointPaths.isEmpty {
      throw UsageError("--key", "goes with --checkpoint", command: invocation.command.name)
    }
  }
}

/// How the projections stand towards the audited log.
private enum ProjectionVerdict {
  case none
  case matching(size: Int, rowsToo: Bool, replyMismatches: Int?)
  case mismatching(String)
  /// They could not be read, for a reason that says nothing of them.
  case unchecked(String)

  var text: String {
    switch self {
    case .none: "none"
    case .matching(let size, false, _):
      "\(counted(size, "event")) folded, of this log by the root; no row was compared"
    case .matching(let size, true, _):
      "\(counted(size, "event")) folded, every row as the log gives it"
    case .mismatching(let cause): cause
    case .unchecked(let cause): "not checked: \(cause)"
    }
  }

  /// What people are told of replies that are not about their receipts; nothing where there are none.
  var replyFields: [(name: String, value: String)] {
    guard case .matching(_, _, let count?) = self, count > 0 else { return [] }
    return [
      (
        "replies",
        "\(count) not about \(count == 1 ? "its receipt" : "their receipts"): reply_mismatch in "
          + "'ledgerctl export exceptions --environment all'"
      )
    ]
  }
}

private func audit(
  _ options: AuditOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let directory = try context.openLedger(invocation)
  let given = try options.checkpointPaths.map { path in
    (path: path, checkpoint: try givenCheckpoint(path, directory, keys: options.keys))
  }
  // Whatever rests on the log is noted before it is read: the log may go on growing.
  let recorded = Result { try Projector.recordedHead(directory) }
  let store = CheckpointStore(directory)
  // Before the checkpoints themselves: a new one is kept first, and remembered then.
  let remembered = try RememberedHeads(store, directory)
  let keptSizes = try store.sizes()
  var sizes = keptSizes + given.map(\.checkpoint.size) + remembered.sizes
  if case .success(let head?) = recorded { sizes.append(head.size) }
  var report = try auditLog(directory, rootsAt: sizes, context)
  report.check(store, sizes: keptSizes)
  remembered.check(in: &report, keptCount: keptSizes.count)
  for (path, checkpoint) in given { report.check(checkpoint, name: path) }
  var projections = verdict(on: recorded, report)
  var snapshots: [AuditedSnapshot]?
  if options.comparesProjections, report.isWhole {
    let ledger = try OpenLedger(invocation, context)
    projections = try compared(projections, ledger)
    snapshots = try AuditedSnapshot.all(ledger)
  }
  if options.isJSON {
    try writeJSON(report, projections, snapshots, context)
  } else {
    try write(report, projections, snapshots, context)
  }
  if !report.isWhole { return .corrupted }
  if snapshots?.contains(where: { $0.problem != nil }) == true { return .mismatch }
  return switch projections {
  case .mismatching: .mismatch
  case .unchecked: .partlyDone
  case .none, .matching: .done
  }
}

/// What the ledger remembers of its checkpoints, in its file and in the projections.
private struct RememberedHeads {
  private var heads: [(name: String, heads: SignedHeads)] = []
  private var damage: AuditFinding?

  init(_ store: CheckpointStore, _ directory: LedgerDirectory) throws {
    do throws(LedgerError) {
      if let inFile = try store.signedHeads() { heads.append((SignedHeads.fileName, inFile)) }
    } catch {
      guard let damage = error.damage else { throw error }
      self.damage = AuditFinding(damage, cause: error.cause)
    }
    // Projections that can't be read are a verdict of their own.
    guard let inProjections = try? Projector.rememberedHeads(directory) else { return }
    if heads.first?.heads != inProjections { heads.append(("projections", inProjections)) }
  }

  var sizes: [Int] { heads.map(\.heads.size) }

  func check(in report: inout AuditReport, keptCount: Int) {
    if let damage { report.add(damage) }
    for (name, heads) in heads { report.check(heads, name: name, keptCount: keptCount) }
  }
}

/// Audits a log with progress on a terminal; a signal ends it.
func auditLog(
  _ directory: LedgerDirectory, rootsAt sizes: [Int], _ context: Context
) throws -> AuditReport {
  let progress = Progress("Auditing", unit: .bytes, context: context)
  return try LogAudit(directory, rootsAt: sizes).run { done, total in
    try context.interruption.check()
    progress.update(done, of: total)
  }
}

private func verdict(
  on recorded: Result<RecordedHead?, any Error>, _ report: AuditReport
) -> ProjectionVerdict {
  switch recorded {
  case .failure(ProjectionError.database(let error)) where error.isReadOnly:
    return .unchecked("SQLite can read them in a writable copy only")
  case .failure: return .mismatching("cannot be read; 'ledgerctl rebuild' makes them anew")
  case .success(nil): return .none
  case .success(let head?):
    if head.size > report.size {
      return .mismatching(
        "\(counted(head.size, "event")) folded, the log ends at \(report.size): events are missing "
          + "from its end, or the projections are another's")
    }
    guard let root = report.roots[head.size] else {
      return .mismatching(
        "\(counted(head.size, "event")) folded; the log is too damaged to compare")
    }
    return root == head.root
      ? .matching(size: head.size, rowsToo: false, replyMismatches: head.replyMismatches)
      : .mismatching("of another history than this log up to position \(head.size)")
  }
}

/// The verdict once every row was compared with what the log gives.
private func compared(
  _ verdict: ProjectionVerdict, _ ledger: OpenLedger
) throws -> ProjectionVerdict {
  guard case .matching(_, _, let replyMismatches) = verdict else { return verdict }
  do {
    guard let comparison = try ledger.projector().compare(.tables, rowLimit: 0) else {
      return .none
    }
    guard comparison.isSameVersions else {
      return .unchecked("of another version of this program: the next command builds them anew")
    }
    if comparison.isEmpty {
      return .matching(
        size: comparison.position, rowsToo: true, replyMismatches: replyMismatches)
    }
    let names = comparison.tables.filter { !$0.isEmpty }.map(\.name) + comparison.definitions
    return .mismatching(
      "not what the log gives: \(names.joined(separator: ", ")); 'ledgerctl rebuild --check' shows the "
        + "rows, 'ledgerctl rebuild' makes them anew")
  } catch {
    guard ErrorReport.isProjectionDamage(error) else { throw error }
    return .mismatching("damaged; 'ledgerctl rebuild' makes them anew")
  }
}

/// A snapshot, and why it is not what the log gives.
private struct AuditedSnapshot {
  let name: String
  /// Nil where nothing is wrong with it.
  let problem: String?

  /// All of a ledger, with those that can't be read.
  static func all(_ ledger: OpenLedger) throws -> [AuditedSnapshot] {
    let projector = try ledger.projector()
    return try projector.prove().map { .init(name: $0.snapshot.name, problem: $0.problem) }
      + projector.snapshots.unreadable.map { .init(name: $0.name, problem: $0.cause) }
  }

  static func text(_ snapshots: [AuditedSnapshot]?) -> String {
    guard let snapshots else { return "not compared" }
    let bad = snapshots.filter { $0.problem != nil }
    if snapshots.isEmpty { return "none" }
    return bad.isEmpty
      ? "\(snapshots.count), every row as the log gives it"
      : bad.map { "\($0.name): \($0.problem ?? "")" }.joined(separator: "; ")
  }
}

// MARK: For people

private func write(
  _ report: AuditReport, _ projections: ProjectionVerdict, _ snapshots: [AuditedSnapshot]?,
  _ context: Context
) throws {
  let findingCount = report.findings.count + report.furtherFindingCount
  var sheet = Sheet(context)
  try sheet.fields(
    [
      ("log", report.isWhole ? "whole" : "not whole: \(counted(findingCount, "finding"))"),
      ("events", "\(report.eventCount)"),
      (
        "read",
        "\(counted(report.blockCount, "block")) in \(counted(report.segmentCount, "segment")), "
          + "\(counted(report.tailCount, "tail")), \(sizeText(report.byteCount))"
      ),
      ("root", rootText(report)),
      ("checkpoints", "\(report.checkpointCount) checked"),
    ] + report.trustFields + [
      ("projections", projections.text)
    ] + projections.replyFields + [("snapshots", AuditedSnapshot.text(snapshots))]
      + report.notes.map { ("note", $0) })
  var table = TextTable([
    .init("verdict"), .init("file"), .init("block", isNumber: true), .init("positions"),
    .init("what"),
  ])
  for finding in report.findings {
    let damage = finding.damage
    table.append([
      damage.verdict.rawValue, damage.file, damage.block.map { "\($0)" } ?? "",
      positions(finding), finding.cause,
    ])
  }
  try sheet.table("Findings", table)
  if report.furtherFindingCount > 0 {
    try context.output.writeLine("and \(report.furtherFindingCount) more")
  }
}

extension AuditReport {
  /// Whom verification trusted beside Apple.
  fileprivate var trustFields: [(name: String, value: String)] {
    if trust.isEmpty { return [("trust", "not recorded")] }
    let foreign = trust.map { ($0.position, $0.trust.foreignTrust) }.filter { !$0.1.isEmpty }
    var fields = foreign.map { position, names in
      (name: "trust", value: "from position \(position) on: \(names.joined(separator: ", "))")
    }
    if foreign.isEmpty { fields.append(("trust", "Apple's own")) }
    if furtherTrustCount > 0 {
      fields.append(("trust", "\(counted(furtherTrustCount, "further declaration")) not shown"))
    }
    return fields
  }
}

private func rootText(_ report: AuditReport) -> String {
  guard let frontier = report.frontier else { return "unknown: events are missing" }
  return "\(frontier.root.base64) of \(counted(report.size, "event"))"
    + (report.isTreeCertain ? "" : ", as far as the damage lets it be known")
}

/// The positions that a finding concerns, as far as they are known.
func positions(_ finding: AuditFinding) -> String {
  guard let first = finding.damage.position else { return "" }
  guard let end = finding.endPosition, end > first else { return "\(first)" }
  return end == first + 1 ? "\(first)" : "\(first)–\(end - 1)"
}

// MARK: For programs

private func writeJSON(
  _ report: AuditReport, _ projections: ProjectionVerdict, _ snapshots: [AuditedSnapshot]?,
  _ context: Context
) throws {
  var writer = JSONWriter()
  writer.object { writer in
    writer.member("whole", report.isWhole)
    writer.member("events", report.eventCount)
    writer.member("size", report.size)
    writer.member("root", report.frontier?.root.base64)
    writer.member("segments", report.segmentCount)
    writer.member("blocks", report.blockCount)
    writer.member("tails", report.tailCount)
    writer.member("bytes", report.byteCount)
    writer.member("checkpoints", report.checkpointCount)
    writer.array("trust", report.trust) { declared, writer in
      writer.object { writer in
        writer.member("position", declared.position)
        writer.array("not_apple", declared.trust.foreignTrust) { $1.string($0) }
      }
    }
    writer.member("further_trust", report.furtherTrustCount)
    writer.key("projections")
    writer.object { writer in
      switch projections {
      case .none: writer.member("state", "none")
      case .matching(let size, let rowsToo, let replyMismatches):
        writer.member("state", "matching")
        writer.member("events", size)
        writer.member("compared", rowsToo ? "rows" : "root")
        writer.member("reply_mismatches", replyMismatches)
      case .mismatching(let cause):
        writer.member("state", "mismatching")
        writer.member("cause", cause)
      case .unchecked(let cause):
        writer.member("state", "unchecked")
        writer.member("cause", cause)
      }
    }
    if let snapshots {
      writer.array("snapshots", snapshots) { snapshot, writer in
        writer.object { writer in
          writer.member("snapshot", snapshot.name)
          writer.member("problem", snapshot.problem)
        }
      }
    } else {
      writer.key("snapshots")
      writer.null()
    }
    writer.array("notes", report.notes) { note, writer in writer.string(note) }
    writer.array("findings", report.findings) { finding, writer in
      writer.object { writer in
        writer.member("verdict", finding.damage.verdict.rawValue)
        writer.member("file", finding.damage.file)
        writer.member("block", finding.damage.block)
        writer.member("position", finding.damage.position)
        writer.member("end_position", finding.endPosition)
        writer.member("cause", finding.cause)
      }
    }
    writer.member("further_findings", report.furtherFindingCount)
  }
  try context.output.write(writer.bytes)
  try context.output.writeLine()
}

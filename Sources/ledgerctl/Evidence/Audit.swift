// `audit`: checks every byte of the log, and what depends on it.
import Base
import Ledger
import Projections

let auditCommand = Command(
  "audit", summary: "Check the whole log and what depends on it",
  details: [
    "Decompresses and hashes the whole log, and checks the tree, the links between segments, the tails, "
      + "every kept checkpoint, and the root in the projections. It continues past damage, and lists the first "
      + "1,000 findings and all trust other than Apple's own. It changes nothing and takes no lock. "
      + "docs/audit.md explains the verdicts and exit codes.",
    "Of the projections, only the root is compared by default: anyone who can write to the ledger can edit "
      + "their rows. Those that SQLite can't read without writing next to them are left out; the exit code is "
      + "then 3.",
  ],
  options: [
    Option(
      "checkpoint", value: .init("FILE"), isRepeatable: true,
      help: "a checkpoint that you kept; the log must begin with its events"),
    .verifierKeys(),
    Option(
      "projections",
      help:
        "compare every row of projections and snapshots with the log, which takes as long as one or two "
        + "rebuilds"),
    Option(
      "signatures",
      help: "judge every signed object of the log again: the verdict must be the recorded one"),
    Option(
      "redactions",
      help:
        "list the newest 10,000 erasures; the exit code is 21 if data that one took out is still there, "
        + "or if one was begun and its request is missing"),
    Option(
      "replica",
      help: "also compare the copy with the log; the exit code is 20 if it is damaged or differs"),
    Option(
      "all-steps",
      help:
        "with `--replica`: follow the steps from the first one, not from the newest complete one"),
    .copy("from", help: "with `--replica`: the copy (default: that of config.json)"),
  ] + Option.copyAccess + [.json],
  examples: [
    Example(
      "ledgerctl audit --projections",
      "Check the log, its checkpoints, and every row behind the figures"),
    Example(
      "ledgerctl audit --checkpoint head-2025.txt --key \(exampleKey)",
      "Prove that nothing was changed since last year's checkpoint"),
  ]
) { invocation, context in
  try audit(AuditOptions(invocation), invocation, context)
}

/// The options of `audit`.
struct AuditOptions: Equatable, Sendable {
  let checkpointPaths: [String]
  /// The keys trusted for those; empty means the ledger's own.
  let keys: [VerifierKey]
  /// Whether the rows of projections and snapshots are compared.
  let comparesProjections: Bool
  /// Whether signed objects are judged again.
  let judgesSignatures: Bool
  /// Whether erasures are listed, and redacted data must be absent.
  let checksRedactions: Bool
  /// Whether the copy is read.
  let readsReplica: Bool
  /// Whether its steps are followed from the first one.
  let followsAllSteps: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    checkpointPaths = invocation.values("checkpoint")
    keys = try invocation.verifierKeys()
    comparesProjections = invocation.has("projections")
    judgesSignatures = invocation.has("signatures")
    checksRedactions = invocation.has("redactions")
    readsReplica = invocation.has("replica")
    followsAllSteps = invocation.has("all-steps")
    for name in ["all-steps", "from"] where invocation.has(name) && !readsReplica {
      throw UsageError("--\(name)", "requires --replica")
    }
    if !keys.isEmpty, checkpointPaths.isEmpty {
      throw UsageError("--key", "requires --checkpoint")
    }
  }
}

/// The verdict on the projections.
private enum ProjectionVerdict {
  case none
  case matching(size: Int, rowsToo: Bool, replyMismatches: Int?)
  case mismatching(String)
  /// They could not be read, for a reason that proves nothing about them.
  case unchecked(String)

  var text: String {
    switch self {
    case .none: "none"
    case .matching(let size, false, _):
      "\(counted(size, "event")) folded; the root matches the log, rows were not compared"
    case .matching(let size, true, _):
      "\(counted(size, "event")) folded; every row matches the log"
    case .mismatching(let cause): cause
    case .unchecked(let cause): "not checked: \(cause)"
    }
  }

  var record: Record {
    switch self {
    case .none: ["state": "none"]
    case .matching(let size, let rowsToo, let replyMismatches):
      [
        "state": "matching", "events": size, "compared": rowsToo ? "rows" : "root",
        "reply_mismatches": replyMismatches,
      ]
    case .mismatching(let cause): ["state": "mismatching", "cause": cause]
    case .unchecked(let cause): ["state": "unchecked", "cause": cause]
    }
  }

  /// The note about replies that do not belong to their receipts; nil if there are none.
  var replyFields: Fields {
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
  // Read what depends on the log before the log itself, which may grow meanwhile.
  let recorded = Result { try Projector.recordedHead(directory) }
  let store = CheckpointStore(directory)
  // Read before the checkpoints: a new one is first kept, then recorded.
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
  var signatures: SignatureAudit?
  if options.judgesSignatures, report.isWhole {
    signatures = try SignatureAudit(directory, &report, context)
  }
  let replica =
    options.readsReplica ? try ReplicaAudit(options, invocation, directory, context) : nil
  let unfinished = try UnfinishedErasures(report.unfinishedErasures, directory)
  let signatureText =
    options.judgesSignatures ? signatures?.text ?? "not judged: the log is not intact" : nil
  let all =
    record(report, projections, snapshots)
    + [
      "signatures": signatures?.record, "redacted": report.redactedCount,
      "unredacted": report.unredactedCount,
      "erasures": options.checksRedactions ? report.erasures.map(\.record) : nil,
      "further_erasures": report.furtherErasureCount,
      "unfinished_erasures": unfinished.record, "replica": replica?.record,
    ] as Record
  try context.print(invocation, all) { sheet in
    try write(report, unfinished, projections, snapshots, signatureText, to: &sheet)
    if options.checksRedactions { try writeErasures(report, to: &sheet) }
    try replica?.write(to: &sheet)
  }
  if !report.isWhole || replica?.isWhole == false { return .corrupted }
  if snapshots?.contains(where: { $0.problem != nil }) == true { return .mismatch }
  if options.checksRedactions, report.unredactedCount > 0 || unfinished.isAnyLost {
    return .mismatch
  }
  return switch projections {
  case .mismatching: .mismatch
  case .unchecked: .partlyDone
  case .none, .matching: .done
  }
}

/// What the file `heads` and the projections record about the checkpoints.
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
    // Unreadable projections get their own verdict.
    guard let inProjections = try? Projector.rememberedHeads(directory) else { return }
    if heads.first?.heads != inProjections { heads.append(("projections", inProjections)) }
  }

  var sizes: [Int] { heads.map(\.heads.size) }

  func check(in report: inout AuditReport, keptCount: Int) {
    if let damage { report.add(damage) }
    for (name, heads) in heads { report.check(heads, name: name, keptCount: keptCount) }
  }
}

/// Audits a log with progress on a terminal; a signal ends it. Records how far the log was found intact.
func auditLog(
  _ directory: LedgerDirectory, rootsAt sizes: [Int], _ context: Context
) throws -> AuditReport {
  let progress = Progress("Auditing", unit: .bytes, context: context)
  let report = try LogAudit(directory, rootsAt: sizes).run { done, total in
    try context.interruption.check()
    progress.update(done, of: total)
  }
  // A user who may only read can also audit; the record then stays unchanged.
  if report.isTreeCertain, let frontier = report.frontier {
    try? VerifiedHead(size: report.size, root: frontier.root).write(to: directory)
  } else {
    try? VerifiedHead.remove(directory)
  }
  return report
}

private func verdict(
  on recorded: Result<RecordedHead?, any Error>, _ report: AuditReport
) -> ProjectionVerdict {
  switch recorded {
  case .failure(ProjectionError.database(let error)) where error.isReadOnly:
    return .unchecked("SQLite can only read them in a writable copy")
  case .failure: return .mismatching("cannot be read; 'ledgerctl rebuild' rebuilds them")
  case .success(nil): return .none
  case .success(let head?):
    if head.size > report.size {
      return .mismatching(
        "\(counted(head.size, "event")) folded, but the log has \(report.size): events are missing "
          + "at its end, or the projections belong to another ledger")
    }
    guard let root = report.roots[head.size] else {
      return .mismatching(
        "\(counted(head.size, "event")) folded; the log is too damaged to compare")
    }
    return root == head.root
      ? .matching(size: head.size, rowsToo: false, replyMismatches: head.replyMismatches)
      : .mismatching("of another history than the log up to position \(head.size)")
  }
}

/// The verdict after comparing every row with a rebuild.
private func compared(
  _ verdict: ProjectionVerdict, _ ledger: OpenLedger
) throws -> ProjectionVerdict {
  guard case .matching(_, _, let replyMismatches) = verdict else { return verdict }
  do {
    guard let comparison = try ledger.projector().compare(.tables, rowLimit: 0) else {
      return .none
    }
    guard comparison.isSameVersions else {
      return .unchecked("built by another version of this program; the next command rebuilds them")
    }
    if comparison.isEmpty {
      return .matching(size: comparison.position, rowsToo: true, replyMismatches: replyMismatches)
    }
    let names = comparison.tables.filter { !$0.isEmpty }.map(\.name) + comparison.definitions
    return .mismatching(
      "different from the log: \(names.joined(separator: ", ")); 'ledgerctl rebuild --check' shows the "
        + "rows, 'ledgerctl rebuild' rebuilds them")
  } catch {
    guard ErrorReport.isProjectionDamage(error) else { throw error }
    return .mismatching("damaged; 'ledgerctl rebuild' rebuilds them")
  }
}

/// A snapshot, and why it does not match the log.
private struct AuditedSnapshot {
  let name: String
  /// Nil if it matches.
  let problem: String?

  /// All snapshots of a ledger, including unreadable ones, except those of an earlier version of this program, which
  /// are never used.
  static func all(_ ledger: OpenLedger) throws -> [AuditedSnapshot] {
    let projector = try ledger.projector()
    let unreadable = projector.snapshots.unreadable
    for entry in unreadable where entry.isEarlier {
      ledger.log("audit: snapshot \(visible(entry.name)) is skipped: \(visible(entry.cause))")
    }
    return try projector.prove().map { .init(name: $0.snapshot.name, problem: $0.problem) }
      + unreadable.filter { !$0.isEarlier }.map { .init(name: $0.name, problem: $0.cause) }
  }

  static func text(_ snapshots: [AuditedSnapshot]?) -> String {
    guard let snapshots else { return "not compared" }
    let bad = snapshots.filter { $0.problem != nil }
    if snapshots.isEmpty { return "none" }
    return bad.isEmpty
      ? "\(snapshots.count); every row matches the log"
      : bad.map { "\($0.name): \($0.problem ?? "")" }.joined(separator: "; ")
  }
}

// MARK: Text

private func write(
  _ report: AuditReport, _ unfinished: UnfinishedErasures, _ projections: ProjectionVerdict,
  _ snapshots: [AuditedSnapshot]?, _ signatures: String?, to sheet: inout TextSections
) throws {
  let findingCount = report.findings.count + report.furtherFindingCount
  try sheet.fields(
    [
      ("log", report.isWhole ? "intact" : "not intact: \(counted(findingCount, "finding"))"),
      ("events", "\(report.eventCount)"),
      (
        "read",
        "\(counted(report.blockCount, "block")) in \(counted(report.segmentCount, "segment")), "
          + "\(counted(report.tailCount, "tail")), \(sizeText(report.byteCount))"
      ),
      ("root", rootText(report)),
      ("checkpoints", "\(report.checkpointCount) checked"),
    ] + report.redactionFields + unfinished.fields + report.trustFields
      + (signatures.map { [("signatures", $0)] } ?? []) + [
        ("projections", projections.text)
      ] + projections.replyFields + [("snapshots", AuditedSnapshot.text(snapshots))]
      + report.notes.map { ("note", $0) })
  var table = TextTable(["verdict", "file", .number("block"), "positions", "what"])
  for finding in report.findings {
    let damage = finding.damage
    table.append([
      damage.verdict.rawValue, damage.file, damage.block.map { "\($0)" } ?? "",
      positions(finding), finding.cause,
    ])
  }
  try sheet.table("Findings", table)
  if report.furtherFindingCount > 0 {
    try sheet.line("and \(report.furtherFindingCount) more")
  }
}

/// The erasures, and what to do if data that they list as redacted is still there.
private func writeErasures(_ report: AuditReport, to sheet: inout TextSections) throws {
  if report.erasures.isEmpty {
    try sheet.gap()
    return try sheet.line("No erasures.")
  }
  var table = TextTable([
    .number("erasure"), "scope", "reason", .number("listed"), .number("redacted"),
    .number("superseded"), .number("unredacted"),
  ])
  for erasure in report.erasures {
    table.append([
      "\(erasure.position)", erasure.scope.rawValue, erasure.reason, "\(erasure.listedCount)",
      "\(erasure.redactedCount)", "\(erasure.supersededCount)", "\(erasure.unredactedCount)",
    ])
  }
  try sheet.table("Erasures", table)
  if report.furtherErasureCount > 0 {
    try sheet.line("and \(counted(report.furtherErasureCount, "older one"))")
  }
  if report.unredactedCount > 0 {
    let count = report.unredactedCount
    try sheet.line(
      "\(counted(count, "event")) still \(count == 1 ? "holds" : "hold") data that an erasure took out: run "
        + "'ledgerctl redact --again'")
  }
}

extension AuditedErasure {
  fileprivate var record: Record {
    [
      "erasure": position, "scope": scope.rawValue, "reason": reason, "listed": listedCount,
      "redacted": redactedCount, "superseded": supersededCount, "unredacted": unredactedCount,
    ]
  }
}

extension AuditReport {
  /// How many events lost their data, if there was an erasure.
  fileprivate var redactionFields: Fields {
    let count = erasures.count + furtherErasureCount
    if count == 0 { return [] }
    return [("redacted", "\(counted(redactedCount, "event")) by \(counted(count, "erasure"))")]
  }

  /// The trust other than Apple's own.
  fileprivate var trustFields: Fields {
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
    + (report.isTreeCertain ? "" : ", as far as the damage shows")
}

/// The known positions of a finding.
func positions(_ finding: AuditFinding) -> String {
  guard let first = finding.damage.position else { return "" }
  guard let end = finding.endPosition, end > first else { return "\(first)" }
  return end == first + 1 ? "\(first)" : "\(first)–\(end - 1)"
}

// MARK: JSON

private func record(
  _ report: AuditReport, _ projections: ProjectionVerdict, _ snapshots: [AuditedSnapshot]?
) -> Record {
  let trust = report.trust.map {
    ["position": $0.position, "not_apple": $0.trust.foreignTrust] as Record
  }
  let findings = report.findings.map { finding in
    let damage = finding.damage
    return [
      "verdict": damage.verdict.rawValue, "file": damage.file, "block": damage.block,
      "position": damage.position, "end_position": finding.endPosition, "cause": finding.cause,
    ] as Record
  }
  return [
    "whole": report.isWhole, "events": report.eventCount, "size": report.size,
    "root": report.frontier?.root.base64, "segments": report.segmentCount,
    "blocks": report.blockCount, "tails": report.tailCount, "bytes": report.byteCount,
    "checkpoints": report.checkpointCount, "trust": trust,
    "further_trust": report.furtherTrustCount, "projections": projections.record,
    "snapshots": snapshots?.map { ["snapshot": $0.name, "problem": $0.problem] as Record },
    "notes": report.notes, "findings": findings,
    "further_findings": report.furtherFindingCount,
  ]
}

// `audit --replica`: the result of auditing the copy, as text and JSON.
import Base
import Ledger
import Replication
import Server

/// The outcome of comparing a ledger with its copy.
struct ReplicaAudit {
  private let target: String
  private let report: CopyAudit.Report

  init(
    _ options: AuditOptions, _ invocation: Invocation, _ directory: LedgerDirectory,
    _ context: Context
  ) throws {
    let copy = try invocation.copy("from", of: directory)
    let progress = SharedProgress("Auditing the copy", context: context)
    var audit = CopyAudit()
    audit.followsAllSteps = options.followsAllSteps
    audit.checkCancelled = { try context.interruption.check() }
    audit.progress = { progress.update($0, of: $1) }
    guard let report = try context.withStore(copy, { try audit.run(directory, $0) }) else {
      throw Failure(operation: "audit", object: copy.target, cause: "there is no copy")
    }
    progress.erase()
    (target, self.report) = (copy.target, report)
  }

  var isWhole: Bool { report.isWhole }

  var record: Record {
    [
      "target": target, "whole": report.isWhole, "step": report.newest.number,
      "epoch": report.newest.epoch, "step_at": timeText(report.newest.atMs),
      "size": report.newest.size, "root": report.newest.root.base64, "lag": report.lag,
      "steps": report.stepCount, "objects": report.objectCount, "bytes": report.byteCount,
      "lost_steps": report.lostSteps.map { Commands.record(of: $0) },
      "outdated": report.outdated, "faults": report.faults.map { Commands.record(of: $0) },
    ]
  }

  func write(to sheet: inout TextSections) throws {
    let newest = report.newest
    try sheet.gap()
    try sheet.fields(
      [
        ("copy", target),
        (
          "state",
          report.isWhole ? "intact" : "not intact: \(counted(report.faults.count, "finding"))"
        ),
        (
          "step", "\(newest.number), epoch \(newest.epoch), made \(timeText(newest.atMs))"
        ),
        (
          "holds",
          "\(counted(newest.size, "event"))" + (report.lag > 0 ? ", \(report.lag) behind" : "")
        ),
        (
          "read",
          "\(counted(report.stepCount, "step")), \(counted(report.objectCount, "object")), "
            + sizeText(report.byteCount)
        ),
      ]
        + report.lostSteps.map { ("note", "\($0.description); nothing needs it any more") }
        + (report.outdated.isEmpty
          ? []
          : [
            (
              "note",
              "\(counted(report.outdated.count, "object")) still \(report.outdated.count == 1 ? "holds" : "hold") "
                + "what an erasure has taken out of this ledger; the copy follows"
            )
          ]))
    var table = TextTable(["object", "what"])
    for fault in report.faults { table.append([fault.object, fault.cause]) }
    try sheet.table("Findings in the copy", table)
  }
}

// `import --from`: writes an archive's lines instead of appending them; and the report of `--dry-run`.
import Base
import Intake
import Ledger

/// Writes the lines of an archive to a file.
func writeLines(
  of archive: ArchiveOptions, _ options: ImportOptions, to path: String, _ context: Context
) throws -> ExitCode {
  let interruption = context.interruption
  let lines = try ArchiveLines(
    options.files, archive, stop: StopFlag { interruption.isRequested })
  let problems = try ImportProblemLog(options, context)
  var (count, faults) = (0, 0)
  func write(to output: Output) throws {
    while let line = try lines.next() {
      switch line {
      case .whole(_, let bytes):
        try output.write(bytes)
        try output.write("\n")
        count += 1
      case .tooLong: report(FieldProblem("", .tooLarge, "is longer than 16 MiB"))
      case .unreadable(_, let problem): report(problem)
      }
    }
  }
  func report(_ problem: FieldProblem) {
    faults += 1
    let place = lines.place ?? ("", 0)
    problems.report(
      ImportProblem(
        input: place.input, line: place.line, severity: .refused, reasons: [problem]))
  }
  if path == "-" {
    try write(to: context.output)
    try context.output.flush()
  } else {
    // The lines hold receipts and user identifiers.
    let file = try OutputFile(path: path, outside: nil, mode: 0o600)
    try write(to: file.output)
    try file.commit()
    try context.output.writeLine("Wrote \(counted(count, "line"))")
    try context.output.flush()
  }
  problems.finish()
  return problems.hasFailed ? .failed : faults > 0 ? .partlyDone : .done
}

/// Prints what a dry run found.
func report(
  _ census: ImportCensus, _ summary: ImportSummary, _ invocation: Invocation, _ context: Context
) throws {
  try context.print(invocation, record(census, summary)) { sheet in
    try sheet.fields(fields(census, summary))
    let names = census.unregistered.sorted { $0.key < $1.key }
    try sheet.table(
      "Unregistered apps (--register-apps registers them)",
      TextTable(
        ["bundle_id", .number("lines")],
        names.map { ["bundle_id": $0.key, "lines": $0.value] as Record }))
    if census.furtherUnregistered > 0 {
      try sheet.line("and \(counted(census.furtherUnregistered, "line")) of further apps")
    }
  }
  try context.output.flush()
}

private func record(_ census: ImportCensus, _ summary: ImportSummary) -> Record {
  [
    "dry_run": true, "lines": summary.lines, "known": summary.known, "refused": summary.refused,
    "warnings": summary.warnings, "receipts_with_reply": census.receiptsWithReply,
    "receipts_without_reply": census.receiptsWithoutReply,
    "signed_transactions": census.signedTransactions, "notifications": census.notifications,
    "notifications_v1": census.legacyNotifications, "without_user": census.withoutUser,
    "without_country": census.withoutCountry, "without_price": census.withoutPrice,
    "environments": census.environments.sorted { $0.key < $1.key }
      .map { ["environment": $0.key, "lines": $0.value] as Record },
    "unregistered_apps": census.unregistered.sorted { $0.key < $1.key }
      .map { ["bundle_id": $0.key, "lines": $0.value] as Record },
    "lines_of_further_apps": census.furtherUnregistered,
  ]
}

private func fields(_ census: ImportCensus, _ summary: ImportSummary) -> Fields {
  var fields: Fields = [("dry run", "nothing was appended"), ("lines", "\(summary.lines)")]
  for (name, count) in [
    ("already known", summary.known), ("refused", summary.refused),
    ("warnings", summary.warnings), ("receipts with a reply", census.receiptsWithReply),
    ("receipts to ask about", census.receiptsWithoutReply),
    ("signed transactions", census.signedTransactions),
    ("notifications", census.notifications),
    ("notifications, version 1", census.legacyNotifications),
  ] where count > 0 {
    fields.append((name, "\(count)"))
  }
  for (environment, count) in census.environments.sorted(by: { $0.key < $1.key }) {
    let name = environment.isEmpty ? "unknown until the App Store says" : visible(environment)
    fields.append(("environment", "\(name): \(count)"))
  }
  for (name, count) in [
    ("without a user", census.withoutUser), ("without a country", census.withoutCountry),
    ("without a price", census.withoutPrice),
  ] {
    fields.append((name, "\(count)"))
  }
  return fields
}

// `redact` erases a person's data from the ledger; `redact list` shows what was erased.
import Base
import Erasure
import Glibc
import Ledger
import Projections
import Server

let redactCommand = Command(
  "redact", summary: "Take a person's data out of the ledger for good",
  details: [
    "Shows how many events would lose data, what of it other users share, and what it can't reach; then it "
      + "redacts them and prints a certificate. It cannot be undone. On a terminal it asks first; otherwise "
      + "`--yes` is required, with `--later` too. docs/privacy.md says what is removed, what stays, and how. If "
      + "no event holds such data, the exit code is 3, or 0 with `--dry-run`.",
    "A server makes the pass that carries out waiting requests once a day, `--now` at once. An interrupted "
      + "run is finished by the next command that writes, or by `--again`; until then no command shows what was "
      + "redacted. If `--again` names an erasure whose request is not here, with exit code 3, repeat that with "
      + "`--request`.",
  ],
  options: [
    Option(
      "user", value: .init("ID", isSecret: true),
      help:
        "everything about this user; `-` reads the identifier from standard input, so that no process "
        + "list shows it"),
    Option(
      "receipt", value: .init("ID"),
      help: "the content of this receipt, in all its uploads; the user stays"),
    Option("position", value: .init("N"), help: "the content of this event; the user stays"),
    Option("app", value: .init("ID"), help: "with `--user`: only this app family"),
    Option(
      "reason", value: .init("CODE"),
      help: "why, as a code that the ledger keeps: a-z, 0-9 and _, at most 32 characters"),
    Option(
      "request", value: .init("ID"),
      help: "finish the erasure of this request, which `--again` has named"),
    Option("dry-run", help: "show what would be removed; change nothing"),
    Option("yes", short: "y", help: "do not ask"),
    Option("later", help: "leave it to the next pass"),
    Option("now", help: "carry out all waiting requests in one pass"),
    Option("again", help: "finish what was interrupted; redact again what a restored backup holds"),
    Option(
      "retention",
      help:
        "remove the fields whose time (`retention` in config.json) is over, as a server does daily; a "
        + "pass that would remove far more than earlier ones asks, or requires `--yes`"),
    .json,
  ],
  examples: [
    Example(
      "ledgerctl redact --user user-17 --reason user_request --dry-run",
      "See what would be removed"),
    Example("ledgerctl redact --user user-17 --reason user_request --yes", "Erase a user"),
  ]
) { invocation, context in
  try redact(RedactOptions(invocation), invocation, context)
}

/// The options of `redact`.
struct RedactOptions: Equatable, Sendable {
  enum Task: Equatable, Sendable {
    /// - Parameter user: whether the identifier is still to be read from standard input.
    /// - Parameter request: the request of an erasure that is not finished; nil for a new one.
    case erase(ErasureSubject, reason: String, isFromInput: Bool, request: UUID16?)
    case waiting, again, retention
  }

  let task: Task
  let isDry: Bool
  let isLater: Bool
  let isConfirmed: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    isDry = invocation.has("dry-run")
    isLater = invocation.has("later")
    isConfirmed = invocation.has("yes")
    let subjects = ["user", "receipt", "position"].filter { invocation.value($0) != nil }
    let tasks = ["now", "again", "retention"].filter(invocation.has)
    guard subjects.count + (subjects.isEmpty ? tasks.count : 0) <= 1 else {
      throw UsageError(
        "--\((subjects + tasks)[1])", "cannot be used with --\((subjects + tasks)[0])")
    }
    if let subject = subjects.first {
      if let other = tasks.first(where: { $0 != "now" }) {
        throw UsageError("--\(other)", "cannot be used with --\(subject)")
      }
      if isLater, invocation.has("now") {
        throw UsageError("--later", "cannot be used with --now")
      }
      let reason = try invocation.value(
        "reason", "must be a-z, 0-9 and _, begin with a letter, and have at most 32 characters"
      ) { DataRedacted.isReason($0) ? $0 : nil }
      let request = try invocation.value("request", "is not the id of a request") { UUID16($0) }
      guard reason != nil || isDry || request != nil else {
        throw UsageError("--reason", "is required: the ledger records why data was erased")
      }
      task = .erase(
        try Self.subject(subject, invocation), reason: reason ?? "",
        isFromInput: invocation.value("user") == "-", request: request)
      return
    }
    for name in ["app", "reason", "request"] where invocation.value(name) != nil {
      throw UsageError("--\(name)", "requires --user, --receipt or --position")
    }
    if isLater { throw UsageError("--later", "requires --user, --receipt or --position") }
    switch tasks.first {
    case "now": task = .waiting
    case "again": task = .again
    case "retention": task = .retention
    default:
      throw UsageError(
        "target", "is missing; give --user, --receipt, --position, --now, --again or --retention"
      )
    }
    if isDry, task != .retention {
      throw UsageError("--dry-run", "requires --user, --receipt, --position or --retention")
    }
  }

  private static func subject(
    _ name: String, _ invocation: Invocation
  ) throws(UsageError) -> ErasureSubject {
    if name != "user", invocation.value("app") != nil {
      throw UsageError("--app", "requires --user")
    }
    switch name {
    case "user":
      let app = try invocation.value("app", "is not the id of an app family") { UUID16($0) }
      let user = try invocation.value("user", "is empty or too long") { text in
        1...ErasureQueue.identifierByteCountMax ~= text.utf8.count ? text : nil
      }
      return .user(user ?? "", appFamily: app)
    case "receipt":
      let id = try invocation.value("receipt", "is not the id of a receipt") { text in
        UUID16(text).map(\.description)
      }
      return .receipt(id ?? "")
    default:
      return .position(
        try invocation.value("position", "is not a position", read: positionValue) ?? 0)
    }
  }
}

private func redact(
  _ options: RedactOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  if let damage = ledger.reader.damage { throw damage }
  if !options.isDry { try MergedLedger.refuseAppends(ledger.directory, operation: "redact") }
  switch options.task {
  case .erase(var subject, let reason, let isFromInput, let request):
    if isFromInput, case .user(_, let family) = subject {
      let bytes = try SecretInput.read(prompt: "User identifier: ", context)
      guard !bytes.isEmpty, let user = String(validating: bytes, as: UTF8.self) else {
        throw Failure(
          operation: "redact", object: "standard input", cause: "it holds no identifier")
      }
      subject = .user(user, appFamily: family)
    }
    let unfinished = try request.map { try unfinishedErasure($0, subject.scope, ledger) }
    return try erase(
      subject, unfinished?.reason ?? reason, unfinished?.request, options, ledger, invocation,
      context)
  case .waiting: return try runWaiting(ledger, invocation, context)
  case .again: return try redactAgain(ledger, invocation, context)
  case .retention: return try retain(options, ledger, invocation, context)
  }
}

// MARK: One request

/// The unfinished erasure of a request.
private func unfinishedErasure(
  _ request: UUID16, _ scope: DataRedacted.Scope, _ ledger: OpenLedger
) throws -> UnfinishedErasure {
  let found = try ledger.readOnlyProjector().unfinishedErasures().first { $0.request == request }
  guard let found else {
    throw Failure(
      operation: "redact", object: "request \(request)",
      cause: "the log holds no unfinished erasure of it; 'ledgerctl redact list' shows all")
  }
  guard found.scope == scope else {
    throw Failure(
      operation: "redact", object: "request \(request)",
      cause: "it was to erase a \(found.scope.rawValue)")
  }
  return found
}

private func erase(
  _ subject: ErasureSubject, _ reason: String, _ request: UUID16?, _ options: RedactOptions,
  _ ledger: OpenLedger, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let preview = try ErasurePreview.of(
    subject, ledger.reader, try ledger.projections(), isExact: options.isDry,
    isCancelled: { context.interruption.isRequested })
  if options.isDry || preview.targetCount == 0 {
    try context.print(invocation, ["preview": preview.record] as Record) { sheet in
      try preview.write(to: &sheet, isDry: options.isDry)
    }
    return preview.targetCount == 0 && !options.isDry ? .partlyDone : .done
  }
  if !invocation.isJSON {
    var sheet = TextSections(context)
    try preview.write(to: &sheet, isDry: false)
    try context.output.flush()
  }
  try confirm(options, context)
  let record = ErasureRecord(
    subject, reason: reason, requestedAtMs: Timestamp.now(), isUrgent: !options.isLater,
    id: request ?? .random())
  let done: [ErasureRecord]
  if options.isLater {
    try ErasureQueue(ledger.directory).add(record)
    done = [record]
  } else {
    done = try carryOut(adding: record, preview, ledger, context).filter { $0.id == record.id }
  }
  try context.print(invocation, done.first?.record ?? [:]) { sheet in
    for record in done { try record.write(to: &sheet) }
  }
  return done.contains { $0.state == .failed } ? .failed : .done
}

/// Asks for confirmation on a terminal, unless `--yes` was given.
private func confirm(_ options: RedactOptions, _ context: Context) throws {
  if options.isConfirmed { return }
  guard isatty(STDIN_FILENO) == 1 else {
    throw UsageError("--yes", "is required: there is no terminal to ask on")
  }
  guard try isConfirmed(context) else {
    throw Failure(operation: "redact", object: "request", cause: "it was not confirmed")
  }
}

private func isConfirmed(_ context: Context) throws -> Bool {
  context.diagnostics.write("This can't be undone. Type 'redact' to continue: ")
  var answer: [UInt8] = []
  var byte: UInt8 = 0
  while answer.count < 64 {
    try context.interruption.check()
    let count = read(STDIN_FILENO, &byte, 1)
    if count < 0, errno == EINTR { continue }
    if count <= 0 || byte == UInt8(ascii: "\n") { break }
    answer.append(byte)
  }
  return answer.elementsEqual("redact".utf8)
}

/// Carries out all waiting requests, with this command's own writer or through the server that holds the ledger, and
/// returns them in their new state.
private func carryOut(
  adding record: ErasureRecord?, _ preview: ErasurePreview?, _ ledger: OpenLedger,
  _ context: Context
) throws -> [ErasureRecord] {
  let queue = ErasureQueue(ledger.directory)
  let own: OwnWriter
  do { own = try OwnWriter(ledger, replicates: true) } catch let error as LedgerError {
    guard error.kind == .locked, let server = try RemoteAppender.connect(ledger.directory) else {
      throw error
    }
    try server.close()
    if let record { try queue.add(record) }
    return try waitForServer(queue, ledger.directory, context)
  }
  do {
    if let record { try queue.add(record) }
    let eraser = try Eraser(
      ledger.directory, own.writer, projections: .ofProgram, observer: ledger.projector().observer)
    var planned: (UUID16, ErasurePreview)?
    if let record, let preview { planned = (record.id, preview) }
    let records = try eraser.run(preview: planned)
    try own.close()
    return records
  } catch {
    try? own.close()
    throw error
  }
}

/// How often a command checks whether the server is done.
private let waitMicroseconds: UInt32 = 100_000

/// Waits for the server that holds the ledger; its end, too, ends the waiting.
/// - Parameter resuming: what shows the result, if the command is interrupted.
private func waitForServer(
  of directory: LedgerDirectory, _ context: Context, _ progress: Progress? = nil, resuming: String,
  isDone: () throws -> Bool
) throws {
  var turns = 0
  while try !isDone() {
    if context.interruption.isRequested {
      progress?.erase()
      context.log("redact: the server continues\(resuming)", .information)
      throw Interrupted()
    }
    turns += 1
    // Once a second, as it takes a connection. The server may have ended because it was done.
    if turns % 10 == 0, try LedgerService.isListening(directory) != true, try !isDone() {
      throw Failure(
        operation: "redact", object: directory.path,
        cause: "the server ended before it was done; the next one goes on with it")
    }
    usleep(waitMicroseconds)
  }
}

private func waitForServer(
  _ queue: ErasureQueue, _ directory: LedgerDirectory, _ context: Context
) throws -> [ErasureRecord] {
  var ids: [UUID16] = []
  for record in try queue.open() {
    ids.append(record.id)
    try queue.hurry(record)
  }
  let progress = Progress("Waiting for the server", unit: .count("requests"), context: context)
  var records: [ErasureRecord] = []
  try waitForServer(
    of: directory, context, progress, resuming: "; 'ledgerctl redact list' shows the result"
  ) {
    records = try ids.compactMap { try queue.record($0) }
    let open = records.count { $0.state == .waiting || $0.state == .running }
    progress.update(records.count - open, of: records.count)
    return open == 0
  }
  return records
}

private func runWaiting(
  _ ledger: OpenLedger, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let records = try carryOut(adding: nil, nil, ledger, context)
  try context.print(invocation, list: records.map(\.record)) { sheet in
    if records.isEmpty { try sheet.line("No request waits.") }
    for record in records { try record.write(to: &sheet) }
  }
  return records.contains { $0.state == .failed } ? .partlyDone : .done
}

// MARK: Repetition, and retention

private func redactAgain(
  _ ledger: OpenLedger, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let own = try OwnWriter(ledger, replicates: true)
  let result: (wasInterrupted: Bool, count: Int)
  do {
    let eraser = try Eraser(
      ledger.directory, own.writer, projections: .ofProgram, observer: ledger.projector().observer)
    result = try eraser.redactAgain()
    try own.close()
  } catch {
    try? own.close()
    throw error
  }
  let unfinished = try UnfinishedErasures(try OpenLedger(invocation, context))
  let record: Record = [
    "finished_interrupted": result.wasInterrupted, "redacted_again": result.count,
    "unfinished_erasures": unfinished.record,
  ]
  try context.print(invocation, record) { sheet in
    if result.wasInterrupted { try sheet.line("Finished the erasure that was interrupted.") }
    try sheet.line(
      result.count == 0
        ? "Every event that an erasure names is redacted."
        : "Redacted \(counted(result.count, "event")) again.")
    for line in unfinished.lines { try sheet.line(line) }
  }
  return unfinished.isEmpty ? .done : .partlyDone
}

private func retain(
  _ options: RedactOptions, _ ledger: OpenLedger, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  guard let rules = try ConfigurationFile(ledger.directory).read().retention.rules else {
    throw Failure(
      operation: "redact", object: "config.json",
      cause: "it sets no retention; docs/configuration.md describes it")
  }
  let nowMs = Timestamp.now()
  let preview = try ErasurePreview.of(
    rules, nowMs: nowMs, ledger.reader, try ledger.projections(),
    isCancelled: { context.interruption.isRequested })
  if !options.isDry, preview.eventCount > 0 {
    if let pass = preview.retention, pass.isUnusual {
      context.log("redact: \(pass.text)", .information)
      try confirm(options, context)
    }
    try carryOut(rules, nowMs: nowMs, ledger, context)
  }
  try context.print(invocation, ["preview": preview.record] as Record) { sheet in
    try sheet.line(
      "\(counted(preview.eventCount, "event")) \(options.isDry ? "would lose" : "lost") fields whose time is over."
    )
    if options.isDry, let pass = preview.retention, pass.isUnusual { try sheet.line(pass.text) }
  }
  return .done
}

/// Has retention carried out by this command's own writer, or by the server that holds the ledger.
private func carryOut(
  _ rules: RetentionRules, nowMs: Int64, _ ledger: OpenLedger, _ context: Context
) throws {
  let own: OwnWriter
  do { own = try OwnWriter(ledger, replicates: true) } catch let error as LedgerError {
    guard error.kind == .locked, let server = try RemoteAppender.connect(ledger.directory) else {
      throw error
    }
    try server.close()
    let queue = ErasureQueue(ledger.directory)
    try queue.orderRetention(nowMs: nowMs)
    return try waitForServer(
      of: ledger.directory, context, resuming: ", and logs the result"
    ) { try queue.orderedRetentionMs() == nil }
  }
  do {
    let eraser = try Eraser(
      ledger.directory, own.writer, projections: .ofProgram, observer: ledger.projector().observer)
    _ = try eraser.run(retention: rules, nowMs: nowMs, isRetentionConfirmed: true)
    try own.close()
  } catch {
    try? own.close()
    throw error
  }
}

extension RetentionPass {
  fileprivate var text: String {
    "\(counted(eventCount, "event")), recorded from \(timeText(firstRecordedAtMs)) to "
      + "\(timeText(lastRecordedAtMs)): far more than earlier passes took. Is the clock right?"
  }
}

// MARK: List

let redactListCommand = Command(
  "redact list", summary: "List the requests to erase, and the erasures in the log",
  details: [
    "Prints the requests that wait, run or are done, with their certificates, and then each erasure in the "
      + "log. It names no person; only the file of a waiting request does."
  ],
  options: [.json],
  isReadOnly: true
) { invocation, context in
  let ledger = try OpenLedger(invocation, context)
  let records = try ErasureQueue(ledger.directory).records()
  let erasures = try ErasureQueries(try ledger.projections()).all()
  let unfinished = try UnfinishedErasures(ledger)
  let record: Record = [
    "requests": records.map(\.record),
    "erasures": erasures.map {
      $0.record + ["state": unfinished.state(of: $0.position) ?? "done"] as Record
    },
  ]
  try context.print(invocation, record) { sheet in
    var requests = TextTable([
      "request", "scope", "reason", "state", "requested_at", .number("events"),
    ])
    for record in records {
      requests.append([
        record.id.description, record.scope.rawValue, record.reason, record.state.rawValue,
        timeText(record.requestedAtMs), record.certificate.map { "\($0.eventCount)" } ?? "",
      ])
    }
    if records.isEmpty {
      try sheet.line("No requests.")
    } else {
      try sheet.table("Requests", requests)
    }
    var table = TextTable([
      .number("erasure"), "recorded_at", "scope", "reason", .number("events"), "state", "request",
    ])
    for erasure in erasures {
      table.append([
        "\(erasure.position)", timeText(erasure.recordedAtMs), erasure.scope, erasure.reason,
        "\(erasure.lineCount)", unfinished.state(of: erasure.position) ?? "done", erasure.request,
      ])
    }
    if !erasures.isEmpty { try sheet.table("Erasures", table) }
    for line in unfinished.lines { try sheet.line(line) }
  }
  return .done
}

extension ErasureQueries.Erasure {
  var record: Record {
    [
      "erasure": position, "recorded_at": timeText(recordedAtMs), "scope": scope,
      "reason": reason, "events": lineCount, "request": request,
    ]
  }
}

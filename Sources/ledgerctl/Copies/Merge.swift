// `merge`: makes one ledger of several, again and again, and compares it with them.
import Base
import Glibc
import Ledger
import Merge
import Projections
import Replication
import Server

let mergeCommand = Command(
  "merge", summary: "Make one ledger of several",
  details: [
    "Copies the events of the given ledgers, directories or copies (s3://BUCKET/PREFIX, file:///PATH), into the "
      + "ledger DIR, in the order of their times. App families with a common bundle id become one, and so do "
      + "users of one identifier. All reports work on DIR; everything else that appends is refused there "
      + "(docs/merge.md).",
    "Run again with the same ledgers, it adds what is new. A run takes the events recorded before the smallest "
      + "of the ledgers' newest times, so that none can follow that belongs before them; `--until` goes past "
      + "ledgers that were quiet. It first redacts what the ledgers have erased since. An interrupted run is "
      + "completed by the next; until then DIR cannot be used.",
    "If the ledgers are not those of earlier runs, or hold events that belong before merged ones, nothing is "
      + "written, and the exit code is 21. So it is if `--verify` finds a difference.",
  ],
  positionals: [
    Positional("LEDGER", arity: .oneOrMore, help: "the directory of a ledger, or its copy")
  ],
  options: [
    Option(
      "output", short: "o", value: .init("DIR"),
      help: "the merged ledger: a new or empty directory, or that of earlier runs"),
    Option(
      "verify", value: .init("DIR"),
      help: "write nothing; compare every event of this merged ledger with its ledger's"),
    Option(
      "until", value: .init("TIME"),
      help: "take the events recorded until the end of this day (UTC) or this RFC 3339 time"),
    Option(
      "user-prefix", value: .init("ORIGIN=TEXT"), isRepeatable: true,
      help:
        "put TEXT before the user identifiers of the ledger ORIGIN, whose users are other people"),
  ] + Option.copyAccess + [.json],
  examples: [
    Example("ledgerctl merge shop-eu shop-us -o all", "Merge two ledgers, or what is new in them"),
    Example("ledgerctl merge --verify all shop-eu shop-us", "Compare every event with its source"),
  ],
  usesLedger: false
) { invocation, context in
  try MergeInvocation(invocation, context).run()
}

/// The arguments of a merge, checked before any ledger is opened.
private struct MergeInvocation {
  private let invocation: Invocation
  private let context: Context
  private let path: String
  private let sources: [MergeSource]
  private var merge = Merge()

  init(_ invocation: Invocation, _ context: Context) throws {
    (self.invocation, self.context) = (invocation, context)
    func wrong(_ object: String, _ cause: String) -> UsageError {
      UsageError(object, cause, command: invocation.command.name)
    }
    switch (invocation.value("output"), invocation.value("verify")) {
    case (let output?, nil): path = output
    case (nil, let verified?): path = verified
    case (nil, nil): throw wrong("--output", "is missing; so is --verify")
    case (_?, _?): throw wrong("--verify", "cannot be used with --output")
    }
    if invocation.has("verify") {
      for name in ["until", "user-prefix"] where invocation.has(name) {
        throw wrong("--\(name)", "cannot be used with --verify")
      }
    }
    let problem = "is not a day or an RFC 3339 time"
    switch try invocation.value("until", problem, read: PointInTime.init) {
    case .recordedAtMs(let timeMs):
      guard timeMs < Timestamp.now() else { throw wrong("--until", "is not in the past") }
      merge.untilMs = timeMs + 1
    case .position, .manifest: throw wrong("--until", problem)
    case nil: break
    }
    for text in invocation.values("user-prefix") {
      guard let mark = text.firstIndex(of: "="), text.index(after: mark) < text.endIndex else {
        throw wrong("--user-prefix", "must be ORIGIN=TEXT")
      }
      let origin = String(text[..<mark])
      guard merge.userPrefixes[origin] == nil else {
        throw wrong("--user-prefix", "is given twice for one ledger")
      }
      merge.userPrefixes[origin] = String(text[text.index(after: mark)...])
    }
    sources = try invocation.positionals.map { try MergeSource($0, invocation) }
    if !sources.contains(where: \.isCopy) {
      for name in Option.copyAccess.map(\.name) where invocation.has(name) {
        throw wrong("--\(name)", "requires a copy among the ledgers")
      }
    }
    merge.checkCancelled = { try context.interruption.check() }
    merge.forgetProjections = { try Projector.forgetAll($0) }
  }

  func run() throws -> ExitCode {
    if invocation.has("verify") {
      _ = try context.openLedger(path: path)
    } else {
      try context.owner.assume(newLedger: path)
    }
    let fetched = FetchedCopies(beside: path, context)
    let opened = try fetched.open(sources)
    let code = try invocation.has("verify") ? verify(opened) : merge(opened)
    try fetched.remove()
    return code
  }

  // MARK: Merging

  private func merge(_ sources: [LedgerDirectory]) throws -> ExitCode {
    var merge = merge
    let progress = Progress("Merging", unit: .count("events"), context: context)
    merge.progress = { progress.update($0, of: $1) }
    let report = try merge.run(sources, into: path)
    progress.erase()
    let ledgers = report.run?.sources ?? []
    let record: Record = [
      "path": ShownArgument.path(path), "is_new": report.isNew,
      "completed_run": report.hasCompletedRun, "events": report.run?.eventCount ?? 0,
      "before": timeText(report.beforeMs), "limited_by": report.limitedBy.map { visible($0) },
      "size": report.size, "root": report.root.base64,
      "ledgers": ledgers.map {
        [
          "origin": visible($0.origin), "first": $0.first, "size": $0.size,
          "root": $0.root.base64,
        ] as Record
      },
      "redacted": report.redactedCount, "erasures": report.run?.erasures.count ?? 0,
      "held_identifiers": report.held.map(\.record),
    ]
    try context.print(invocation, record) { sheet in
      if report.hasCompletedRun { try sheet.line("Completed a run that was interrupted.") }
      try write(report, ledgers, to: &sheet)
    }
    return report.held.isEmpty ? .done : .partlyDone
  }

  private func write(
    _ report: Merge.Report, _ ledgers: [MergedFrom.Source], to sheet: inout TextSections
  ) throws {
    let shown = ShownArgument.path(path)
    let count = report.run?.eventCount ?? 0
    let isNothing = report.run == nil
    try sheet.line(
      isNothing
        ? "Nothing new for \(shown)"
        : "Merged \(counted(count, report.isNew ? "event" : "new event")) into \(shown)")
    var fields: Fields = [
      (
        "before",
        timeText(report.beforeMs)
          + (report.limitedBy.map { ", the time of the newest event of \($0)" } ?? "")
      ),
      ("root", "\(report.root.base64) of \(counted(report.size, "event"))"),
    ]
    if report.redactedCount > 0 {
      fields.append(("redacted", "\(counted(report.redactedCount, "event")) of earlier runs"))
    }
    try sheet.fields(fields)
    if isNothing { return }
    var table = TextTable(["ledger", .number("new"), .number("merged")])
    for ledger in ledgers {
      table.append([ledger.origin, "\(ledger.size - ledger.first)", "\(ledger.size)"])
    }
    try sheet.table("Ledgers", table)
    if report.held.isEmpty { return }
    var held = TextTable(["identifier", "erased in", "still in", .number("events"), "first at"])
    for identifier in report.held {
      held.append([
        identifier.member, identifier.erasedIn, identifier.heldBy, "\(identifier.eventCount)",
        "\(identifier.position)",
      ])
    }
    try sheet.table("Identifiers that other ledgers still hold", held)
  }

  // MARK: Verifying

  private func verify(_ sources: [LedgerDirectory]) throws -> ExitCode {
    let directory = try LedgerDirectory.open(path: path)
    let progress = Progress("Comparing", unit: .count("events"), context: context)
    let found = try MergeVerification(
      of: directory, with: sources, checkCancelled: { try context.interruption.check() },
      progress: { progress.update($0, of: $1) })
    progress.erase()
    let record: Record = [
      "path": ShownArgument.path(path), "runs": found.runCount, "events": found.eventCount,
      "size": found.head.size, "root": found.head.root.base64,
      "differences": found.differenceCount, "first_differences": found.differences.map(\.record),
      "erased_since": found.erasedCount, "new": found.newCount,
    ]
    try context.print(invocation, record) { sheet in
      let compared =
        "\(counted(found.eventCount, "merged event")) of \(counted(found.runCount, "run"))"
      try sheet.line(
        found.isEqual
          ? "\(compared): each is its source's"
          : "\(compared): \(counted(found.differenceCount, "difference"))")
      try sheet.fields([
        ("root", "\(found.head.root.base64) of \(counted(found.head.size, "event"))"),
        ("not merged yet", counted(found.newCount, "event")),
        ("erased since", counted(found.erasedCount, "event")),
      ])
      var table = TextTable(["position", "ledger", .number("position there"), "what"])
      for difference in found.differences {
        table.append([
          difference.position.map { "\($0)" } ?? "", difference.origin,
          "\(difference.sourcePosition)", difference.cause,
        ])
      }
      if !found.isEqual { try sheet.table("Differences", table) }
      if found.erasedCount > 0 {
        try sheet.gap()
        try sheet.line("'ledgerctl merge' redacts what was erased since.")
      }
    }
    return found.isEqual ? .done : .mismatch
  }
}

extension HeldIdentifier {
  fileprivate var record: Record {
    [
      "member": member, "erased_in": visible(erasedIn), "held_by": visible(heldBy),
      "position": position, "events": eventCount,
    ]
  }
}

extension MergeVerification.Difference {
  fileprivate var record: Record {
    [
      "position": position, "origin": visible(origin), "source_position": sourcePosition,
      "cause": cause,
    ]
  }
}

// MARK: - Copies as sources

/// A ledger to merge, as an argument names it.
private enum MergeSource {
  case directory(String)
  case copy(Configuration.Replication)

  init(_ argument: String, _ invocation: Invocation) throws {
    guard ["s3://", "file://"].contains(where: argument.hasPrefix) else {
      self = .directory(argument)
      return
    }
    let isS3 = argument.hasPrefix("s3://")
    do throws(Configuration.Replication.ArgumentFault) {
      self = .copy(
        try Configuration.Replication(
          argument: argument, option: "LEDGER", endpoint: isS3 ? invocation.value("endpoint") : nil,
          region: isS3 ? invocation.value("region") : nil,
          credentialsFile: isS3 ? invocation.value("credentials-file") : nil))
    } catch {
      let object = error.option == "LEDGER" ? "LEDGER" : "--\(error.option)"
      if error.option == "credentials-file" {
        throw Failure(operation: invocation.command.name, object: object, cause: error.cause)
      }
      throw UsageError(object, error.cause, command: invocation.command.name)
    }
  }

  var isCopy: Bool {
    if case .copy = self { return true }
    return false
  }
}

/// Ledgers that are restored from copies for a merge, in a folder next to the merged ledger. A run that was killed
/// leaves them, and the next one continues and removes them.
private struct FetchedCopies {
  private let folder: String
  private let context: Context

  init(beside path: String, _ context: Context) {
    var path = path[...]
    while path.count > 1, path.last == "/" { path.removeLast() }
    folder = "\(path).copies"
    self.context = context
  }

  /// The ledgers of the sources, with copies restored.
  func open(_ sources: [MergeSource]) throws -> [LedgerDirectory] {
    try sources.enumerated().map { index, source in
      switch source {
      case .directory(let path): return try LedgerDirectory.open(path: path)
      case .copy(let copy): return try restored(copy, "\(folder)/\(index + 1)")
      }
    }
  }

  private func restored(
    _ copy: Configuration.Replication, _ path: String
  ) throws -> LedgerDirectory {
    if mkdir(folder, 0o700) != 0, errno != EEXIST {
      throw Failure(operation: "make folder", object: folder, systemError: errno)
    }
    var restore = CopyRestore()
    restore.forgetProjections = { try Projector.forgetAll($0) }
    restore.checkCancelled = { try context.interruption.check() }
    let (fetching, checking) = (
      SharedProgress("Fetching", context: context), SharedProgress("Checking", context: context)
    )
    restore.progress = { phase, done, total in
      switch phase {
      case .fetching: fetching.update(done, of: total)
      case .checking: checking.update(done, of: total)
      }
    }
    _ = try context.withStore(copy) { try restore.run(from: $0, to: path) }
    fetching.erase()
    checking.erase()
    return try LedgerDirectory.open(path: path)
  }

  /// Removes the restored ledgers, which hold personal data.
  func remove() throws {
    var status = stat()
    guard lstat(folder, &status) == 0 else { return }
    let top = try Folder(path: folder)
    for name in try top.names() {
      guard let ledger = try top.folderIfPresent(name) else { continue }
      for inner in try ledger.names() {
        if LedgerDirectory.folderNames.contains(inner) {
          guard let files = try ledger.folderIfPresent(inner) else { continue }
          for file in try files.names() { try files.unlink(file) }
          rmdir("\(folder)/\(name)/\(inner)")
        } else {
          try ledger.unlink(inner)
        }
      }
      rmdir("\(folder)/\(name)")
    }
    if rmdir(folder) != 0 {
      throw Failure(operation: "remove", object: folder, systemError: errno)
    }
  }
}

// `replay`: prints events.
import Base
import Glibc
import Ledger
import Projections

let replayCommand = Command(
  "replay", summary: "Print events as JSON lines",
  details: [
    "Prints the events that pass all filters, in order, each exactly as it is in the log. With `--as-of`, no "
      + "later event is printed, and `--receipt`, `--user` and `--app` use what was known then. Blocks without "
      + "such events are skipped; damage in them is found only by `audit`. A signal, or a reader that closes the "
      + "pipe, ends `--follow` with exit code 0.",
    "In a damaged log, output ends at the damage. `--skip-corrupt` prints every intact event, checks each "
      + "against its digest, and reports on standard error which positions were left out and why; the exit code "
      + "is 20 if damage is found. An incomplete write at the very end, as a crash leaves it, is not damage. "
      + "`--skip-corrupt` cannot be used with filters by receipt, user or app, nor with `--as-of`, `--follow` "
      + "and `--pretty`.",
  ],
  options: [
    Option(
      "from", value: .init("POINT"),
      help: "the first position, or the day (UTC) or RFC 3339 time since which events were recorded"
    ),
    Option("until", value: .init("POINT"), help: "the last position, day or time, inclusive"),
    Option(
      "type", value: .init("LIST", allowed: EventType.allCases.map(\.rawValue), isList: true),
      help: "the event types to print"),
    Option("receipt", value: .init("RECEIPT-ID"), help: "events of one receipt"),
    Option("user", value: .init("USER", isSecret: true), help: "events of one user"),
    Option("app", value: .init("ID"), help: "events of one app family, by id"),
    .asOf,
    Option("pretty", help: "print events indented, with long strings cut"),
    Option("follow", help: "continue with events as they are appended"),
    Option("skip-corrupt", help: "continue past damage, and report what was left out"),
  ],
  examples: [
    Example("ledgerctl replay --follow --type receipt.uploaded", "Watch uploads as they arrive"),
    Example(
      "ledgerctl replay --type receipt.verified --from 2026-03-01 | jq .data.status",
      "Print the statuses of the App Store's replies since 1 March"),
  ]
) { invocation, context in
  try replay(ReplayOptions(invocation), invocation, context)
}

/// The options of `replay`.
struct ReplayOptions: Equatable, Sendable {
  /// A bound, inclusive.
  enum Bound: Equatable, Sendable {
    case position(Int)
    case recordedAtMs(Int64)
  }

  let from: Bound?
  let until: Bound?
  /// Empty: all types.
  let types: [EventType]
  /// A UUID in lower case.
  let receiptID: String?
  /// Must not be shown in an error.
  let user: String?
  /// A UUID in lower case.
  let appFamilyID: String?
  /// The point in time of `--as-of`; nil is now.
  let asOf: PointInTime?
  let isPretty: Bool
  let isFollowing: Bool
  /// Whether damage is skipped.
  let skipsCorrupt: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    let cause = "is not a position, a day or an RFC 3339 time"
    from = try invocation.value("from", cause) { Self.bound($0, isUpper: false) }
    until = try invocation.value("until", cause) { Self.bound($0, isUpper: true) }
    isPretty = invocation.has("pretty")
    isFollowing = invocation.has("follow")
    asOf = try invocation.moment("as-of")
    if isFollowing, asOf != nil {
      throw UsageError("--as-of", "cannot be used with --follow, which has no end")
    }
    if isFollowing, until != nil {
      throw UsageError("--until", "cannot be used with --follow, which has no end")
    }
    if Self.isEmpty(from, until) {
      throw invocation.wrong("until", invocation.value("until") ?? "", "comes before --from")
    }
    types = invocation.list("type").compactMap { EventType(rawValue: $0) }
    receiptID = try invocation.value("receipt", "is not a UUID", read: uuidText)
    user = invocation.value("user")
    appFamilyID = try invocation.value("app", "is not a UUID", read: uuidText)
    skipsCorrupt = invocation.has("skip-corrupt")
    if skipsCorrupt,
      let name = ["receipt", "user", "app", "as-of", "follow", "pretty"].first(
        where: invocation.has)
    {
      throw UsageError("--skip-corrupt", "cannot be used with --\(name)")
    }
  }

  private static func bound(_ text: String, isUpper: Bool) -> Bound? {
    if let position = positionValue(text) { return .position(position) }
    if let day = try? CivilDate(parsing: text) {
      let startMs = Int64(day.dayNumber) * Timestamp.dayMs
      return .recordedAtMs(isUpper ? startMs + Timestamp.dayMs - 1 : startMs)
    }
    return (try? Timestamp.parse(text, cutsDecimals: true)).map { .recordedAtMs($0) }
  }

  private static func isEmpty(_ from: Bound?, _ until: Bound?) -> Bool {
    switch (from, until) {
    case (.position(let from), .position(let until)): from > until
    case (.recordedAtMs(let from), .recordedAtMs(let until)): from > until
    default: false
    }
  }
}

private func replay(
  _ options: ReplayOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  if options.skipsCorrupt { return try replaySkipping(options, invocation, context) }
  let ledger = try OpenLedger(invocation, context, .whole)
  let isOfAnotherHistory = try ledger.logHistoryConflict("replay")
  var replay = Replay(options, ledger, isOfAnotherHistory: isOfAnotherHistory, context)
  if options.isFollowing {
    // A signal is the normal end of --follow.
    do { try replay.follow() } catch is Interrupted {}
  } else {
    try replay.run()
  }
  return .done
}

/// Positions in ascending order, and whether a block holds any of them.
private struct WantedPositions: Sendable {
  let positions: [Position]

  func meets(_ block: Range<Position>) -> Bool {
    var (low, high) = (0, positions.count)
    while low < high {
      let middle = (low + high) / 2
      if positions[middle] < block.lowerBound { low = middle + 1 } else { high = middle }
    }
    return low < positions.count && positions[low] < block.upperBound
  }
}

/// Prints the events that pass the filters.
private struct Replay {
  /// The interval at which `--follow` checks the log.
  private static let lookIntervalMs: Int32 = 100

  private let options: ReplayOptions
  private let ledger: OpenLedger
  /// Whether the projections in use belong to another history than the log.
  private let isOfAnotherHistory: Bool
  private let context: Context
  private let types: Set<EventType>
  /// The first position; nil until the log reaches it.
  private var first: Position?

  init(
    _ options: ReplayOptions, _ ledger: OpenLedger, isOfAnotherHistory: Bool, _ context: Context
  ) {
    self.options = options
    self.ledger = ledger
    self.isOfAnotherHistory = isOfAnotherHistory
    self.context = context
    types = Set(options.types)
  }

  private var reader: LogReader { ledger.reader }

  private var hasSubject: Bool {
    options.appFamilyID != nil || options.receiptID != nil || options.user != nil
  }

  /// Prints the events in the log.
  mutating func run() throws {
    _ = try print(from: 0)
    // The reader must learn that the log goes on after the damage.
    if let damage = reader.damage, try end() == reader.head.size { throw damage }
  }

  /// Prints the events in the log, then new ones; ends when `wait` throws.
  mutating func follow() throws {
    var next = 0
    while true {
      if reader.head.size > next {
        next = try print(from: next)
        try context.output.flush()
      } else if reader.head.size < next {
        throw LedgerError(
          .init(verdict: .missing, file: "log", position: reader.head.size), operation: "replay",
          cause: "the log became shorter while following it")
      }
      if let damage = reader.damage { throw damage }
      try wait()
      try reader.refresh()
    }
  }

  /// Sleeps briefly; throws if a signal arrived or the reader closed the output.
  private func wait() throws {
    try context.interruption.check()
    var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
    // Notice that the reader is gone even if there is nothing to write.
    if poll(&output, 1, Self.lookIntervalMs) > 0, output.revents & Int16(POLLERR | POLLHUP) != 0 {
      throw OutputError.closedPipe
    }
    try context.interruption.check()
  }

  // MARK: What is printed

  /// Prints the events from a position on that are within the bounds and pass the filters; returns how far it
  /// looked. The log's view may go on while events are printed.
  private mutating func print(from next: Position) throws -> Position {
    // First, because this brings the projections and the log's view to the same position.
    let queries = hasSubject ? try subjectQueries() : nil
    let size = reader.head.size
    guard let range = try range(from: next) else { return size }
    if let queries { try printSubject(range, queries) } else { try printAll(range) }
    return size
  }

  /// Projections of another history know nothing about this log's events: temporary ones are built, except to follow.
  private func subjectQueries() throws -> LedgerQueries {
    guard isOfAnotherHistory, !options.isFollowing else {
      return try ledger.queries(asOf: options.asOf)
    }
    let size = try options.asOf.map { try ledger.size(at: $0, "as-of") } ?? reader.head.size
    if let damage = reader.damage { throw damage }
    let reader = reader
    return try LedgerQueries(try ledger.projector().booksFromNothing(at: size)) {
      try reader.event(at: $0)
    }
  }

  /// The positions within the bounds, from `first` on; nil if there are none.
  private mutating func range(from next: Position) throws -> Range<Position>? {
    guard let first = try firstPosition() else { return nil }
    let start = max(first, next)
    let end = try end()
    return start < end ? start..<end : nil
  }

  /// Times never decrease, so binary search finds a bound.
  private mutating func firstPosition() throws -> Position? {
    if let first { return first }
    let size = reader.head.size
    let found: Position =
      switch options.from {
      case nil: 0
      case .position(let position): position
      case .recordedAtMs(let timeMs): try reader.firstPosition(recordedFromMs: timeMs)
      }
    if found < size { first = found }
    return first
  }

  private func end() throws -> Position {
    let size = try options.asOf.map { try ledger.size(at: $0, "as-of") } ?? reader.head.size
    return switch options.until {
    case nil: size
    // Compared before adding 1, which could overflow.
    case .position(let position): position < size ? position + 1 : size
    case .recordedAtMs(let timeMs):
      min(size, try reader.firstPosition(recordedFromMs: timeMs + 1))
    }
  }

  /// All events, of the types asked for.
  private func printAll(_ range: Range<Position>) throws {
    let isWanted = blocksOfRareTypes(range.upperBound)
    try reader.read(from: range.lowerBound, to: range.upperBound, isWanted: isWanted) { chunk in
      try context.interruption.check()
      guard !types.isEmpty || options.isPretty else {
        try context.output.write(chunk.bytes)
        return true
      }
      try chunk.forEachEvent { event in
        if hasType(event) { try print(event) }
      }
      return true
    }
  }

  /// Which blocks contain events of the given types, if those types are rare and the projections are up to date; nil
  /// means that all blocks are read.
  private func blocksOfRareTypes(_ end: Position) -> BlockFilter? {
    let frequent: Set<EventType> = [
      .receiptUploaded, .receiptVerified, .transactionsReceived, .notificationReceived,
      .transactionsFetched,
    ]
    guard !types.isEmpty, types.isDisjoint(with: frequent),
      // Events in no table, malformed ones of these types included, count as registrations.
      let positions = try? ledger.queriesAtHead()?.positions(
        of: types.union([.appRegistered]), before: end)
    else { return nil }
    let wanted = WantedPositions(positions: positions)
    return { wanted.meets($0) }
  }

  /// The events of a receipt, a user or an app family: the projections know their positions, and blocks without any
  /// are skipped.
  private func printSubject(_ range: Range<Position>, _ queries: LedgerQueries) throws {
    let positions = try queries.positions(
      receiptID: options.receiptID, userIdentifier: options.user,
      appFamilyID: options.appFamilyID
    ).filter(range.contains)
    // Registrations belong to an app family, but not to a receipt or a user.
    let seeksRegistrations =
      options.receiptID == nil && options.user == nil
      && (types.isEmpty || types.contains(.appRegistered))
    let registrations =
      seeksRegistrations
      ? try queries.positions(of: [.appRegistered], before: range.upperBound) : []
    if positions.isEmpty, registrations.isEmpty { return }
    let wanted = WantedPositions(positions: (positions + registrations).sorted())
    var index = 0
    try reader.read(
      from: range.lowerBound, to: range.upperBound, isWanted: { wanted.meets($0) }
    ) { chunk in
      try context.interruption.check()
      try chunk.forEachEvent { event in
        if index < positions.count, positions[index] == event.position {
          index += 1
          if hasType(event) { try print(event) }
        } else if seeksRegistrations, EventType(event.type) == .appRegistered,
          (try? AppRegistered(data: event.data))?.appFamilyID == options.appFamilyID
        {
          try print(event)
        }
      }
      return true
    }
  }

  private func hasType(_ event: EventLine) -> Bool {
    types.isEmpty || EventType(event.type).map(types.contains) ?? false
  }

  private func print(_ event: EventLine) throws {
    guard options.isPretty else {
      try context.output.write(event.bytes)
      return try context.output.writeLine()
    }
    for line in ReadableEvent.lines(of: Array(event.bytes)) {
      try context.output.writeLine(visible(line))
    }
  }
}

// MARK: Damaged logs

/// Prints every intact event that passes the filters, then reports on standard error what is missing.
private func replaySkipping(
  _ options: ReplayOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let directory = try context.openLedger(invocation)
  let types = Set(options.types)
  let report = try LogSalvage(directory).run(progress: { _, _ in
    try context.interruption.check()
  }) { event in
    guard options.isWithinBounds(event) else { return }
    guard types.isEmpty || EventType(event.type).map(types.contains) ?? false else { return }
    try context.output.write(event.bytes)
    try context.output.writeLine()
  }
  try context.output.flush()
  for line in skippingNotes(report) { context.log("replay: \(line)") }
  return report.audit.isWhole ? .done : .corrupted
}

/// Findings and positions left out, a line each. They cover the whole log, whatever the filters.
private func skippingNotes(_ report: SalvageReport) -> [String] {
  var lines = report.audit.notes
  if report.audit.isWhole { return lines }
  for finding in report.audit.findings {
    let damage = finding.damage
    var place = damage.file
    if let block = damage.block { place += ", block \(block)" }
    let range = positions(finding)
    if !range.isEmpty { place += ", position \(range)" }
    lines.append("\(place): \(damage.verdict.rawValue): \(finding.cause)")
  }
  if report.audit.furtherFindingCount > 0 {
    lines.append("and \(counted(report.audit.furtherFindingCount, "further finding"))")
  }
  lines += report.leftOut.map { range in
    "left out \(range.count == 1 ? "position" : "positions") \(range.lowerBound)"
      + (range.count == 1 ? "" : "–\(range.upperBound - 1)")
  }
  lines.append(
    "\(counted(report.audit.size - report.leftOutCount, "event")) intact, "
      + "\(report.leftOutCount) left out of \(report.audit.size)")
  return lines
}

extension ReplayOptions {
  /// Whether an event is within the bounds.
  fileprivate func isWithinBounds(_ event: EventLine) -> Bool {
    switch from {
    case nil: break
    case .position(let position): if event.position < position { return false }
    case .recordedAtMs(let timeMs): if event.recordedAtMs < timeMs { return false }
    }
    switch until {
    case nil: return true
    case .position(let position): return event.position <= position
    case .recordedAtMs(let timeMs): return event.recordedAtMs <= timeMs
    }
  }
}

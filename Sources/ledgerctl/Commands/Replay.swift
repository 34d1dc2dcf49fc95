// `replay`: the events themselves.
import Ledger
import Projections
import Time

let replayCommand = Command(
  "replay", summary: "Print events as JSON lines",
  details: [
    "Prints the events in order, each exactly as it stands in the log. Filters narrow down what is printed; an "
      + "event must pass all of them.",
    "`--from` and `--until` take a position, a day (UTC) or an RFC 3339 time, and include it. Times are those at "
      + "which events were recorded.",
    "In a damaged log it ends at the damage. With `--skip-corrupt` it prints every event that is whole, checks "
      + "each against its digest, and says on standard error which positions it left out and why; the exit "
      + "code is then 20, as wherever damage is found, and 0 where all is whole. A write that a crash cut "
      + "short at the log's very end is no damage. It does not go with `--receipt`, `--user` and `--app`, which need "
      + "projections of a whole log.",
  ],
  options: [
    Option("from", value: .init("PLACE"), help: "the first position, day or time"),
    Option("until", value: .init("PLACE"), help: "the last position, day or time"),
    Option(
      "type", value: .init("LIST", allowed: EventType.allCases.map(\.rawValue), isList: true),
      help: "types of events"),
    Option("receipt", value: .init("RECEIPT-ID"), help: "events of one receipt"),
    Option("user", value: .init("USER", isSecret: true), help: "events of one user"),
    Option("app", value: .init("ID"), help: "events of one app family, by its id"),
    Option("skip-corrupt", help: "go on past damage, and say what is left out"),
  ],
  examples: [
    Example(
      "ledgerctl replay --type receipt.verified --from 2026-03-01 | jq .data.status",
      "See what the App Store answered since the first of March")
  ]
) { invocation, context in
  try replay(ReplayOptions(invocation), invocation, context)
}

/// What `replay` was asked for.
struct ReplayOptions: Equatable, Sendable {
  /// A place in the ledger, itself included.
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
  /// Whether damage is passed over.
  let skipsCorrupt: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    let cause = "is no position, no day and no RFC 3339 time"
    from = try invocation.value("from", cause) { Self.bound($0, isUpper: false) }
    until = try invocation.value("until", cause) { Self.bound($0, isUpper: true) }
    if Self.isEmpty(from, until) {
      throw invocation.wrong("until", invocation.value("until") ?? "", "comes before --from")
    }
    types = invocation.list("type").compactMap { EventType(rawValue: $0) }
    receiptID = try invocation.value("receipt", "is no UUID", read: uuidText)
    user = invocation.value("user")
    appFamilyID = try invocation.value("app", "is no UUID", read: uuidText)
    skipsCorrupt = invocation.has("skip-corrupt")
    if skipsCorrupt, let name = ["receipt", "user", "app"].first(where: invocation.has) {
      throw UsageError(
        "--skip-corrupt", "does not go with --\(name)", command: invocation.command.name)
    }
  }

  private static func bound(_ text: String, isUpper: Bool) -> Bound? {
    if let position = positionValue(text) { return .position(position) }
    if let day = try? CivilDate(parsing: text) {
      let startMs = Int64(day.dayNumber) * Timestamp.dayMs
      return .recordedAtMs(isUpper ? startMs + Timestamp.dayMs - 1 : startMs)
    }
    return (try? Timestamp.parse(text)).map { .recordedAtMs($0) }
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
  let ledger = try OpenLedger(invocation, context)
  let replay = Replay(options, ledger, context)
  if options.appFamilyID != nil || options.receiptID != nil || options.user != nil {
    try replay.ofSubject()
  } else {
    try replay.all()
  }
  return .done
}

/// Prints the events that pass the filters.
private struct Replay {
  private let options: ReplayOptions
  private let ledger: OpenLedger
  private let context: Context
  private let types: Set<EventType>

  init(_ options: ReplayOptions, _ ledger: OpenLedger, _ context: Context) {
    self.options = options
    self.ledger = ledger
    self.context = context
    types = Set(options.types)
  }

  /// The positions between the bounds. Times never decrease, so that a bound is found by halving.
  private func range(in reader: LogReader) throws -> Range<Position> {
    let size = reader.head.size
    let first: Position =
      switch options.from {
      case nil: 0
      case .position(let position): min(position, size)
      case .recordedAtMs(let timeMs): try reader.firstPosition(recordedFromMs: timeMs)
      }
    let end: Position =
      switch options.until {
      case nil: size
      // Compared before anything is added: a position may be the greatest there is.
      case .position(let position): position < size ? position + 1 : size
      case .recordedAtMs(let timeMs): try reader.firstPosition(recordedFromMs: timeMs + 1)
      }
    return first..<max(first, end)
  }

  /// All events within the bounds, of the types asked for.
  func all() throws {
    let reader = ledger.reader
    let range = try range(in: reader)
    if !range.isEmpty {
      try reader.read(from: range.lowerBound, to: range.upperBound) { chunk in
        try context.interruption.check()
        guard !types.isEmpty else {
          try context.output.write(chunk.bytes)
          return true
        }
        try chunk.forEachEvent { event in
          if hasType(event) { try print(event) }
        }
        return true
      }
    }
    // Whoever reads to the end must hear that it is not the end.
    if let damage = reader.damage, range.upperBound == reader.head.size { throw damage }
  }

  /// The events of a receipt, a user or an app family: the projections know where they stand.
  func ofSubject() throws {
    let queries = try ledger.queries()
    let reader = ledger.reader
    let range = try range(in: reader)
    let positions = try queries.positions(
      receiptID: options.receiptID, userIdentifier: options.user,
      appFamilyID: options.appFamilyID
    ).filter(range.contains)
    // Registrations concern an app family, but neither a receipt nor a user.
    let seeksRegistrations =
      options.receiptID == nil && options.user == nil
      && (types.isEmpty || types.contains(.appRegistered))
    // An event by itself costs a block; where every eighth is wanted, reading all costs less.
    if seeksRegistrations || positions.count > range.count / 8 {
      try scan(range, positions, seeksRegistrations)
    } else {
      for position in positions {
        try context.interruption.check()
        try reader.event(at: position).withUnsafeBytes { line in
          if let event = EventLine(line), hasType(event) { try print(event) }
        }
      }
    }
  }

  private func scan(
    _ range: Range<Position>, _ positions: [Position], _ seeksRegistrations: Bool
  ) throws {
    guard !range.isEmpty else { return }
    var wanted = positions[...]
    try ledger.reader.read(from: range.lowerBound, to: range.upperBound) { chunk in
      try context.interruption.check()
      try chunk.forEachEvent { event in
        if wanted.first == event.position {
          wanted.removeFirst()
          if hasType(event) { try print(event) }
        } else if seeksRegistrations, EventType(event.type) == .appRegistered,
          try AppRegistered(data: event.data).appFamilyID == options.appFamilyID
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
    try context.output.write(event.bytes)
    try context.output.writeLine()
  }
}

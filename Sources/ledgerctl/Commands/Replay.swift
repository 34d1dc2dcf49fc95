// `replay`: the events themselves.
import Ledger
import Time

let replayCommand = Command(
  "replay", summary: "Print events as JSON lines",
  details: [
    "Prints the events in order, each exactly as it stands in the log. Filters narrow down what is printed; an "
      + "event must pass all of them.",
    "`--from` and `--until` take a position, a day (UTC) or an RFC 3339 time, and include it. Times are those at "
      + "which events were recorded.",
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
  throw Failure.notWired("replay")
}

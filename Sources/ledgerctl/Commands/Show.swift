// `show`: one event, or one receipt.

let showCommand = Command(
  "show", summary: "Show an event or a receipt",
  details: [
    "With a position, shows that event. With a receipt's id, shows the receipt, its purchases, and the positions "
      + "of the events that they come from."
  ],
  positionals: [
    Positional("POSITION|RECEIPT-ID", help: "an event's position, from 0, or a receipt's UUID")
  ],
  options: [.json],
  examples: [Example("ledgerctl show 12", "Show the event at position 12")]
) { invocation, context in
  try show(ShowOptions(invocation), invocation, context)
}

/// What `show` was asked for.
struct ShowOptions: Equatable, Sendable {
  enum Subject: Equatable, Sendable {
    case position(Int)
    /// A UUID in lower case.
    case receipt(String)
  }

  let subject: Subject
  let isJSON: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    let text = invocation.positionals[0]
    if let position = positionValue(text) {
      subject = .position(position)
    } else if let id = uuidText(text) {
      subject = .receipt(id)
    } else {
      // Not shown: whoever mistakes a receipt for its id would find it in a log.
      throw UsageError(
        "POSITION|RECEIPT-ID", "must be a number from 0, or a UUID", command: "show")
    }
    isJSON = invocation.has("json")
  }
}

private func show(
  _ options: ShowOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  throw Failure.notWired("show")
}

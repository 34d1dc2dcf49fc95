// `prices list`, `rates list`, and the commands that withdraw what is in these lists.
import Base
import Ledger
import Projections
import Revenue

let pricesListCommand = Command(
  "prices list", summary: "List the declared prices",
  details: [
    "One row for each event; a large file is several. `sales` counts those that take their price from it."
  ],
  options: [.json], isReadOnly: true
) { invocation, context in try list(.pricesDeclared, invocation, context) }

let ratesListCommand = Command(
  "rates list", summary: "List the declared exchange rates",
  details: ["One row for each event; a large file is several."],
  options: [.json], isReadOnly: true
) { invocation, context in try list(.ratesDeclared, invocation, context) }

private func list(
  _ type: EventType, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  let listings = try DeclarationQueries(try ledger.projections()).all(type)
  let noun = type == .pricesDeclared ? "prices" : "rates"
  try context.print(invocation, list: listings.map(\.record)) { sheet in
    if listings.isEmpty {
      return try sheet.line("No \(noun) are declared: 'ledgerctl \(noun) import' declares them")
    }
    let own: [TextTable.Column] =
      type == .pricesDeclared ? [.number("sales")] : ["first_day", "last_day"]
    try sheet.table(
      TextTable(
        [.number("position"), "declared_at", "source", .number("entries")] + own
          + [.number("withdrawn_by")], listings.map(\.record)))
  }
  return .done
}

extension DeclarationListing {
  fileprivate var record: Record {
    let record: Record = [
      "position": position, "declared_at": timeText(recordedAtMs), "source": source,
      "sha256": sha256Hex, "entries": entryCount,
    ]
    let own: Record =
      pricedSaleCount.map { ["sales": $0] }
      ?? [
        "first_day": days?.lowerBound.description, "last_day": days?.upperBound.description,
      ]
    return record + own + ["withdrawn_by": withdrawnBy]
  }
}

// MARK: - Withdrawals

let pricesWithdrawCommand = Command(
  "prices withdraw", summary: "Withdraw declared prices",
  details: [
    "From here on, the prices of these declarations count for no sale: other lists price it, or it is unpriced. "
      + "Reports as of an earlier position stay. The same file can then be declared again."
  ],
  positionals: [.declarations],
  options: Option.dryRun + [.json],
  examples: [
    Example(
      "ledgerctl prices withdraw 1204 --dry-run",
      "Show which sales and months would change without the list at position 1204")
  ]
) { invocation, context in try withdraw(.pricesDeclared, invocation, context) }

let ratesWithdrawCommand = Command(
  "rates withdraw", summary: "Withdraw declared exchange rates",
  details: [
    "From here on, the rates of these declarations convert no line: other rates do, or it keeps its currency. Reports "
      + "as of an earlier position stay. The same file can then be declared again."
  ],
  positionals: [.declarations],
  options: Option.dryRun + [.json],
  examples: [
    Example(
      "ledgerctl rates withdraw 310 --dry-run --in EUR",
      "Show which figures in euros would change without the rates at position 310")
  ]
) { invocation, context in try withdraw(.ratesDeclared, invocation, context) }

extension Positional {
  fileprivate static let declarations = Positional(
    "POSITION", arity: .oneOrMore, help: "the positions of the declarations, as in the list")
}

private func withdraw(
  _ type: EventType, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  var positions: [Position] = []
  for text in invocation.positionals {
    guard let position = positionValue(text) else {
      throw UsageError("POSITION", "must be a number from 0, as in '\(type.listCommand)'")
    }
    if !positions.contains(position) { positions.append(position) }
  }
  let plan = try invocation.dryRun(type)
  let ledger = try OpenLedger(invocation, context)
  if let plan {
    let open = try known(positions, type, ledger, invocation).filter { $0.withdrawnBy == nil }
    try showPlan(of: open.compactMap { type.withdrawal(of: $0) }, plan, ledger, invocation, context)
    return .done
  }
  var results: [(listing: DeclarationListing, by: Position, isKnown: Bool)] = []
  try ledger.withWriter { writer in
    let listings = try known(positions, type, ledger, invocation)
    let drafts = listings.filter { $0.withdrawnBy == nil }.compactMap { type.withdrawal(of: $0) }
    var next = drafts.isEmpty ? 0 : try writer.append(drafts).lowerBound
    for listing in listings {
      results.append((listing, listing.withdrawnBy ?? next, listing.withdrawnBy != nil))
      if listing.withdrawnBy == nil { next += 1 }
    }
  }
  let records = results.map { result in
    [
      "position": result.listing.position, "withdrawn_by": result.by, "is_known": result.isKnown,
    ] as Record
  }
  try context.print(invocation, list: records) { sheet in
    for result in results {
      let what =
        "\(counted(result.listing.entryCount, type == .pricesDeclared ? "price" : "rate")) of "
        + "\(result.listing.source), declared at position \(result.listing.position)"
      try sheet.line(
        visible(
          result.isKnown
            ? "Withdrawn already, at position \(result.by): \(what)"
            : "Withdrew \(what), at position \(result.by)"))
    }
  }
  // Report the append before anything can fail in the projections.
  try context.output.flush()
  if results.contains(where: { !$0.isKnown }) { _ = try ledger.projections() }
  return .done
}

/// The declarations at these positions. Throws if one of them is none of the type.
private func known(
  _ positions: [Position], _ type: EventType, _ ledger: OpenLedger, _ invocation: Invocation
) throws -> [DeclarationListing] {
  let listings = try DeclarationQueries(try ledger.projections()).all(type)
  return try positions.map { position in
    guard let listing = listings.first(where: { $0.position == position }) else {
      throw Failure(
        operation: invocation.command.name, object: "position \(position)",
        cause: "it declares no \(type == .pricesDeclared ? "prices" : "rates"); "
          + "'\(type.listCommand)' lists what can be withdrawn")
    }
    return listing
  }
}

extension EventType {
  fileprivate var listCommand: String {
    "ledgerctl \(self == .pricesDeclared ? "prices" : "rates") list"
  }

  fileprivate func withdrawal(of listing: DeclarationListing) -> EventDraft? {
    DeclarationWithdrawn.type(ofDeclared: self).map {
      EventDraft($0, DeclarationWithdrawn.data(position: listing.position))
    }
  }
}

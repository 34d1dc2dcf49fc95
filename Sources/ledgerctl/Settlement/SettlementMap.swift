// `settlement map`: says which product a vendor identifier of Apple's reports is.
import Base
import Ledger
import Projections

let settlementMapCommand = Command(
  "settlement map", summary: "Map vendor identifiers of Apple's reports to products",
  details: [
    "Rows of Apple's reports have a vendor identifier, or SKU. Where it is not the id of the product in receipts, as "
      + "with Advanced Commerce, `SKU=PRODUCT` maps it, from now on and in all months; `SKU=` takes that back. The "
      + "latest mapping of a SKU counts. `--list` shows all."
  ],
  positionals: [
    Positional("SKU=PRODUCT", arity: .any, help: "a vendor identifier, and the id of its product")
  ],
  options: [Option("list", help: "show the mappings that count"), .json],
  examples: [
    Example("ledgerctl settlement map ac.gold.2026=pro.month", "Count rows of a SKU as a product")
  ]
) { invocation, context in
  if invocation.has("list") != invocation.positionals.isEmpty {
    throw UsageError("SKU=PRODUCT", "or --list is required, not both")
  }
  let mappings = try invocation.positionals.map(SettlementMapped.init(argument:))
  let ledger = try OpenLedger(invocation, context)
  if invocation.has("list") { return try list(ledger, invocation, context) }
  var results: [(mapping: SettlementMapped, position: Position, isKnown: Bool)] = []
  try ledger.withWriter { writer in
    var known: [String: (productID: String?, position: Position)] = [:]
    for mapping in try SettlementBooks.mappings(try ledger.projections()) {
      known[mapping.sku] = (mapping.productID, mapping.position)
    }
    for mapping in mappings {
      if let earlier = known[mapping.sku], earlier.productID == mapping.productID {
        results.append((mapping, earlier.position, true))
        continue
      }
      let position = try writer.append([mapping.draft]).lowerBound
      known[mapping.sku] = (mapping.productID, position)
      results.append((mapping, position, false))
    }
  }
  let records = results.map {
    $0.mapping.record + ["position": $0.position, "is_known": $0.isKnown]
  }
  try context.print(invocation, list: records) { sheet in
    for result in results {
      let place =
        result.isKnown
        ? "is so already, since position \(result.position)" : "at position \(result.position)"
      try sheet.line(visible("\(result.mapping.sentence), \(place)"))
    }
  }
  // Report the append before anything can fail in the projections.
  try context.output.flush()
  if results.contains(where: { !$0.isKnown }) { _ = try ledger.projections() }
  return .done
}

private func list(
  _ ledger: OpenLedger, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let records = try SettlementBooks.mappings(try ledger.projections())
    .filter { $0.productID != nil }
    .map { ["sku": $0.sku, "product_id": $0.productID, "position": $0.position] as Record }
  try context.print(invocation, list: records) { sheet in
    if records.isEmpty { return try sheet.line("No vendor identifier is mapped") }
    try sheet.table(TextTable(["sku", "product_id", .number("position")], records))
  }
  return .done
}

extension SettlementMapped {
  /// `SKU=PRODUCT`, or `SKU=`, which takes a mapping back.
  fileprivate init(argument: String) throws(UsageError) {
    let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, visible(argument) == argument,
      !SecretText.isLikely(argument)
    else {
      throw UsageError(
        "SKU=PRODUCT \(ShownArgument.text(argument))", "is not of the form SKU=PRODUCT")
    }
    self.init(sku: String(parts[0]), productID: parts[1].isEmpty ? nil : String(parts[1]))
  }

  fileprivate var record: Record { ["sku": sku, "product_id": productID] }

  fileprivate var sentence: String {
    productID.map { "\(sku) is \($0)" } ?? "\(sku) is mapped to nothing"
  }
}

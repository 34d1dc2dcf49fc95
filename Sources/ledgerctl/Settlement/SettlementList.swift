// `settlement list`: the reports of Apple's that are declared, and which months they complete.
import Base
import Ledger
import Projections
import Revenue

let settlementListCommand = Command(
  "settlement list", summary: "List Apple's reports, and which months are complete",
  details: [
    "A report `counts`; is only `compared` with one of the same month that holds all regions; is `superseded`; or is "
      + "`unfinished` after an interrupted import. A month is tied if its payment overview agrees with the reports "
      + "that count, and complete if it is tied or has a report of all regions."
  ],
  options: [.json],
  isReadOnly: true
) { invocation, context in
  let ledger = try OpenLedger(invocation, context)
  let symbols = StringInterner(TextArena())
  let listings = try SettlementBooks(try ledger.projections(), symbols).listings
  try context.print(invocation, list: listings.map(\.record)) { sheet in
    if listings.isEmpty {
      return try sheet.line(
        "No reports of Apple's are declared: 'ledgerctl settlement import' declares them")
    }
    let columns: [TextTable.Column] = [
      "fiscal_month", "region", "kind", "source", .number("rows"), .number("position"), "state",
      "tied", "complete",
    ]
    try sheet.table(TextTable(columns, listings.map(\.record)))
  }
  return .done
}

extension SettlementBooks.Listing {
  fileprivate var record: Record {
    [
      "fiscal_month": file.identity.month, "region": file.identity.region,
      "kind": file.kind.rawValue, "source": file.source, "sha256": file.sha256Hex,
      "rows": rowCount, "position": file.lastPosition, "state": state.rawValue,
      "tied": isTied, "complete": isComplete,
    ]
  }
}

// The effects of an event, as the projections know them.
import Ledger
import Projections
import Revenue

/// All effects of one event.
enum EventEffects {
  /// An upload: its receipt, its verifications, and the sales that it created or changed.
  case upload(ReceiptDetail?, [VerificationDetail], [SaleDetail])
  /// An event that shows sales: a verification, an upload of signed transactions, a notification, a fetched page, or
  /// one from which on objects of an earlier page count.
  case showing(ShownEvent, [SaleDetail], [ExceptionDetail])
  /// A verification that no receipt knows.
  case unknownVerification([ExceptionDetail])
  case declaration(DeclarationDetail)
  /// A malformed event, which was skipped.
  case malformed([ExceptionDetail])
  /// An event that changes no table.
  case nothing
  /// An event of a newer version of the program.
  case none

  /// An event that shows sales, as text and as JSON.
  struct ShownEvent {
    let position: Position
    let heading: String
    let fields: Fields
    /// One member, which is the event; or none.
    let record: Record
  }

  init(of line: [UInt8], _ queries: LedgerQueries) throws {
    let event = line.withUnsafeBytes { bytes in
      EventLine(bytes).map { (position: $0.position, type: EventType($0.type)) }
    }
    guard let event, let type = event.type else {
      self = .none
      return
    }
    let malformed = try queries.exceptions(at: event.position).filter(\.isOfMalformedEvent)
    guard malformed.isEmpty else {
      self = .malformed(malformed)
      return
    }
    switch type {
    case .receiptUploaded:
      let id = try queries.receiptID(ofUpload: event.position)
      self = .upload(
        try id.flatMap { try queries.receipt(id: $0) },
        try queries.verifications(ofUpload: event.position),
        try queries.sales(changedByUpload: event.position))
    case .receiptVerified, .transactionsReceived, .notificationReceived, .transactionsFetched,
      .signaturesAccepted:
      self = try Self.shown(type, event.position, line, queries)
    case .snapshotCreated, .historyAccepted, .trustDeclared, .dataRedacted, .mergedFrom:
      self = .nothing
    case .appRegistered, .pricesDeclared, .ratesDeclared, .pricesWithdrawn, .ratesWithdrawn,
      .settlementDeclared, .settlementMapped:
      self = try queries.declaration(type, at: event.position).map { .declaration($0) } ?? .none
    }
  }

  private static func shown(
    _ type: EventType, _ position: Position, _ line: [UInt8], _ queries: LedgerQueries
  ) throws -> EventEffects {
    let exceptions = try queries.exceptions(at: position)
    func showing(
      _ heading: String, _ fields: Fields = [], _ record: Record = [:], _ sales: [SaleDetail]? = nil
    ) throws -> EventEffects {
      .showing(
        ShownEvent(position: position, heading: heading, fields: fields, record: record),
        try sales ?? queries.sales(shownBySignedEvent: line), exceptions)
    }
    switch type {
    case .receiptVerified:
      guard let found = try queries.verification(at: position) else {
        return .unknownVerification(exceptions)
      }
      return try showing(
        "Verification", found.fields, ["verification": found.record],
        queries.sales(shownBy: found))
    case .transactionsReceived:
      guard let found = try queries.upload(at: position) else { return .none }
      return try showing("Upload of signed transactions", found.fields, ["upload": found.record])
    case .notificationReceived:
      guard let found = try queries.notification(at: position) else { return .none }
      return try showing("Notification", found.fields, ["notification": found.record])
    case .transactionsFetched:
      guard let found = try queries.fetchedPage(at: position) else { return .none }
      return try showing(
        "Reply of the App Store Server API", found.fields, ["fetch": found.record])
    default: return try showing("Objects of an earlier reply that count from here on")
    }
  }

  // MARK: Text

  func write(to sheet: inout TextSections) throws {
    switch self {
    case .none: try sheet.heading("This program does not know this type of event.")
    case .nothing: try sheet.heading("This event changes no figures.")
    case .upload(let receipt, let verifications, let sales):
      if let receipt {
        try sheet.heading("Receipt")
        try sheet.fields(receipt.fields)
      }
      try sheet.table("Verifications", VerificationDetail.table(verifications.map(\.record)))
      try sheet.table("Sales that it created or changed", SaleDetail.table(sales))
      if sales.isEmpty { try sheet.heading("Sales that it created or changed: none") }
    case .showing(let event, let sales, let exceptions):
      try sheet.heading(event.heading)
      if !event.fields.isEmpty { try sheet.fields(event.fields) }
      try Self.write(sales, exceptions, at: event.position, to: &sheet)
    case .unknownVerification: try sheet.heading("This event has no effect.")
    case .declaration(let detail): try sheet.heading(Self.text(detail))
    case .malformed(let exceptions):
      try sheet.heading("This event is malformed and was skipped.")
      try sheet.table("Exceptions", ExceptionDetail.table(exceptions.map(\.record)))
    }
  }

  /// Writes what an event changed of the sales that it shows.
  private static func write(
    _ sales: [SaleDetail], _ exceptions: [ExceptionDetail], at position: Position,
    to sheet: inout TextSections
  ) throws {
    let (new, known) = split(sales, at: position)
    try sheet.table("New sales", SaleDetail.table(new))
    try sheet.table("Known sales", SaleDetail.table(known))
    if sales.isEmpty { try sheet.heading("Sales: none") }
    let columns: [TextTable.Column] = [
      "line", "date", "sale_key", .number("quantity"), "currency", .number("amount"), "reason",
    ]
    try sheet.table("Returns and reversals", TextTable(columns, lines(sales, at: position)))
    try sheet.table("Exceptions", ExceptionDetail.table(exceptions.map(\.record)))
  }

  private static func split(
    _ sales: [SaleDetail], at position: Position
  ) -> (new: [SaleDetail], known: [SaleDetail]) {
    (sales.filter { $0.firstPosition == position }, sales.filter { $0.firstPosition != position })
  }

  /// The Returns and Reversals that an event created.
  private static func lines(_ sales: [SaleDetail], at position: Position) -> [Record] {
    sales.flatMap { sale in
      sale.lines.dropFirst().filter { $0.position == position }.map { line in
        [
          "line": line.line, "date": timeText(line.dateMs), "sale_key": sale.saleKey,
          "quantity": line.quantity, "currency": sale.currency?.description,
          "amount": line.amountText(sale.currency), "reason": line.reason,
        ]
      }
    }
  }

  private static func text(_ detail: DeclarationDetail) -> String {
    switch detail {
    case .app(let receipts): return "The app family has \(counted(receipts, "receipt"))."
    case .prices(let entries, _, let withdrawnBy?):
      return "The list has \(counted(entries, "price")); the event \(withdrawnBy) withdrew it."
    case .prices(let entries, let pricedSales, nil):
      return "The list has \(counted(entries, "price")); \(counted(pricedSales, "sale")) "
        + "\(pricedSales == 1 ? "takes its" : "take their") price from it."
    case .rates(let rates, _, _, _, let withdrawnBy?):
      return "The event declares \(counted(rates, "rate")); the event \(withdrawnBy) withdrew them."
    case .rates(let rates, let days, let firstDay, let lastDay, nil):
      let span = firstDay.flatMap { first in lastDay.map { ", \(first) to \($0)" } } ?? ""
      return "The event declares \(counted(rates, "rate")) for \(counted(days, "day"))\(span)."
    case .withdrawal(let position, let entries):
      return "The event withdraws the declaration at position \(position), with "
        + "\(counted(entries, "entry", "entries"))."
    case .mapping(let sku, let product):
      return product.map {
        "Rows of Apple's with the vendor identifier \(sku) are of the product \($0)."
      }
        ?? "Rows of Apple's with the vendor identifier \(sku) are mapped to no product any more."
    case .settlement(let kind, let identity, let part, let parts):
      return "The event declares part \(part) of \(parts) of Apple's report \(identity) (\(kind))."
    }
  }

  // MARK: JSON

  var record: Record {
    switch self {
    case .none, .nothing: return [:]
    case .upload(let receipt, let verifications, let sales):
      return [
        "receipt": receipt?.record, "verifications": verifications.map(\.record),
        "sales": sales.map(\.record),
      ]
    case .showing(let event, let sales, let exceptions):
      return event.record + Self.record(sales, exceptions, at: event.position)
    case .unknownVerification(let exceptions):
      return ["verification": Record?.none] + Self.record([], exceptions, at: -1)
    case .malformed(let exceptions): return ["exceptions": exceptions.map(\.record)]
    case .declaration(.app(let receipts)): return ["receipts": receipts]
    case .declaration(.prices(let entries, let pricedSales, let withdrawnBy)):
      return ["entries": entries, "priced_sales": pricedSales, "withdrawn_by": withdrawnBy]
    case .declaration(.rates(let rates, let days, let firstDay, let lastDay, let withdrawnBy)):
      return [
        "rates": rates, "days": days, "first_day": firstDay, "last_day": lastDay,
        "withdrawn_by": withdrawnBy,
      ]
    case .declaration(.withdrawal(let position, let entries)):
      return ["withdrawn_position": position, "entries": entries]
    case .declaration(.mapping(let sku, let product)): return ["sku": sku, "product_id": product]
    case .declaration(.settlement(let kind, let identity, let part, let parts)):
      return [
        "kind": kind, "fiscal_month": identity.month, "region": identity.region, "part": part,
        "parts": parts,
      ]
    }
  }
  private static func record(
    _ sales: [SaleDetail], _ exceptions: [ExceptionDetail], at position: Position
  ) -> Record {
    let (new, known) = split(sales, at: position)
    return [
      "new_sales": new.map(\.record), "known_sales": known.map(\.record),
      "lines": lines(sales, at: position), "exceptions": exceptions.map(\.record),
    ]
  }
}

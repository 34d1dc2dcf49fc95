// The effects of an event, as the projections know them.
import JSON
import Ledger
import Projections
import Revenue

/// All effects of one event.
enum EventEffects {
  /// An upload: its receipt, its verifications, and the sales that it created or changed.
  case upload(ReceiptDetail?, [VerificationDetail], [SaleDetail])
  /// A verification: itself, the sales that its reply shows, and its exceptions.
  case verification(VerificationDetail?, [SaleDetail], [ExceptionDetail])
  case declaration(DeclarationDetail)
  /// A malformed event, which was skipped.
  case malformed([ExceptionDetail])
  /// An event that changes no table.
  case nothing
  /// An event of a newer version of the program.
  case none

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
    case .receiptVerified:
      let verification = try queries.verification(at: event.position)
      self = .verification(
        verification, try verification.map { try queries.sales(shownBy: $0) } ?? [],
        try queries.exceptions(at: event.position))
    case .snapshotCreated, .historyAccepted, .trustDeclared: self = .nothing
    case .appRegistered, .pricesDeclared, .ratesDeclared:
      self = try queries.declaration(type, at: event.position).map { .declaration($0) } ?? .none
    }
  }

  // MARK: Text

  func write(_ context: Context) throws {
    var sheet = Sheet(context)
    try context.output.writeLine()
    switch self {
    case .none: try sheet.heading("This program does not know this type of event.")
    case .nothing: try sheet.heading("This event changes no figures.")
    case .upload(let receipt, let verifications, let sales):
      if let receipt {
        try sheet.heading("Receipt")
        try sheet.fields(receipt.fields)
      }
      try sheet.table("Verifications", VerificationDetail.table(verifications))
      try sheet.table("Sales that it created or changed", SaleDetail.table(sales))
      if sales.isEmpty {
        try sheet.heading("Sales that it created or changed: none")
      }
    case .verification(let verification, let sales, let exceptions):
      guard let verification else { return try sheet.heading("This event has no effect.") }
      try write(verification, sales, exceptions, &sheet)
    case .declaration(let detail): try sheet.heading(Self.text(detail))
    case .malformed(let exceptions):
      try sheet.heading("This event is malformed and was skipped.")
      try sheet.table("Exceptions", ExceptionDetail.table(exceptions))
    }
  }

  private func write(
    _ verification: VerificationDetail, _ sales: [SaleDetail], _ exceptions: [ExceptionDetail],
    _ sheet: inout Sheet
  ) throws {
    try sheet.heading("Verification")
    try sheet.fields([
      ("of upload", "\(verification.upload)"), ("receipt", verification.receiptID),
      ("environment", verification.environment),
      ("result", "\(verification.authority) \(verification.outcome)"),
    ])
    let (new, known) = Self.split(sales, at: verification.position)
    try sheet.table("New sales", SaleDetail.table(new))
    try sheet.table("Known sales", SaleDetail.table(known))
    if sales.isEmpty { try sheet.heading("Sales: none") }
    var table = TextTable([
      .init("line"), .init("date"), .init("sale_key"), .init("quantity", isNumber: true),
      .init("currency"), .init("amount", isNumber: true), .init("reason"),
    ])
    for (sale, line) in Self.lines(sales, at: verification.position) {
      table.append([
        line.line, timeText(line.dateMs), sale.saleKey, "\(line.quantity)",
        sale.currency?.description ?? "", line.amountText(sale.currency) ?? "", line.reason ?? "",
      ])
    }
    try sheet.table("Returns and reversals", table)
    try sheet.table("Exceptions", ExceptionDetail.table(exceptions))
  }

  private static func split(
    _ sales: [SaleDetail], at position: Position
  ) -> (new: [SaleDetail], known: [SaleDetail]) {
    (
      sales.filter { $0.firstPosition == position }, sales.filter { $0.firstPosition != position }
    )
  }

  /// The Returns and Reversals that a verification created.
  private static func lines(
    _ sales: [SaleDetail], at position: Position
  ) -> [(sale: SaleDetail, line: LineDetail)] {
    sales.flatMap { sale in
      sale.lines.dropFirst().filter { $0.position == position }.map { (sale, $0) }
    }
  }

  private static func text(_ detail: DeclarationDetail) -> String {
    switch detail {
    case .app(let receipts): return "The app family has \(counted(receipts, "receipt"))."
    case .prices(let entries, let pricedSales):
      return "The list has \(counted(entries, "price")); \(counted(pricedSales, "sale")) "
        + "\(pricedSales == 1 ? "takes its" : "take their") price from it."
    case .rates(let rates, let days, let firstDay, let lastDay):
      let span = firstDay.flatMap { first in lastDay.map { ", \(first) to \($0)" } } ?? ""
      return "The event declares \(counted(rates, "rate")) for \(counted(days, "day"))\(span)."
    }
  }

  // MARK: JSON

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      switch self {
      case .none, .nothing: break
      case .upload(let receipt, let verifications, let sales):
        writer.key("receipt")
        if let receipt { receipt.write(to: &writer) } else { writer.null() }
        writer.array("verifications", verifications) { $0.write(to: &$1) }
        writer.array("sales", sales) { $0.write(to: &$1) }
      case .verification(let verification, let sales, let exceptions):
        writer.key("verification")
        if let verification { verification.write(to: &writer) } else { writer.null() }
        let (new, known) = Self.split(sales, at: verification?.position ?? -1)
        writer.array("new_sales", new) { $0.write(to: &$1) }
        writer.array("known_sales", known) { $0.write(to: &$1) }
        writer.array("lines", Self.lines(sales, at: verification?.position ?? -1)) {
          entry, writer in
          writer.object { writer in
            writer.member("line", entry.line.line)
            writer.member("date", atMs: entry.line.dateMs)
            writer.member("sale_key", entry.sale.saleKey)
            writer.member("quantity", Int(entry.line.quantity))
            writer.member("currency", entry.sale.currency?.description)
            writer.member("amount", entry.line.amountText(entry.sale.currency))
            writer.member("reason", entry.line.reason)
          }
        }
        writer.array("exceptions", exceptions) { $0.write(to: &$1) }
      case .malformed(let exceptions):
        writer.array("exceptions", exceptions) { $0.write(to: &$1) }
      case .declaration(.app(let receipts)): writer.member("receipts", receipts)
      case .declaration(.prices(let entries, let pricedSales)):
        writer.member("entries", entries)
        writer.member("priced_sales", pricedSales)
      case .declaration(.rates(let rates, let days, let firstDay, let lastDay)):
        writer.member("rates", rates)
        writer.member("days", days)
        writer.member("first_day", firstDay)
        writer.member("last_day", lastDay)
      }
    }
  }
}

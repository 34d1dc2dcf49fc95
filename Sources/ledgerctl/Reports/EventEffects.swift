// The effects of an event, as the projections know them.
import Ledger
import Projections
import Revenue

/// All effects of one event.
enum EventEffects {
  /// An upload: its receipt, its verifications, and the sales that it created or changed.
  case upload(ReceiptDetail?, [VerificationDetail], [SaleDetail])
  /// A verification: itself, the sales that its reply shows, and its exceptions.
  case verification(VerificationDetail?, [SaleDetail], [ExceptionDetail])
  /// An upload of signed transactions: itself, the sales that it shows, and its exceptions.
  case signedUpload(UploadDetail, [SaleDetail], [ExceptionDetail])
  /// A notification: itself, the sale that it shows, and its exceptions.
  case notification(NotificationDetail, [SaleDetail], [ExceptionDetail])
  /// A fetched page: itself, the sales that it shows, and its exceptions.
  case fetch(FetchDetail, [SaleDetail], [ExceptionDetail])
  /// Objects of an earlier page that count now: its position, the sales that they show, and its exceptions.
  case acceptance(Position, [SaleDetail], [ExceptionDetail])
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
    case .transactionsReceived:
      let sales = try queries.sales(shownBySignedEvent: line)
      let exceptions = try queries.exceptions(at: event.position)
      self =
        try queries.upload(at: event.position).map { .signedUpload($0, sales, exceptions) } ?? .none
    case .notificationReceived:
      let sales = try queries.sales(shownBySignedEvent: line)
      let exceptions = try queries.exceptions(at: event.position)
      self =
        try queries.notification(at: event.position).map { .notification($0, sales, exceptions) }
        ?? .none
    case .transactionsFetched:
      let sales = try queries.sales(shownBySignedEvent: line)
      let exceptions = try queries.exceptions(at: event.position)
      self =
        try queries.fetchedPage(at: event.position).map { .fetch($0, sales, exceptions) } ?? .none
    case .signaturesAccepted:
      self = .acceptance(
        event.position, try queries.sales(shownBySignedEvent: line),
        try queries.exceptions(at: event.position))
    default:
      self =
        type.role == .record
        ? .nothing
        : try queries.declaration(type, at: event.position).map { .declaration($0) } ?? .none
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
    case .verification(let verification, let sales, let exceptions):
      guard let verification else { return try sheet.heading("This event has no effect.") }
      try sheet.heading("Verification")
      try sheet.fields([
        ("of upload", "\(verification.upload)"), ("receipt", verification.receiptID),
        ("environment", verification.environment),
        ("result", "\(verification.authority) \(verification.outcome)"),
      ])
      try Self.write(sales, exceptions, at: verification.position, to: &sheet)
    case .signedUpload(let upload, let sales, let exceptions):
      try sheet.heading("Upload of signed transactions")
      try sheet.fields(upload.fields)
      try Self.write(sales, exceptions, at: upload.position, to: &sheet)
    case .notification(let notification, let sales, let exceptions):
      try sheet.heading("Notification")
      try sheet.fields(notification.fields)
      try Self.write(sales, exceptions, at: notification.position, to: &sheet)
    case .fetch(let page, let sales, let exceptions):
      try sheet.heading("Answer of the App Store Server API")
      try sheet.fields(page.fields)
      try Self.write(sales, exceptions, at: page.position, to: &sheet)
    case .acceptance(let position, let sales, let exceptions):
      try sheet.heading("Objects of an earlier answer that count from here on")
      try Self.write(sales, exceptions, at: position, to: &sheet)
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
    case .prices(let entries, let pricedSales):
      return "The list has \(counted(entries, "price")); \(counted(pricedSales, "sale")) "
        + "\(pricedSales == 1 ? "takes its" : "take their") price from it."
    case .rates(let rates, let days, let firstDay, let lastDay):
      let span = firstDay.flatMap { first in lastDay.map { ", \(first) to \($0)" } } ?? ""
      return "The event declares \(counted(rates, "rate")) for \(counted(days, "day"))\(span)."
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
    case .verification(let verification, let sales, let exceptions):
      return ["verification": verification?.record]
        + Self.record(sales, exceptions, at: verification?.position ?? -1)
    case .signedUpload(let upload, let sales, let exceptions):
      return ["upload": upload.record] + Self.record(sales, exceptions, at: upload.position)
    case .notification(let notification, let sales, let exceptions):
      return ["notification": notification.record]
        + Self.record(sales, exceptions, at: notification.position)
    case .fetch(let page, let sales, let exceptions):
      return ["fetch": page.record] + Self.record(sales, exceptions, at: page.position)
    case .acceptance(let position, let sales, let exceptions):
      return Self.record(sales, exceptions, at: position)
    case .malformed(let exceptions): return ["exceptions": exceptions.map(\.record)]
    case .declaration(.app(let receipts)): return ["receipts": receipts]
    case .declaration(.prices(let entries, let pricedSales)):
      return ["entries": entries, "priced_sales": pricedSales]
    case .declaration(.rates(let rates, let days, let firstDay, let lastDay)):
      return ["rates": rates, "days": days, "first_day": firstDay, "last_day": lastDay]
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

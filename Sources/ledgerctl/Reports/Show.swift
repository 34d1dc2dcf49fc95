// `show`: one event, one receipt or one sale, with the positions of related events.
package import Base
import Ledger
import Projections

let showCommand = Command(
  "show", summary: "Show an event, a receipt or a sale",
  details: [
    "A position shows the event and its effects: receipts, sales, journal lines, exceptions. A receipt's id "
      + "shows its uploads, verifications and purchases; the id of an upload of signed transactions, or a "
      + "`notificationUUID`, shows those events. `--sale` shows the sale, its journal lines and subscription, "
      + "which events gave it its existence, country, user, price and cancellation, and what each event and "
      + "notification stated about it and its refunds.",
    "Long strings are cut. `--json` prints the event's exact line and, as a second line, its effects.",
  ],
  positionals: [
    Positional(
      "POSITION|RECEIPT-ID", arity: .optional,
      help: "an event's position, from 0, or the UUID of a receipt, an upload or a notification")
  ],
  options: [
    Option("sale", value: .init("KEY"), help: "a sale's key, or the id of one of its transactions"),
    Option(
      "in", value: .init("CURRENCY"),
      help: "with `--sale`: also show how each line is converted to this currency"),
    .ratesMaxAge, .asOf, .json, .noPager,
  ],
  examples: [
    Example("ledgerctl show 12", "Show the event at position 12 and its effects"),
    Example("ledgerctl show --sale 350000000000001", "Trace a sale to its events"),
    Example(
      "ledgerctl show --sale 350000000000001 --in EUR",
      "Also show with which rates it is converted"),
  ],
  isReadOnly: true
) { invocation, context in
  let subject = try ShowSubject(invocation)
  let asOf = try invocation.asOf()
  let conversion = try invocation.reportingCurrency().map { target throws(UsageError) in
    SaleConversion(target: target, ratesAgeMaxDays: try invocation.ratesAgeMaxDays())
  }
  if conversion != nil, !invocation.has("sale") {
    throw UsageError("--in", "requires --sale", command: "show")
  }
  let ledger = try OpenLedger(invocation, context)
  switch subject {
  case .position(let position): try showEvent(position, ledger, asOf, invocation, context)
  case .receipt(let id):
    let queries = try ledger.queries(asOf: asOf)
    if let position = try signedEvent(id, queries) {
      try showEvent(position, ledger, asOf, invocation, context)
    } else {
      try showReceipt(id, queries, invocation, context)
    }
  case .sale(let key):
    try showSale(key, try ledger.queries(asOf: asOf), conversion, invocation, context)
  }
  return .done
}

/// What `show` shows.
private enum ShowSubject {
  case position(Int)
  /// A UUID in lower case.
  case receipt(String)
  /// A sale's key or a transaction id.
  case sale(String)

  init(_ invocation: Invocation) throws(UsageError) {
    let text = invocation.positionals.first
    if let key = invocation.value("sale") {
      guard text == nil else {
        throw UsageError("--sale", "cannot be used with a position or an id")
      }
      self = .sale(key)
      return
    }
    guard let text else {
      throw UsageError("POSITION|RECEIPT-ID", "is missing; give it or --sale")
    }
    if let position = positionValue(text) {
      self = .position(position)
    } else if let id = uuidText(text) {
      self = .receipt(id)
    } else {
      // Not shown: a user may give the receipt itself instead of its id.
      throw UsageError("POSITION|RECEIPT-ID", "must be a number from 0 or a UUID")
    }
  }
}

// MARK: An event

private func showEvent(
  _ position: Position, _ ledger: OpenLedger, _ asOf: PointInTime?, _ invocation: Invocation,
  _ context: Context
) throws {
  let line: [UInt8]
  do throws(LedgerError) { line = try ledger.reader.event(at: position) } catch {
    guard error.kind == .invalidInput else { throw error }
    // Sale keys and transaction ids are numbers too.
    throw Failure(
      operation: "show", object: "position \(position)",
      cause: error.cause + "; for a sale's key, use --sale")
  }
  if let asOf, try ledger.size(at: asOf, "as-of") <= position {
    throw Failure(
      operation: "show", object: "position \(position)", cause: "it was recorded after --as-of")
  }
  // The event is printed first, since it does not depend on the projections.
  var sheet = TextSections(context)
  if invocation.isJSON {
    try context.output.writeJSON(RawJSON(bytes: line))
  } else {
    try writeEvent(line, to: &sheet)
  }
  let effects = try EventEffects(of: line, try ledger.queries(asOf: asOf))
  if invocation.isJSON {
    try context.output.writeJSON(["led_to": effects.record] as Record)
  } else {
    try effects.write(to: &sheet)
  }
}

private func writeEvent(_ line: [UInt8], to sheet: inout TextSections) throws {
  let heading = line.withUnsafeBytes { bytes -> String? in
    EventLine(bytes).map { event in
      let type = String(decoding: event.type, as: UTF8.self)
      let redaction = event.redactedBy.map { ", redacted by the erasure at \($0)" } ?? ""
      return "Event \(event.position): \(type), recorded at \(timeText(event.recordedAtMs))"
        + redaction
    }
  }
  try sheet.heading(heading ?? "Event")
  for text in ReadableEvent.lines(of: line) { try sheet.line(visible(text)) }
}

/// The newest event of signed objects with an id.
private func signedEvent(_ id: String, _ queries: LedgerQueries) throws -> Position? {
  try queries.uploads(ofID: id).last?.position ?? queries.notifications(uuid: id).last?.position
}

// MARK: A receipt

private func showReceipt(
  _ id: String, _ queries: LedgerQueries, _ invocation: Invocation, _ context: Context
) throws {
  guard let receipt = try queries.receipt(id: id) else {
    throw Failure(operation: "show", object: id, cause: "there is no receipt with this id")
  }
  let uploads = try queries.uploads(ofReceipt: id).map(\.record)
  let verifications = try queries.verifications(ofReceipt: id).map(\.record)
  let purchases = try queries.purchases(of: receipt)
  let subscriptions = try queries.subscriptionsAtLastEvent(of: purchases)
  let record: Record = [
    "receipt": receipt.record, "uploads": uploads, "verifications": verifications,
    "purchases": purchases.map(\.record), "subscriptions": subscriptions.map(\.record),
  ]
  try context.print(invocation, record) { sheet in
    try sheet.fields(receipt.fields)
    try sheet.table("Uploads", UploadDetail.table(uploads))
    try sheet.table("Verifications", VerificationDetail.table(verifications))
    if purchases.isEmpty { return try sheet.heading("Purchases: none") }
    let source =
      receipt.replyPosition.map { "from the reply at position \($0)" }
      ?? "from the receipt; not confirmed by the App Store yet"
    try sheet.table("Purchases, \(source)", SaleDetail.table(purchases))
    if let momentMs = subscriptions.first?.momentMs {
      try sheet.table(
        "Subscriptions, as they stood at \(timeText(momentMs))",
        SubscriptionAtMoment.table(subscriptions))
    }
  }
}

// MARK: A sale

private func showSale(
  _ key: String, _ queries: LedgerQueries, _ conversion: SaleConversion?,
  _ invocation: Invocation, _ context: Context
) throws {
  let sales = try queries.sales(key: key)
  guard !sales.isEmpty else {
    throw Failure(
      operation: "show", object: "--sale \(ShownArgument.text(key))",
      cause: "no sale has this key or a transaction with this id")
  }
  let found = try sales.map {
    (
      sale: $0, exceptions: try queries.exceptions(of: $0).map(\.record),
      told: try queries.statements(about: $0), notified: try queries.notifications(about: $0),
      subscription: try queries.subscriptionsAtLastEvent(of: [$0]).first,
      converted: try conversion?.lines(of: $0, queries)
    )
  }
  let records = found.map {
    [
      "sale": $0.sale.record, "exceptions": $0.exceptions,
      "statements": $0.told.statements.map(\.record),
      "notifications": $0.notified.notifications.map(\.record),
      "subscription": $0.subscription?.record,
    ] + ($0.converted.map { ["converted": $0.map(\.record)] } ?? [:])
  }
  try context.print(invocation, ["sales": records]) { sheet in
    for (index, entry) in found.enumerated() {
      // The same key may exist in several environments or apps.
      if index > 0 { try sheet.gap() }
      try sheet.fields(entry.sale.fields)
      if let subscription = entry.subscription {
        try sheet.heading("Subscription")
        try sheet.fields(subscription.fields)
      }
      try sheet.table("Journal", entry.sale.lineTable)
      if let conversion, let lines = entry.converted {
        try sheet.heading("In \(conversion.target)")
        for line in lines { try sheet.line(visible(line.text(conversion))) }
      }
      let heading = entry.told.isCut ? "The newest statements" : "Statements"
      try sheet.table(
        "\(heading), by their times", StatementDetail.table(entry.told.statements))
      try sheet.table(
        entry.notified.isCut ? "The newest notifications" : "Notifications",
        SaleNotification.table(entry.notified.notifications))
      try sheet.table("Exceptions", ExceptionDetail.table(entry.exceptions))
    }
  }
}

// MARK: - An event's line as indented JSON with long strings cut

/// Indents one JSON text that this program wrote. Numbers and escapes stay as written.
package struct ReadableEvent {
  /// Strings up to this length are shown in full: ids, digests and dates are shorter.
  private static let stringLimitBytes = 128
  private static let shownByteCount = 32
  package private(set) var lines: [String] = []
  private var line = ""

  /// An event's line, indented; unchanged if it is not JSON.
  static func lines(of line: [UInt8]) -> [String] {
    (try? ReadableEvent(line).lines) ?? [String(decoding: line, as: UTF8.self)]
  }

  package init(_ bytes: [UInt8]) throws(JSONError) {
    let result: Result<Void, JSONError> = bytes.withUnsafeBytes { raw in
      var cursor = JSONCursor(raw)
      do throws(JSONError) { return .success(try value(&cursor, depth: 0)) } catch {
        return .failure(error)
      }
    }
    try result.get()
    lines.append(line)
  }

  private mutating func value(_ cursor: inout JSONCursor, depth: Int) throws(JSONError) {
    switch try cursor.kind() {
    case .object:
      try cursor.beginObject()
      var isEmpty = true
      line += "{"
      while let key = try cursor.nextKey() {
        breakLine(depth + 1, isFirst: isEmpty)
        isEmpty = false
        line += "\"\(String(decoding: key.raw, as: UTF8.self))\": "
        try value(&cursor, depth: depth + 1)
      }
      if !isEmpty { breakLine(depth) }
      line += "}"
    case .array:
      try cursor.beginArray()
      var isEmpty = true
      line += "["
      while try cursor.nextElement() {
        breakLine(depth + 1, isFirst: isEmpty)
        isEmpty = false
        try value(&cursor, depth: depth + 1)
      }
      if !isEmpty { breakLine(depth) }
      line += "]"
    case .string: line += Self.shown(try cursor.readString().raw)
    default: line += String(decoding: try cursor.readRaw(), as: UTF8.self)
    }
  }

  private mutating func breakLine(_ depth: Int, isFirst: Bool = true) {
    if !isFirst { line += "," }
    lines.append(line)
    line = String(repeating: "  ", count: depth)
  }

  private static func shown(_ raw: JSONBytes) -> String {
    guard raw.count > stringLimitBytes else {
      return "\"\(String(decoding: raw, as: UTF8.self))\""
    }
    // Do not cut inside a character or an escape. Base64, as nearly all long strings are, has neither.
    var end = shownByteCount
    while end > 0, raw[end] & 0xC0 == 0x80 { end -= 1 }
    let start = String(decoding: raw[..<end], as: UTF8.self)
    return "\"\(start)…\" (\(raw.count) bytes)"
  }
}

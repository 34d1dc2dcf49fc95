// `history`: the history of one user.
import JSON
import Ledger
import Projections
import Revenue

let historyCommand = Command(
  "history", summary: "Show a user's history",
  details: [
    "Lists uploads, verifications, sales, returns and reversals of a user in the order in which they "
      + "happened, each with the position of its event."
  ],
  positionals: [Positional("USER", help: "the user identifier that the client sent")],
  options: [.asOf, .json],
  examples: [Example("ledgerctl history 42", "Show the history of user 42")],
  isReadOnly: true
) { invocation, context in
  try showHistory(HistoryOptions(invocation), invocation, context)
}

/// The options of `history`.
struct HistoryOptions: Equatable, Sendable {
  /// Must not be shown in an error.
  let user: String
  let isJSON: Bool
  /// The point in time of `--as-of`; nil is now.
  let asOf: PointInTime?

  init(_ invocation: Invocation) throws(UsageError) {
    user = invocation.positionals[0]
    isJSON = invocation.has("json")
    asOf = try invocation.moment("as-of")
  }
}

private func showHistory(
  _ options: HistoryOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  guard let user = try ledger.queries(asOf: options.asOf).user(options.user) else {
    // The identifier is not shown: it could be personal data.
    throw Failure(
      operation: "history", object: "USER", cause: "no upload has this user identifier")
  }
  let entries = HistoryEntry.all(of: user)
  if options.isJSON {
    try context.output.writeObject { writer in
      writer.member("user_identifier", user.userIdentifier)
      writer.member("first_seen_at", atMs: user.firstSeenAtMs)
      writer.member("last_seen_at", atMs: user.lastSeenAtMs)
      writer.array("entries", entries) { $0.write(to: &$1) }
    }
    return .done
  }
  var sheet = Sheet(context)
  try sheet.fields([
    ("user", user.userIdentifier), ("first seen", timeText(user.firstSeenAtMs)),
    ("last seen", timeText(user.lastSeenAtMs)), ("uploads", "\(user.uploads.count)"),
    ("sales", "\(user.sales.count)"),
  ])
  var table = TextTable([
    .init("at"), .init("event"), .init("position", isNumber: true), .init("details"),
  ])
  for entry in entries {
    table.append([timeText(entry.atMs), entry.name, "\(entry.position)", entry.details])
  }
  try sheet.table("History", table)
  return .done
}

/// One entry of a user's history.
private struct HistoryEntry {
  enum Subject {
    case upload(UploadDetail)
    case verification(VerificationDetail)
    case line(LineDetail, SaleDetail)
  }

  let atMs: Int64
  let position: Position
  let subject: Subject

  /// In order of time, then of position.
  static func all(of user: UserDetail) -> [HistoryEntry] {
    var entries = user.uploads.map {
      HistoryEntry(atMs: $0.occurredAtMs, position: $0.position, subject: .upload($0))
    }
    entries += user.verifications.map {
      HistoryEntry(atMs: $0.occurredAtMs, position: $0.position, subject: .verification($0))
    }
    for sale in user.sales {
      entries += sale.lines.map {
        HistoryEntry(atMs: $0.dateMs, position: $0.position, subject: .line($0, sale))
      }
    }
    // Stable, so that lines with the same time keep the order of their sale.
    return entries.enumerated().sorted {
      ($0.element.atMs, $0.element.position, $0.offset)
        < ($1.element.atMs, $1.element.position, $1.offset)
    }.map(\.element)
  }

  var name: String {
    switch subject {
    case .upload: "upload"
    case .verification: "verification"
    case .line(let line, let sale):
      sale.isPending ? "pending \(line.line.lowercased())" : line.line.lowercased()
    }
  }

  var details: String {
    switch subject {
    case .upload(let upload):
      return "receipt \(upload.receiptID)"
        + (upload.countryCode.map { ", country \($0)" } ?? "")
    case .verification(let result):
      return "of upload \(result.upload): \(result.authority) \(result.outcome)"
        + (result.status.map { ", status \($0)" } ?? "") + (result.reason.map { ", \($0)" } ?? "")
    case .line(let line, let sale):
      let amount = line.amountText(sale.currency).flatMap { text in
        sale.currency.map { "\(text) \($0)" }
      }
      return "\(sale.productID), \(amount ?? sale.priceText), sale \(sale.saleKey)"
        + (line.reason.map { ", reason \($0)" } ?? "")
    }
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("at", atMs: atMs)
      writer.member("event", name)
      writer.member("position", position)
      switch subject {
      case .upload(let upload):
        writer.member("receipt_id", upload.receiptID)
        writer.member("country_code", upload.countryCode)
      case .verification(let result):
        writer.member("upload", result.upload)
        writer.member("receipt_id", result.receiptID)
        writer.member("authority", result.authority)
        writer.member("outcome", result.outcome)
        writer.member("status", result.status.map { Int($0) })
        writer.member("reason", result.reason)
      case .line(let line, let sale):
        writer.member("environment", sale.environment)
        writer.member("bundle_id", sale.bundleID)
        writer.member("sale_key", sale.saleKey)
        writer.member("product_id", sale.productID)
        writer.member("kind", sale.kind)
        writer.member("quantity", Int(line.quantity))
        writer.member("currency", sale.currency?.description)
        writer.member("amount", line.amountText(sale.currency))
        writer.member("reason", line.reason)
      }
    }
  }
}

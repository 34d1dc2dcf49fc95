// `history`: the history of one user.
import Base
import Ledger
import Projections
import Revenue

let historyCommand = Command(
  "history", summary: "Show a user's history",
  details: [
    "Lists a user's uploads, verifications, notifications, sales, returns and reversals in the order in "
      + "which they happened, each with the position of its event. `token:` and an app account token is a user "
      + "whom no upload names."
  ],
  positionals: [Positional("USER", help: "the user identifier that the client sent")],
  options: [.asOf, .json, .noPager],
  examples: [Example("ledgerctl history 42", "Show the history of user 42")],
  isReadOnly: true
) { invocation, context in
  let asOf = try invocation.asOf()
  let ledger = try OpenLedger(invocation, context)
  guard let user = try ledger.queries(asOf: asOf).user(invocation.positionals[0]) else {
    // The identifier is not shown: it could be personal data.
    throw Failure(
      operation: "history", object: "USER", cause: "no upload and no sale has this user")
  }
  let entries = HistoryEntry.all(of: user)
  let record: Record = [
    "user_identifier": user.userIdentifier, "first_seen_at": user.firstSeenAtMs.map(timeText),
    "last_seen_at": user.lastSeenAtMs.map(timeText), "entries": entries.map(\.record),
  ]
  try context.print(invocation, record) { sheet in
    try sheet.fields([
      ("user", user.userIdentifier),
      ("first seen", user.firstSeenAtMs.map(timeText) ?? "in no upload"),
      ("last seen", user.lastSeenAtMs.map(timeText) ?? "in no upload"),
      ("uploads", "\(user.uploads.count)"),
      ("sales", "\(user.sales.count)"),
    ])
    var table = TextTable(["at", "event", .number("position"), "details"])
    for entry in entries {
      table.append([timeText(entry.atMs), entry.name, "\(entry.position)", entry.details])
    }
    try sheet.table("History", table)
  }
  return .done
}

/// One entry of a user's history.
private struct HistoryEntry {
  enum Subject {
    case upload(UploadDetail)
    case verification(VerificationDetail)
    case notification(NotificationDetail)
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
    entries += user.notifications.map {
      HistoryEntry(atMs: $0.occurredAtMs, position: $0.position, subject: .notification($0))
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
    case .notification: "notification"
    case .line(let line, let sale):
      sale.isPending ? "pending \(line.line.lowercased())" : line.line.lowercased()
    }
  }

  var details: String {
    switch subject {
    case .upload(let upload):
      let subject =
        upload.receiptID.map { "receipt \($0)" }
        ?? counted(upload.transactionCount ?? 0, "signed transaction")
      return subject + (upload.countryCode.map { ", country \($0)" } ?? "")
    case .verification(let result):
      return "of upload \(result.upload): \(result.authority) \(result.outcome)"
        + (result.status.map { ", status \($0)" } ?? "") + (result.reason.map { ", \($0)" } ?? "")
    case .notification(let notification):
      return notification.name
        + (notification.transactionID.map { ", transaction \($0)" } ?? "")
    case .line(let line, let sale):
      let amount = line.amountText(sale.currency).flatMap { text in
        sale.currency.map { "\(text) \($0)" }
      }
      return "\(sale.productID), \(amount ?? sale.priceText), sale \(sale.saleKey)"
        + (line.reason.map { ", reason \($0)" } ?? "")
    }
  }

  var record: Record {
    let head: Record = ["at": timeText(atMs), "event": name, "position": position]
    switch subject {
    case .upload(let upload):
      return head + [
        "receipt_id": upload.receiptID, "upload_id": upload.uploadID,
        "transactions": upload.transactionCount, "country_code": upload.countryCode,
      ]
    case .verification(let result):
      return head + [
        "upload": result.upload, "receipt_id": result.receiptID, "authority": result.authority,
        "outcome": result.outcome, "status": result.status, "reason": result.reason,
      ]
    case .notification(let notification):
      return head + [
        "notification_uuid": notification.notificationUUID, "type": notification.type,
        "subtype": notification.subtype, "transaction_id": notification.transactionID,
        "original_transaction_id": notification.originalTransactionID,
      ]
    case .line(let line, let sale):
      return head + [
        "environment": sale.environment, "bundle_id": sale.bundleID, "sale_key": sale.saleKey,
        "product_id": sale.productID, "kind": sale.kind, "quantity": line.quantity,
        "currency": sale.currency?.description, "amount": line.amountText(sale.currency),
        "reason": line.reason,
      ]
    }
  }
}

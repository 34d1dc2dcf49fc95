// The signed objects of an event, with the verdicts that it records.
import AppStore
import JSON
import Ledger

/// A signed object of an event.
struct SignedEventObject {
  /// Where it stands: `transactions[0]`, `notification`, `notification.signedTransactionInfo`.
  let place: String
  /// What the event says of it; nil if it does not say why it is valid or not.
  let recorded: SignedObjectRecord.Verdict?
  /// As sent; nil if the notification does not hold it.
  let text: [UInt8]?
  /// Whether it lies inside another one.
  var isInner = false

  /// The objects of an event; nil if it is of another type. Throws `EventError` if it is malformed.
  static func all(of event: EventLine) throws -> [SignedEventObject]? {
    guard let type = EventType(event.type), event.version == type.currentVersion else { return nil }
    switch type {
    case .transactionsReceived:
      let upload = try TransactionsReceivedView(data: event.data)
      var objects = upload.transactions.enumerated().map { place, object in
        SignedEventObject(
          place: "transactions[\(place)]", recorded: object.verdict, text: object.text)
      }
      if let object = upload.appTransaction {
        objects.append(
          SignedEventObject(place: "app_transaction", recorded: object.verdict, text: object.text))
      }
      return objects
    case .notificationReceived: return try all(of: NotificationReceivedView(data: event.data))
    case .transactionsFetched:
      let page = try TransactionsFetchedView(data: event.data)
      return [("transactions", page.transactions), ("renewals", page.renewals)].flatMap { list in
        list.1.enumerated().map { place, object in
          SignedEventObject(
            place: "\(list.0)[\(place)]", recorded: object.verdict, text: object.text)
        }
      }
    default: return nil
    }
  }

  private static func all(of view: NotificationReceivedView) throws -> [SignedEventObject] {
    guard let object = view.notification else { return [] }
    let keeper = TextKeeper()
    let payload = try SignedNotification(payload: object.payload, keeper)
    var objects = [
      SignedEventObject(place: "notification", recorded: object.verdict, text: object.text)
    ]
    for (name, verdict, text) in [
      ("signedTransactionInfo", view.transaction, payload.signedTransactionInfo),
      ("signedRenewalInfo", view.renewal, payload.signedRenewalInfo),
    ] {
      guard let verdict else { continue }
      objects.append(
        SignedEventObject(
          place: "notification.\(name)", recorded: verdict.verdict, text: text.map { [UInt8]($0) },
          isInner: true))
    }
    return objects
  }
}

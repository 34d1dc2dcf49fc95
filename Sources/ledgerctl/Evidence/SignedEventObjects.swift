// The signed objects of an event, with the verdicts that it records.
import AppStore
import Base
import Ledger

/// A signed object of an event.
struct SignedEventObject {
  /// Its place: `transactions[0]`, `notification`, `notification.signedTransactionInfo`.
  var place: String
  /// The recorded verdict; nil if the event does not contain why the object is valid or not.
  var recorded: SignedObjectRecord.Verdict?
  /// As sent; nil if the notification does not contain it.
  let text: [UInt8]?
  /// Whether a redaction kept only its facts, so that its signature can't be judged.
  var isRedacted = false
  /// Whether it is inside another one.
  var isInner = false

  /// The objects of an event; nil if it is of another type. Throws `EventError` if it is malformed.
  static func all(of event: EventLine) throws -> [SignedEventObject]? {
    guard let type = EventType(event.type), type.reads(event.version) else { return nil }
    switch type {
    case .transactionsReceived:
      let upload = try TransactionsReceivedView(data: event.data, isRedacted: event.isRedacted)
      var objects = upload.transactions.enumerated().map { place, object in
        SignedEventObject("transactions[\(place)]", object)
      }
      if let object = upload.appTransaction {
        objects.append(SignedEventObject("app_transaction", object))
      }
      return objects
    case .notificationReceived:
      return try all(
        of: NotificationReceivedView(data: event.data, isRedacted: event.isRedacted))
    case .transactionsFetched:
      let page = try TransactionsFetchedView(data: event.data, isRedacted: event.isRedacted)
      return [("transactions", page.transactions), ("renewals", page.renewals)].flatMap { list in
        list.1.enumerated().map { place, object in
          SignedEventObject("\(list.0)[\(place)]", object)
        }
      }
    default: return nil
    }
  }

  /// The objects of an earlier page that an event accepts, with that event's verdicts; nil if the page does not have
  /// them.
  static func accepted(by event: EventLine, page line: [UInt8]) throws -> [SignedEventObject]? {
    let accepted = try SignaturesAccepted(data: event.data)
    return try line.withUnsafeBytes { bytes in
      guard let page = EventLine(bytes), EventType(page.type) == .transactionsFetched,
        let objects = try all(of: page)
      else { return nil }
      let lists = [("transactions", accepted.transactions), ("renewals", accepted.renewals)]
      return lists.flatMap { name, list in
        list.map { one in
          let place = "\(name)[\(one.index)]"
          var object =
            objects.first { $0.place == place }
            ?? SignedEventObject(place: place, recorded: nil, text: nil)
          if object.text != nil { object.recorded = .valid(root: one.root) }
          object.place = "\(place) of position \(accepted.page)"
          return object
        }
      }
    }
  }

  private static func all(of view: NotificationReceivedView) throws -> [SignedEventObject] {
    guard let object = view.notification else { return [] }
    let keeper = TextKeeper()
    let payload = try SignedNotification(payload: object.payload, keeper)
    var objects = [SignedEventObject("notification", object)]
    for (name, verdict, text) in [
      ("signedTransactionInfo", view.transaction, payload.signedTransactionInfo),
      ("signedRenewalInfo", view.renewal, payload.signedRenewalInfo),
    ] {
      guard let verdict else { continue }
      objects.append(
        SignedEventObject(
          place: "notification.\(name)", recorded: verdict.verdict, text: text.map { [UInt8]($0) },
          isRedacted: view.isRedacted, isInner: true))
    }
    return objects
  }
}

extension SignedEventObject {
  fileprivate init(_ place: String, _ object: SignedObjectView) {
    self.init(
      place: place, recorded: object.verdict, text: object.isReduced ? nil : object.text,
      isRedacted: object.isReduced)
  }
}

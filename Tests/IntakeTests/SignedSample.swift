// Signed transactions and notifications of a test chain, as lines of import files.
import AppStore
import AppStoreAuthority
import Base
import Foundation
import Intake
import Ledger

/// Makes signed objects. They are signed before `Sample.nowMs`.
enum SignedSample {
  static let authority = SignedObjectAuthority.shared
  static let signedDateMs: Int64 = 1_780_000_000_000

  /// A payload: members by name, values as JSON; nil leaves out a default member.
  static func payload(_ changes: [String: String?] = [:], transaction: Int = 1) -> String {
    var members: [String: String?] = [
      "transactionId": "\"\(transaction)\"", "originalTransactionId": "\"\(transaction)\"",
      "bundleId": "\"\(Sample.bundleID)\"", "productId": "\"coins\"",
      "purchaseDate": "1779999990000", "quantity": "1", "type": "\"Consumable\"",
      "environment": "\"Production\"", "signedDate": "\(signedDateMs)",
    ]
    members.merge(changes) { $1 }
    let texts = members.compactMap { name, value in value.map { "\"\(name)\":\($0)" } }
    return "{\(texts.sorted().joined(separator: ","))}"
  }

  static func sign(
    _ payload: String, by authority: SignedObjectAuthority? = nil,
    _ form: SignedObjectForm = SignedObjectForm()
  ) throws -> String {
    let signer = try authority ?? self.authority.get()
    return String(decoding: try signer.sign(payload: Array(payload.utf8), form), as: UTF8.self)
  }

  static func transaction(_ changes: [String: String?] = [:], transaction: Int = 1) throws -> String
  {
    try sign(payload(changes, transaction: transaction))
  }

  /// A line with these transactions and these other members.
  static func line(_ transactions: [String], _ members: String = "") -> String {
    let list = transactions.map { "\"\($0)\"" }.joined(separator: ",")
    let rest = members.isEmpty ? "" : "," + members
    return #"{"marketplace":"itunes","signed_transactions":[\#(list)]\#(rest)}"#
  }

  static let uuid = "002e14d5-51f5-4503-b5a8-c3a1af68eb20"

  /// The payload of a notification.
  /// - Parameter data: the members of `data`, apart from the app and the environment.
  static func notificationPayload(
    uuid: String? = "\"\(uuid)\"", data: String = "", bundleID: String = Sample.bundleID,
    environment: String = "Production", signedDate: String = "\(signedDateMs)"
  ) -> String {
    let rest = data.isEmpty ? "" : "," + data
    let name = uuid.map { #","notificationUUID":\#($0)"# } ?? ""
    return #"{"notificationType":"DID_RENEW","subtype":"BILLING_RECOVERY"\#(name),"version":"2.0","#
      + #""signedDate":\#(signedDate),"data":{"bundleId":"\#(bundleID)","#
      + #""environment":"\#(environment)"\#(rest)}}"#
  }

  static func notification(
    uuid: String = uuid, transaction: String? = nil, renewal: String? = nil,
    bundleID: String = Sample.bundleID
  ) throws -> String {
    let inner = [
      transaction.map { #""signedTransactionInfo":"\#($0)""# },
      renewal.map { #""signedRenewalInfo":"\#($0)""# },
    ]
    return try sign(
      notificationPayload(
        uuid: "\"\(uuid)\"", data: inner.compactMap(\.self).joined(separator: ","),
        bundleID: bundleID))
  }

  static func line(notification: String, _ members: String = "") -> String {
    let rest = members.isEmpty ? "" : "," + members
    return #"{"marketplace":"itunes","notification":"\#(notification)"\#(rest)}"#
  }
}

extension ImportRun {
  /// An import that trusts the test chain.
  static func signed() throws -> ImportRun {
    var run = ImportRun()
    run.signedObjects = try SignedSample.authority.get().verifier
    return run
  }
}

// Signed transactions of a test chain, and how tests send them to a workflow.
import AppStore
import AppStoreAuthority
import Base
import Foundation
import HTTPClient
import Intake
import Ledger
import Server
import TestSupport
import Testing

/// Makes signed objects of the app that `WorkflowFixture` registers.
enum SignedUpload {
  static let authority = SignedObjectAuthority.shared

  /// A payload: members by name, values as JSON; nil leaves out a default member.
  static func payload(_ transaction: String = "1", _ changes: [String: String?] = [:]) -> String {
    let dateMs = ms("2026-01-05")
    var members: [String: String?] = [
      "transactionId": "\"\(transaction)\"", "originalTransactionId": "\"\(transaction)\"",
      "bundleId": "\"app\"", "productId": "\"coins\"", "purchaseDate": "\(dateMs)",
      "originalPurchaseDate": "\(dateMs)", "quantity": "1", "type": "\"Consumable\"",
      "environment": "\"Production\"", "signedDate": "\(dateMs + 1000)", "storefront": "\"DEU\"",
      "price": "990", "currency": "\"EUR\"",
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

  static func transaction(
    _ transaction: String = "1", _ changes: [String: String?] = [:]
  ) throws -> String {
    try sign(payload(transaction, changes))
  }

  static func body(_ transactions: [String], _ members: String = "") -> String {
    let list = transactions.map { "\"\($0)\"" }.joined(separator: ",")
    return #"{"signed_transactions":[\#(list)]\#(members.isEmpty ? "" : "," + members)}"#
  }
}

extension WorkflowFixture {
  /// A workflow that trusts the test chain; the App Store must not be asked.
  static func signed(
    products: [AppRegistered.Product] = [], appAppleID: Int64? = nil,
    clock: WorkflowClock = WorkflowClock(),
    set: (inout Configuration) -> Void = { _ in }
  ) throws -> WorkflowFixture {
    let root = try SignedUpload.authority.get().root.fingerprint
    return try WorkflowFixture(
      .saying(.reply(row("1"))), products: products, appAppleID: appAppleID, clock: clock
    ) {
      $0.trust.additionalRoots = [root]
      set(&$0)
    }
  }

  /// Sends signed transactions and waits for the response.
  func sendTransactions(_ transactions: [String], _ members: String = "") throws -> ClientResponse {
    let body = Array(SignedUpload.body(transactions, members).utf8)
    let read = try body.withUnsafeBytes { bytes in
      var cursor = JSONCursor(bytes)
      var reader = SignedUploadFieldReader()
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        let isTaken = try reader.take(key, from: &cursor)
        try #require(isTaken)
      }
      return reader.finish()
    }
    let answer = AwaitedResponse()
    try workflow.transactions(
      ClientUpload(
        fields: try #require(read), appFamily: family, peerAddress: "192.0.2.7",
        receivedAtMs: Int64(Date().timeIntervalSince1970 * 1000))
    ) { answer.set($0) }
    return try answer.wait()
  }
}

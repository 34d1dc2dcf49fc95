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

extension SignedSample {
  /// The body of an upload.
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
    let root = try SignedSample.authority.get().root.fingerprint
    return try WorkflowFixture(
      .saying(.reply(row("1"))), products: products, appAppleID: appAppleID, clock: clock
    ) {
      $0.trust.additionalRoots = [root]
      set(&$0)
    }
  }

  /// Sends signed transactions and waits for the response.
  func sendTransactions(_ transactions: [String], _ members: String = "") throws -> ClientResponse {
    let body = Array(SignedSample.body(transactions, members).utf8)
    let read = try body.withUnsafeBytes { bytes in
      var cursor = JSONCursor(bytes)
      var reader = SignedUploadFieldReader()
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        let isTaken = try reader.read(key, from: &cursor)
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

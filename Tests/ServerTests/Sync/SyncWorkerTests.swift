// A server that synchronizes by itself.
import AppStore
import AppStoreAuthority
import Base
import Foundation
import HTTPClient
import Ledger
import Server
import TestSupport
import Testing

@Suite(.bounded) struct SyncWorkerTests {
  /// A Server API on loopback: a notification that is missing, and a customer's history.
  private static func appStore(
    notification: String, transaction: String
  ) throws -> ScriptedServer {
    try ScriptedServer { request in
      if request.path.hasPrefix("/sandbox") {
        return .json(#"{"notificationHistory":[],"hasMore":false}"#)
      }
      if request.path.hasSuffix("/notifications/history") {
        return .json(
          #"{"notificationHistory":[{"signedPayload":"\#(notification)"}],"hasMore":false}"#)
      }
      return .json(
        #"{"revision":"r","hasMore":false,"bundleId":"app","environment":"Production","#
          + #""signedTransactions":["\#(transaction)"]}"#)
    }
  }

  private static func types(_ directory: LedgerDirectory) throws -> [String] {
    let reader = try LogReader(directory)
    var types: [String] = []
    try reader.read(from: 0) { chunk in
      try chunk.forEachEvent { types.append(String(decoding: $0.type, as: UTF8.self)) }
      return true
    }
    return types
  }

  @Test func aServerFetchesWhatIsMissingAfterItsStartAndTheHistoriesOfItsCustomers() throws {
    let transaction = try SignedSample().transaction("1")
    let notification = try SignedSample().sign(
      #"{"notificationType":"ONE_TIME_CHARGE","notificationUUID":"n1","version":"2.0","#
        + #""signedDate":\#(ms("2026-01-06")),"data":{"bundleId":"app","environment":"Production","#
        + #""signedTransactionInfo":"\#(transaction)"}}"#)
    let appStore = try Self.appStore(notification: notification, transaction: transaction)
    let ledger = try ConfiguredLedger()
    let writer = try LedgerWriter.open(ledger.directory)
    let app = AppRegistered(
      appFamilyID: ConfigurationSample.family, name: "App", bundleIDs: ["app"], products: [])
    _ = try writer.append(TestEvent.app(app).drafts)
    try writer.close()
    let key = String(decoding: try SigningKey(curve: .p256).pem(), as: UTF8.self)
    try ledger.write(key, "key.p8")
    let root = try SignedSample.authority.get().root.fingerprint
    try ledger.write(
      """
      {"app_store":{"server_api_production_url":"\(appStore.url("production"))",
       "server_api_sandbox_url":"\(appStore.url("sandbox"))"},
       "trust":{"additional_roots_sha256":["\(root.hex)"]},
       "apps":{"\(ConfigurationSample.family)":{"server_api":{"issuer_id":"i","key_id":"K",
        "private_key_file":"key.p8"}}}}
      """)
    let notes = Monitor<[String]>([])
    var options = LedgerServerOptions()
    options.listen = "127.0.0.1:0"
    options.log = { _, note in notes.withLock { $0.append(note) } }
    let server = try LedgerServer(ledger.directory, options: options)
    let isDone = eventually {
      (try? Self.types(ledger.directory).filter { $0 == "transactions.fetched" }.count) == 3
    }
    try server.stop()
    #expect(isDone, "\(notes.withLock { $0 }) \(appStore.requests.map(\.path))")
    let types = try Self.types(ledger.directory)
    let place = try #require(types.firstIndex(of: "notification.received"))
    expectEqual(types[place - 1], "transactions.fetched")
    expectEqual(types.filter { $0 == "notification.received" }.count, 1)
    expectEqual(appStore.requests.last?.path, "/production/inApps/v2/history/1?sort=ASCENDING")
    #expect(
      notes.withLock { $0 }.contains(
        "app-store sync: app, Production: 1 missing notifications appended"))
  }
}

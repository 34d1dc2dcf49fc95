// `sign-transactions` and `sign-notifications`: what the App Store would sign about invented customers.
import AppStore
import AppStoreAuthority
import Base
import Foundation
import TestSupport
import Testing

@Suite("Signing transactions and notifications")
struct SignTransactionsTests {
  static let atMs: Int64 = 1_795_000_000_000

  let directory: TemporaryDirectory

  init() throws { directory = try SharedAuthority.directory.get() }

  func lines(_ command: String, _ arguments: String...) throws -> [String] {
    let outcome = try Outcome(
      of: "app-store-stand-in",
      [command, "--authority", "authority", "--seed", "5", "--at", String(Self.atMs)] + arguments,
      in: directory.path)
    expectEqual(outcome.exitCode, 0, "\(outcome.diagnostics)")
    return outcome.output.split(separator: "\n").map(String.init)
  }

  func payload(_ object: String) throws -> JSONValue {
    let parts = object.split(separator: ".", omittingEmptySubsequences: false)
    try #require(parts.count == 3)
    return try JSONValue(Base64.decode(Array(parts[1].utf8), .url))
  }

  func data(_ notification: JSONValue, _ name: String) throws -> JSONValue? {
    try notification["data"]?[name]?.stringValue.map(payload)
  }

  @Test("transactions have the same sales as the customers' receipts, at the clients' prices")
  func sameSales() throws {
    let customers = CustomerReceipts(
      seed: 5, bundleID: "com.example.game", environment: .mixed, atMs: Self.atMs)
    let objects = try lines(
      "sign-transactions", "--customers", "40", "--transactions", "2", "--environment", "mixed",
      "--format", "jws")
    try #require(objects.count == 80)
    for (index, object) in objects.enumerated() {
      let receipt = customers.receipt(customer: index / 2, ordinal: 0)
      let purchase = receipt.purchases[index % 2]
      let told = try payload(object)
      expectEqual(told["transactionId"]?.stringValue, purchase.transactionID)
      expectEqual(told["originalTransactionId"]?.stringValue, purchase.originalTransactionID)
      expectEqual(told["webOrderLineItemId"]?.stringValue, purchase.webOrderLineItemID)
      expectEqual(told["productId"]?.stringValue, purchase.productID)
      expectEqual(told["purchaseDate"]?.integerValue, purchase.purchaseDateMs)
      expectEqual(told["expiresDate"]?.integerValue, purchase.expiresDateMs)
      let isSandbox = receipt.environment != "Production"
      expectEqual(told["environment"]?.stringValue, (isSandbox ? "Sandbox" : "Production"))
      expectEqual(told["signedDate"]?.integerValue, Self.atMs)
      let store = CustomerReceipts.storefront(customer: index / 2)
      let product = try #require(
        CustomerReceipts.products.first { $0.id == purchase.productID })
      let milliunits = try #require(told["price"]?.integerValue)
      expectEqual(Double(milliunits) / 1000, Double(store.price(product)))
      expectEqual(told["currency"]?.stringValue, store.currency)
      expectEqual(told["storefront"]?.stringValue, StoreCountry(alpha2: store.country)?.alpha3)
    }
  }

  @Test("upload bodies and import lines have the requested transactions, country and user")
  func bodies() throws {
    for format in ["uploads", "import"] {
      let lines = try lines(
        "sign-transactions", "--customers", "6", "--transactions", "7", "--format", format)
      expectEqual(lines.count, 6)
      for (customer, line) in lines.enumerated() {
        let body = try JSONValue(Array(line.utf8))
        let objects = try #require(body["signed_transactions"]?.arrayValue)
        let ids = try objects.map {
          try payload($0.stringValue ?? "")["transactionId"]?.stringValue
        }
        #expect(ids.count == 7 && Set(ids).count == 7)
        expectEqual(body["user_identifier"], .string("user-\(customer)"))
        expectEqual(
          body["country_code"], .string(CustomerReceipts.storefront(customer: customer).country))
        expectEqual(body["metadata"]?["upload"], .string("000000000000"))
        expectEqual((body["marketplace"] != nil), (format == "import"))
        expectEqual((body["occurred_at"] != nil), (format == "import"))
      }
    }
  }

  @Test("notifications of every type follow a customer in the order of time")
  func notifications() throws {
    let told = try lines("sign-notifications", "--customers", "60", "--format", "jws").map(payload)
    let types = [
      "SUBSCRIBED", "DID_RENEW", "DID_CHANGE_RENEWAL_STATUS", "DID_FAIL_TO_RENEW",
      "GRACE_PERIOD_EXPIRED", "EXPIRED", "ONE_TIME_CHARGE", "CONSUMPTION_REQUEST", "REFUND",
      "REFUND_DECLINED", "REFUND_REVERSED", "TEST",
    ]
    expectEqual(Set(told.compactMap { $0["notificationType"]?.stringValue }), Set(types))
    expectEqual(Set(told.compactMap { $0["notificationUUID"]?.stringValue }).count, told.count)
    var revoked: Set<String> = []
    for notification in told {
      let type = notification["notificationType"]?.stringValue
      let signedMs = try #require(notification["signedDate"]?.integerValue)
      #expect(signedMs <= Self.atMs)
      let transaction = try data(notification, "signedTransactionInfo")
      expectEqual((transaction == nil), (type == "TEST"))
      guard let transaction else { continue }
      expectEqual(transaction["signedDate"]?.integerValue, signedMs)
      expectEqual(transaction["bundleId"], notification["data"]?["bundleId"])
      let renewal = try data(notification, "signedRenewalInfo")
      expectEqual((renewal == nil), (transaction["webOrderLineItemId"] == nil))
      expectEqual((transaction["revocationDate"] != nil), (type == "REFUND"))
      let id = try #require(transaction["transactionId"]?.stringValue)
      if type == "REFUND" { revoked.insert(id) }
      if type == "REFUND_REVERSED" { #expect(revoked.contains(id)) }
      if type == "DID_RENEW" {
        #expect(transaction["originalTransactionId"]?.stringValue != id)
        expectEqual(transaction["transactionReason"], .string("RENEWAL"))
      }
    }
  }

  @Test("bodies are the App Store's requests, import lines name the marketplace")
  func notificationForms() throws {
    let bodies = try lines("sign-notifications", "--customers", "3", "--type", "ONE_TIME_CHARGE")
    for line in bodies {
      let body = try JSONValue(Array(line.utf8))
      let notification = try payload(body["signedPayload"]?.stringValue ?? "")
      expectEqual(notification["notificationType"], .string("ONE_TIME_CHARGE"))
    }
    let imports = try lines(
      "sign-notifications", "--customers", "3", "--type", "ONE_TIME_CHARGE", "--format", "import")
    #expect(imports.count == bodies.count && !bodies.isEmpty)
    for line in imports {
      let body = try JSONValue(Array(line.utf8))
      #expect(body["marketplace"] == .string("itunes") && body["notification"] != nil)
    }
  }

  @Test("faults of the payload: another app, and a clock an hour ahead")
  func faults() throws {
    for command in ["sign-transactions", "sign-notifications"] {
      let options = ["--customers", "1", "--format", "jws", "--fault"]
      func first(_ fault: String) throws -> JSONValue {
        let outcome = try Outcome(
          of: "app-store-stand-in",
          [command, "--authority", "authority", "--seed", "5"] + options + [fault],
          in: directory.path)
        return try payload(String(outcome.output.prefix { $0 != "\n" }))
      }
      let wrong = try first("wrong_app")
      expectEqual(
        (wrong["bundleId"] ?? wrong["data"]?["bundleId"]), .string("com.example.stranger"))
      let skewedMs = try #require(try first("clock_skew")["signedDate"]?.integerValue)
      #expect(skewedMs > Int64(Date().timeIntervalSince1970 * 1000) + 3_000_000)
      #expect(try first("wrong_signature")["signedDate"] != nil)
    }
  }
}

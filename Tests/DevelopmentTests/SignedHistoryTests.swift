// Histories with receipts and signed transactions, as `generate-history` makes them.
import AppStore
import AppStoreAuthority
import Base
import TestSupport
import Testing

@Suite("Histories with signed transactions")
struct SignedHistoryTests {
  let directory: TemporaryDirectory

  init() throws { directory = try SharedAuthority.directory.get() }

  func history(_ arguments: String...) throws -> [JSONValue] {
    let outcome = try Outcome(
      of: "generate-history", ["--uploads", "400", "--seed", "3", "--small"] + arguments,
      in: directory.path)
    expectEqual(outcome.exitCode, 0, "\(outcome.diagnostics)")
    return try outcome.output.split(separator: "\n").map { try JSONValue(Array($0.utf8)) }
  }

  /// The JWS texts of a line, and the nested ones.
  func objects(_ line: JSONValue) throws -> [SignedObject] {
    var texts = line["signed_transactions"]?.arrayValue?.compactMap(\.stringValue) ?? []
    if let notification = line["notification"]?.stringValue {
      texts.append(notification)
      let data = try JSONValue(SignedObject(Array(notification.utf8)).payload)["data"]
      texts += ["signedTransactionInfo", "signedRenewalInfo"].compactMap {
        data?[$0]?.stringValue
      }
    }
    return try texts.map { try SignedObject(Array($0.utf8)) }
  }

  @Test("half of the events are signed, every signature is good, receipts stay unchanged")
  func half() throws {
    let receipts = try history()
    let mixed = try history("--signed-percent", "50", "--authority", "authority")
    let authority = try AuthorityDirectory.loadSignedObjects(directory.path("authority"))
    let verifier = authority.verifier
    var signedCount = 0
    var receiptEventCount = 0
    for (line, receipt) in zip(mixed, receipts) {
      if line["receipt"] != nil {
        expectEqual(line, receipt)
        receiptEventCount += line["verification"] == nil ? 1 : 2
        continue
      }
      signedCount += 1
      let objects = try objects(line)
      #expect(!objects.isEmpty)
      for object in objects {
        expectEqual(
          verifier.verify(object, nowMs: 1_795_000_000_000),
          .valid(root: authority.root.fingerprint))
      }
    }
    expectEqual(mixed.count, receipts.count)
    let percent = signedCount * 100 / (signedCount + receiptEventCount)
    #expect((40...60).contains(percent))
  }

  @Test("receipts and signed transactions have the same sales")
  func sameSales() throws {
    var rows: [String: JSONValue] = [:]
    for line in try history() {
      let reply = line["verification"]?["reply"]
      let shown =
        (reply?["receipt"]?["in_app"]?.arrayValue ?? [])
        + (reply?["latest_receipt_info"]?.arrayValue ?? [])
      for row in shown { rows[row["web_order_line_item_id"]?.stringValue ?? "none"] = row }
    }
    var comparedCount = 0
    let signed = try history("--signed-percent", "100", "--authority", "authority")
    for object in try signed.flatMap(objects) {
      let transaction = try JSONValue(object.payload)
      guard transaction["purchaseDate"] != nil,
        let row = transaction["webOrderLineItemId"]?.stringValue.flatMap({ rows[$0] })
      else { continue }
      comparedCount += 1
      expectEqual(transaction["productId"], row["product_id"])
      expectEqual(transaction["originalTransactionId"], row["original_transaction_id"])
      expectEqual(
        transaction["purchaseDate"]?.integerValue,
        row["purchase_date_ms"]?.stringValue.flatMap { Int64($0) })
      expectEqual(transaction["inAppOwnershipType"], row["in_app_ownership_type"])
    }
    #expect(comparedCount > 50)
  }

  @Test(
    "wrong usage is reported, and exits with 2",
    arguments: [
      (["--signed-percent", "0"], "--signed-percent '0' must be an integer from 1 to 100"),
      (["--signed-percent", "50"], "--signed-percent and --authority go together"),
      (["--authority", "authority"], "--signed-percent and --authority go together"),
    ])
  func usage(arguments: [String], message: String) throws {
    let outcome = try Outcome(
      of: "generate-history", ["--uploads", "1", "--seed", "1"] + arguments, in: directory.path)
    expectEqual(
      outcome.diagnostics, "generate-history: \(message)\nTry 'generate-history --help'.\n")
    expectEqual(outcome.exitCode, 2)
  }
}

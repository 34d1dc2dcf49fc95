// Numbers at the limits in signed payloads: every object has a verdict, whatever its dates and numbers are.
import AppStore
import AppStoreAuthority
import Base
import TestSupport
import Testing

@Suite("Signed objects: boundary numbers") struct BoundaryNumberTests {
  private static let nowMs = SignedSample.signedDateMs

  /// Payloads of each kind in which every member that may be a number is this one.
  private static func payloads(_ number: JSONText, environment: String) -> [String] {
    let all = { (names: [String]) in names.map { "\"\($0)\":\(number.text)" }.joined(separator: ",")
    }
    let named = "\"bundleId\":\"b\",\"environment\":\"\(environment)\""
    return [
      """
      {\(named),\(all([
        "transactionId", "originalTransactionId", "webOrderLineItemId", "productId", "purchaseDate",
        "originalPurchaseDate", "expiresDate", "revocationDate", "revocationReason",
        "revocationPercentage", "quantity", "price", "offerType", "isUpgraded", "signedDate",
      ])),"advancedCommerceInfo":{"items":[{"refunds":[{\(all(["refundDate", "refundAmount"]))}]}]}}
      """,
      """
      {\(named),\(all([
        "autoRenewStatus", "autoRenewProductId", "expirationIntent", "isInBillingRetryPeriod",
        "gracePeriodExpiresDate", "originalTransactionId", "signedDate",
      ]))}
      """,
      """
      {"receiptType":"\(environment)","bundleId":"b",\(all(["appAppleId", "receiptCreationDate"]))}
      """,
      """
      {"notificationType":"TEST","notificationUUID":"u",\(all(["signedDate"])),\
      "data":{\(named),\(all(["appAppleId"]))}}
      """,
    ]
  }

  @Test("every number in every member gives a verdict, and no reader traps")
  func verdicts() throws {
    let authority = try SignedObjectAuthority.shared.get()
    let verifier = SignedObjectVerifier(
      pinnedRoots: [authority.root.fingerprint], localTestingSigners: [authority.leaf.fingerprint])
    for environment in ["Production", "Xcode", "LocalTesting", "Moon"] {
      for number in JSONText.boundaryNumbers {
        for payload in Self.payloads(number, environment: environment) {
          let text = try authority.sign(payload: Array(payload.utf8))
          let object = try SignedObject(text)
          let verdict = verifier.verify(object, nowMs: Self.nowMs)
          // The authority's certificates are valid only in these years.
          guard case .invalid(let fault) = verdict else {
            Issue.record("\(verdict) for \(number.text.prefix(40))")
            continue
          }
          #expect([.malformed, .time, .environment].contains(fault.kind), "\(fault)")
          _ = (object.kind, object.missingFact)
          read(object.payload)
        }
      }
    }
  }

  private func read(_ payload: [UInt8]) {
    let keeper = TextKeeper()
    let isRead = payload.withUnsafeBytes { bytes in
      (try? SignedTransaction(payload: bytes, keeper)) != nil
        && (try? SignedRenewal(payload: bytes, keeper)) != nil
        && (try? SignedAppTransaction(payload: bytes, keeper)) != nil
        && (try? SignedNotification(payload: bytes, keeper)) != nil
    }
    #expect(isRead)
  }

  @Test(
    "a date with a fraction is the whole millisecond before it, or nil outside the years 0001 to 9999",
    arguments: [
      ("-9223372036854775808.5", nil), ("-9223372036854775808.0", nil),
      ("-9223372036854775809.5", nil), ("9223372036854775807.5", nil),
      ("9223372036854775808.5", nil), ("-62135596800000.5", nil), ("253402300800000.0", nil),
      ("-62135596800000.0", -62_135_596_800_000), ("-62135596799999.5", -62_135_596_800_000),
      ("253402300799999.9", 253_402_300_799_999), ("-0.5", -1), ("-0.0", 0), ("0.9", 0),
    ] as [(String, Int64?)])
  func fractions(_ number: String, _ expectedMs: Int64?) throws {
    let payload = SignedSample.transaction(environment: "Xcode", signedDate: number)
    let object = try SignedObject(try SignedObjectAuthority.shared.get().sign(payload: payload))
    expectEqual(object.signedDateMs, expectedMs)
    let keeper = TextKeeper()
    let facts = try payload.withUnsafeBytes { try SignedTransaction(payload: $0, keeper) }
    expectEqual(facts.signedDateMs, expectedMs)
  }
}

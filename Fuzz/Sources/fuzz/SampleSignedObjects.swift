// Signed objects by an authority of the fuzzer's own, and verifiers that trust it.
@testable import AppStore
@testable import AppStoreAuthority
@testable import Base
import Glibc

/// The authority whose keys lie where `FUZZ_AUTHORITY` says, and what it signed.
enum SampleSignedObjects {
  static let authority: SignedObjectAuthority = {
    do {
      guard let path = getenv("FUZZ_AUTHORITY") else { return try SignedObjectAuthority() }
      let directory = String(cString: path)
      _ = try AuthorityDirectory.open(directory)
      return try AuthorityDirectory.loadSignedObjects(directory)
    } catch { fatalError("the authority cannot be loaded; remove its directory: \(error)") }
  }()

  static let verifier = authority.verifier
  /// Trusts the authority's leaf for tests, and Apple.
  static let testingVerifier = SignedObjectVerifier(
    localTestingSigners: [authority.leaf.fingerprint])

  static let payloads = texts + texts.flatMap { BoundaryNumbers.variants(of: $0) }

  private static let texts: [[UInt8]] = [
    """
    {"transactionId":"70","originalTransactionId":"60","webOrderLineItemId":"80",\
    "bundleId":"com.example.game","productId":"monthly","purchaseDate":1700000000000,\
    "originalPurchaseDate":1690000000000,"expiresDate":1710000000000,"quantity":3,\
    "inAppOwnershipType":"PURCHASED","signedDate":1700000000001,"revocationReason":1,\
    "revocationDate":1700000000002,"revocationPercentage":50000,"isUpgraded":true,"offerType":2,\
    "offerDiscountType":"PAY_UP_FRONT","environment":"Production","storefront":"DEU",\
    "price":9990,"currency":"EUR"}
    """,
    """
    {"environment":"Sandbox","signedDate":"1700000000001","bundleId":"b","multiSeatInfo":{},\
    "advancedCommerceInfo":{"items":[{"refunds":[{"refundDate":1700000000000,"refundAmount":5}]}]}}
    """,
    """
    {"notificationType":"REFUND","subtype":"S","notificationUUID":"u","version":"2.0",\
    "signedDate":1698148900000,"data":{"environment":"Production","appAppleId":41234,\
    "bundleId":"com.example","signedTransactionInfo":"ey.a.b","signedRenewalInfo":"ey.c.d"}}
    """,
    #"{"signedDate":1,"externalPurchaseToken":{"externalPurchaseId":"SANDBOX_1","bundleId":"b"}}"#,
    #"{"receiptType":"Sandbox","bundleId":"b","appAppleId":7,"receiptCreationDate":5}"#,
    #"{"environment":"Xcode","signedDate":1697679936056.485}"#, "{}",
    #"{"notificationType":"TEST","signedDate":1,"data":{"bundleId":"b","environment":"Xcode"}}"#,
    #"{"autoRenewStatus":1,"expirationIntent":1,"gracePeriodExpiresDate":1700000000000,"signedDate":1}"#,
  ].map { Array($0.utf8) }
}

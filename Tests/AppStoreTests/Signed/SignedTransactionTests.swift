// The content read from payloads: transactions, notifications and app transactions.

import AppStore
import Base
import TestSupport
import Testing

@Suite("Payloads of signed objects")
struct SignedPayloadTests {
  private func transaction<Result>(
    _ json: String, _ body: (SignedTransaction) throws -> Result
  ) throws -> Result {
    let keeper = TextKeeper()
    return try Array(json.utf8).withUnsafeBytes {
      try body(try SignedTransaction(payload: $0, keeper))
    }
  }

  @Test("every fact of a whole transaction is read")
  func whole() throws {
    let json = """
      {"transactionId":"70","originalTransactionId":"60","webOrderLineItemId":"80",\
      "bundleId":"com.example.app","productId":"pro.month","subscriptionGroupIdentifier":"5",\
      "purchaseDate":1700000000000,"originalPurchaseDate":1690000000000,\
      "expiresDate":1710000000000,"quantity":3,"type":"Auto-Renewable Subscription",\
      "appAccountToken":"7e3fb20b-4cdb-47cc-936d-99d65f608138",\
      "inAppOwnershipType":"FAMILY_SHARED","signedDate":1700000000001,"revocationReason":1,\
      "revocationDate":1700000000002,"revocationPercentage":50000,"isUpgraded":true,\
      "offerType":2,"offerIdentifier":"x","offerDiscountType":"PAY_UP_FRONT",\
      "environment":"Production","storefront":"DEU","storefrontId":"143443",\
      "transactionReason":"RENEWAL","price":9990,"currency":"EUR","newMember":[1,{"a":2}]}
      """
    try transaction(json) { facts in
      expectEqual(text(facts.row.transactionID), "70")
      expectEqual(text(facts.row.originalTransactionID), "60")
      expectEqual(text(facts.row.webOrderLineItemID), "80")
      expectEqual(text(facts.row.productID), "pro.month")
      expectEqual(facts.row.source, .signedTransaction)
      expectEqual(text(facts.row.object), json)
      expectEqual(facts.row.quantity.integer, 3)
      expectEqual(facts.row.purchaseDateMs, 1_700_000_000_000)
      expectEqual(facts.row.originalPurchaseDateMs, 1_690_000_000_000)
      #expect(facts.row.isFamilyShared && facts.row.isUpgraded)
      expectEqual(facts.row.cancellationDateMs, 1_700_000_000_002)
      expectEqual(text(facts.row.cancellationReason), "1")
      #expect(facts.row.hasPromotionalOffer && !facts.row.isInIntroOfferPeriod)
      #expect(!facts.row.hasOfferCode && !facts.row.isTrialPeriod)
      expectEqual(text(facts.bundleID), "com.example.app")
      expectEqual(text(facts.environment), "Production")
      expectEqual(text(facts.storefront), "DEU")
      expectEqual(text(facts.appAccountToken), "7e3fb20b-4cdb-47cc-936d-99d65f608138")
      expectEqual(facts.signedDateMs, 1_700_000_000_001)
      expectEqual(facts.revocationDateMs, 1_700_000_000_002)
      expectEqual(text(facts.revocationReason), "1")
      expectEqual(facts.revocationPercentage, 50_000)
      #expect(facts.offerType == 2 && facts.hasOfferDiscountType && !facts.isFreeTrial)
      #expect(facts.priceMilliunits == 9_990 && facts.hasPrice)
      expectEqual(text(facts.currency), "EUR")
      #expect(!facts.hasMultiSeatInfo && !facts.isAdvancedCommerce)
      #expect(facts.missingFact() == nil)
    }
  }

  @Test("an empty transaction has no facts")
  func empty() throws {
    try transaction("{}") { facts in
      #expect(facts.row.productID == nil && facts.row.purchaseDateMs == nil)
      #expect(facts.priceMilliunits == nil && !facts.hasPrice && facts.currency == nil)
      #expect(facts.offerType == nil && !facts.hasOfferDiscountType)
      #expect(facts.advancedRefunds.isEmpty)
      expectEqual(facts.missingFact(), .missingSignedDate)
    }
  }

  @Test("values are read leniently, and escapes are decoded")
  func lenient() throws {
    try transaction(
      #"{"transactionId":70,"\u0070roductId":"pro\u002emonth","price":"9990","quantity":"2","isUpgraded":"true","purchaseDate":"1700000000000","webOrderLineItemId":"0","signedDate":"5"}"#
    ) { facts in
      expectEqual(text(facts.row.transactionID), "70")
      expectEqual(text(facts.row.productID), "pro.month")
      expectEqual(facts.priceMilliunits, 9_990)
      #expect(facts.row.quantity.integer == 2 && facts.row.isUpgraded)
      expectEqual(facts.row.purchaseDateMs, 1_700_000_000_000)
      #expect(facts.row.webOrderLineItemID == nil)
      expectEqual(facts.signedDateMs, 5)
      expectEqual(facts.missingFact(), .missingEnvironment)
    }
  }

  @Test("a price is an integer of at most 14 digits, 0 or more")
  func prices() throws {
    let cases: [(String, Int64?, Bool)] = [
      ("0", 0, true), ("99999999999999", 99_999_999_999_999, true),
      ("100000000000000", nil, true), ("-1", nil, true), ("9.99", nil, true),
      ("9990.0", nil, true), ("1e3", nil, true), (#""x""#, nil, true), ("{}", nil, true),
      ("true", nil, true), ("null", nil, false),
    ]
    for (price, milliunits, isThere) in cases {
      try transaction(#"{"price":\#(price)}"#) { facts in
        expectEqual(facts.priceMilliunits, milliunits, "\(price)")
        expectEqual(facts.hasPrice, isThere, "\(price)")
      }
    }
  }

  @Test("a percentage outside 0 to 100,000 is nil")
  func percentages() throws {
    let cases: [(String, Int64?)] = [
      ("0", 0), ("100000", 100_000), ("100001", nil), ("-1", nil), ("50.5", nil), ("null", nil),
    ]
    for (value, expected) in cases {
      try transaction(#"{"revocationPercentage":\#(value)}"#) {
        expectEqual($0.revocationPercentage, expected, "\(value)")
      }
    }
  }

  @Test("offers have the flags of a reply's row")
  func offers() throws {
    let cases: [(String, [Bool])] = [
      (#"{"offerType":1}"#, [true, false, false, false]),
      (#"{"offerType":2}"#, [false, true, false, false]),
      (#"{"offerType":3}"#, [false, false, true, false]),
      (#"{"offerType":4}"#, [false, false, false, false]),
      (#"{"offerType":1,"offerDiscountType":"FREE_TRIAL"}"#, [true, false, false, true]),
      (#"{"offerDiscountType":null}"#, [false, false, false, false]),
    ]
    for (json, flags) in cases {
      try transaction(json) { facts in
        let row = facts.row
        expectEqual(
          [row.isInIntroOfferPeriod, row.hasPromotionalOffer, row.hasOfferCode, row.isTrialPeriod],
          flags, "\(json)")
        expectEqual(facts.hasOfferDiscountType, json.contains("FREE_TRIAL"))
      }
    }
  }

  @Test("refunds of Advanced Commerce are read from every item")
  func advancedCommerce() throws {
    try transaction(
      """
      {"multiSeatInfo":{"seats":3},"advancedCommerceInfo":{"items":[\
      {"SKU":"a","refunds":[{"refundDate":1700000000000,"refundAmount":1000,"refundType":"FULL"},\
      {"refundDate":1700000000001}]},7,{"refunds":null},\
      {"refunds":[{"refundAmount":2000},{"refundAmount":-1,"refundDate":"x"},9]}],"taxCode":"C"}}
      """
    ) { facts in
      #expect(facts.isAdvancedCommerce && facts.hasMultiSeatInfo)
      expectEqual(
        facts.advancedRefunds.map(\.dateMs), [1_700_000_000_000, 1_700_000_000_001, nil, nil])
      expectEqual(facts.advancedRefunds.map(\.amountMilliunits), [1_000, nil, 2_000, nil])
    }
    try transaction(#"{"advancedCommerceInfo":null,"multiSeatInfo":[]}"#) { facts in
      #expect(!facts.isAdvancedCommerce && !facts.hasMultiSeatInfo)
    }
  }

  @Test("fractions of a millisecond are cut off for Xcode alone")
  func fractions() throws {
    let dates = #""signedDate":1697679936056.485,"purchaseDate":-1.5"#
    try transaction(#"{\#(dates),"environment":"Xcode"}"#) { facts in
      expectEqual(facts.signedDateMs, 1_697_679_936_056)
      expectEqual(facts.row.purchaseDateMs, -2)
    }
    try transaction(#"{\#(dates),"environment":"Production"}"#) { facts in
      #expect(facts.signedDateMs == nil && facts.row.purchaseDateMs == nil)
    }
  }

  // MARK: Notifications

  private func notification<Result>(
    _ json: String, _ body: (SignedNotification) throws -> Result
  ) throws -> Result {
    let keeper = TextKeeper()
    return try Array(json.utf8).withUnsafeBytes {
      try body(try SignedNotification(payload: $0, keeper))
    }
  }

  @Test("a notification names itself, its app, and the objects inside it")
  func wholeNotification() throws {
    let json = """
      {"notificationType":"SUBSCRIBED","subtype":"INITIAL_BUY","notificationUUID":"u-1",\
      "version":"2.0","signedDate":1698148900000,"data":{"environment":"Production",\
      "appAppleId":41234,"bundleId":"com.example","signedTransactionInfo":"ey.a.b",\
      "signedRenewalInfo":"ey.c.d","status":1}}
      """
    try notification(json) { facts in
      expectEqual(text(facts.notificationUUID), "u-1")
      expectEqual(text(facts.type), "SUBSCRIBED")
      expectEqual(text(facts.subtype), "INITIAL_BUY")
      expectEqual(facts.signedDateMs, 1_698_148_900_000)
      expectEqual(text(facts.bundleID), "com.example")
      expectEqual(facts.appAppleID, 41_234)
      expectEqual(text(facts.environment), "Production")
      expectEqual(text(facts.signedTransactionInfo), "ey.a.b")
      expectEqual(text(facts.signedRenewalInfo), "ey.c.d")
      #expect(facts.missingFact() == nil)
    }
  }

  @Test("each subject of a notification names app and environment")
  func subjects() throws {
    let cases = [
      (#""summary":{"environment":"Sandbox","bundleId":"b","appAppleId":7}"#, "Sandbox"),
      (#""appData":{"environment":"Production","bundleId":"b","appAppleId":7}"#, "Production"),
      (
        #""externalPurchaseToken":{"externalPurchaseId":"SANDBOX_x","bundleId":"b","appAppleId":7}"#,
        "Sandbox"
      ),
      (
        #""externalPurchaseToken":{"externalPurchaseId":"x","bundleId":"b","appAppleId":7}"#,
        "Production"
      ),
    ]
    for (subject, environment) in cases {
      try notification(#"{"notificationUUID":"u","signedDate":1,\#(subject)}"#) { facts in
        expectEqual(text(facts.environment), environment, "\(subject)")
        #expect(text(facts.bundleID) == "b" && facts.appAppleID == 7, "\(subject)")
        #expect(facts.missingFact() == nil, "\(subject)")
      }
    }
  }

  @Test("a missing member of a notification is named")
  func missingFromNotification() throws {
    let cases: [(String, SignedObjectFault?)] = [
      ("{}", .missingSignedDate), (#"{"signedDate":1}"#, .missingEnvironment),
      (#"{"signedDate":1,"data":{"environment":"Sandbox"}}"#, .missingBundleID),
      (
        #"{"signedDate":1,"data":{"environment":"Sandbox","bundleId":"b"}}"#,
        .missingNotificationUUID
      ),
      (#"{"signedDate":1,"data":7}"#, .missingEnvironment),
    ]
    for (json, fault) in cases {
      try notification(json) { expectEqual($0.missingFact(), fault, "\(json)") }
    }
  }

  // MARK: App transactions

  @Test("an app transaction's type is its environment, and its creation its date")
  func appTransaction() throws {
    let keeper = TextKeeper()
    let cases: [(String, Int64?)] = [
      (#"{"receiptType":"Sandbox","bundleId":"b","appAppleId":7,"receiptCreationDate":5}"#, 5),
      (
        #"{"receiptType":"Sandbox","bundleId":"b","appAppleId":7,"receiptCreationDate":5,"signedDate":6}"#,
        6
      ),
      (#"{"receiptType":"Xcode","bundleId":"b","appAppleId":7,"receiptCreationDate":5.7}"#, 5),
      (#"{"receiptType":"Sandbox","bundleId":"b","appAppleId":7,"receiptCreationDate":5.7}"#, 5),
      (#"{"receiptType":"Sandbox","bundleId":"b","appAppleId":7,"receiptCreationDate":"x"}"#, nil),
      (
        #"{"environment":"Xcode","receiptType":"Sandbox","bundleId":"b","appAppleId":7,"receiptCreationDate":5}"#,
        5
      ),
      (#"{"environment":"Sandbox","bundleId":"b","appAppleId":7,"signedDate":5}"#, 5),
    ]
    for (json, dateMs) in cases {
      try Array(json.utf8).withUnsafeBytes { bytes in
        let facts = try SignedAppTransaction(payload: bytes, keeper)
        expectEqual(facts.signedDateMs, dateMs, "\(json)")
        #expect(text(facts.bundleID) == "b" && facts.appAppleID == 7, "\(json)")
        let isXcode = json.contains("\"receiptType\":\"Xcode\"")
        expectEqual(text(facts.environment), (isXcode ? "Xcode" : "Sandbox"), "\(json)")
        expectEqual(facts.missingFact(), (dateMs == nil ? .missingSignedDate : nil), "\(json)")
      }
    }
  }
}

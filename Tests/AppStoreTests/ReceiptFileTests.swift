// Receipt files of both styles: what is read, what is ignored, and what is not a receipt.

import AppStore
import AppStoreAuthority
import Foundation
import TestSupport
import Testing

@Suite("Receipt files")
struct ReceiptFileTests {
  /// A file around attributes; decoding ignores certificate and signature.
  func file(_ plan: UnifiedReceiptPlan, content: [UInt8]? = nil) throws -> [UInt8] {
    let signer = try TestAuthority.shared.get().signer
    return plan.frame(
      content: content ?? plan.content, certificates: [], signer: signer, signature: [])
  }

  func error(_ file: [UInt8]) -> String? {
    do {
      _ = try ReceiptFile.decode(file)
      return nil
    } catch { return "\(error)" }
  }

  @Test("a unified receipt's content is read from DER and from BER", arguments: [false, true])
  func unified(isIndefinite: Bool) throws {
    let offer =
      UnifiedReceiptPlan.attribute(1707, DER.integer(3))
      + UnifiedReceiptPlan.attribute(1713, DER.integer(1))
      + UnifiedReceiptPlan.attribute(1719, DER.integer(1))
      + UnifiedReceiptPlan.attribute(1721, DER.utf8("spring"))
    let plan = UnifiedReceiptPlan(
      purchases: [
        UnifiedReceiptPlan.purchase(),
        UnifiedReceiptPlan.purchase(product: "yearly", webOrder: 0, extra: offer),
      ],
      extraAttributes: [UnifiedReceiptPlan.attribute(21, DER.ia5("2030-01-01T00:00:00Z"))],
      isIndefinite: isIndefinite)
    let receipt = try ReceiptFile.decode(try file(plan))
    var first = ReceiptPurchase()
    first.productID = "coins"
    first.transactionID = "1000000180842733"
    first.originalTransactionID = "1000000180842733"
    first.webOrderLineItemID = "1000000030938713"
    first.quantity = "1"
    first.purchaseDateMs = 1_714_979_288_000
    first.originalPurchaseDateMs = 1_714_979_287_000
    var second = first
    second.productID = "yearly"
    second.webOrderLineItemID = nil
    second.productType = 3
    second.isTrialPeriod = true
    second.isInIntroOfferPeriod = true
    second.promotionalOfferID = "spring"
    expectEqual(
      receipt,
      Receipt(
        style: .unified, environment: "Production", bundleID: "com.example.game",
        applicationVersion: "42", originalApplicationVersion: "1.0",
        creationDateMs: 1_714_979_289_000, expirationDateMs: 1_893_456_000_000,
        purchases: [first, second]))
  }

  @Test("unknown attributes, whatever they hold, are ignored")
  func unknownAttributes() throws {
    let plan = UnifiedReceiptPlan(extraAttributes: [
      UnifiedReceiptPlan.attribute(9_999, [0xFF, 0xFF]), UnifiedReceiptPlan.attribute(25, []),
      UnifiedReceiptPlan.attribute(-1, DER.null),
    ])
    let expected = try ReceiptFile.decode(try file(UnifiedReceiptPlan()))
    try expectEqual(ReceiptFile.decode(try file(plan)), expected)
  }

  @Test("a receipt without purchases is a receipt")
  func noPurchases() throws {
    try expectEqual(ReceiptFile.decode(try file(UnifiedReceiptPlan(purchases: []))).purchases, [])
  }

  @Test("a transaction receipt's purchase is made of its own fields")
  func transaction() throws {
    var plan = TransactionReceiptPlan()
    plan.fields += [
      ("cancellation-date-ms", "1716000000000"), ("is-trial-period", "true"),
      ("is-in-intro-offer-period", "false"), ("promotional-offer-id", "spring"),
    ]
    let list = plan.list(blob: [2], purchaseInfo: plan.purchaseInfo)
    var purchase = ReceiptPurchase()
    purchase.productID = "yearly"
    purchase.transactionID = "1000000181298734"
    purchase.originalTransactionID = "1000000180636226"
    purchase.webOrderLineItemID = "1000000030938713"
    purchase.quantity = "1"
    purchase.purchaseDateMs = 1_715_000_000_000
    purchase.originalPurchaseDateMs = 1_714_000_000_000
    purchase.expiresDateMs = 1_717_000_000_000
    purchase.cancellationDateMs = 1_716_000_000_000
    purchase.isTrialPeriod = true
    purchase.promotionalOfferID = "spring"
    var expected = Receipt(
      style: .transaction, environment: nil, bundleID: "com.example.game",
      applicationVersion: "1", purchases: [purchase])
    expected.unsignedEnvironment = "Sandbox"
    try expectEqual(ReceiptFile.decode(list), expected)
  }

  @Test("an old transaction receipt's readable dates replace missing milliseconds")
  func readableDates() throws {
    var plan = TransactionReceiptPlan()
    plan.fields = [
      ("bid", "com.example.game"), ("purchase-date", "2012-04-30 15:05:55 Etc/GMT"),
      ("expires-date", "2012-05-30 15:05:55 Etc/GMT"),
    ]
    let receipt = try ReceiptFile.decode(plan.list(blob: [2], purchaseInfo: plan.purchaseInfo))
    expectEqual(receipt.purchases.first?.purchaseDateMs, 1_335_798_355_000)
    expectEqual(receipt.purchases.first?.expiresDateMs, 1_338_390_355_000)
  }

  @Test("an invalid receipt gets an error with the reason and none of its bytes")
  func messages() throws {
    let plan = UnifiedReceiptPlan()
    let start = "decode receipt: "
    expectEqual(error([]), start + "empty")
    expectEqual(
      error(Array("PK\u{3}\u{4}".utf8)), start + "neither a PKCS#7 file nor a property list")
    expectEqual(error([0x20, 0x0A]), start + "neither a PKCS#7 file nor a property list")
    expectEqual(error([0x30, 0x05]), start + "PKCS#7: ASN.1 at offset 0: truncated")
    let otherType = DER.sequence(
      DER.objectIdentifier("1.2.840.113549.1.7.1"), DER.element(0xA0, DER.octets([])))
    expectEqual(error(otherType), start + "PKCS#7: not SignedData with content")
    expectEqual(error(try file(plan, content: DER.set())), start + "no bundle id (attribute 2)")
    expectEqual(
      error(try file(plan, content: DER.octets([]))),
      start + "attributes: ASN.1 at offset 0: unexpected element with identifier 0x4")
    func withAttribute(_ type: Int64, _ value: [UInt8]) throws -> String? {
      error(
        try file(plan, content: DER.set(UnifiedReceiptPlan.attribute(type, value))))
    }
    try expectEqual(
      withAttribute(12, DER.ia5("today")), start + "attribute 12: not an RFC 3339 date")
    try expectEqual(withAttribute(2, DER.integer(1)), start + "attribute 2: not a string")
    try expectEqual(withAttribute(2, DER.element(0x0C, [0xFF])), start + "attribute 2: not UTF-8")
    try expectEqual(
      withAttribute(2, [0x0C, 0x05, 0x41]), start + "attribute 2: ASN.1 at offset 0: truncated")
    expectEqual(error(Array("{".utf8)), start + "property list receipt: offset 1: truncated")
    expectEqual(error(Array("{}".utf8)), start + "property list receipt: no field purchase-info")
    #expect(
      error(Array("{\"purchase-info\"=\"e30\";}".utf8))
        == start + "field purchase-info: base64: length 3 is not a multiple of 4 "
        + "(missing padding, or truncated)")
    #expect(
      error(Array("{\"purchase-info\"=\"e30=\";}".utf8))
        == start + "property list purchase-info: no field bid")
    var transaction = TransactionReceiptPlan()
    transaction.fields[2] = ("purchase-date-ms", "9e9")
    expectEqual(
      error(transaction.list(blob: [2], purchaseInfo: transaction.purchaseInfo)),
      start + "field purchase-date-ms: not a valid value")
  }

  @Test("a million claimed purchases are refused, not held in memory")
  func manyPurchases() throws {
    let empty = UnifiedReceiptPlan.attribute(17, DER.set())
    var content: [UInt8] = []
    content.reserveCapacity(empty.count * (ReceiptFile.maximumPurchaseCount + 1))
    for _ in 0...ReceiptFile.maximumPurchaseCount { content += empty }
    expectEqual(
      error(try file(UnifiedReceiptPlan(), content: DER.set(content))),
      "decode receipt: more than 65536 purchases")
  }

  @Test("a transaction receipt cut anywhere is refused")
  func cutAnywhere() throws {
    let plan = TransactionReceiptPlan()
    let list = plan.list(blob: [2, 3, 4], purchaseInfo: plan.purchaseInfo)
    for count in list.indices {
      #expect(error(Array(list.prefix(count))) != nil, "cut at \(count)")
    }
    for count in plan.purchaseInfo.indices {
      let inner = plan.list(blob: [2], purchaseInfo: Array(plan.purchaseInfo.prefix(count)))
      #expect(error(inner) != nil, "inner list cut at \(count)")
    }
  }
}

@Suite("Dates of receipts")
struct ReceiptDateTests {
  func parse(_ text: String) -> Int64? {
    Array(text.utf8).withUnsafeBytes { ReceiptDate.parse($0) }
  }

  @Test(
    "a time is read with its offset and fraction",
    arguments: [
      ("1970-01-01T00:00:00Z", 0), ("2015-11-18T17:13:48Z", 1_447_866_828_000),
      ("2015-11-18T18:13:48+01:00", 1_447_866_828_000),
      ("2015-11-18T09:13:48.5-08:00", 1_447_866_828_500),
      ("2015-11-18t17:13:48.123999z", 1_447_866_828_123), ("1969-12-31T23:59:59.999Z", -1),
      ("2000-02-29T00:00:00Z", 951_782_400_000), ("2016-12-31T23:59:60Z", 1_483_228_800_000),
      ("0000-01-01T00:00:00Z", -62_167_219_200_000), ("9999-12-31T23:59:59Z", 253_402_300_799_000),
      ("2015-11-18 04:34:41 Etc/GMT", 1_447_821_281_000),
      ("2020-07-22T18:33:15+0100", 1_595_439_195_000),
      ("2020-07-22T18:33:15.25-0730", 1_595_469_795_250),
      ("2011-08-02 15:08:02 Etc/GMT", 1_312_297_682_000),
      ("2011-08-02 08:08:02 America/Los_Angeles", 1_312_297_682_000),
      ("2011-12-02 08:08:02 America/Los_Angeles", 1_322_842_082_000),
    ] as [(String, Int64)])
  func read(text: String, milliseconds: Int64) {
    expectEqual(parse(text), milliseconds)
  }

  @Test(
    "a text that is not a time is refused",
    arguments: [
      "", "2015-11-18", "2015-11-18T17:13:48", "2015-11-18 17:13:48", "2015-11-18T17:13:48.Z",
      "2015-13-18T17:13:48Z", "2015-02-29T17:13:48Z", "1900-02-29T17:13:48Z",
      "2015-11-31T17:13:48Z", "2015-11-00T17:13:48Z", "2015-11-18T24:00:00Z",
      "2015-11-18T17:60:48Z", "2015-11-18T17:13:61Z", "2015-11-18T17:13:48+01000",
      "2015-11-18T17:13:48+2400", "2015-11-18T17:13:48+010", "2015-11-18T17:13:48+01.00",
      "2015-11-18T17:13:48+24:00", "2015-11-18T17:13:48Zx", "+015-11-18T17:13:48Z",
      "2015-11-18T17:13:48 America/Los_Angeles", "2015-11-18X17:13:48Z",
      "2015-11-18 17:13:48 America/Los_Angele", "2006-11-18 17:13:48 America/Los_Angeles",
      "2015-11-18 17:13:48 Europe/Berlin",
    ])
  func refused(text: String) {
    #expect(parse(text) == nil)
  }

  @Test("every hour around each change of the clock in Los Angeles agrees with the system's zone")
  func pacificTime() throws {
    var calendar = Calendar(identifier: .gregorian)
    let pacific = try #require(TimeZone(identifier: "America/Los_Angeles"))
    calendar.timeZone = try #require(TimeZone(identifier: "UTC"))
    for year in 2007...2037 {
      for (month, days) in [(1, 1...2), (3, 7...15), (7, 4...5), (10, 30...31), (11, 1...9)] {
        for day in days {
          for hour in 0..<24 {
            let parts = DateComponents(
              year: year, month: month, day: day, hour: hour, minute: 30, second: 1)
            let wall = try #require(calendar.date(from: parts))
            let text =
              "\(year)-\(Self.two(month))-\(Self.two(day)) \(Self.two(hour)):30:01 America/Los_Angeles"
            let found = try #require(parse(text))
            // The first of two instants with this wall clock time; for a skipped time, that of standard time.
            let candidates = [-25_200, -28_800].map { offset in
              wall.addingTimeInterval(-Double(offset))
            }
            let expected =
              zip(candidates, [-25_200, -28_800]).first { instant, offset in
                pacific.secondsFromGMT(for: instant) == offset
              }?.0 ?? candidates[1]
            expectEqual(found, Int64(expected.timeIntervalSince1970) * 1_000, "\(text)")
          }
        }
      }
    }
  }

  private static func two(_ number: Int) -> String { (number < 10 ? "0" : "") + String(number) }

  @Test("random times agree with Foundation's calendar")
  func agreesWithFoundation() {
    var random = SeededRandom()
    let formatter = ISO8601DateFormatter()
    for _ in 0..<2_000 {
      let seconds = Int64.random(in: -2_000_000_000...100_000_000_000, using: &random)
      let text = formatter.string(from: Date(timeIntervalSince1970: Double(seconds)))
      expectEqual(parse(text), seconds * 1_000, "\(text), seed \(random.seed)")
    }
  }
}

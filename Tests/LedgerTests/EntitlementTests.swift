// The products that an entitlement's patterns match, and the form of the patterns in an event.
import Ledger
import TestSupport
import Testing

@Suite struct EntitlementTests {
  @Test(
    "a pattern matches a product by its whole id, or by its beginning",
    arguments: [
      ("pro.month", Entitlement.Match.exact), ("pro.year", .prefix), ("pro.", .prefix),
      ("life", .exact), ("lifetime", nil), ("pro", nil), ("PRO.month", nil), ("", nil),
      ("a*", .exact),
    ] as [(String, Entitlement.Match?)])
  func match(_ product: String, _ match: Entitlement.Match?) {
    let entitlement = Entitlement(name: "pro", patterns: ["pro.*", "pro.month", "life"])
    if product == "a*" {
      expectEqual(Entitlement(name: "all", patterns: ["*"]).match(product), .prefix)
    } else {
      expectEqual(entitlement.match(product), match)
    }
  }

  @Test(
    "an app's entitlements are read as written; an app without any has no such member")
  func event() throws {
    var app = AppRegistered(
      appFamilyID: "0e7c2f4a-9a0b-4c5d-8e6f-112233445566", name: "Tide", bundleIDs: ["tide"],
      products: [], appAppleID: 7)
    #expect(!String(decoding: app.data, as: UTF8.self).contains("entitlements"))
    app.entitlements = [
      Entitlement(name: "pro", patterns: ["pro.*", "life"]),
      Entitlement(name: "b", patterns: ["*"]),
    ]
    #expect(
      String(decoding: app.data, as: UTF8.self).hasSuffix(
        #""app_apple_id":7,"entitlements":{"pro":["pro.*","life"],"b":["*"]}}"#))
    let read = try app.data.withUnsafeBytes { try AppRegistered(data: $0) }
    expectEqual(read, app)
  }
}

// Objects of a page that were refused for time or trust, and that count once a later event accepts them.
import AppStore
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct AcceptedSignatureTests {
  private static let app = LiveProjectionsTests.app([])

  private static func refused(
    _ payload: JSONText, _ reason: SignedObjectFault = .untrustedRoot
  ) -> SignedObjectPlan {
    SignedObjectPlan(payload, .invalid(reason: reason.rawValue))
  }

  private static func texts(_ sql: String, _ fixture: LedgerFixture) throws -> [String] {
    try texts(sql, in: fixture.current())
  }

  private static func texts(_ sql: String, in database: Database) throws -> [String] {
    let rows = try database.prepare(sql)
    var result: [String] = []
    while try rows.step() { result.append(rows.text(0)) }
    return result
  }

  private static let sales =
    "SELECT sale_key || ' ' || first_position FROM sale_view ORDER BY sale_key"
  private static let exceptions = """
    SELECT exception || ' ' || detail || ' ' || position FROM exception_view
    WHERE exception != 'unpriced' ORDER BY position, 1
    """

  @Test(arguments: SignedObjectFault.allCases)
  func anObjectCountsOnlyIfItsReasonWasOfTimeOrTrust(_ fault: SignedObjectFault) throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app, .fetched([SignedObjectPlan(signed("1")), Self.refused(signed("2"), fault)]),
    ])
    try expectEqual(Self.texts(Self.sales, fixture), ["1 1"])
    try fixture.append([.accepted(1, transactions: [1])])
    let isAccepted = [
      .untrustedRoot, .certificateExpired, .certificateNotYetValid, .signedInFuture,
    ].contains(fault)
    try expectEqual(Self.texts(Self.sales, fixture), (isAccepted ? ["1 1", "2 2"] : ["1 1"]))
    let refusal = "signature_refused \(fault.rawValue) at 1, transactions[1] 1"
    let shown = try Self.texts(Self.exceptions, fixture)
    expectEqual(
      shown,
      (isAccepted
        ? [refusal] : [refusal, "malformed_event signatures.accepted page 2"]))
    #expect(fixture.notices.isEmpty, "it was caught up, not rebuilt")
  }

  @Test(arguments: [
    ("a later page", TestEvent.accepted(3, transactions: [0])),
    ("itself", .accepted(2, transactions: [0])), ("an app", .accepted(0, transactions: [0])),
    ("a place that is not there", .accepted(1, transactions: [2])),
    ("an object that counts", .accepted(1, transactions: [0, 1])),
    (
      "renewal information that is not there", .accepted(1, transactions: [0], renewals: [0])
    ),
  ])
  func whatNamesNoRefusedObjectIsMalformedAsAWhole(
    _ situation: String, _ event: TestEvent
  ) throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app, .fetched([Self.refused(signed("1")), SignedObjectPlan(signed("2"))]), event,
      .fetched([Self.refused(signed("3"))]),
    ])
    try expectEqual(Self.texts(Self.sales, fixture), ["2 1"], "\(situation)")
    #expect(
      try Self.texts(Self.exceptions, fixture).contains(
        "malformed_event signatures.accepted page 2"), "\(situation)")
  }

  @Test func renewalInformationCountsToo() throws {
    let fixture = try LedgerFixture()
    let monthly: Members = [
      "type": "Auto-Renewable Subscription", "expiresDate": instant("2026-03-01"),
    ]
    let renewal: JSONText = [
      "originalTransactionId": "1", "signedDate": instant("2026-01-09"), "autoRenewStatus": 0,
      "environment": "Production",
    ]
    try fixture.append([
      Self.app,
      .fetched(
        [SignedObjectPlan(signed("1", monthly))],
        renewals: [Self.refused(renewal, .signedInFuture)], .statuses),
    ])
    let autoRenew = "SELECT ifnull(auto_renew, '-') FROM subscription_view"
    try expectEqual(Self.texts(autoRenew, fixture), ["-"])
    try fixture.append([.accepted(1, renewals: [0])])
    try expectEqual(Self.texts(autoRenew, fixture), ["0"])
  }

  @Test func aSaleIsFollowedToTheEventThatAcceptedIt() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app, .fetched([Self.refused(signed("1"))]), .accepted(1, transactions: [0]),
    ])
    let reader = try LogReader(fixture.directory)
    let queries = try LedgerQueries(try fixture.current()) { try reader.event(at: $0) }
    let sale = try #require(try queries.sales(key: "1").first)
    expectEqual(sale.firstPosition, 2)
    try expectEqual(queries.statements(about: sale).statements.map(\.source), [.acceptance])
    try expectEqual(queries.sales(shownBySignedEvent: reader.event(at: 2)), [sale])
    try expectEqual(queries.positions(of: [.signaturesAccepted], before: 9), [2])
    try expectEqual(queries.positions(of: [.appRegistered], before: 3), [0])
  }

  @Test func aRebuildGivesWhatWasFoldedAsItCame() throws {
    let fixture = try LedgerFixture()
    for event: TestEvent in [
      Self.app, .fetched([Self.refused(signed("1")), Self.refused(signed("2"))]),
      .signedUpload(signed("1"), user: "u"), .accepted(1, transactions: [0]),
      .accepted(1, transactions: [1]), .accepted(1, transactions: [0, 1]),
    ] {
      try fixture.append([event])
      _ = try fixture.current()
    }
    try expectEqual(Self.texts(Self.sales, fixture), ["1 2", "2 4"])
    let rebuilt = try fixture.rebuilt()
    for sql in [Self.sales, Self.exceptions, "SELECT position FROM signature_acceptances"] {
      try expectEqual(Self.texts(sql, in: rebuilt), Self.texts(sql, fixture))
    }
  }
}

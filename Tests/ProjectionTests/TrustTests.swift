// Revenue by the source of the replies that it rests on.
import Base
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct TrustTests {
  @Test(arguments: cases) func trust(_ rule: RuleCase) throws { try rule.check() }

  /// A reply to an upload, from a source.
  private static func answered(
    _ upload: Int, _ transactions: String..., by source: ReplySource?
  ) -> TestEvent {
    var plan = VerificationPlan(
      upload: upload, occurredAtMs: ms("2026-01-11"),
      reply: .json(
        .object([
          ("status", 0), ("environment", "Production"),
          ("receipt", ["bundle_id": "app", "in_app": .array(transactions.map { row($0) })]),
        ])))
    plan.source = source
    return .verified(plan)
  }

  private static func reused(_ position: Int, for upload: Int, by source: ReplySource?) -> TestEvent
  {
    var plan = VerificationPlan(
      upload: upload, occurredAtMs: ms("2026-01-11"), reply: .reused(position))
    plan.source = source
    return .verified(plan)
  }

  private static let byTrust = "revenue trust,units --environment all --by trust"

  private static let cases = [
    RuleCase(
      "each source has a row of its own",
      [
        .upload(receipt: "a"), answered(0, "1", by: .host("buy.itunes.apple.com")),
        .upload(receipt: "b"), answered(2, "2", "3", by: .host("sandbox.itunes.apple.com")),
        .upload(receipt: "c"), answered(4, "4", by: .host("127.0.0.1:8443")),
        .upload(receipt: "d"), answered(6, "5", by: .host("buy.itunes.apple.com:8443")),
        .upload(receipt: "e"), answered(8, "6", by: .imported),
        .upload(receipt: "f"), answered(10, "7", by: nil),
      ],
      [
        byTrust: ["app_store,3", "configured,2", "imported,1", "not_recorded,1"],
        "revenue trust,country_code,units --by trust,country --environment all": [
          "app_store,DE,3", "configured,DE,2", "imported,DE,1", "not_recorded,DE,1",
        ],
      ]),
    RuleCase(
      "the first observation decides, whoever answers later",
      [
        .upload(receipt: "a"), answered(0, "1", by: .imported),
        answered(0, "1", "2", by: .host("buy.itunes.apple.com")),
        .upload(receipt: "b"), reused(2, for: 3, by: .host("buy.itunes.apple.com")),
      ],
      [byTrust: ["app_store,1", "imported,1"]]),
    RuleCase(
      "a pending sale is unconfirmed until there is a reply",
      [.pending(.unified(.init("1"))), .upload(reply(row("2")))],
      [
        byTrust: ["not_recorded,1"],
        byTrust + " --include-pending": ["not_recorded,1", "unconfirmed,1"],
      ]),
  ]

  @Test("a summary says whether the ledger's sales have one source, whatever the report shows")
  func sources() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      .upload(receipt: "a"), Self.answered(0, "1", by: .imported),
      .upload(receipt: "b"), Self.answered(2, "2", by: .imported),
    ])
    func summary(_ line: String) throws -> ReportSummary {
      try Report.write(
        ReportWords(line).request, from: fixture.current(), to: CSVReportWriter { _ in })
    }
    #expect(try summary("revenue").isOfOneSource)
    try fixture.append([
      .upload(receipt: "c"), Self.answered(4, "3", by: .host("buy.itunes.apple.com")),
    ])
    for line in ["revenue", "journal", "sales", "revenue --country FR"] {
      #expect(try !summary(line).isOfOneSource, "\(line)")
    }
    try expectEqual(summary("revenue").trust.map(\.count).reduce(0, +), 3)
  }

  private static func digest(_ byte: UInt8) -> SHA256Digest {
    [byte].withUnsafeBytes { SHA256.hash($0) }
  }

  @Test func whatIsNotApplesIsNamed() {
    let own = TrustDeclared(
      productionHost: "buy.itunes.apple.com", sandboxHost: "sandbox.itunes.apple.com",
      roots: [], intermediates: [], localTestingSigners: [])
    #expect(own.foreignTrust.isEmpty)
    let foreign = TrustDeclared(
      productionHost: "buy.itunes.apple.com", sandboxHost: "buy.itunes.apple.com.example",
      roots: [Self.digest(1)], intermediates: [.init(name: "Mine", sha256: Self.digest(2))],
      localTestingSigners: [Self.digest(3)])
    expectEqual(
      foreign.foreignTrust,
      [
        "host buy.itunes.apple.com.example for sandbox", "root \(Self.digest(1).hex)",
        "intermediate 'Mine' \(Self.digest(2).hex)",
        "local testing signer \(Self.digest(3).hex)",
      ])
  }
}

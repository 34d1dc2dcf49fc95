// trust.declared: it is read as written, and what deviates from the catalogue is refused.
import Base
import Ledger
import TestSupport
import Testing

@Suite struct TrustDeclaredTests {
  private static func digest(_ byte: UInt8) -> SHA256Digest {
    [UInt8](repeating: byte, count: 32).withUnsafeBytes { SHA256.hash($0) }
  }

  private static let trust = TrustDeclared(
    productionHost: "buy.itunes.apple.com", sandboxHost: "localhost:8443",
    roots: [digest(1), digest(2), digest(3)],
    intermediates: [
      .init(name: "An intermediate \"of\" two\nlines", sha256: digest(4)),
      .init(name: "", sha256: digest(5)),
    ],
    localTestingSigners: [digest(6), digest(7)])

  private func read(_ data: [UInt8]) throws(EventError) -> TrustDeclared {
    let result = data.withUnsafeBytes { bytes -> Result<TrustDeclared, EventError> in
      do throws(EventError) { return .success(try TrustDeclared(data: bytes)) } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  @Test func whatIsWrittenIsReadAgain() throws {
    try expectEqual(read(Self.trust.data), Self.trust)
  }

  @Test func theOrderOfConfigurationMakesNoDifference() {
    var other = Self.trust
    other = TrustDeclared(
      productionHost: other.productionHost, sandboxHost: other.sandboxHost,
      roots: other.roots.reversed(), intermediates: other.intermediates.reversed(),
      localTestingSigners: other.localTestingSigners.reversed())
    expectEqual(other.data, Self.trust.data)
  }

  @Test(arguments: [
    ("production_host", #""buy.itunes.apple.com""#, #""""#),
    ("sandbox_host", #""localhost:8443""#, "5"),
    ("roots_sha256", digest(1).hex, "AB"),
    ("intermediates", digest(4).hex, "none"),
    ("local_testing_signers_sha256", digest(6).hex, String(repeating: "g", count: 64)),
  ]) func aMemberThatIsNotWhatTheCatalogueSaysIsNamed(
    _ member: String, _ good: String, _ bad: String
  ) throws {
    let text = String(decoding: Self.trust.data, as: UTF8.self)
    let changed = text.replacing(good, with: bad, maxReplacements: 1)
    #expect(changed != text)
    #expect(throws: EventError.badField(.trustDeclared, field: member)) {
      try read(Array(changed.utf8))
    }
  }

  @Test func anAuditKeepsDeclarationsUpToABoundAndCountsTheOthers() throws {
    let fixture = try LedgerFixture()
    let writer = try LedgerWriter.open(fixture.directory)
    var large = Self.trust
    large.intermediates[0].name = String(repeating: "n", count: 500_000)
    for _ in 0..<3 { _ = try writer.append([large.draft]) }
    _ = try writer.append([Self.trust.draft])
    try writer.close()
    let report = try LogAudit(fixture.directory).run()
    #expect(report.isWhole)
    expectEqual(report.trust.map(\.position), [0, 1, 3])
    expectEqual(report.furtherTrustCount, 1)
  }
}

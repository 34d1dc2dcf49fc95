// `resegment`: the same ledger in small segments.
import Ledger
import TestSupport
import Testing

@Suite struct ResegmentTests {
  @Test func aLedgerInSmallSegmentsIsTheSameLedger() throws {
    let directory = try TemporaryDirectory()
    let source = try LedgerFixture()
    try source.append((0..<80).map { .upload(user: "u\($0)") })
    let outcome = try Outcome(
      of: "resegment", [source.path, "-o", "small", "--segment-bytes", "4000"], in: directory.path)
    try #require(outcome.exitCode == 0, "\(outcome.diagnostics)")
    let (one, other) = (
      try LogReader(source.directory),
      try LogReader(LedgerDirectory.open(path: directory.path("small")))
    )
    #expect(other.damage == nil)
    expectEqual(other.head.root, one.head.root)
    expectEqual(other.directory.identity.origin, one.directory.identity.origin)
    try #expect(other.parts(size: other.head.size).count > 2)
  }

  @Test func wrongUsageIsRefused() throws {
    let directory = try TemporaryDirectory()
    try expectEqual(Outcome(of: "resegment", [], in: directory.path).exitCode, 2)
    let none = ["none", "-o", "small", "--segment-bytes", "4000"]
    try expectEqual(Outcome(of: "resegment", none, in: directory.path).exitCode, 1)
  }
}

// Signatures of files that were checked before.
import Base
import Intake
import Server
import TestSupport
import Testing

@Suite struct SeenFileTests {
  @Test(
    "a file is checked again unless it was found valid",
    arguments: [
      (LocalVerification.valid, 1), (.signatureInvalid, 3), (.signatureUntrusted, 3),
      (.timeOnly("certificate_expired"), 3),
    ])
  func again(_ verdict: LocalVerification, checks: Int) throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))), checker: verdict)
    let answers = try (0..<3).map { _ in try fixture.upload("1").status }
    expectEqual(fixture.checker.count, checks)
    expectEqual(Set(answers).count, 1)
    try fixture.upload("2")
    expectEqual(fixture.checker.count, checks + 1)
  }

  @Test("a digest that shares its place with a valid file's is not taken for it")
  func samePlace() {
    let files = ValidFiles()
    let (one, other) = (SHA256Digest(7, 0, 0, 1), SHA256Digest(7, 0, 0, 2))
    expectEqual([one, other].map(files.contains), [false, false])
    files.add(one)
    expectEqual([one, other].map(files.contains), [true, false])
    files.add(other)
    expectEqual([one, other].map(files.contains), [false, true])
  }

  @Test("new trust checks a valid file again, and may find it forged")
  func newTrust() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    try expectEqual(fixture.upload("1").status, 200)
    let stricter = StatedChecker(.signatureUntrusted)
    try fixture.workflow.apply(fixture.configuration, checker: stricter)
    try expectEqual(fixture.upload("1").status, 402)
    expectEqual(stricter.count, 1)
    try fixture.workflow.apply(fixture.configuration, checker: fixture.checker)
    try expectEqual(fixture.upload("1").status, 200)
    expectEqual(fixture.checker.count, 2)
  }
}

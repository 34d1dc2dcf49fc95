// `replay --follow`: across sealing and new segments, until a signal or a closed pipe.
import Foundation
import Ledger
import TestSupport
import Testing

@Suite(.bounded) struct ReplayFollowTests {
  /// A running `replay --follow`.
  private final class Follower {
    private let process = Process()
    private let output: URL
    private let temporary: TemporaryDirectory

    init(_ ledger: String, _ options: String = "") throws {
      temporary = try TemporaryDirectory("follow")
      output = URL(fileURLWithPath: temporary.path("output"))
      _ = FileManager.default.createFile(atPath: output.path, contents: nil)
      process.executableURL = URL(fileURLWithPath: "/bin/sh")
      process.arguments = [
        "-c", "exec ledgerctl replay --follow \(options) --ledger '\(ledger)'",
      ]
      process.environment = ["PATH": "\(BuiltProducts.path):/usr/bin:/bin"]
      process.standardInput = FileHandle.nullDevice
      process.standardOutput = try FileHandle(forWritingTo: output)
      process.standardError = FileHandle.standardError
      try process.run()
    }

    func text() throws -> String { try String(contentsOf: output, encoding: .utf8) }

    /// Waits for a number of lines.
    func wait(forLines count: Int) throws {
      _ = try eventually { try text().filter { $0 == "\n" }.count >= count }
    }

    /// Sends SIGINT; returns the exit code.
    func interrupt() -> Int32 {
      process.interrupt()
      process.waitUntilExit()
      return process.terminationStatus
    }
  }

  private static func log(_ fixture: LedgerFixture) throws -> String {
    var bytes: [UInt8] = []
    try LogReader(fixture.directory).read(from: 0) {
      bytes.append(contentsOf: $0.bytes)
      return true
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test func everyEventIsPrintedOnceAcrossSealingAndNewSegments() throws {
    // Blocks of two kilobytes, segments of two or three blocks.
    let fixture = try LedgerFixture(blockByteCount: 2 << 10, segmentByteCount: 3 << 10)
    var generator = HistoryGenerator(seed: 21)
    try fixture.append(generator.steps(10))
    let follower = try Follower(fixture.path)
    for count in [1, 5, 30, 1, 1, 60] {
      try fixture.append(generator.steps(count))
      try follower.wait(forLines: fixture.eventCount)
    }
    let segments = try FileManager.default.contentsOfDirectory(atPath: fixture.path + "/log").filter
    {
      $0.hasSuffix(".jsonl.gz")
    }
    #expect(segments.count > 3)
    expectEqual(follower.interrupt(), 0)
    try expectEqual(follower.text(), Self.log(fixture))
  }

  @Test func newEventsOfAUserArePrinted() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(reply(row("1")), user: "anna", receipt: "a")])
    let follower = try Follower(fixture.path, "--user anna")
    try follower.wait(forLines: 2)
    try fixture.append([
      .upload(reply(row("2")), user: "bob", receipt: "b"),
      .upload(reply(row("3")), user: "anna", receipt: "c"),
      // Of an earlier upload.
      .verify(0, reply(row("1"))),
    ])
    try follower.wait(forLines: 5)
    expectEqual(follower.interrupt(), 0)
    let positions = try follower.text().split(separator: "\n").map { line in
      line.dropFirst("{\"seq\":".count).prefix { $0.isNumber }
    }
    expectEqual(positions, ["0", "1", "4", "5", "6"])
  }

  @Test func followStartsAtAFuturePosition() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 22)
    let follower = try Follower(fixture.path, "--from 8")
    while fixture.eventCount < 9 { try fixture.append(generator.steps(1)) }
    let lines = try Self.log(fixture).split(separator: "\n").dropFirst(8)
    try follower.wait(forLines: lines.count)
    expectEqual(follower.interrupt(), 0)
    #expect(try follower.text().split(separator: "\n").elementsEqual(lines))
  }

  /// Even if there is nothing to write.
  @Test(.timeLimit(.minutes(2))) func closedPipeEndsFollowQuietly() throws {
    let sandbox = try Sandbox()
    let outcome = try sandbox.run(
      """
      . "$SHOP"; shop_ledger >out
      { ledgerctl replay --follow; echo "= $?" >&2; } | head -n 2 | cut -c 1-8
      """)
    expectEqual(outcome.output, "{\"seq\":0\n{\"seq\":1\n")
    expectEqual(outcome.diagnostics, "= 0\n")
  }
}

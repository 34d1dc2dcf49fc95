// Ledgers that cannot be scanned: damage, missing files, newer formats, links. Each has its exit code.
import Base
import Foundation
import Ledger
import LedgerRules
import TestSupport
import Testing

private func ledger() throws -> LedgerFixture {
  let fixture = try LedgerFixture(blockByteCount: 4 << 10, segmentByteCount: 12 << 10)
  var generator = HistoryGenerator(seed: 6)
  try fixture.append(generator.steps(150))
  return fixture
}

private func names(_ fixture: LedgerFixture, _ suffix: String) throws -> [String] {
  try FileManager.default.contentsOfDirectory(atPath: fixture.path + "/log")
    .filter { $0.hasSuffix(suffix) }.sorted().map { fixture.path + "/log/" + $0 }
}

private func change(_ path: String, _ body: (inout [UInt8]) -> Void) throws {
  var content = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
  body(&content)
  try FileManager.default.removeItem(atPath: path)
  #expect(
    FileManager.default.createFile(
      atPath: path, contents: Data(content), attributes: [.posixPermissions: 0o600]))
}

/// CRC-32 as in gzip.
private func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
  ~bytes.reduce(UInt32.max) { sum, byte in
    (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1
    }
  }
}

@Suite struct DamageTests {
  @Test func aDamagedBlockIsReported() throws {
    let fixture = try ledger()
    let segment = try #require(try names(fixture, ".jsonl.gz").first)
    try change(segment) { $0[$0.count / 2] ^= 1 }
    let range = try #require(try plan(fixture.path).ranges.first)
    let found = failure { _ = try scan(fixture.path, range) }
    expectEqual(found?.exitCode, .corrupted)
    #expect(found?.object.hasPrefix("log/00000000000000000000.jsonl.gz, block ") == true)
  }

  @Test func aMissingSegmentIsReported() throws {
    let fixture = try ledger()
    let segment = try names(fixture, ".jsonl.gz")[1]
    try FileManager.default.removeItem(atPath: segment)
    let found = failure { _ = try plan(fixture.path) }
    expectEqual(found?.exitCode, .corrupted)
    expectEqual(found?.cause, "missing: the segment is missing")
    try FileManager.default.removeItem(atPath: try names(fixture, ".jsonl.gz")[0])
    expectEqual(failure { _ = try plan(fixture.path) }?.exitCode, .corrupted)
    expectEqual(failure { _ = try scan(fixture.path, 0..<1) }?.exitCode, .corrupted)
  }

  /// A tail with a right checksum and one wrong digest.
  @Test func anEventWithAnotherContentIsReported() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(country: "DE")])
    let tail = try #require(try names(fixture, ".log").first)
    try change(tail) { content in
      let text = String(decoding: content, as: UTF8.self)
        .replacingOccurrences(of: #""country_code":"DE""#, with: #""country_code":"DK""#)
      let rest = Array(text.utf8).drop { $0 != 0x20 }.dropFirst()
      let digits = String(checksum(rest), radix: 16)
      let padded = String(repeating: "0", count: 8 - digits.count) + digits
      content = Array("#\(padded) ".utf8) + rest
    }
    let found = failure { _ = try scan(fixture.path, 0..<1) }
    expectEqual(found?.exitCode, .corrupted)
    expectEqual(
      found?.line,
      "ledger-rules: scan: log, position 0: tampered: its digest is not that of its salt and data")
  }

  @Test func aNewerFormatIsReported() throws {
    let fixture = try ledger()
    try change(fixture.path + "/ledger.json") { content in
      content = Array(
        String(decoding: content, as: UTF8.self)
          .replacingOccurrences(of: #""format_version":1"#, with: #""format_version":3"#).utf8)
    }
    expectEqual(failure { _ = try plan(fixture.path) }?.exitCode, .newerFormat)
    expectEqual(failure { _ = try scan(fixture.path, 0..<1) }?.exitCode, .newerFormat)
  }

  @Test(arguments: [("thing.happened", 1), ("receipt.uploaded", 3)])
  func anEventOfALaterProgramIsReported(_ type: String, _ version: Int) throws {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(), .raw(type: type, version: version, [:])])
    let found = failure { _ = try scan(fixture.path, 0..<2) }
    expectEqual(found?.exitCode, .newerFormat)
    expectEqual(found?.object, "position 1")
  }

  @Test func linksAreRefused() throws {
    let fixture = try ledger()
    let segment = try #require(try names(fixture, ".jsonl.gz").first)
    let elsewhere = try TemporaryDirectory()
    try FileManager.default.moveItem(atPath: segment, toPath: elsewhere.path("segment"))
    try FileManager.default.createSymbolicLink(
      atPath: segment, withDestinationPath: elsewhere.path("segment"))
    expectEqual(failure { _ = try plan(fixture.path) }?.exitCode, .failed)
    expectEqual(failure { _ = try scan(fixture.path, 0..<1) }?.exitCode, .failed)
  }

  @Test func whatIsNoLedgerIsReported() throws {
    let empty = try TemporaryDirectory()
    expectEqual(failure { _ = try plan(empty.path) }?.exitCode, .noLedger)
    expectEqual(failure { _ = try scan(empty.path("none"), 0..<1) }?.exitCode, .noLedger)
  }

  @Test func wrongRangesAreUsageErrors() {
    func found(_ arguments: String...) -> ExitCode? {
      failure { try ScanCommand.run(RulesArguments(["--directory", "d"] + arguments)) }?.exitCode
    }
    expectEqual(found(), .usage)
    expectEqual(found("--from", "0"), .usage)
    expectEqual(found("--from", "5", "--to", "4"), .usage)
    expectEqual(found("--from", "-1", "--to", "4"), .usage)
    expectEqual(found("--from", "0", "--to", "3000000000"), .usage)
  }
}

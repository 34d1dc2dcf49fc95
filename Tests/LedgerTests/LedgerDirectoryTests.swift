// How a ledger is created, who may open it, and the messages of refusals.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite("The ledger's directory")
struct LedgerDirectoryTests {
  @Test("Directories are 0700, files 0600, closed segments 0400")
  func permissions() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(60)
    func mode(_ name: String) throws -> Int? {
      let path = name.isEmpty ? fixture.path : fixture.path + "/" + name
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      return (attributes[.posixPermissions] as? NSNumber)?.intValue
    }
    try expectEqual(mode(""), 0o700)
    try expectEqual(mode("log"), 0o700)
    for name in ["ledger.json", "lock"] { try expectEqual(mode(name), 0o600) }
    for name in fixture.tailNames { try expectEqual(mode("log/" + name), 0o600) }
    for name in fixture.segmentNames {
      try expectEqual(mode("log/" + name), (name == fixture.segmentNames.last ? 0o600 : 0o400))
    }
  }

  @Test("What was created is opened with the same identity")
  func identity() throws {
    let fixture = try LedgerFixture()
    let opened = try LedgerDirectory.open(path: fixture.path)
    expectEqual(opened.identity, fixture.directory.identity)
    let id = Array(opened.identity.id.description)
    #expect(id.count == 36 && id[14] == "4" && "89ab".contains(id[19]))
    let key = "receipts.example/test+ad516c7e+AQOhB7=="
    let changed = try opened.withPublicKeys([key])
    expectEqual(changed.identity.publicKeys, [key])
    try expectEqual(LedgerDirectory.open(path: fixture.path).identity, changed.identity)
  }

  @Test("A path without a ledger, a newer ledger and a damaged one are told apart")
  func refusals() throws {
    let fixture = try LedgerFixture()
    let file = fixture.path + "/ledger.json"
    let original = try String(contentsOfFile: file, encoding: .utf8)
    let cases: [(String, ExitCode, String)] = [
      ("{\"format_version\":3,\"anything\":{}}", .newerFormat, "format version 3"),
      ("", .corrupted, "does not begin with a format_version"),
      ("{\"format_version\":0", .corrupted, "no format version 0"),
      ("{\"format_version\":99999999999999999999999}", .corrupted, "format_version"),
      (original.replacingOccurrences(of: "receipts", with: "re ceipts"), .corrupted, "origin"),
      (original.replacingOccurrences(of: "-", with: ""), .corrupted, "id is missing"),
      (original + "x", .corrupted, "unexpected bytes follow it"),
      (String(original.dropLast(3)), .corrupted, "public_keys"),
    ]
    for (text, exitCode, part) in cases {
      try text.write(toFile: file, atomically: false, encoding: .utf8)
      let error = #expect(throws: LedgerError.self) {
        try LedgerDirectory.open(path: fixture.path)
      }
      #expect(error?.exitCode == exitCode && error?.description.contains(part) == true, "\(text)")
    }
    try FileManager.default.removeItem(atPath: file)
    for (path, cause) in [
      (fixture.path, "it contains no ledger.json"),
      (fixture.path + "/nowhere", "there is no such directory"),
      ("/dev/null", "it is not a directory"),
    ] {
      let error = #expect(throws: LedgerError.self) { try LedgerDirectory.open(path: path) }
      #expect(error?.kind == .noLedger && error?.exitCode == .noLedger)
      expectEqual(error?.description, "open ledger: \(path): \(cause)")
    }
  }

  @Test("White space in ledger.json does no harm")
  func whiteSpace() throws {
    let fixture = try LedgerFixture()
    let file = fixture.path + "/ledger.json"
    let text = try String(contentsOfFile: file, encoding: .utf8)
      .replacingOccurrences(of: ",\"", with: " ,\n  \"")
    try text.write(toFile: file, atomically: false, encoding: .utf8)
    try expectEqual(LedgerDirectory.open(path: fixture.path).identity, fixture.directory.identity)
  }

  @Test("Only new or empty directories become ledgers")
  func createTwice() throws {
    let fixture = try LedgerFixture()
    func creationError() -> LedgerError? {
      #expect(throws: LedgerError.self) {
        try LedgerDirectory.create(path: fixture.path, origin: "other.example")
      }
    }
    expectEqual(creationError()?.cause, "it is a ledger already")
    try fixture.fill(1)
    try FileManager.default.removeItem(atPath: fixture.path + "/ledger.json")
    expectEqual(creationError()?.cause, "the directory is not empty")
    try fixture.remove(fixture.tailNames[0])
    // Leftovers of an interrupted attempt.
    _ = try LedgerDirectory.create(path: fixture.path, origin: "other.example")
  }

  @Test(
    "A name with white space, + or quotes, a URL, or a name that ends in a slash is not an origin",
    arguments: [
      "", "a b", "a+b", "a\"b", "a\\b", "a\n", "a\u{a0}b", String(repeating: "a", count: 256),
      "https://example.com/a", "ftp://a", "//a", "/a", "a/", "example.com/a/", "/",
    ])
  func badOrigin(_ origin: String) throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.path("ledger")
    let error = #expect(throws: LedgerError.self) {
      try LedgerDirectory.create(path: path, origin: origin)
    }
    expectEqual(error?.kind, .invalidInput)
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("A second writer learns which process holds the lock")
  func lock() throws {
    let fixture = try LedgerFixture()
    let writer = try LedgerWriter.open(fixture.directory)
    let error = #expect(throws: LedgerError.self) { try LedgerWriter.open(fixture.directory) }
    expectEqual(error?.exitCode, .locked)
    expectEqual(error?.cause, "locked by process \(ProcessInfo.processInfo.processIdentifier)")
    try writer.close()
    try fixture.fill(1)
  }
}

// Keys and checkpoints on disk: never overwritten, never contradicting each other.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite("Keys and checkpoints of a ledger")
struct CheckpointStoreTests {
  private func mode(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  private func signed(_ fixture: LedgerFixture, size: Int? = nil) throws -> Checkpoint {
    let directory = try LedgerDirectory.open(path: fixture.path)
    return try CheckpointStore(directory).sign(try LogReader(directory), size: size)
  }

  @Test("A key belongs to its owner alone, is listed in ledger.json, and is not made twice")
  func key() throws {
    let fixture = try LedgerFixture()
    let first = try KeyStore(fixture.directory).create(isFurther: false)
    try expectEqual(mode(fixture.path + "/keys"), 0o700)
    try expectEqual(mode(fixture.path + "/keys/\(first.idText).key"), 0o600)
    var directory = try LedgerDirectory.open(path: fixture.path)
    expectEqual(directory.identity.publicKeys, ["\(first)"])
    expectEqual(first.name, "receipts.example/test")
    let error = #expect(throws: LedgerError.self) {
      try KeyStore(directory).create(isFurther: false)
    }
    expectEqual(error?.kind, .invalidInput)
    let second = try KeyStore(directory).create(isFurther: true)
    directory = try LedgerDirectory.open(path: fixture.path)
    try expectEqual(KeyStore(directory).publicKeys(), [first, second])
    try expectEqual(KeyStore(directory).signingKey()?.verifierKey, second)
    #expect(FileManager.default.fileExists(atPath: fixture.path + "/keys/\(first.idText).key"))
    try FileManager.default.removeItem(atPath: fixture.path + "/keys/\(second.idText).key")
    try expectEqual(KeyStore(directory).signingKey()?.verifierKey, first)
  }

  @Test("A key file with another key's content does not sign")
  func foreignKeyFile() throws {
    let fixture = try LedgerFixture()
    let key = try KeyStore(fixture.directory).create(isFurther: false)
    let other = try LedgerFixture()
    let otherKey = try KeyStore(other.directory).create(isFurther: false)
    let path = fixture.path + "/keys/\(key.idText).key"
    for content in [
      try Data(contentsOf: URL(fileURLWithPath: other.path + "/keys/\(otherKey.idText).key")),
      Data(), Data("PRIVATE+KEY+".utf8), Data(count: 2 << 20),
    ] {
      try content.write(to: URL(fileURLWithPath: path))
      #expect(throws: LedgerError.self) { try signed(fixture) }
    }
  }

  @Test(
    "A key that others can read or write does not sign until it is private again",
    arguments: [0o640, 0o604, 0o620, 0o602, 0o610])
  func exposedKeyFile(_ permissions: Int) throws {
    let fixture = try LedgerFixture()
    let key = try KeyStore(fixture.directory).create(isFurther: false)
    let path = fixture.path + "/keys/\(key.idText).key"
    try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
    let error = #expect(throws: LedgerError.self) { try signed(fixture) }
    #expect(error?.kind == .invalidInput && error?.object == "keys/\(key.idText).key")
    #expect(error?.cause.hasPrefix("other users can read or write it") == true)
    #expect(!FileManager.default.fileExists(atPath: fixture.path + "/checkpoints"))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    try expectEqual(signed(fixture).size, 0)
  }

  @Test("Names are bytes: an accent in two scalars differs from the same accent in one")
  func canonicallyEquivalentNames() throws {
    let composed = "caf\u{E9}.example"
    let decomposed = "cafe\u{301}.example"
    expectEqual(composed, decomposed)
    let fixture = try LedgerFixture(origin: composed)
    let key = try KeyStore(fixture.directory).create(isFurther: false)
    let text = String(decoding: try signed(fixture).bytes, as: UTF8.self)
    try expectEqual(Checkpoint(Array(text.utf8), keys: [key]).size, 0)
    // The name on the signature line is not signed, but must equal the key's, byte for byte.
    let line = try #require(text.split(separator: "\n").last)
    let changed = text.replacing(
      line, with: line.replacing(composed, with: decomposed), maxReplacements: 1)
    #expect(Array(changed.utf8) != Array(text.utf8))
    #expect(throws: ProofError.self) { try SignedNote(Array(changed.utf8)).signers(among: [key]) }
    let namesake = try #require(VerifierKey(name: decomposed, publicKey: key.publicKey))
    #expect(namesake != key && namesake.id != key.id)
    // A checkpoint of one ledger, kept by another of the same name.
    let other = try LedgerFixture(origin: decomposed)
    _ = try KeyStore(other.directory).create(isFurther: false)
    let otherText = String(decoding: try signed(other).bytes, as: UTF8.self)
    let otherKey = try #require(
      try KeyStore(LedgerDirectory.open(path: other.path)).publicKeys().first)
    let note = try Checkpoint(Array(otherText.utf8), keys: [otherKey, key])
    expectEqual(Array(note.origin.utf8), Array(decomposed.utf8))
  }

  @Test("A name that begins with a combining mark: its key is written, read and signs")
  func combiningName() throws {
    let fixture = try LedgerFixture(origin: "\u{301}x.example")
    let key = try KeyStore(fixture.directory).create(isFurther: false)
    try expectEqual(VerifierKey("\(key)"), key)
    let checkpoint = try signed(fixture)
    try expectEqual(Checkpoint(checkpoint.bytes, keys: [key]), checkpoint)
  }

  @Test("Without a key nothing is signed")
  func noKey() throws {
    let fixture = try LedgerFixture()
    let error = #expect(throws: LedgerError.self) { try signed(fixture) }
    expectEqual(error?.kind, .invalidInput)
    #expect(!FileManager.default.fileExists(atPath: fixture.path + "/checkpoints"))
  }

  @Test("Every head is kept; a head signed before is returned again, byte for byte")
  func kept() throws {
    let fixture = try LedgerFixture()
    _ = try KeyStore(fixture.directory).create(isFurther: false)
    var checkpoints: [Checkpoint] = []
    for _ in 0..<4 {
      checkpoints.append(try signed(fixture))
      try expectEqual(signed(fixture), checkpoints.last)
      try fixture.fill(7)
    }
    expectEqual(checkpoints.map(\.size), [0, 7, 14, 21])
    let directory = try LedgerDirectory.open(path: fixture.path)
    let store = CheckpointStore(directory)
    try expectEqual(store.sizes(), [0, 7, 14, 21])
    for checkpoint in checkpoints {
      try expectEqual(store.checkpoint(size: checkpoint.size), checkpoint)
    }
    try expectEqual(mode(fixture.path + "/" + CheckpointStore.fileName(size: 7)), 0o600)
    // An earlier head is signed too if it belongs to the same history.
    try expectEqual(signed(fixture, size: 10).size, 10)
    #expect(try store.checkpoint(size: 8) == nil)
  }

  @Test("A further key signs a head that another key has signed")
  func twoKeys() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(3)
    let first = try KeyStore(fixture.directory).create(isFurther: false)
    _ = try signed(fixture)
    let second = try KeyStore(fixture.directory).create(isFurther: true)
    let note = try SignedNote(try signed(fixture).bytes)
    try expectEqual(note.signers(among: [first, second]), [first, second])
  }

  @Test("A log that does not extend the last signed head is not signed")
  func otherHistory() throws {
    let fixture = try LedgerFixture()
    _ = try KeyStore(fixture.directory).create(isFurther: false)
    try fixture.fill(9)
    _ = try signed(fixture)
    let before = try CheckpointStore(fixture.directory).sizes()
    // Another history of the same ledger: its events differ.
    for name in fixture.names { try fixture.remove(name) }
    let other = try LedgerDirectory.create(
      path: fixture.path + "-other", origin: fixture.directory.identity.origin,
      id: fixture.directory.identity.id)
    defer { try? FileManager.default.removeItem(atPath: other.path) }
    let writer = try LedgerWriter.open(other)
    for index in 0..<20 { _ = try writer.append([fixture.draft(index + 100)]) }
    try writer.close()
    try FileManager.default.removeItem(atPath: fixture.logPath)
    try FileManager.default.copyItem(atPath: other.path + "/log", toPath: fixture.logPath)
    let error = #expect(throws: LedgerError.self) { try signed(fixture) }
    #expect(error?.exitCode == .corrupted && error?.damage?.verdict == .tampered)
    try expectEqual(CheckpointStore(fixture.directory).sizes(), before)
  }

  @Test(
    "A log that lost signed events from its end is neither signed nor appended to",
    arguments: [6, 8])
  func shorter(_ size: Int) throws {
    let fixture = try LedgerFixture()
    _ = try KeyStore(fixture.directory).create(isFurther: false)
    try fixture.fill(9, options: WriterOptions())
    _ = try signed(fixture)
    let name = try #require(fixture.tailNames.first)
    let frames = FrameBytes.split(try fixture.content(name))
    try fixture.write(Array(frames[..<size].map(\.bytes).joined()), to: name)
    let error = #expect(throws: LedgerError.self) { try signed(fixture) }
    #expect(error?.damage?.verdict == .missing && error?.damage?.position == size)
    let before = try fixture.content(name)
    let refusal = #expect(throws: LedgerError.self) { try LedgerWriter.open(fixture.directory) }
    #expect(refusal?.exitCode == .corrupted && refusal?.damage?.position == size)
    expectEqual(refusal?.operation, "open for writing")
    let signedName = CheckpointStore.fileName(size: 9)
    expectEqual(refusal?.cause, "\(signedName) signs 9 events, but the log holds \(size)")
    try expectEqual(fixture.content(name), before)
    // Without the checkpoint another witness remains; an operator who accepts the history can open it all the same.
    try FileManager.default.removeItem(
      atPath: fixture.path + "/" + CheckpointStore.fileName(size: 9))
    let second = #expect(throws: LedgerError.self) { try LedgerWriter.open(fixture.directory) }
    expectEqual(second?.cause, "heads names a signed head of 9 events, but the log holds \(size)")
    var options = WriterOptions()
    options.acceptsShorterLog = true
    try fixture.fill(1, options: options)
    try CheckpointStore(fixture.directory).resetHeads(try LogReader(fixture.directory))
    try fixture.fill(1)
  }

  @Test("Missing checkpoints are noticed, and so is the head that the newest had signed")
  func rememberedHeads() throws {
    let fixture = try LedgerFixture()
    _ = try KeyStore(fixture.directory).create(isFurther: false)
    let store = CheckpointStore(fixture.directory)
    #expect(try store.signedHeads() == nil)
    func findings() throws -> [String] {
      let heads = try #require(try store.signedHeads())
      var report = try LogAudit(fixture.directory, rootsAt: [heads.size]).run()
      report.check(heads, name: "heads", keptCount: try store.sizes().count)
      return report.findings.map { "\($0.damage.verdict.rawValue) \($0.cause)" }
    }
    for _ in 0..<3 {
      try fixture.fill(5)
      _ = try signed(fixture)
      // The same head again is not a further checkpoint; nor does an earlier one become the newest.
      _ = try signed(fixture)
    }
    _ = try signed(fixture, size: 7)
    let root = try LogReader(fixture.directory).head.root
    try expectEqual(store.signedHeads(), SignedHeads(count: 4, size: 15, root: root))
    try expectEqual(mode(fixture.path + "/heads"), 0o600)
    try expectEqual(findings(), [])
    try FileManager.default.removeItem(
      atPath: fixture.path + "/" + CheckpointStore.fileName(size: 7))
    try expectEqual(findings(), ["missing 4 checkpoints were made, but 3 are kept"])
    // A new checkpoint does not hide the missing one.
    try fixture.fill(5)
    _ = try signed(fixture)
    try expectEqual(findings(), ["missing 5 checkpoints were made, but 4 are kept"])
    // Earlier programs wrote no `heads`: then the kept checkpoints are counted.
    try FileManager.default.removeItem(atPath: fixture.path + "/heads")
    _ = try signed(fixture)
    try expectEqual(findings(), [])
    try expectEqual(store.signedHeads()?.count, 4)
  }

  @Test("Without its checkpoints a rewritten log is not signed, and the audit finds it")
  func rewrittenLog() throws {
    let fixture = try LedgerFixture()
    _ = try KeyStore(fixture.directory).create(isFurther: false)
    try fixture.fill(9)
    _ = try signed(fixture)
    let other = try LedgerDirectory.create(
      path: fixture.path + "-other", origin: fixture.directory.identity.origin,
      id: fixture.directory.identity.id)
    defer { try? FileManager.default.removeItem(atPath: other.path) }
    let writer = try LedgerWriter.open(other)
    for index in 0..<20 { _ = try writer.append([fixture.draft(index + 100)]) }
    try writer.close()
    try FileManager.default.removeItem(atPath: fixture.logPath)
    try FileManager.default.copyItem(atPath: other.path + "/log", toPath: fixture.logPath)
    try FileManager.default.removeItem(atPath: fixture.path + "/checkpoints")
    let error = #expect(throws: LedgerError.self) { try signed(fixture) }
    #expect(error?.exitCode == .corrupted && error?.damage?.file == "heads")
    let store = CheckpointStore(fixture.directory)
    let heads = try #require(try store.signedHeads())
    var report = try LogAudit(fixture.directory, rootsAt: [heads.size]).run()
    #expect(report.isWhole)
    report.check(heads, name: "heads", keptCount: 0)
    expectEqual(report.findings.map(\.damage.verdict), [.missing, .tampered])
    // A damaged `heads` is damage, and no reason to start over.
    for text in ["", "{", "{\"checkpoints\":-1,\"size\":9,\"root\":\"\"}"] {
      try Data(text.utf8).write(to: URL(fileURLWithPath: fixture.path + "/heads"))
      let error = #expect(throws: LedgerError.self) { try signed(fixture) }
      #expect(error?.exitCode == .corrupted && error?.damage?.verdict == .corrupt)
    }
    try store.resetHeads(try LogReader(fixture.directory))
    #expect(try store.signedHeads() == nil)
    try expectEqual(signed(fixture).size, 20)
  }

  @Test("A kept checkpoint that was altered is reported, and nothing is signed")
  func alteredCheckpoint() throws {
    let fixture = try LedgerFixture()
    _ = try KeyStore(fixture.directory).create(isFurther: false)
    try fixture.fill(4)
    _ = try signed(fixture)
    let path = fixture.path + "/" + CheckpointStore.fileName(size: 4)
    var content = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    content[30] ^= 1
    try Data(content).write(to: URL(fileURLWithPath: path))
    try fixture.fill(4)
    #expect(throws: LedgerError.self) { try signed(fixture) }
    try expectEqual(CheckpointStore(fixture.directory).sizes(), [4])
  }
}

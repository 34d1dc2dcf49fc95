// The file of redacted lines: what was written is read, and changes are refused.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite("The file of redacted lines")
struct RedactionFileTests {
  private static let path = "/ledger/erasures/lines"

  private func prepared() throws -> (FaultyStorage, RedactionRig, [[UInt8]]) {
    let storage = try CrashRig.newLedger()
    let rig = RedactionRig(try LedgerDirectory.open(path: "/ledger", storage: storage))
    try rig.fill(12)
    return (storage, rig, try rig.redacted([1, 4, 5, 9], by: 12))
  }

  @Test("Written lines are found by position, in order, and by no other position")
  func roundTrip() throws {
    let (storage, rig, lines) = try prepared()
    #expect(try RedactedLines.ifPresent(rig.directory) == nil)
    let pass = UUID16.random()
    let writer = try RedactionFileWriter(rig.directory, pass: pass)
    for line in lines { try writer.append(line: line) }
    try writer.finish()
    #expect(try RedactedLines.ifPresent(rig.directory) == nil)
    try expectEqual(RedactedLines.uncommitted(rig.directory).count, 4)
    try writer.commit()
    let found = try #require(try RedactedLines.ifPresent(rig.directory))
    #expect(found.pass == pass && found.positions == [1, 4, 5, 9] && found.tag > 0)
    try expectEqual(RedactedLines.ifPresent(rig.directory)?.tag, found.tag)
    for position in 0..<12 {
      let index = found.positions.firstIndex(of: position)
      try expectEqual(found.line(at: position), index.map { lines[$0] })
      expectEqual(found.contains(position), (index != nil))
    }
    #expect(found.contains(in: 2..<5) && !found.contains(in: 6..<9) && !found.contains(in: 3..<3))
    var reader = try found.reader()
    var read: [[UInt8]] = []
    while let line = try reader.next() { read.append(Array(line.bytes)) }
    expectEqual(read, lines)
    // The file is what docs/format.md says.
    let content = storage.content(Self.path)
    let end = try #require(content.firstIndex(of: 0x0A))
    let body = Array(content[(end + 1)...])
    expectEqual(body, lines.flatMap { $0 + [0x0A] })
    let header =
      "{\"pass\":\"\(pass)\",\"lines\":4,\"bytes\":\(body.count),\"sha256\":\"\(hash(body).hex)\"}"
    expectEqual(
      String(decoding: content[..<end], as: UTF8.self).trimmingCharacters(in: [" "]), header)
    expectEqual(end, 191)
  }

  @Test("Lines larger than one read")
  func largeLines() throws {
    let (_, rig, lines) = try prepared()
    let hasher = SHA256()
    let large = try lines.map { line in
      try line.withUnsafeBytes { bytes in
        let kept = "{\"k\":\"\(String(repeating: "k", count: 1_500_000))\"}"
        return try #require(EventLine(bytes)).redacted(by: 12, kept: Array(kept.utf8), hasher)
      }
    }
    try rig.writeFile(large)
    let found = try #require(try RedactedLines.ifPresent(rig.directory))
    for (index, position) in found.positions.enumerated() {
      try expectEqual(found.line(at: position), large[index])
    }
  }

  @Test("A byte flipped anywhere, and every other length, is damage that names the file")
  func damage() throws {
    let (storage, rig, lines) = try prepared()
    try rig.writeFile(lines)
    let content = storage.content(Self.path)
    func error(_ content: [UInt8]) throws -> LedgerError? {
      storage.setContent(Self.path, content)
      return #expect(throws: LedgerError.self) { try RedactedLines.ifPresent(rig.directory) }
    }
    // One pass's id may become another's: only the projections know it, and they are then rebuilt.
    let pass = 9..<45
    for place in content.indices where !pass.contains(place) {
      var changed = content
      changed[place] ^= 1
      let found = try error(changed)
      #expect(found?.damage?.verdict == .corrupt && found?.damage?.file == "erasures/lines")
    }
    for length in stride(from: 0, to: content.count, by: 7) {
      try expectEqual(error(Array(content[..<length]))?.kind, .corruption)
    }
    try expectEqual(error(content + [0x0A])?.kind, .corruption)
    // A reader must not show the original log, and an audit reports the problem.
    #expect(throws: LedgerError.self) { try LogReader(rig.directory) }
    try expectEqual(rig.audit().findings.map(\.damage.file), ["erasures/lines"])
    storage.setContent(Self.path, content)
    try expectEqual(RedactedLines.ifPresent(rig.directory)?.count, 4)
  }

  @Test("An unfinished file has no effect and can be begun again; one in use cannot")
  func begunAgain() throws {
    let (storage, rig, lines) = try prepared()
    let first = try RedactionFileWriter(rig.directory, pass: .random())
    try first.append(line: lines[0])
    #expect(try !RedactionFile.exists(in: rig.directory))
    #expect(try LogReader(rig.directory).redactedLines == nil)
    try rig.writeFile(lines)
    let error = #expect(throws: LedgerError.self) {
      try RedactionFileWriter(rig.directory, pass: .random())
    }
    expectEqual(error?.kind, .invalidInput)
    try RedactionFile.remove(from: rig.directory)
    #expect(try !RedactionFile.exists(in: rig.directory))
    let last = try RedactionFileWriter(rig.directory, pass: .random())
    try last.discard()
    #expect(storage.paths.allSatisfy { !$0.contains("erasures/") })
  }

  @Test("Raising the format version and making keys do not undo each other")
  func formatVersion() throws {
    let (storage, rig, _) = try prepared()
    expectEqual(rig.directory.identity.formatVersion, 1)
    _ = try KeyStore(rig.directory).create(isFurther: false)
    let raised = try rig.directory.allowingRedactions()
    #expect(raised.identity.formatVersion == 2 && raised.identity.publicKeys.count == 1)
    // Both began with the original file.
    _ = try KeyStore(rig.directory).create(isFurther: true)
    let opened = try LedgerDirectory.open(path: "/ledger", storage: storage)
    #expect(opened.identity.formatVersion == 2 && opened.identity.publicKeys.count == 2)
    try expectEqual(opened.allowingRedactions().identity, opened.identity)
  }

  @Test(
    "The key of redacted lines is made once, hides digests, and is refused if others can read it")
  func lineKey() throws {
    let fixture = try LedgerFixture()
    #expect(try LineHMACKey.ifPresent(fixture.directory) == nil)
    let key = try LineHMACKey.made(fixture.directory)
    let path = fixture.path + "/keys/lines.hmac"
    let text = try String(contentsOfFile: path, encoding: .utf8)
    #expect(text.count == 65 && text.last == "\n")
    let message = hash([1])
    try expectEqual(
      LineHMACKey.made(fixture.directory).digest(of: message), key.digest(of: message))
    // RFC 2104, by its definition.
    let bytes = stride(from: 0, to: 64, by: 2).compactMap {
      UInt8(text.dropFirst($0).prefix(2), radix: 16)
    }
    let block = bytes + [UInt8](repeating: 0, count: 32)
    let inner = hash(block.map { $0 ^ 0x36 } + message.bytes)
    expectEqual(key.digest(of: message), hash(block.map { $0 ^ 0x5C } + inner.bytes))
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
    let error = #expect(throws: LedgerError.self) { try LineHMACKey.made(fixture.directory) }
    #expect(error?.kind == .invalidInput && error?.object == "keys/lines.hmac")
    #expect(error?.description.contains(text.dropLast()) == false)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    for wrong in [
      "00\n", "", "\n", "partial\n", text + "\n", text + "Partial\n", String(text.dropLast()),
    ] {
      try wrong.write(toFile: path, atomically: false, encoding: .utf8)
      #expect(throws: LedgerError.self) { try LineHMACKey.ifPresent(fixture.directory) }
    }
  }

  @Test(
    "A lost key is missed until it is back, even if another one was made meanwhile")
  func lostLineKey() throws {
    let fixture = try LedgerFixture()
    #expect(try !LineHMACKey.isMissing(fixture.directory))
    let key = try LineHMACKey.made(fixture.directory)
    let directory = try fixture.directory.allowingRedactions()
    #expect(try !LineHMACKey.isMissing(directory))
    let path = fixture.path + "/keys/lines.hmac"
    let text = try String(contentsOfFile: path, encoding: .utf8)
    try FileManager.default.removeItem(atPath: path)
    #expect(try LineHMACKey.isMissing(directory))
    let other = try LineHMACKey.made(directory)
    #expect(try other.isPartial && LineHMACKey.isMissing(directory))
    let made = try String(contentsOfFile: path, encoding: .utf8)
    #expect(made.hasSuffix("\npartial\n") && !made.contains(text))
    // Both keys, one after the other.
    let both = text + made.dropLast("partial\n".count)
    try both.write(toFile: path, atomically: false, encoding: .utf8)
    #expect(try !LineHMACKey.isMissing(directory))
    let message = hash([1])
    let found = try #require(try LineHMACKey.ifPresent(directory)).digests(of: message)
    expectEqual(found, [key.digest(of: message), other.digest(of: message)])
  }
}

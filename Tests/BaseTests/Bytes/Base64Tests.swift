// Base64: canonical texts and no others.

import Base
import Foundation
import TestSupport
import Testing

@Suite("Base64")
struct Base64Tests {
  @Test(
    "the standard's own examples decode and encode",
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
      ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
  func examples(plain: String, encoded: String) throws {
    try expectEqual(Base64.decode(Array(encoded.utf8)), Array(plain.utf8))
    expectEqual(Base64.encode(Array(plain.utf8)), Array(encoded.utf8))
  }

  @Test(
    "a text that is not canonical is refused by kind",
    arguments: [
      ("Zg", Base64Error.invalidLength(characterCount: 2)),
      ("Zg=", .invalidLength(characterCount: 3)),
      ("Zm9vZ", .invalidLength(characterCount: 5)),
      ("Zm 9", .invalidCharacter(offsetBytes: 2)),
      ("Zm9v\n\n\n\n", .invalidCharacter(offsetBytes: 4)),
      ("Zm-_", .invalidCharacter(offsetBytes: 2)), ("Zm9\u{7f}", .invalidCharacter(offsetBytes: 3)),
      ("Zm\u{e9}A===", .invalidCharacter(offsetBytes: 2)),
      ("*g==", .invalidCharacter(offsetBytes: 0)),
      ("====", .misplacedPadding(offsetBytes: 0)), ("Z===", .misplacedPadding(offsetBytes: 1)),
      ("Zg==Zg==", .misplacedPadding(offsetBytes: 2)), ("Z=g=", .misplacedPadding(offsetBytes: 1)),
      ("=Zg=", .misplacedPadding(offsetBytes: 0)), ("Zm=v", .misplacedPadding(offsetBytes: 2)),
      ("Zh==", .unusedBitsSet(offsetBytes: 1)), ("Zm9=", .unusedBitsSet(offsetBytes: 2)),
      ("Zm9vYmF=", .unusedBitsSet(offsetBytes: 6)),
    ])
  func refused(text: String, error: Base64Error) {
    #expect(throws: error) { try Base64.decode(Array(text.utf8)) }
  }

  @Test("bytes survive a round trip, and encode as in Foundation")
  func roundTrip() throws {
    var random = SeededRandom()
    for count in 0..<300 {
      let bytes = random.bytes(count: count)
      let encoded = Base64.encode(bytes)
      expectEqual(encoded, Array(Data(bytes).base64EncodedString().utf8), "seed \(random.seed)")
      try expectEqual(Base64.decode(encoded), bytes, "seed \(random.seed)")
    }
  }

  @Test("only what encoding gives decodes: no second text for the same bytes")
  func canonical() {
    var random = SeededRandom()
    let letters = Array("AQgwZ0+/==".utf8)
    var decodedCount = 0
    for _ in 0..<20_000 {
      let text = (0..<8).map { _ in letters.randomElement(using: &random) ?? 0 }
      guard let bytes = try? Base64.decode(text) else { continue }
      decodedCount += 1
      expectEqual(Base64.encode(bytes), text, "seed \(random.seed)")
    }
    #expect(decodedCount > 100, "seed \(random.seed)")
  }

  @Test("an error names the fault and shows no character of the text")
  func messages() {
    expectEqual(
      Base64Error.invalidLength(characterCount: 1).description,
      "base64: length 1 is not a multiple of 4 (missing padding, or truncated)")
    expectEqual(
      Base64Error.invalidLength(characterCount: 5).description,
      "base64: length 5 is not a multiple of 4 (missing padding, or truncated)")
    expectEqual(
      Base64Error.invalidCharacter(offsetBytes: 3).description,
      "base64: character at offset 3 is outside the alphabet")
  }

  @Test("memory of the exact size is enough, and gets the same bytes as an array")
  func decodeInPlace() throws {
    var random = SeededRandom()
    for byteCount in 0..<50 {
      let bytes = random.bytes(count: byteCount)
      let text = Base64.encode(bytes)
      expectEqual(text.count, Base64.characterCount(byteCount: byteCount))
      expectEqual(Array(Base64.text(bytes).utf8), text, "seed \(random.seed)")
      let decoded = try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: text.count / 4 * 3)
      {
        room in
        let count = try text.withUnsafeBytes { try Base64.decode($0, into: room) }
        return Array(room.prefix(count))
      }
      expectEqual(decoded, bytes, "seed \(random.seed)")
    }
  }

  // MARK: base64url

  @Test(
    "base64url has its own two characters and no padding",
    arguments: [
      ("", []), ("Zg", [0x66]), ("Zm8", [0x66, 0x6F]), ("Zm9v", [0x66, 0x6F, 0x6F]),
      ("_-8", [0xFF, 0xEF]), ("-_-_", [0xFB, 0xFF, 0xBF]),
    ] as [(String, [UInt8])])
  func url(text: String, bytes: [UInt8]) throws {
    try expectEqual(Base64.decode(Array(text.utf8), .url), bytes)
    expectEqual(Base64.encode(bytes, .url), Array(text.utf8))
    expectEqual(Base64.characterCount(byteCount: bytes.count, .url), text.utf8.count)
  }

  @Test(
    "a text that is not canonical base64url is refused by kind",
    arguments: [
      ("Z", Base64Error.truncated(characterCount: 1)), ("Zm9vZ", .truncated(characterCount: 5)),
      ("Zg==", .misplacedPadding(offsetBytes: 2)), ("Zg=", .misplacedPadding(offsetBytes: 2)),
      ("Zm9=", .misplacedPadding(offsetBytes: 3)), ("Zm+v", .invalidCharacter(offsetBytes: 2)),
      ("Zm/v", .invalidCharacter(offsetBytes: 2)), ("Z ", .invalidCharacter(offsetBytes: 1)),
      ("Zm9v\nZg", .invalidCharacter(offsetBytes: 4)), ("Zh", .unusedBitsSet(offsetBytes: 1)),
      ("Zm9vZm9", .unusedBitsSet(offsetBytes: 6)),
    ])
  func urlRefused(text: String, error: Base64Error) {
    #expect(throws: error) { try Base64.decode(Array(text.utf8), .url) }
  }

  @Test("whatever is encoded as base64url decodes to itself, in memory of the exact size")
  func urlRoundTrip() throws {
    var random = SeededRandom()
    for byteCount in 0..<50 {
      let bytes = random.bytes(count: byteCount)
      let text = Base64.encode(bytes, .url)
      expectEqual(text.count, Base64.characterCount(byteCount: byteCount, .url))
      let decoded = try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: byteCount) { room in
        let count = try text.withUnsafeBytes { try Base64.decode($0, .url, into: room) }
        return Array(room.prefix(count))
      }
      expectEqual(decoded, bytes, "seed \(random.seed)")
    }
  }
}

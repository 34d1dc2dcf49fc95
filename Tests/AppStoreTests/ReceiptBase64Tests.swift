// Base64: canonical texts and no others; the two kinds of damage that are mended.

import AppStore
import Foundation
import TestSupport
import Testing

@Suite("Base64 of receipts")
struct ReceiptBase64Tests {
  @Test(
    "the standard's own examples decode and encode",
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
      ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
  func examples(plain: String, encoded: String) throws {
    #expect(try Base64.decode(Array(encoded.utf8)) == Array(plain.utf8))
    #expect(Base64.encode(Array(plain.utf8)) == Array(encoded.utf8))
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

  @Test("bytes come back as they were, and as Foundation writes them")
  func roundTrip() throws {
    var random = SeededRandom()
    for count in 0..<300 {
      let bytes = random.bytes(count: count)
      let encoded = Base64.encode(bytes)
      #expect(encoded == Array(Data(bytes).base64EncodedString().utf8), "seed \(random.seed)")
      #expect(try Base64.decode(encoded) == bytes, "seed \(random.seed)")
    }
  }

  @Test("what decodes is what encoding gives: no second text for the same bytes")
  func canonical() {
    var random = SeededRandom()
    let letters = Array("AQgwZ0+/==".utf8)
    var decodedCount = 0
    for _ in 0..<20_000 {
      let text = (0..<8).map { _ in letters.randomElement(using: &random) ?? 0 }
      guard let bytes = try? Base64.decode(text) else { continue }
      decodedCount += 1
      #expect(Base64.encode(bytes) == text, "seed \(random.seed)")
    }
    #expect(decodedCount > 100, "seed \(random.seed)")
  }

  @Test(
    "line breaks and tabs go, a space is a plus again, nothing else changes",
    arguments: [
      ("Zm9v", "Zm9v"), ("Zm9v\r\nYmFy\r\n", "Zm9vYmFy"), ("Z\tm9v", "Zm9v"), ("a b ", "a+b+"),
      ("\n", ""), ("", ""), ("a~b&", "a~b&"), ("-_ \n", "-_+"),
    ])
  func normalized(text: String, expected: String) {
    #expect(ReceiptText.normalize(Array(text.utf8)) == Array(expected.utf8))
    let isUntouched = Array(text.utf8).withUnsafeBytes { ReceiptText.normalized($0) == nil }
    #expect(isUntouched == (text == expected))
  }

  @Test("a receipt that a form has damaged decodes to the same bytes")
  func damagedByForm() throws {
    let bytes = [UInt8](repeating: 0xFB, count: 100)
    let text = String(decoding: Base64.encode(bytes), as: UTF8.self)
    let damaged = Array(text.replacingOccurrences(of: "+", with: " ").utf8) + [0x0D, 0x0A]
    #expect(try damaged.withUnsafeBytes { try ReceiptText.decode($0) } == bytes)
  }

  @Test("an error says what is wrong and shows no character of the text")
  func messages() {
    #expect(
      Base64Error.invalidLength(characterCount: 5).description
        == "base64: 5 characters are not a multiple of 4 (missing padding, or cut short)")
    #expect(
      Base64Error.invalidCharacter(offsetBytes: 3).description
        == "base64: character at offset 3 is outside the standard alphabet")
  }
}

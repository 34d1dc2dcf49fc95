// The text of a receipt: the two kinds of damage that are repaired.
import AppStore
import Base
import Foundation
import TestSupport
import Testing

@Suite("Base64 of receipts")
struct ReceiptTextTests {
  @Test(
    "line breaks and tabs are removed, a space becomes a plus again, nothing else changes",
    arguments: [
      ("Zm9v", "Zm9v"), ("Zm9v\r\nYmFy\r\n", "Zm9vYmFy"), ("Z\tm9v", "Zm9v"), ("a b ", "a+b+"),
      ("\n", ""), ("", ""), ("a~b&", "a~b&"), ("-_ \n", "-_+"),
    ])
  func normalized(text: String, expected: String) {
    expectEqual(ReceiptText.normalize(Array(text.utf8)), Array(expected.utf8))
    let isUntouched = Array(text.utf8).withUnsafeBytes { ReceiptText.normalized($0) == nil }
    expectEqual(isUntouched, (text == expected))
  }

  @Test("a receipt that a form has damaged decodes to the same bytes")
  func damagedByForm() throws {
    let bytes = [UInt8](repeating: 0xFB, count: 100)
    let text = String(decoding: Base64.encode(bytes), as: UTF8.self)
    let damaged = Array(text.replacingOccurrences(of: "+", with: " ").utf8) + [0x0D, 0x0A]
    try expectEqual(damaged.withUnsafeBytes { try ReceiptText.decode($0) }, bytes)
  }
}

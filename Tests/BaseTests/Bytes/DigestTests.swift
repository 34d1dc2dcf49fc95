// SHA-256 values and hexadecimal digits.
import Base
import TestSupport
import Testing

@Suite struct DigestTests {
  /// The vectors of FIPS 180-4, with one that crosses a block's end.
  private static let vectors: [(String, String)] = [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
  ]

  @Test(arguments: vectors)
  func digestIsThatOfTheStandard(text: String, hex: String) throws {
    let bytes = Array(text.utf8)
    let digest = bytes.withUnsafeBytes { SHA256.hash($0) }
    expectEqual(digest.hex, hex)
    let hasher = SHA256()
    for _ in 0..<2 {
      for byte in bytes { [byte].withUnsafeBytes { hasher.update($0) } }
      expectEqual(hasher.finish(), digest)
    }
    expectEqual(Array(hex.utf8).withUnsafeBytes { SHA256Digest(hex: $0) }, digest)
    expectEqual(digest.bytes.withUnsafeBytes { SHA256Digest($0) }, digest)
  }

  @Test func digestOfFourNumbersReadsAsTheirDigits() {
    let digest = SHA256Digest(0x0001_0203_0405_0607, 0x89AB_CDEF_0123_4567, 0, .max)
    expectEqual(digest.hex, "000102030405060789abcdef01234567" + "0000000000000000ffffffffffffffff")
  }

  @Test(arguments: [
    "", String(repeating: "0", count: 63), String(repeating: "0", count: 65),
    String(repeating: "A", count: 64), String(repeating: "g", count: 64),
  ])
  func otherTextIsNoDigest(text: String) {
    #expect(Array(text.utf8).withUnsafeBytes { SHA256Digest(hex: $0) } == nil)
  }

  @Test func everyByteHasTwoDigitsThatReadBack() {
    for byte in UInt8.min ... .max {
      let text = Array([byte].withUnsafeBytes { Hex.text($0) }.utf8)
      expectEqual(text.compactMap { Hex.value($0) }, [byte >> 4, byte & 15])
      let upper = Array(String(decoding: text, as: UTF8.self).uppercased().utf8)
      expectEqual(upper.compactMap { Hex.value(anyCase: $0) }, [byte >> 4, byte & 15])
    }
  }

  @Test func onlyDigitsHaveAValue() {
    let all = UInt8.min ... .max
    expectEqual(all.filter { Hex.value($0) != nil }, Array("0123456789abcdef".utf8))
    expectEqual(all.filter { Hex.value(anyCase: $0) != nil }, Array("0123456789ABCDEFabcdef".utf8))
  }

  @Test(arguments: 0..<8)
  func eightDigitsAreReadAtOnceAndAnyOtherByteIsRefused(place: Int) {
    let digits = Array("0189af5c".utf8)
    for byte in UInt8.min...UInt8.max {
      var text = digits
      text[place] = byte
      let word = text.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
      var expected: UInt32? = 0
      for digit in stride(from: 6, through: 0, by: -2).flatMap({ [text[$0], text[$0 + 1]] }) {
        if let value = Hex.value(digit), let before = expected {
          expected = before << 4 | UInt32(value)
        } else {
          expected = nil
        }
      }
      expectEqual(Hex.bytes(UInt64(littleEndian: word)), expected, "\(byte)")
    }
  }
}

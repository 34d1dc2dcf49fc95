// The ASN.1 reader: corner cases of lengths, nesting and BER, and random bytes.

import AppStore
import AppStoreAuthority
import TestSupport
import Testing

@Suite("ASN.1 reader")
struct ReceiptDERTests {
  /// Reads the first element and refuses whatever follows.
  func readOne(_ bytes: [UInt8]) throws -> DERElement {
    try bytes.withUnsafeBytes { buffer in
      var reader = DERReader(buffer)
      let element = try reader.next()
      try reader.finish()
      return element
    }
  }

  func kind(_ body: () throws -> Void) -> DERError.Kind? {
    do {
      try body()
      return nil
    } catch { return (error as? DERError)?.kind }
  }

  @Test(
    "a length in any form that BER allows finds the content",
    arguments: [
      ([0x04, 0x02, 1, 2], 2..<4), ([0x04, 0x81, 0x02, 1, 2], 3..<5),
      ([0x04, 0x84, 0, 0, 0, 2, 1, 2], 6..<8), ([0x30, 0x00], 2..<2),
      ([0x30, 0x80, 0x00, 0x00], 2..<2), ([0x30, 0x80, 0x05, 0x00, 0x00, 0x00], 2..<4),
      ([0x30, 0x80, 0x30, 0x80, 0, 0, 0, 0], 2..<6),
      ([0x30, 0x80, 0x04, 0x02, 0, 0, 0, 0], 2..<6),
    ] as [([UInt8], Range<Int>)])
  func lengths(bytes: [UInt8], content: Range<Int>) throws {
    let element = try readOne(bytes)
    expectEqual(element.content, content)
    expectEqual(element.range, bytes.indices)
  }

  @Test(
    "a broken element is refused by kind",
    arguments: [
      ([], .truncated), ([0x04], .truncated), ([0x04, 0x01], .truncated),
      ([0x04, 0x81], .truncated), ([0x04, 0x82, 0x01], .truncated),
      ([0x04, 0xFF], .truncated), ([0x30, 0x80], .truncated), ([0x30, 0x80, 0x00], .truncated),
      ([0x30, 0x80, 0x05, 0x00], .truncated), ([0x30, 0x80, 0x04, 0x05, 0, 0], .truncated),
      ([0x04, 0x84, 0x7F, 0xFF, 0xFF, 0xFF], .truncated),
      ([0x04, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], .lengthTooLarge),
      ([0x04, 0x88, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .lengthTooLarge),
      ([0x04, 0x88, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .lengthTooLarge),
      ([0x04, 0x80, 0x00, 0x00], .indefinitePrimitive), ([0x00, 0x00], .unexpectedEndOfContents),
      ([0x30, 0x80, 0x00, 0x01, 0x00], .unexpectedEndOfContents),
      ([0x1F, 0x81, 0x01, 0x00], .unsupportedTag), ([0x05, 0x00, 0x00], .trailingBytes),
    ] as [([UInt8], DERError.Kind)])
  func broken(bytes: [UInt8], expected: DERError.Kind) {
    expectEqual(kind { _ = try readOne(bytes) }, expected)
  }

  @Test(
    "integers of up to 64 bits are read with their sign",
    arguments: [0, 1, 127, 128, 255, 256, -1, -128, -129, 1_000_000_030_938_713, .max, .min]
      as [Int64])
  func integers(value: Int64) throws {
    let bytes = DER.integer(value)
    try expectEqual(
      bytes.withUnsafeBytes { buffer in
        var reader = DERReader(buffer)
        return try reader.nextInteger()
      }, value)
  }

  @Test(
    "an integer that is empty or larger is refused",
    arguments: [[0x02, 0x00], [0x02, 0x09, 0, 0xFF, 0, 0, 0, 0, 0, 0, 0]] as [[UInt8]])
  func largeIntegers(bytes: [UInt8]) {
    let found = kind {
      try bytes.withUnsafeBytes { buffer in
        var reader = DERReader(buffer)
        _ = try reader.nextInteger()
      }
    }
    expectEqual(found, .integerOutOfRange)
  }

  func octets(_ bytes: [UInt8]) throws -> [UInt8] {
    try bytes.withUnsafeBytes { buffer in
      var reader = DERReader(buffer)
      let octets = try reader.nextOctets()
      try reader.finish()
      return octets.withBytes(of: buffer) { Array($0) }
    }
  }

  @Test("the pieces of a constructed string are joined in order, nested ones too")
  func joined() throws {
    let nested = DER.indefinite(
      0x24, DER.octets([1]), DER.element(0x24, DER.octets([2]), DER.octets([])),
      DER.indefinite(0x24, DER.octets([3, 4]), DER.indefinite(0x24)), DER.octets([5]))
    try expectEqual(octets(nested), [1, 2, 3, 4, 5])
    try expectEqual(octets(DER.octets([6, 7])), [6, 7])
    try expectEqual(octets(DER.indefinite(0x24)), [])
  }

  @Test("a constructed string of anything but strings is refused")
  func foreignPiece() {
    let found = kind { _ = try octets(DER.indefinite(0x24, DER.integer(1))) }
    expectEqual(found, .unexpectedElement(identifier: 0x02))
  }

  @Test(
    "nesting beyond the limit is refused, even a million levels",
    arguments: [33, 100, 1_000_000])
  func deepNesting(levels: Int) {
    let indefinite =
      [UInt8]((0..<levels).flatMap { _ in [0x24, 0x80] as [UInt8] })
      + [UInt8](repeating: 0, count: levels * 2)
    expectEqual(kind { _ = try octets(indefinite) }, .tooDeep)
    #expect(throws: ReceiptError.self) {
      try ReceiptFile.decode([0x30] + indefinite.dropFirst())
    }
  }

  @Test("nesting within the limit is read")
  func allowedNesting() throws {
    var bytes = DER.octets([9])
    for _ in 0..<DERReader.maximumDepth - 1 { bytes = DER.indefinite(0x24, bytes) }
    try expectEqual(octets(bytes), [9])
    expectEqual(
      kind { _ = try octets(DER.indefinite(0x24, DER.indefinite(0x24, bytes))) }, .tooDeep)
  }

  @Test(
    "however deep indefinite lengths are nested, each byte is scanned once",
    arguments: [1, 5, 25])
  func scanWork(levels: Int) throws {
    let pieceCount = 20_000
    var bytes = Array(repeatElement([0x04, 0x01, 0x07] as [UInt8], count: pieceCount).joined())
    for _ in 0..<levels { bytes = DER.indefinite(0x24, bytes) }
    try bytes.withUnsafeBytes { buffer in
      var reader = DERReader(buffer)
      let octets = try reader.nextOctets()
      expectEqual(octets.withBytes(of: buffer) { $0.count }, pieceCount)
      // Each piece, and each level's beginning and end.
      expectEqual(reader.scannedHeaderCount, pieceCount + 2 * levels - 1)
    }
  }

  @Test("a definite length between two indefinite ones is scanned once, too")
  func mixedScanWork() throws {
    let pieceCount = 1000
    var bytes = Array(repeatElement([0x04, 0x01, 0x07] as [UInt8], count: pieceCount).joined())
    for _ in 0..<10 { bytes = DER.indefinite(0x24, DER.element(0x24, bytes)) }
    try bytes.withUnsafeBytes { buffer in
      var reader = DERReader(buffer)
      _ = try reader.nextOctets()
      // The innermost pieces have a definite length, so their end needs no search.
      expectEqual(reader.scannedHeaderCount, 20)
    }
  }

  @Test("more indefinite lengths than any receipt has are refused")
  func manyIndefinite() {
    let count = DERReader.maximumIndefiniteCount
    let element: [UInt8] = [0x24, 0x80, 0, 0]
    let fitting = Array(repeatElement(element, count: count - 1).joined())
    #expect(kind { _ = try octets(DER.indefinite(0x24, fitting)) } == nil)
    expectEqual(
      kind { _ = try octets(DER.indefinite(0x24, fitting + element)) }, .tooManyIndefinite)
  }

  @Test("random bytes never crash the reader or the decoder")
  func randomBytes() {
    var random = SeededRandom()
    // Identifiers and lengths that reach deep into the reader are drawn more often than others.
    let likely: [UInt8] = [0x30, 0x31, 0x80, 0x24, 0x04, 0x02, 0x00, 0xA0, 0x06, 0x81, 0x82]
    for _ in 0..<20_000 {
      let count = Int.random(in: 0..<60, using: &random)
      let bytes = (0..<count).map { _ in
        Bool.random(using: &random)
          ? likely.randomElement(using: &random) ?? 0
          : UInt8.random(in: .min ... .max, using: &random)
      }
      _ = try? readOne(bytes)
      _ = try? octets([0x24] + bytes)
      // Not an `#expect` each, which costs more than the decoder.
      if (try? ReceiptFile.decode([0x30] + bytes)) != nil {
        Issue.record("random bytes made a receipt, seed \(random.seed)")
      }
    }
  }

  @Test("an error names the offset and the cause")
  func messages() {
    expectEqual(
      DERError(kind: .unexpectedElement(identifier: 0x0C), offsetBytes: 17).description,
      "ASN.1 at offset 17: unexpected element with identifier 0xc")
  }
}

// Gzip content: several members, and every kind of damage.
import Base
import Intake
import TestSupport
import Testing

@Suite struct GzipSourceTests {
  private func inflate(
    _ bytes: [UInt8], piece: Int = 1000, room: Int = 64
  ) -> (content: [UInt8], fault: Failure?) {
    var content: [UInt8] = []
    do throws(Failure) {
      let source = try GzipSource(MemorySource(bytes, pieceBytes: { piece }), name: "x.gz")
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 1)
      defer { buffer.deallocate() }
      while true {
        let count = try source.read(into: buffer)
        if count == 0 { return (content, nil) }
        content += buffer[0..<count]
      }
    } catch {
      return (content, error)
    }
  }

  private static let text = Array("one line\nanother line\n".utf8)

  @Test(arguments: [1, 2, 3, 64], [1, 5, 1000])
  func membersFollowOneAnother(piece: Int, room: Int) {
    let bytes = Gzip.member(Self.text) + Gzip.member([]) + Gzip.member(Self.text)
    let result = inflate(bytes, piece: piece, room: room)
    expectEqual(result.content, Self.text + Self.text)
    #expect(result.fault == nil)
  }

  @Test func zerosAfterTheLastMemberArePadding() {
    let result = inflate(Gzip.member(Self.text) + [UInt8](repeating: 0, count: 512), piece: 5)
    expectEqual(result.content, Self.text)
    #expect(result.fault == nil)
  }

  @Test(arguments: [[0x41], [0, 0, 0x1F], [0, 0x41], [0x41, 0x42, 0x43]] as [[UInt8]])
  func otherBytesAfterTheLastMemberAreDamage(_ rest: [UInt8]) {
    let result = inflate(Gzip.member(Self.text) + rest)
    expectEqual(result.content, Self.text)
    expectEqual(
      result.fault?.description, "inflate: x.gz: bytes after the gzip data are not gzip data")
  }

  @Test func aCutAnywhereIsSaidAfterWhatWasWhole() {
    let bytes = Gzip.member(Self.text)
    for count in 1..<bytes.count {
      let result = inflate(Array(bytes[0..<count]))
      expectEqual(result.fault?.description, "inflate: x.gz: the gzip data is truncated")
      #expect(Self.text.starts(with: result.content))
      if count > 15 + Self.text.count { expectEqual(result.content, Self.text) }
    }
  }

  @Test func aFlippedBitInContentOrTrailerIsFound() {
    let bytes = Gzip.member(Self.text)
    for place in 10..<bytes.count {
      for bit in 0..<8 {
        // Five bits that pad the stored block's header mean nothing.
        if place == 10, bit > 2 { continue }
        var damaged = bytes
        damaged[place] ^= 1 << UInt8(bit)
        expectEqual(inflate(damaged).fault?.operation, "inflate", "bit \(bit) of byte \(place)")
      }
    }
  }
}

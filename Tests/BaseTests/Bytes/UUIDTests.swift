// UUIDs: parsed, named, random, and texts that are not UUIDs.
import Base
import TestSupport
import Testing

@Suite struct UUIDTests {
  @Test(arguments: [
    // The first is the example of RFC 9562, appendix A.4.
    (
      "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.example.com",
      "2ed6657d-e927-568b-95e1-2665a8aea6a2"
    ),
    ("6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "python.org", "886313e1-3b8a-5372-9b90-0c9aee199e5d"),
  ])
  func aNamedUUIDFollowsFromItsName(_ namespace: String, _ name: String, _ expected: String) throws
  {
    let space = try #require(UUID16(namespace))
    let uuid = Array(name.utf8).withUnsafeBytes { UUID16.named($0, in: space) }
    expectEqual(uuid.description, expected)
  }

  @Test func aRandomUUIDHasVersionAndVariant() {
    var seen: Set<UUID16> = []
    for _ in 0..<100 {
      let uuid = UUID16.random()
      let text = Array(uuid.description)
      expectEqual(text[14], "4")
      #expect("89ab".contains(text[19]))
      expectEqual(UUID16(uuid.description), uuid)
      seen.insert(uuid)
    }
    expectEqual(seen.count, 100)
  }

  @Test(arguments: [
    "", "6ba7b810", "6ba7b8109dad11d180b400c04fd430c8", "6ba7b810-9dad-11d1-80b4-00c04fd430c",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c80", "6ba7b810-9dad-11d1-80b4-00c04fd430cg",
    "6ba7b810-9dad-11d1-80b4+00c04fd430c8", "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}",
  ])
  func whatIsNoUUIDIsNotRead(_ text: String) {
    #expect(UUID16(text) == nil)
  }

  @Test func bytesAndTextAreTheSameUUID() throws {
    let bytes: [UInt8] = Array(0..<16)
    let uuid = try #require(bytes.withUnsafeBytes { UUID16($0) })
    expectEqual(uuid.description, "00010203-0405-0607-0809-0a0b0c0d0e0f")
    expectEqual(uuid.withUnsafeBytes { Array($0) }, bytes)
    expectEqual(UUID16("00010203-0405-0607-0809-0A0B0C0D0E0F"), uuid)
    expectEqual(UUID16(random: bytes)?.description, "00010203-0405-4607-8809-0a0b0c0d0e0f")
  }

  @Test(arguments: [0, 15, 17])
  func otherThanSixteenBytesAreNoUUID(count: Int) {
    let bytes = [UInt8](repeating: 7, count: count)
    #expect(bytes.withUnsafeBytes { UUID16($0) } == nil)
    #expect(UUID16(random: bytes) == nil)
  }
}

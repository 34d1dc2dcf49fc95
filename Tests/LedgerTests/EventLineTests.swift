// The only written form of an event and of a time; everything else is refused.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite("Event lines")
struct EventLineTests {
  private static let digest = String(repeating: "0a", count: 32)
  private static let salt = "AAECAwQFBgcICQoLDA0ODw=="
  private static let line =
    "{\"seq\":12,\"type\":\"receipt.uploaded\",\"v\":1,\"at\":\"2026-01-02T03:04:05.678Z\","
    + "\"digest\":\"\(digest)\",\"salt\":\"\(salt)\",\"data\":{\"a\":[1]}}"

  private func isEvent(_ text: String) -> Bool {
    Array(text.utf8).withUnsafeBytes { EventLine($0) != nil }
  }

  @Test("The parts of a line")
  func parts() {
    Array(EventLineTests.line.utf8).withUnsafeBytes { bytes in
      let event = EventLine(bytes)
      expectEqual(event?.position, 12)
      expectEqual(event?.version, 1)
      expectEqual(event?.recordedAtMs, 1_767_323_045_678)
      #expect(event?.hasType("receipt.uploaded") == true)
      #expect(event?.hasType("receipt.upload") == false)
      func text(_ part: UnsafeRawBufferPointer?) -> String {
        String(decoding: part ?? UnsafeRawBufferPointer(start: nil, count: 0), as: UTF8.self)
      }
      expectEqual(text(event?.type), "receipt.uploaded")
      expectEqual(text(event?.data), "{\"a\":[1]}")
      expectEqual(text(event?.digestHex), EventLineTests.digest)
      expectEqual(text(event?.saltText), EventLineTests.salt)
      expectEqual(
        event.map { String(decoding: $0.leafRecord, as: UTF8.self) },
        EventLineTests.line.components(separatedBy: ",\"salt\"")[0] + "}")
      expectEqual(event?.leafHash(SHA256()), leafHash(Array(EventLineTests.line.utf8)))
      #expect(event?.verifyDigest(SHA256()) == false)
    }
  }

  @Test(
    "A change that breaks the form",
    arguments: [
      ("\"seq\":12", "\"seq\":012"), ("\"seq\":12", "\"seq\":-1"), ("\"seq\":12", "\"seq\": 12"),
      ("\"seq\":12", "\"seq\":"), ("\"seq\":12", "\"seq\":1234567890123456789"),
      ("receipt.uploaded", ""), ("receipt.uploaded", "Receipt"), ("receipt.uploaded", ".receipt"),
      ("receipt.uploaded", "a\\u0062"), ("receipt.uploaded", String(repeating: "a", count: 65)),
      ("\"v\":1", "\"v\":0"), ("\"v\":1", "\"v\":1.0"), ("\"v\":1", "\"w\":1"),
      ("01-02T", "13-02T"), ("01-02T", "02-30T"), ("01-02T", "00-02T"), ("T03", "T24"),
      (":05.678Z", ":60.678Z"), ("678Z", "67Z"), ("678Z", "6789Z"), ("678Z", "678z"),
      ("0a0a\"", "0A0a\""), ("0a0a\"", "0a0\""), ("DA0ODw==", "DA0ODx=="), ("Dw==", "Dw="),
      ("AAEC", "AA-C"), ("{\"a\":[1]}}", "[1]}"), ("{\"a\":[1]}}", "{\"a\":[1]}"),
      ("{\"a\":[1]}}", "{}"), ("{\"a\":[1]}}", "{\"a\":[1]}} "), ("{\"seq", " {\"seq"),
    ])
  func broken(_ old: String, _ new: String) {
    let changed = EventLineTests.line.replacingOccurrences(of: old, with: new)
    #expect(changed != EventLineTests.line)
    #expect(isEvent(EventLineTests.line))
    #expect(!isEvent(changed), "\(changed)")
  }

  @Test("A line cut anywhere is not an event and does no harm")
  func cut() {
    let bytes = Array(EventLineTests.line.utf8)
    for length in 0..<bytes.count {
      // Copied to its exact size, so that the sanitizer sees a read beyond the end.
      #expect(Array(bytes[..<length]).withUnsafeBytes { EventLine($0) == nil })
    }
  }

  @Test("A bit flipped anywhere changes the event or its digest, or makes the line invalid")
  func flipped() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(1)
    let line = try fixture.lines()[0]
    let hasher = SHA256()
    for index in line.indices {
      for bit in 0..<8 {
        var changed = line
        changed[index] ^= 1 << bit
        let isSame = changed.withUnsafeBytes { bytes in
          guard let event = EventLine(bytes) else { return false }
          return event.verifyDigest(hasher) && event.leafHash(hasher) == leafHash(line)
        }
        #expect(!isSame, "byte \(index), bit \(bit)")
      }
    }
  }
}

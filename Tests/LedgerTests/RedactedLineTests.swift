// The only form of a redacted line, and how it follows from the original line.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite("Redacted lines")
struct RedactedLineTests {
  private static let digest = String(repeating: "0a", count: 32)
  private static let salt = "AAECAwQFBgcICQoLDA0ODw=="
  private static let start =
    "{\"seq\":12,\"type\":\"receipt.uploaded\",\"v\":1,\"at\":\"2026-01-02T03:04:05.678Z\","
    + "\"digest\":\"\(digest)\",\"salt\":"
  private static let whole = start + "\"\(salt)\",\"data\":{\"a\":[1]}}"
  private static let line =
    start + "null,\"data\":null,\"redacted\":{\"by\":13,\"salt\":\"\(salt)\",\"kept\":{\"a\":1}}}"

  private func parsed<Result>(_ text: String, _ body: (EventLine?) -> Result) -> Result {
    Array(text.utf8).withUnsafeBytes { body(EventLine($0)) }
  }

  @Test("The parts of a redacted line")
  func parts() {
    parsed(Self.line) { event in
      #expect(event?.position == 12 && event?.redactedBy == 13 && event?.isRedacted == true)
      expectEqual(event.map { String(decoding: $0.data, as: UTF8.self) }, "{\"a\":1}")
      expectEqual(event.map { String(decoding: $0.saltText, as: UTF8.self) }, Self.salt)
      #expect(event?.verifyDigest(SHA256()) == false)
      expectEqual(event?.contentDigest(SHA256()), hash(Array(0..<16) + Array("{\"a\":1}".utf8)))
    }
    let record = parsed(Self.line) { $0?.leafRecord }
    #expect(record != nil && record == parsed(Self.whole) { $0?.leafRecord })
  }

  @Test(
    "The kept data may be any object",
    arguments: ["{}", "{\"a\":{}}", "{\"a\":\"}}}\"}", "{\"redacted\":{\"by\":1}}"])
  func kept(_ kept: String) {
    let text = Self.line.replacingOccurrences(of: "{\"a\":1}", with: kept)
    #expect(parsed(text) { $0.map { String(decoding: $0.data, as: UTF8.self) } } == kept)
  }

  @Test(
    "A change that breaks the form",
    arguments: [
      ("\"by\":13", "\"by\":12"), ("\"by\":13", "\"by\":11"), ("\"by\":13", "\"by\":013"),
      ("\"by\":13", "\"by\":null"), ("\"by\":13", "\"by\": 13"), ("\"by\":13,", ""),
      ("\"salt\":null", "\"salt\":\"AAECAwQFBgcICQoLDA0ODw==\""), ("\"salt\":null", "\"salt\":{}"),
      ("\"data\":null", "\"data\":{}"), ("\"data\":null,", ""), ("redacted", "Redacted"),
      ("Dw==", "Dx=="), ("\"kept\":{\"a\":1}", "\"kept\":null"),
      ("\"kept\":{\"a\":1}", "\"kept\":[]"),
      ("\"kept\"", "\"data\""), ("{\"a\":1}}}", "{\"a\":1}}"), ("{\"a\":1}}}", "{\"a\":1}}} "),
      ("{\"a\":1}}}", "}}"), ("{\"a\":1}}}", "{}"), ("{\"a\":1}}}", "{\"a\":1}},\"b\":1}"),
    ])
  func broken(_ old: String, _ new: String) {
    let changed = Self.line.replacingOccurrences(of: old, with: new)
    #expect(changed != Self.line)
    #expect(parsed(Self.line) { $0 != nil })
    #expect(!parsed(changed) { $0 != nil }, "\(changed)")
  }

  @Test("A line is redacted again: the leaf stays, each salt follows from the one before")
  func again() throws {
    let hasher = SHA256()
    func redacted(_ line: [UInt8], by erasure: Int, _ kept: String) throws -> [UInt8] {
      try line.withUnsafeBytes { bytes in
        try #require(EventLine(bytes)).redacted(by: erasure, kept: Array(kept.utf8), hasher)
      }
    }
    func salt(_ old: [UInt8]) -> [UInt8] { Array(hash(Array("redact".utf8) + old).bytes[..<16]) }
    let first = try redacted(Array(Self.whole.utf8), by: 20, "{\"a\":1}")
    let second = try redacted(first, by: 30, "{}")
    let firstSalt = salt(Array(0..<16))
    for (line, salt, by) in [(first, firstSalt, 20), (second, salt(firstSalt), 30)] {
      line.withUnsafeBytes { bytes in
        let event = EventLine(bytes)
        expectEqual(event?.redactedBy, by)
        expectEqual(
          event.map { String(decoding: $0.saltText, as: UTF8.self) },
          Data(salt).base64EncodedString())
        expectEqual(event?.leafHash(hasher), leafHash(Array(Self.whole.utf8)))
      }
    }
  }
}

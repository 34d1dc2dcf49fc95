// Bodies that hold a large value once, however often it occurs in the text.
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite("Response body") struct ResponseBodyTests {
  @Test(
    "whatever the size of the pieces, a body is read from front to back",
    arguments: [
      ([], [], ""), ([], [0], "XYZ"), ([0], [0], "XYZabcdef"), ([6], [0], "abcdefXYZ"),
      ([0, 3, 3, 6], [0, 1, 0, 1], "XYZabc-XYZdef-"), ([2], [2], "abcdef"),
    ] as [([Int], [Int], String)])
  func pieces(places: [Int], values: [Int], expected: String) {
    let text = places.isEmpty ? "" : "abcdef"
    let body = ResponseBody(
      text: Array(text.utf8), values: [Array("XYZ".utf8), Array("-".utf8), []],
      places: (places.isEmpty ? values.map { _ in 0 } : places).enumerated().map {
        .init(textByteCount: $0.element, value: values[$0.offset])
      })
    expectEqual(String(decoding: body.bytes, as: UTF8.self), expected)
    expectEqual(body.byteCount, expected.utf8.count)
    for size in 1...12 {
      var reader = ResponseBodyReader(body)
      var read: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: size)
      while true {
        let count = buffer.withUnsafeMutableBytes { reader.read(into: $0) }
        if count == 0 { break }
        read += buffer.prefix(count)
      }
      expectEqual(read, body.bytes)
    }
  }

  static let metadata = JSONText.object([
    ("note", JSONText(stringLiteral: String(repeating: "m", count: 60_000)))
  ])

  @Test("a receipt of a hundred purchases holds its upload's metadata once")
  func confirmed() throws {
    let fixture = try LedgerFixture()
    let rows = (1...100).map { row("\($0)") }
    try fixture.append([
      LiveProjectionsTests.app([("coins", .consumable)]),
      .upload(reply(rows: rows), user: "u", metadata: Self.metadata),
    ])
    let live = try LiveProjections(fixture.directory)
    let answer = try #require(try live.answer(upload: 1))
    #expect(answer.body.byteCount > 6_000_000)
    #expect(answer.body.heldByteCount < 300_000)
    let purchases = try LiveProjectionsTests.purchases(answer)
    expectEqual(purchases.count, 100)
    #expect(try purchases.allSatisfy { try Self.hasMetadata($0) })
    #expect(try Self.hasMetadata(LiveProjectionsTests.object(answer)))
  }

  @Test("a receipt that waits for the App Store holds its metadata once, too")
  func waiting() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      .pending(
        .unified(.init("1"), .init("2"), .init("3"), .init("4")), user: "u",
        metadata: Self.metadata)
    ])
    let live = try LiveProjections(fixture.directory)
    let answer = try #require(try live.answer(upload: 0))
    #expect(answer.body.byteCount > 300_000)
    #expect(answer.body.heldByteCount < 100_000)
    let purchases = try LiveProjectionsTests.purchases(answer)
    expectEqual(purchases.count, 4)
    #expect(try purchases.allSatisfy { try Self.hasMetadata($0) })
  }

  @Test("sales of several uploads each keep their own metadata, and equal ones are one")
  func several() throws {
    let fixture = try LedgerFixture()
    func note(_ letter: String) -> JSONText {
      .object([("note", JSONText(stringLiteral: String(repeating: letter, count: 10_000)))])
    }
    try fixture.append([
      LiveProjectionsTests.app([("coins", .consumable)]),
      .upload(reply(row("1")), user: "u", metadata: note("a")),
      .upload(reply(row("1"), row("2")), user: "u", metadata: note("b")),
      .upload(reply(row("1"), row("2"), row("3")), user: "u", metadata: note("a")),
      .upload(reply(row("1"), row("2"), row("3"), row("4")), user: "u", metadata: shorthand("1")),
    ])
    let live = try LiveProjections(fixture.directory)
    let answer = try #require(try live.answer(upload: 7))
    let notes = try LiveProjectionsTests.purchases(answer).map { purchase in
      ((purchase["metadata"] as? [String: Any])?["note"] as? String)?.prefix(1)
    }
    expectEqual(notes, ["a", "b", "a", nil])
    #expect(answer.body.byteCount > 30_000)
    #expect(answer.body.heldByteCount < 28_000)
  }

  @Test("of many large responses, only as many are made at once as fit")
  func batches() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      LiveProjectionsTests.app([("coins", .consumable)]),
      .upload(reply(row("1")), user: "u", metadata: Self.metadata),
      .upload(reply(row("1")), user: "u", metadata: Self.metadata),
      .upload(reply(row("1")), user: "u", metadata: Self.metadata),
    ])
    let live = try LiveProjections(fixture.directory)
    let uploads = [1, 3, 5].map { FoldedUpload(at: $0) }
    try expectEqual(live.answers(uploads: uploads, byteCountMax: 1).count, 1)
    try expectEqual(live.answers(uploads: uploads, byteCountMax: 100_000).count, 2)
    try expectEqual(live.answers(uploads: uploads).count, 3)
  }

  private static func hasMetadata(_ object: [String: Any]) throws -> Bool {
    let metadata = try #require(object["metadata"] as? [String: Any])
    return (metadata["note"] as? String)?.utf8.count == 60_000
  }
}

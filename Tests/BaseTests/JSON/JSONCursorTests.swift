// The cursor: it reads validated bytes, and does no harm on any others.
import Base
import TestSupport
import Testing

@Suite struct JSONCursorTests {
  /// Walks through everything that the cursor can read. Ends at the first error, or if there is no progress.
  private static func walk(_ cursor: inout JSONCursor, depth: Int = 0) throws {
    guard depth < 200 else { return try cursor.skipValue() }
    switch try cursor.kind() {
    case .object:
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        _ = key.string
        _ = key == "status"
        try walk(&cursor, depth: depth + 1)
      }
    case .array:
      try cursor.beginArray()
      while try cursor.nextElement() { try walk(&cursor, depth: depth + 1) }
    case .string: _ = try cursor.readString().bytes
    case .number: _ = JSONNumber.integer(try cursor.readNumber())
    case .boolean: _ = try cursor.readBoolean()
    case .null: _ = try cursor.consumeNull()
    }
  }

  /// Every way through the bytes; throws nothing, since any outcome but a crash is accepted.
  private static func tryEverything(_ bytes: [UInt8]) {
    withCursor(bytes) { cursor in
      let fresh = cursor
      try? walk(&cursor)
      for step: (inout JSONCursor) throws -> Void in [
        { try $0.skipValue() }, { _ = try $0.readRaw() }, { _ = try $0.readString().string },
        { _ = try $0.readInteger() }, { _ = try $0.readBoolean() }, { _ = try $0.consumeNull() },
        { _ = try $0.nextKey() }, { _ = try $0.nextElement() }, { try $0.expectEnd() },
      ] {
        cursor = fresh
        try? step(&cursor)
        #expect(cursor.offset <= bytes.count)
        try? step(&cursor)
        #expect(cursor.offset <= bytes.count)
      }
    }
  }

  /// Around the limits at which the search changes: short strings, long ones, and the windows of long ones.
  @Test(arguments: [0, 1, 7, 8, 63, 64, 65, 1_087, 1_088, 1_089, 3_000])
  func aStringOfAnyLengthEndsAtItsQuote(length: Int) throws {
    let plain = String(repeating: "a", count: length)
    for (text, hasEscapes) in [(plain, false), (plain + "\\\"" + plain, true)] {
      try withCursor("\"\(text)\" \"next \\\\\"") { cursor in
        let string = try cursor.readString()
        expectEqual(String(decoding: string.raw, as: UTF8.self), text)
        expectEqual(string.hasEscapes, hasEscapes)
        try expectEqual(cursor.readString().string, "next \\")
      }
      withCursor("\"\(text)") { cursor in
        _ = #expect(throws: JSONError.self) { try cursor.readString() }
      }
    }
  }

  @Test func readsEveryKindOfValueAndLeavesContainers() throws {
    let text =
      "{\"a\": [1, -2, []], \"b\\n\": \"x\\ty\", \"c\": true, \"d\": false, \"e\": null, \"f\": {}} "
    try withCursor(text) { cursor in
      try cursor.beginObject()
      try expectEqual(cursor.nextKey()?.string, "a")
      try cursor.beginArray()
      #expect(try cursor.nextElement())
      try expectEqual(cursor.readInteger(), 1)
      #expect(try cursor.nextElement())
      try expectEqual(cursor.readInteger(), -2)
      #expect(try cursor.nextElement())
      try cursor.beginArray()
      #expect(try !cursor.nextElement())
      #expect(try !cursor.nextElement())
      try expectEqual(cursor.nextKey()?.string, "b\n")
      try expectEqual(cursor.readString().string, "x\ty")
      try expectEqual(cursor.nextKey()?.string, "c")
      #expect(try cursor.readBoolean())
      try expectEqual(cursor.nextKey()?.string, "d")
      #expect(try !cursor.consumeNull())
      #expect(try !cursor.readBoolean())
      try expectEqual(cursor.nextKey()?.string, "e")
      #expect(try cursor.consumeNull())
      try expectEqual(cursor.nextKey()?.string, "f")
      #expect(try cursor.readRaw().elementsEqual("{}".utf8))
      #expect(try cursor.nextKey() == nil)
      try cursor.expectEnd()
    }
  }

  @Test(arguments: [
    "1", "-1.5e+7", "\"a\\\"]}\"", "[1,[\"]\",{\"}\":[]}],2]", "{\"a\":{\"b\":\"{[\"}}", "true",
    "null",
  ]) func rawValueIsTheBytesAsWritten(_ text: String) throws {
    let raw = try withCursor("[ \(text) ,0]") { cursor in
      try cursor.beginArray()
      #expect(try cursor.nextElement())
      let raw = String(decoding: try cursor.readRaw(), as: UTF8.self)
      #expect(try cursor.nextElement())
      try expectEqual(cursor.readInteger(), 0)
      return raw
    }
    expectEqual(raw, text)
  }

  @Test(arguments: [
    ("0", 0), ("-0", 0), ("7", 7), ("-7", -7), ("9223372036854775807", Int64.max),
    ("-9223372036854775808", Int64.min), ("9223372036854775806", Int64.max - 1),
    ("9223372036854775808", nil), ("-9223372036854775809", nil), ("18446744073709551616", nil),
    ("99999999999999999999999999", nil), ("-", nil), ("", nil), ("1.0", nil), ("1e2", nil),
    ("+1", nil), ("1 ", nil), ("--1", nil),
  ]) func integersAreReadWithinTheirBoundsAlone(_ token: String, _ expected: Int64?) {
    let value = Array(token.utf8).withUnsafeBytes { JSONNumber.integer($0) }
    expectEqual(value, expected)
  }

  @Test func integerThatDoesNotFitIsOfTheWrongKindWhereItStands() {
    #expect(throws: JSONError(.wrongKind, at: 2)) {
      try withCursor("  9223372036854775808") { cursor in try cursor.readInteger() }
    }
  }

  @Test(arguments: ["1", "\"1\"", "[1]", "true", "null"]) func otherKindIsRefusedAndNothingIsTaken(
    _ text: String
  ) {
    withCursor(text) { cursor in
      #expect(throws: JSONError(.wrongKind, at: 0)) { try cursor.beginObject() }
      expectEqual(cursor.offset, 0)
    }
  }

  @Test func everyPrefixOfALineIsReadWithoutHarm() {
    let line = Array(
      "{\"seq\":12,\"type\":\"a.b\",\"data\":{\"k\\u0065y\":[1.5,true,null,\"x\\\\\"],\"e\":{}}}"
        .utf8)
    for count in 0...line.count { Self.tryEverything(Array(line[..<count])) }
  }

  @Test func randomBytesAreReadWithoutHarm() {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    let alphabet = Array("{}[]\",:\\ue1-.tfn \n\0".utf8) + [0x80, 0xC3, 0xFF]
    for _ in 0..<3000 {
      Self.tryEverything((0..<random.below(40)).map { _ in random.pick(alphabet) })
    }
    print("seed of the random bytes: \(seed)")
  }

  @Test func lineWithOneByteChangedIsReadWithoutHarm() {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    for _ in 0..<500 {
      var bytes = JSONValue.random(depth: 4, &random).bytes
      bytes[random.below(bytes.count)] = UInt8(random.below(256))
      Self.tryEverything(bytes)
    }
    print("seed of the changed bytes: \(seed)")
  }

  @Test func whatTheValidatorTakesTheCursorReadsToTheEnd() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    for _ in 0..<500 {
      let text = Array(JSONValue.random(depth: 5, &random).spaced(&random).utf8)
      #expect(verdict(text) == nil, "seed \(seed)")
      #expect(throws: Never.self, "seed \(seed)") {
        try withCursor(text) { cursor in
          try Self.walk(&cursor)
          try cursor.expectEnd()
        }
      }
    }
  }
}

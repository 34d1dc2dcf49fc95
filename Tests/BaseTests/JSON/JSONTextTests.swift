// Strings: UTF-8 on the way in, escapes on the way out and back.
import Base
import TestSupport
import Testing

@Suite struct JSONTextTests {
  /// Sequences of bytes that are not UTF-8.
  private static let brokenSequences: [[UInt8]] = [
    // Alone: continuations, and bytes that UTF-8 never uses.
    [0x80], [0xBF], [0xC0], [0xC1], [0xF5], [0xF8], [0xFC], [0xFE], [0xFF],
    // Overlong forms.
    [0xC0, 0x80], [0xC0, 0xAF], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF],
    [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF], [0xF8, 0x88, 0x80, 0x80, 0x80],
    // Surrogates, and beyond the last character.
    [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80],
    [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80],
    // Truncated, or continued wrongly.
    [0xC3], [0xC3, 0x28], [0xE2], [0xE2, 0x82], [0xE2, 0x28, 0xA1], [0xE2, 0x82, 0x28], [0xF0],
    [0xF0, 0x9F], [0xF0, 0x9F, 0x98], [0xF0, 0x28, 0x8C, 0xBC], [0xF0, 0x9F, 0x28, 0xBC],
    [0xF0, 0x9F, 0x98, 0x28], [0xC3, 0xC3],
  ]

  @Test(arguments: brokenSequences) func bytesThatAreNotUTF8AreRefusedWhereTheyBegin(
    _ sequence: [UInt8]
  ) {
    // At every offset within a word of eight bytes, in a value and in a key.
    for shift in 0..<9 {
      let padding = [UInt8](repeating: UInt8(ascii: "x"), count: shift)
      let text = [0x22] + padding + sequence + [0x22]
      expectEqual(verdict(text), JSONError(.invalidUTF8, at: 1 + shift))
      let key = [0x7B, 0x22] + padding + sequence + Array("\":0}".utf8)
      expectEqual(verdict(key), JSONError(.invalidUTF8, at: 2 + shift))
    }
  }

  @Test(arguments: brokenSequences) func bytesThatAreNotUTF8AreRefusedAtTheVeryEnd(
    _ sequence: [UInt8]
  ) {
    #expect(verdict([0x22] + sequence) != nil)
    expectEqual(verdict(sequence), JSONError(.unexpectedByte, at: 0))
  }

  @Test func firstAndLastCharacterOfEachLengthIsTaken() {
    for value: UInt32 in [
      0x20, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD000, 0xD7FF, 0xE000, 0xFFFD, 0xFFFE,
      0xFFFF, 0x1_0000, 0x3_FFFF, 0x4_0000, 0xF_FFFF, 0x10_0000, 0x10_FFFF,
    ] {
      let text = "\"" + String(String.UnicodeScalarView([Unicode.Scalar(value) ?? "?"])) + "\""
      #expect(verdict(text) == nil, "U+\(String(value, radix: 16))")
    }
  }

  @Test func everyScalarRoundTripsRawAndEscaped() throws {
    for value in UInt32(0)...0x10_FFFF where value % 97 == 0 || value < 0x900 {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let text = String(String.UnicodeScalarView([scalar]))
      try expectEqual(
        JSONValue(JSONValue.string(text).bytes).stringValue?.unicodeScalars.first, scalar)
      let units = Array(text.utf16).map { unit in
        let digits = String(unit, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }
      let escaped = Array(("\"" + units.joined() + "\"").utf8)
      try expectEqual(JSONValue(escaped).stringValue?.unicodeScalars.first, scalar)
    }
  }

  @Test(arguments: [
    ("\"plain\"", "plain"), ("\"\\\"\\\\\\/\"", "\"\\/"),
    ("\"\\b\\f\\n\\r\\t\"", "\u{8}\u{C}\n\r\t"),
    ("\"\\u00e9\\u00E9\"", "éé"), ("\"\\uD83D\\uDE00!\"", "😀!"), ("\"\\u0000\"", "\0"),
    ("\"\\uD7FF\\uE000\"", "\u{D7FF}\u{E000}"), ("\"\\\\u0041\"", "\\u0041"),
    ("\"\\u005cn\"", "\\n"), ("\"\\uDBFF\\uDFFF\"", "\u{10FFFF}"),
  ]) func escapesAreUndone(_ text: String, _ expected: String) throws {
    let value = try withCursor(text) { cursor in try cursor.readString().string }
    expectEqual(value, expected)
    try expectEqual(JSONValue(Array(text.utf8)), .string(expected))
  }

  @Test(arguments: [
    "\"\\", "\"\\u", "\"\\u00", "\"\\uD83D", "\"\\uD83D\\u", "\"\\q\"", "\"\\uD83D\\uD83D\"",
  ])
  func rawStringThatNobodyValidatedIsUndoneWithoutHarm(_ text: String) {
    let raw = Array(text.utf8.dropFirst())
    raw.withUnsafeBytes { bytes in
      let string = JSONString(raw: bytes, hasEscapes: true).string
      // No escape decodes to more bytes than it has, and nothing beyond the bytes is read.
      #expect(string.unicodeScalars.count <= bytes.count)
    }
  }

  @Test func comparisonWithALiteralUndoesEscapes() throws {
    func equals(_ text: String, _ literal: StaticString) throws -> Bool {
      try withCursor(text) { cursor in try cursor.readString() == literal }
    }
    #expect(try equals("\"status\"", "status"))
    #expect(try equals("\"\\u0073tatus\"", "status"))
    #expect(try equals("\"\"", ""))
    #expect(try !equals("\"status\"", "statu"))
    #expect(try !equals("\"status\"", "statuS"))
    #expect(try !equals("\"\\u0053tatus\"", "status"))
  }

  @Test func writerEscapesWhatJSONRequiresAndNothingElse() {
    for value in UInt32(0)...0x100 {
      let text = String(String.UnicodeScalarView([Unicode.Scalar(value) ?? "?"]))
      let written = String(decoding: JSONValue.string(text).bytes, as: UTF8.self)
      let expected: String
      switch value {
      case 0x08: expected = "\\b"
      case 0x09: expected = "\\t"
      case 0x0A: expected = "\\n"
      case 0x0C: expected = "\\f"
      case 0x0D: expected = "\\r"
      case 0x22: expected = "\\\""
      case 0x5C: expected = "\\\\"
      case 0..<0x10: expected = "\\u000" + String(value, radix: 16)
      case 0x10..<0x20: expected = "\\u001" + String(value - 0x10, radix: 16)
      default: expected = text
      }
      #expect(written.utf8.elementsEqual("\"\(expected)\"".utf8), "U+\(String(value, radix: 16))")
    }
  }

  @Test func escapeAtEveryPlaceAmongPlainAndWideCharactersIsWritten() throws {
    for before in 0..<20 {
      for filler in ["x", "é", "😀"] {
        let text = String(repeating: filler, count: before) + "\"\n\\" + filler
        try expectEqual(JSONValue(JSONValue.string(text).bytes), .string(text))
      }
    }
  }
}

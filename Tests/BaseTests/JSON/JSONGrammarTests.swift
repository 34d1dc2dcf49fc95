// The validator against the corners of the JSON grammar.
import Base
import TestSupport
import Testing

@Suite struct JSONGrammarTests {
  @Test(arguments: [
    // Any value is a valid text by itself.
    "null", "true", "false", "0", "\"\"", "[]", "{}",
    // White space around tokens: the four kinds of JSON.
    " \t\r\nnull \t\r\n", "[ ]", "{ }", "[ 1 , 2 ]", "{ \"a\" : 1 }", "\n[\n]\n",
    // Numbers.
    "-0", "-1", "10", "1.0", "0.0", "-0.5", "1e1", "1E1", "1e+1", "1e-1", "0e0", "0E+00", "1.5e300",
    "123456789012345678901234567890", "0.1000000000000000055511151231257827", "1e999999",
    // Strings.
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\u0000\"", "\"\\u005C\"", "\"\\uFFFF\"",
    "\"\\ud83D\\uDE00\"",
    "\"\u{7F}\"", "\"\u{2028}\u{2029}\"", "\"é\u{301}😀\"", "\"/\"", "\"'\"",
    // Nesting.
    "[[[[]]]]", "{\"a\":{\"b\":{}}}", "[{},[],{\"a\":[]}]", "{\"\":0}", "{\"a\":null,\"b\":null}",
  ]) func textOfTheGrammarIsTaken(_ text: String) {
    #expect(verdict(text) == nil)
  }

  @Test(arguments: [
    // Nothing, or only part of a value.
    RefusedText("", .unexpectedEnd, at: 0), RefusedText("  ", .unexpectedEnd, at: 2),
    RefusedText("[", .unexpectedEnd, at: 1), RefusedText("[1", .unexpectedEnd, at: 2),
    RefusedText("[1,", .unexpectedEnd, at: 3), RefusedText("{", .unexpectedEnd, at: 1),
    RefusedText("{\"a\"", .unexpectedEnd, at: 4), RefusedText("{\"a\":", .unexpectedEnd, at: 5),
    RefusedText("{\"a\":1", .unexpectedEnd, at: 6), RefusedText("{\"a\":1,", .unexpectedEnd, at: 7),
    RefusedText("tru", .unexpectedEnd, at: 3), RefusedText("n", .unexpectedEnd, at: 1),
    RefusedText("\"abc", .unexpectedEnd, at: 0), RefusedText("[\"a", .unexpectedEnd, at: 1),
    RefusedText("\"abc\\", .unexpectedEnd, at: 4), RefusedText("\"\\u12", .unexpectedEnd, at: 5),
    // More than a value.
    RefusedText("1 2", .trailingBytes, at: 2), RefusedText("[]]", .trailingBytes, at: 2),
    RefusedText("{}{}", .trailingBytes, at: 2), RefusedText("null,", .trailingBytes, at: 4),
    RefusedText("nullx", .trailingBytes, at: 4), RefusedText("\"\"x", .trailingBytes, at: 2),
    RefusedText("1\0", .trailingBytes, at: 1), RefusedText("1x", .trailingBytes, at: 1),
    // Words.
    RefusedText("nul1", .unexpectedByte, at: 3), RefusedText("True", .unexpectedByte, at: 0),
    RefusedText("NULL", .unexpectedByte, at: 0), RefusedText("NaN", .unexpectedByte, at: 0),
    RefusedText("Infinity", .unexpectedByte, at: 0),
    RefusedText("undefined", .unexpectedByte, at: 0),
    // Commas and colons.
    RefusedText("[1,]", .unexpectedByte, at: 3), RefusedText("[,1]", .unexpectedByte, at: 1),
    RefusedText("[1 2]", .unexpectedByte, at: 3), RefusedText("[1,,2]", .unexpectedByte, at: 3),
    RefusedText("[1:2]", .unexpectedByte, at: 2), RefusedText("[1}", .unexpectedByte, at: 2),
    RefusedText("{\"a\":1,}", .unexpectedByte, at: 7), RefusedText("{,}", .unexpectedByte, at: 1),
    RefusedText("{\"a\" 1}", .unexpectedByte, at: 5),
    RefusedText("{\"a\",1}", .unexpectedByte, at: 4),
    RefusedText("{\"a\"::1}", .unexpectedByte, at: 5),
    RefusedText("{\"a\":1 \"b\":2}", .unexpectedByte, at: 7),
    RefusedText("{a:1}", .unexpectedByte, at: 1), RefusedText("{1:1}", .unexpectedByte, at: 1),
    RefusedText("{'a':1}", .unexpectedByte, at: 1),
    RefusedText("{\"a\":1]", .unexpectedByte, at: 6),
    RefusedText("{null:1}", .unexpectedByte, at: 1), RefusedText("]", .unexpectedByte, at: 0),
    // What other languages allow.
    RefusedText("'a'", .unexpectedByte, at: 0), RefusedText("/**/1", .unexpectedByte, at: 0),
    RefusedText("[1//\n]", .unexpectedByte, at: 2), RefusedText("#\n1", .unexpectedByte, at: 0),
    RefusedText("\u{FEFF}1", .unexpectedByte, at: 0),
    RefusedText("\u{A0}1", .unexpectedByte, at: 0),
    RefusedText("\u{B}1", .unexpectedByte, at: 0), RefusedText("\u{C}1", .unexpectedByte, at: 0),
    RefusedText("[1\u{B}]", .unexpectedByte, at: 2), RefusedText("\u{0}", .unexpectedByte, at: 0),
    // Numbers.
    RefusedText("01", .invalidNumber, at: 0), RefusedText("-01", .invalidNumber, at: 0),
    RefusedText("00", .invalidNumber, at: 0), RefusedText("-", .invalidNumber, at: 0),
    RefusedText("[-]", .invalidNumber, at: 1), RefusedText("1.", .invalidNumber, at: 0),
    RefusedText("[1.e1]", .invalidNumber, at: 1), RefusedText("1e", .invalidNumber, at: 0),
    RefusedText("1e+", .invalidNumber, at: 0), RefusedText("1E-", .invalidNumber, at: 0),
    RefusedText("--1", .invalidNumber, at: 0), RefusedText("-a", .invalidNumber, at: 0),
    RefusedText("+1", .unexpectedByte, at: 0), RefusedText(".5", .unexpectedByte, at: 0),
    RefusedText("-.5", .invalidNumber, at: 0), RefusedText("1.2.3", .trailingBytes, at: 3),
    RefusedText("0x10", .trailingBytes, at: 1), RefusedText("1_000", .trailingBytes, at: 1),
    RefusedText("１", .unexpectedByte, at: 0), RefusedText("1e1.5", .trailingBytes, at: 3),
    // Escapes and control characters.
    RefusedText("\"\\x41\"", .invalidEscape, at: 1), RefusedText("\"\\a\"", .invalidEscape, at: 1),
    RefusedText("\"\\U0041\"", .invalidEscape, at: 1),
    RefusedText("\"\\'\"", .invalidEscape, at: 1),
    RefusedText("\"\\\n\"", .invalidEscape, at: 1),
    RefusedText("\"\\u12G4\"", .invalidEscape, at: 5),
    RefusedText("\"\\u 123\"", .invalidEscape, at: 3),
    RefusedText("\"\\u+123\"", .invalidEscape, at: 3),
    RefusedText("\"a\nb\"", .controlCharacter, at: 2),
    RefusedText("\"\t\"", .controlCharacter, at: 1),
    RefusedText("\"\u{0}\"", .controlCharacter, at: 1),
    RefusedText("\"\u{1F}\"", .controlCharacter, at: 1),
    RefusedText("{\"a\nb\":1}", .controlCharacter, at: 3),
    // Halves of surrogate pairs.
    RefusedText("\"\\uD800\"", .loneSurrogate, at: 1),
    RefusedText("\"\\uDC00\"", .loneSurrogate, at: 1),
    RefusedText("\"\\uD800\\uD800\"", .loneSurrogate, at: 1),
    RefusedText("\"\\uDBFFx\"", .loneSurrogate, at: 1),
    RefusedText("\"\\uD800\\n\"", .loneSurrogate, at: 1),
    RefusedText("\"\\uD83D\\u0041\"", .loneSurrogate, at: 1),
    RefusedText("\"ab\\uDE00\\uD83D\"", .loneSurrogate, at: 3),
  ]) func textOutsideTheGrammarIsRefusedWithCauseAndPlace(_ text: RefusedText) {
    expectEqual(verdict(text.bytes), JSONError(text.cause, at: text.offsetBytes))
  }

  @Test func placeOfAFaultLiesInsideTheText() {
    let text = Array(
      "{\"a\":[1,-2.5e3,\"x\\u00e9\\n\",true,false,null,{}],\"é\":\"\\ud83d\\ude00\"}".utf8)
    for count in 0..<text.count {
      let error = verdict(Array(text[..<count]))
      #expect(error != nil, "the first \(count) bytes")
      #expect((0...count).contains(error?.offsetBytes ?? -1), "the first \(count) bytes")
    }
    #expect(verdict(text) == nil)
  }

  @Test func errorNamesCauseAndPlaceButNeverTheText() {
    expectEqual(verdict("[\"SECRET\" \"SECRET\"]")?.description, "unexpected byte at byte 10")
  }

  // MARK: Depth

  @Test(arguments: [1, 2, 63, 64, 512]) func levelsUpToTheLimitAreTakenAndOneMoreIsNot(_ limit: Int)
  {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
      let inner = open == "[" ? "" : "0"
      func text(_ levels: Int) -> [UInt8] {
        Array(
          (String(repeating: open, count: levels) + inner + String(repeating: close, count: levels))
            .utf8)
      }
      #expect(verdict(text(limit), depthLimit: limit) == nil)
      expectEqual(
        verdict(text(limit + 1), depthLimit: limit),
        JSONError(.tooDeep, at: open.utf8.count * limit))
    }
  }

  @Test func aMillionOpenBracketsAreRefusedAtTheLimit() {
    let text = [UInt8](repeating: UInt8(ascii: "["), count: 1_000_000)
    expectEqual(verdict(text, depthLimit: 512), JSONError(.tooDeep, at: 512))
  }

  // MARK: Duplicate keys

  @Test(arguments: [
    RefusedText("{\"a\":1,\"a\":2}", .duplicateKey, at: 8),
    RefusedText("{\"\":1,\"\":2}", .duplicateKey, at: 7),
    RefusedText("{\"a\":1,\"b\":2,\"a\":3}", .duplicateKey, at: 14),
    RefusedText("[{\"a\":{\"b\":1,\"b\":2}}]", .duplicateKey, at: 14),
    // The same key, one of them or both written with escapes.
    RefusedText("{\"a\":1,\"\\u0061\":2}", .duplicateKey, at: 8),
    RefusedText("{\"\\u0061\":1,\"a\":2}", .duplicateKey, at: 13),
    RefusedText("{\"\\u00E9\":1,\"é\":2}", .duplicateKey, at: 13),
    RefusedText("{\"\\/\":1,\"/\":2}", .duplicateKey, at: 9),
    RefusedText("{\"\\ud83d\\ude00\":1,\"😀\":2}", .duplicateKey, at: 19),
    RefusedText("{\"longer than eight\":1,\"longer than eight\":2}", .duplicateKey, at: 24),
  ]) func keyThatStandsTwiceIsRefused(_ text: RefusedText) {
    expectEqual(verdict(text.bytes), JSONError(text.cause, at: text.offsetBytes))
  }

  @Test(arguments: [
    "{\"a\":{\"a\":{\"a\":1}}}", "[{\"a\":1},{\"a\":1}]", "{\"a\":1,\"A\":2}", "{\"a\":1,\"a \":2}",
    // Equal to the eye and to Swift's String, but other bytes.
    "{\"\u{E9}\":1,\"e\u{301}\":2}", "{\"\\u00e9\":1,\"e\\u0301\":2}",
    // The same beginning, the same end.
    "{\"12345678x12345678\":1,\"12345678y12345678\":2}",
  ]) func keysThatDifferInBytesAreTaken(_ text: String) {
    #expect(verdict(text) == nil)
  }

  @Test(arguments: [2, 47, 48, 49, 50, 500]) func duplicateIsFoundAmongAnyNumberOfKeys(_ count: Int)
  {
    func text(_ keys: [String]) -> String {
      "{" + keys.map { "\"\($0)\":0" }.joined(separator: ",") + "}"
    }
    for key in ["k", "a key that is long enough ", "\\u006b"] {
      var keys = (0..<count).map { "\(key)\($0)" }
      #expect(verdict(text(keys)) == nil)
      keys[count - 1] = keys[count / 2 - 1]
      let place = text(keys).utf8.count - keys[count - 1].utf8.count - 4
      expectEqual(verdict(text(keys)), JSONError(.duplicateKey, at: place))
    }
  }

  @Test func aHundredThousandKeysThatLookAlikeTakeNoQuadraticTime() {
    // Equal in length, first and last bytes. Comparing all pairs would take 5 · 10⁹ steps.
    let keys = (0..<100_000).map { "\"beginning\(String($0 + 100_000))the end\":0" }
    #expect(verdict("{" + keys.joined(separator: ",") + "}") == nil)
  }
}

// Events indented for people, and sizes.
import Base
import Commands
import TestSupport
import Testing

@Suite struct ReadableEventTests {
  @Test(arguments: [
    (#"{}"#, ["{}"]),
    (#"{"a":[],"b":{}}"#, ["{", #"  "a": [],"#, #"  "b": {}"#, "}"]),
    (
      #"{"a":[1,{"b":null}],"c":"\n\u0041"}"#,
      [
        "{", #"  "a": ["#, "    1,", "    {", #"      "b": null"#, "    }", "  ],",
        #"  "c": "\n\u0041""#, "}",
      ]
    ),
    (#"[12345678901234567890.10]"#, ["[", "  12345678901234567890.10", "]"]),
  ]) func indentationKeepsEveryToken(_ text: String, _ lines: [String]) throws {
    try expectEqual(ReadableEvent(Array(text.utf8)).lines, lines)
  }

  @Test func longStringIsCutWithItsLength() throws {
    let long = String(repeating: "A", count: 129)
    let lines = try ReadableEvent(Array("{\"receipt\":\"\(long)\"}".utf8)).lines
    expectEqual(lines[1], "  \"receipt\": \"\(String(repeating: "A", count: 32))…\" (129 bytes)")
    let whole = String(repeating: "A", count: 128)
    try expectEqual(
      ReadableEvent(Array("[\"\(whole)\"]".utf8)).lines, ["[", "  \"\(whole)\"", "]"])
  }

  @Test(arguments: 0..<4) func cutNeverFallsInsideACharacter(_ shift: Int) throws {
    let text = String(repeating: "x", count: shift) + String(repeating: "🧾", count: 40)
    let shown = try ReadableEvent(Array("[\"\(text)\"]".utf8)).lines[1]
    #expect(!shown.contains("\u{FFFD}"))
  }

  @Test(arguments: [#"{"a":"#, #"["#, #"{"a" 1}"#, ""]) func damagedTextIsAnError(_ text: String) {
    #expect(throws: JSONError.self) { try ReadableEvent(Array(text.utf8)) }
  }

  @Test(arguments: [
    (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1535, "1.4 KiB"), (1 << 20, "1.0 MiB"),
    ((1 << 30) - 1, "1023.9 MiB"), (5 << 40, "5.0 TiB"),
  ]) func sizesAreRoundedDown(_ byteCount: Int, _ text: String) {
    expectEqual(sizeText(byteCount), text)
  }
}

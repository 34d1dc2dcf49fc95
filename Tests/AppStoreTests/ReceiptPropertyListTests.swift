// The property list reader: its grammar, its limits, and truncated lists.

import AppStore
import TestSupport
import Testing

@Suite("Property lists of receipts")
struct ReceiptPropertyListTests {
  func texts(_ list: String) throws -> [String: String] {
    try Array(list.utf8).withUnsafeBytes { try PropertyList.texts(in: $0) }
  }

  @Test(
    "entries are read",
    arguments: [
      ("{}", [:]), (" \n{\t}\r\n ", [:]), (#"{"a"="b";}"#, ["a": "b"]),
      ("{\n\t\"a\" = \"b\";\n\t\"c\" = \"d\";\n}", ["a": "b", "c": "d"]),
      (#"{ "a b" = "c;d}"; }"#, ["a b": "c;d}"]), (#"{"a"="";}"#, ["a": ""]),
      (#"{"a"="\"\\";"\"b"="'";}"#, ["a": "\"\\", "\"b": "'"]),
      ("{\"a\"=\"\u{e9}\n\";}", ["a": "\u{e9}\n"]),
    ])
  func read(list: String, expected: [String: String]) throws {
    try expectEqual(texts(list), expected)
  }

  @Test(
    "a broken list is refused by kind and offset",
    arguments: [
      ("", .truncated, 0), ("a", .unexpectedCharacter, 0), ("(a)", .unexpectedCharacter, 0),
      (#"{"a"="b"}"#, .unexpectedCharacter, 8), (#"{"a" "b";}"#, .unexpectedCharacter, 5),
      (#"{="b";}"#, .unexpectedCharacter, 1), (#"{"a"=;}"#, .unexpectedCharacter, 5),
      (#"{"a"="b";"a"="c";}"#, .duplicateKey, 9), (#"{"a"="b";}x"#, .trailingBytes, 10),
      (#"{"a"="b";}{}"#, .trailingBytes, 10), (#"{"a"="\x";}"#, .invalidEscape, 7),
      (#"{"a"="\"#, .truncated, 7), (#"{"a"="b";"#, .truncated, 9),
    ] as [(String, PropertyListError.Kind, Int)])
  func broken(list: String, kind: PropertyListError.Kind, offset: Int) {
    #expect(throws: PropertyListError(kind: kind, offsetBytes: offset)) { try texts(list) }
  }

  @Test(
    "forms of other property lists are refused",
    arguments: [
      ("{a=\"b\";}", 1), ("{'a'=\"b\";}", 1), ("{\"a\"=b;}", 5), ("{\"a\"=(\"b\");}", 5),
      ("{\"a\"={};}", 5), ("{\"a\"=<0fbd>;}", 5), ("{/* c */}", 1), ("// c\n{}", 0),
    ])
  func otherForms(list: String, offset: Int) {
    #expect(throws: PropertyListError(kind: .unexpectedCharacter, offsetBytes: offset)) {
      try texts(list)
    }
  }

  @Test("a string that is not UTF-8 is refused")
  func notUTF8() {
    let list = Array("{\"a\"=\"".utf8) + [0xC3, 0x28] + Array("\";}".utf8)
    #expect(throws: PropertyListError(kind: .notUTF8, offsetBytes: 6)) {
      try list.withUnsafeBytes { try PropertyList.texts(in: $0) }
    }
  }

  @Test("a list cut anywhere is refused")
  func cutAnywhere() {
    let list = Array("{ \"a\" = \"b\";\n\"c\"=\"d\\\\\"; \"e\" = \"f\\\"\"; }".utf8)
    for count in list.indices {
      #expect(throws: PropertyListError.self, "cut at \(count)") {
        try Array(list.prefix(count)).withUnsafeBytes { try PropertyList.texts(in: $0) }
      }
    }
  }

  @Test("more entries than the limit are refused")
  func manyEntries() throws {
    let most = (0..<PropertyList.maximumEntryCount).map { "\"k\($0)\"=\"v\";" }.joined()
    try expectEqual(texts("{\(most)}").count, PropertyList.maximumEntryCount)
    #expect(throws: PropertyListError.self) { try texts("{\(most)\"more\"=\"v\";}") }
  }

  @Test("random characters never crash the reader")
  func randomCharacters() {
    var random = SeededRandom()
    let characters = Array("{}=;\"\"\"\\ \nab0".utf8)
    for _ in 0..<20_000 {
      let count = Int.random(in: 0..<40, using: &random)
      let list =
        Array("{\"a\"=".utf8)
        + (0..<count).map { _ in characters.randomElement(using: &random) ?? 0 }
      guard let found = try? list.withUnsafeBytes({ try PropertyList.texts(in: $0) }) else {
        continue
      }
      #expect(found.count <= count, "seed \(random.seed)")
    }
  }
}

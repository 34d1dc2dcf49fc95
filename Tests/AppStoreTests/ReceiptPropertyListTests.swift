// The property list reader: its grammar, its bounds, and lists cut anywhere.

import AppStore
import TestSupport
import Testing

@Suite("Property lists of receipts")
struct ReceiptPropertyListTests {
  func texts(_ list: String) throws -> [String: String] {
    try Array(list.utf8).withUnsafeBytes { try PropertyList.texts(in: $0) }
  }

  @Test(
    "text entries are read in every spelling",
    arguments: [
      ("{}", [:]), (" \n{\t}\r\n ", [:]), ("{a=b;}", ["a": "b"]),
      (#"{ "a b" = "c;d}"; }"#, ["a b": "c;d}"]), ("{'a'='b\"c';}", ["a": "b\"c"]),
      ("{ a.b-c/d:e_$1 = 42; }", ["a.b-c/d:e_$1": "42"]), (#"{"a"="";}"#, ["a": ""]),
      (#"{a="\"\\\n\t\101\12 \a";}"#, ["a": "\"\\\n\tA\n \u{7}"]),
      (#"{a="\U00e9\UD83D\UDE00";}"#, ["a": "\u{e9}\u{1F600}"]),
      ("{a=\"\u{e9}\";}", ["a": "\u{e9}"]),
      ("/* c */ { // d\n a /* = */ = b; /**/ } // e", ["a": "b"]),
    ])
  func read(list: String, expected: [String: String]) throws {
    #expect(try texts(list) == expected)
  }

  @Test(
    "nested values are checked and left out",
    arguments: [
      "{n={};a=b;}", "{n=();a=b;}", "{n=(x,y,);a=b;}", "{n=<>;a=b;}", "{n=<0fbd 77>;a=b;}",
      "{n={x=(1,{y=<ab>;},(),\"z\");w={};};a=b;}",
    ])
  func nested(list: String) throws {
    #expect(try texts(list) == ["a": "b"])
  }

  @Test(
    "a broken list is refused by kind and offset",
    arguments: [
      ("", .truncated, 0), ("a", .unexpectedCharacter, 0), ("(a)", .unexpectedCharacter, 0),
      ("{a=b}", .unexpectedCharacter, 4), ("{a b;}", .unexpectedCharacter, 3),
      ("{=b;}", .unexpectedCharacter, 1), ("{a=;}", .unexpectedCharacter, 3),
      ("{a=b;a=c;}", .duplicateKey, 5), ("{a=b;\"a\"={};}", .duplicateKey, 5),
      ("{a=b;}x", .trailingBytes, 6), ("{a=b;}{}", .trailingBytes, 6),
      (#"{a="\x";}"#, .invalidEscape, 5), (#"{a="\200";}"#, .invalidEscape, 8),
      (#"{a="\UD800";}"#, .invalidEscape, 6), (#"{a="\U12G4";}"#, .invalidEscape, 8),
      ("{n=(a b);}", .unexpectedCharacter, 6), ("{n=(a;);}", .unexpectedCharacter, 5),
      ("{n=<0>;}", .unexpectedCharacter, 5), ("{n=<0x>;}", .unexpectedCharacter, 5),
      ("{n={a=b};}", .unexpectedCharacter, 7), ("{n=(};}", .unexpectedCharacter, 4),
      ("{a=\u{e9};}", .unexpectedCharacter, 3), ("{a=b;/*", .truncated, 7),
    ] as [(String, PropertyListError.Kind, Int)])
  func broken(list: String, kind: PropertyListError.Kind, offset: Int) {
    #expect(throws: PropertyListError(kind: kind, offsetBytes: offset)) { try texts(list) }
  }

  @Test("a string that is not UTF-8 is refused")
  func notUTF8() {
    let list = Array("{a=\"".utf8) + [0xC3, 0x28] + Array("\";}".utf8)
    #expect(throws: PropertyListError(kind: .notUTF8, offsetBytes: 4)) {
      try list.withUnsafeBytes { try PropertyList.texts(in: $0) }
    }
  }

  @Test("a list cut anywhere is refused")
  func cutAnywhere() {
    let list = Array(
      "/* c */{ a = b; \"c\" = 'd'; n = {x=(1,<ab cd>,\"\\U00e9\\101\");}; e = \"f\\\"\"; }".utf8)
    for count in list.indices {
      #expect(throws: PropertyListError.self, "cut at \(count)") {
        try Array(list.prefix(count)).withUnsafeBytes { try PropertyList.texts(in: $0) }
      }
    }
  }

  @Test("nesting and entries are bounded", arguments: ["{n=", "("])
  func bounds(opening: String) {
    let deep = "{n=" + String(repeating: opening, count: 1_000_000)
    #expect(throws: PropertyListError.self) { try texts(deep) }
    do {
      _ = try texts(deep)
    } catch { #expect((error as? PropertyListError)?.kind == .tooDeep) }
  }

  @Test("the deepest allowed nesting is read, one level more is not")
  func depthLimit() throws {
    func list(levels: Int) -> String {
      "{n=" + String(repeating: "(", count: levels - 1) + String(repeating: ")", count: levels - 1)
        + ";a=b;}"
    }
    #expect(try texts(list(levels: PropertyList.maximumDepth)) == ["a": "b"])
    #expect(throws: PropertyListError.self) {
      try texts(list(levels: PropertyList.maximumDepth + 1))
    }
  }

  @Test("more entries than the limit are refused")
  func manyEntries() throws {
    let most = (0..<PropertyList.maximumEntryCount).map { "k\($0)=v;" }.joined()
    #expect(try texts("{\(most)}").count == PropertyList.maximumEntryCount)
    #expect(throws: PropertyListError.self) { try texts("{\(most)more=v;}") }
  }

  @Test("random characters never crash the reader")
  func randomCharacters() {
    var random = SeededRandom()
    let characters = Array("{}()<>=;,\"'\\/* \nabU0189".utf8)
    for _ in 0..<20_000 {
      let count = Int.random(in: 0..<40, using: &random)
      let list =
        Array("{a=".utf8)
        + (0..<count).map { _ in characters.randomElement(using: &random) ?? 0 }
      guard let found = try? list.withUnsafeBytes({ try PropertyList.texts(in: $0) }) else {
        continue
      }
      #expect(found.count <= count, "seed \(random.seed)")
    }
  }
}

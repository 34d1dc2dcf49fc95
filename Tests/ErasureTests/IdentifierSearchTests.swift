// Where an identifier may occur in an event, and in what encoding, so that an erasure's certificate can name it.
import Base
import Erasure
import Ledger
import TestSupport
import Testing

@Suite struct IdentifierSearchTests {
  private static let user = "jürgen-k7q2"
  private static let token = accountToken(1)

  private static func base64(_ text: String, padded: Bool = true) -> String {
    let encoded = String(decoding: Base64.encode(Array(text.utf8)), as: UTF8.self)
    return padded ? encoded : encoded.replacing("=", with: "")
  }

  /// Every character as JSON can escape it.
  private static func escaped(_ text: String) -> String {
    text.utf16.map { unit in
      let digits = String(unit, radix: 16)
      return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }.joined()
  }

  private static func found(_ identifiers: [String], in metadata: String) throws -> [Position] {
    let fixture = try LedgerFixture()
    try fixture.append([
      .upload(reply(row("500")), user: "other", metadata: JSONText(raw: metadata)),
      .upload(reply(row("600")), user: "another", metadata: ["note": "nothing of it"]),
    ])
    let search = IdentifierSearch(identifiers.map { Array($0.utf8) })
    let reader = try LogReader(fixture.directory)
    try search.run(reader, before: reader.head.size, isCancelled: { false })
    return search.result.positions
  }

  @Test(
    "An identifier is found in every encoding",
    arguments: [
      #"{"note":"call jürgen-k7q2"}"#, #"{"jürgen-k7q2":1}"#,
      #"{"note":"\#(escaped(user))"}"#,
      #"{"note":"\#(escaped(user).uppercased().replacing("\\U", with: "\\u"))"}"#,
      #"{"\#(escaped(user))":1}"#, #"{"note":"j\u00fcrgen-k7q2"}"#,
      #"{"note":"\#(base64("by jürgen-k7q2!"))"}"#,
      #"{"note":"\#(base64("by jürgen-k7q2!", padded: false))"}"#,
      #"{"note":"\#(base64("jürgen-k7q2"))"}"#,
      #"{"note":"head.\#(base64(#"{"a":"\#(escaped(user))"}"#)).tail"}"#,
      #"{"note":"\#(base64("x." + base64(user) + ".y"))"}"#,
      #"{"note":"\#(base64("?jürgen-k7q2>>").replacing("/", with: "\\/"))"}"#,
      #"{"note":"\#(base64("?jürgen-k7q2>>").replacing("/", with: "_").replacing("+", with: "-"))"}"#,
      #"{"deep":[{"list":["\#(token)"]}]}"#, #"{"note":"\#(token.uppercased())"}"#,
    ])
  func encodings(_ metadata: String) throws {
    try expectEqual(Self.found([Self.user, Self.token], in: metadata), [0])
  }

  @Test(
    "A mere resemblance is not found",
    arguments: [
      #"{"note":"jurgen-k7q2"}"#, #"{"note":"JÜRGEN-K7Q2"}"#, #"{"note":"jürgen-k7q"}"#, "{}",
      #"{"note":"\#(base64("jürgen-k7q"))"}"#,
    ])
  func others(_ metadata: String) throws {
    try expectEqual(Self.found([Self.user, Self.token], in: metadata), [])
  }

  @Test(
    "A short identifier is compared with users, and with values and keys of metadata",
    arguments: [
      (#"{"note":"bob"}"#, true), (#"{"bob":1}"#, true), (#"{"a":[{"b":["bob"]}]}"#, true),
      (#"{"note":"\u0062ob"}"#, true), (#"{"n":17}"#, true), (#"{"n":"17"}"#, true),
      (#"{"note":"bobby"}"#, false), (#"{"note":"by bob"}"#, false), (#"{"n":1.7}"#, false),
      (#"{"n":171}"#, false),
    ] as [(String, Bool)])
  func short(_ metadata: String, isFound: Bool) throws {
    try expectEqual(Self.found(["bob", "17"], in: metadata), (isFound ? [0] : []))
    #expect(IdentifierSearch([Array("bob".utf8)]).isPartial)
    #expect(!IdentifierSearch([Array("robert".utf8)]).isPartial)
  }

  @Test("A short identifier is found where it is a user")
  func shortUser() throws {
    try expectEqual(Self.found(["other"], in: "{}"), [0])
  }

  @Test("The ends of runs of base64 are decoded")
  func ends() throws {
    for count in 6...40 {
      let text = String(repeating: "ü~?", count: 20).prefix(count)
      let encoded = Base64.encode(Array(text.utf8)).filter { $0 != UInt8(ascii: "=") }
      let decoded = encoded.withUnsafeBytes { EncodedText.decodedRuns(of: $0) }
      expectEqual(decoded, Array(text.utf8) + [0x0A])
    }
  }
}

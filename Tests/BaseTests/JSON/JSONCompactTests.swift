// Compacting: white space is removed, everything else stays; an error leaves the bytes unchanged.
import Base
import TestSupport
import Testing

@Suite struct JSONCompactTests {
  private static func compact(_ text: [UInt8], to output: inout [UInt8]) -> JSONError? {
    text.withUnsafeBytes { bytes in
      do throws(JSONError) {
        try JSONValidator.compact(bytes, to: &output)
        return nil
      } catch {
        return error
      }
    }
  }

  @Test(arguments: [
    ("null", "null"), (" \n1 ", "1"), ("[ ]", "[]"), ("{\t}", "{}"), (" [ 1 , 2 ] ", "[1,2]"),
    ("{ \"b\" : 1 ,\r\n \"a\" : [ true , null ] }", "{\"b\":1,\"a\":[true,null]}"),
    // Inside strings white space stays, and tokens stay as written.
    ("\" a  b \"", "\" a  b \""), ("[ 1.0 , 1E5 , -0 , 1e+07 ]", "[1.0,1E5,-0,1e+07]"),
    ("[ \"\\u0041\\/\" ]", "[\"\\u0041\\/\"]"), ("{\"z\":1, \"y\":2}", "{\"z\":1,\"y\":2}"),
    ("[1,2]", "[1,2]"), ("[1 ,2]", "[1,2]"), ("[1, 2]", "[1,2]"),
  ]) func whiteSpaceGoesAndTokensStay(_ text: String, _ expected: String) {
    var output = Array("kept".utf8)
    #expect(Self.compact(Array(text.utf8), to: &output) == nil)
    expectEqual(String(decoding: output, as: UTF8.self), "kept" + expected)
  }

  @Test(arguments: [
    "", "[ 1 , 2", "[ 1 , ] ", "{ \"a\" : 1 , \"a\" : 2 }", " [ 1 ] x", "[ \"a\nb\" ]", "[ 01 ]",
  ]) func outputIsWhatItWasAfterAnError(_ text: String) {
    for before in ["", "kept"] {
      var output = Array(before.utf8)
      let error = Self.compact(Array(text.utf8), to: &output)
      expectEqual(error, verdict(text))
      #expect(error != nil)
      expectEqual(output, Array(before.utf8))
    }
  }

  @Test func randomTextsWithWhiteSpaceBecomeTheirCanonicalBytes() {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    for _ in 0..<500 {
      let value = JSONValue.random(depth: 4, &random)
      var output: [UInt8] = []
      #expect(Self.compact(Array(value.spaced(&random).utf8), to: &output) == nil, "seed \(seed)")
      expectEqual(output, value.bytes, "seed \(seed)")
    }
  }
}

// The writer and the value: what is written is read back unchanged.
import Base
import TestSupport
import Testing

@Suite struct JSONWriterTests {
  private static func text(_ body: (inout JSONWriter) -> Void) -> String {
    var writer = JSONWriter()
    body(&writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  @Test func commasComeByThemselves() {
    let text = Self.text { writer in
      writer.beginObject()
      writer.key("a")
      writer.beginArray()
      writer.integer(1)
      writer.string("x")
      writer.beginArray()
      writer.endArray()
      writer.beginObject()
      writer.endObject()
      writer.null()
      writer.boolean(true)
      writer.boolean(false)
      writer.endArray()
      writer.key("b \"" as String)
      writer.integer(Int64.min)
      writer.key("c")
      writer.beginObject()
      writer.endObject()
      writer.key("d")
      Array("1.50".utf8).withUnsafeBytes { writer.raw($0) }
      writer.endObject()
    }
    expectEqual(
      text,
      "{\"a\":[1,\"x\",[],{},null,true,false],\"b \\\"\":-9223372036854775808,\"c\":{},\"d\":1.50}")
    #expect(verdict(text) == nil)
  }

  @Test func writerContinuesBytesAndStartsAfresh() {
    var writer = JSONWriter(Array("{\"a\":".utf8))
    writer.integer(UInt64.max)
    expectEqual(String(decoding: writer.bytes, as: UTF8.self), "{\"a\":18446744073709551615")
    writer.removeAll()
    writer.null()
    expectEqual(String(decoding: writer.bytes, as: UTF8.self), "null")
  }

  @Test func integersOfEveryWidthAreWrittenWhole() {
    expectEqual(Self.text { $0.integer(Int8.min) }, "-128")
    expectEqual(Self.text { $0.integer(0) }, "0")
    expectEqual(Self.text { $0.integer(Int64.max) }, "9223372036854775807")
    expectEqual(Self.text { $0.integer(Int128.min) }, "\(Int128.min)")
    expectEqual(Self.text { $0.integer(UInt128.max) }, "\(UInt128.max)")
  }

  @Test func emptyStringAndEmptyBufferAreWritten() {
    expectEqual(Self.text { $0.string("") }, "\"\"")
    expectEqual(Self.text { $0.string(JSONBytes(start: nil, count: 0)) }, "\"\"")
  }

  @Test func randomValueIsReadBackAsItWasWritten() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededRandom(seed: seed)
    for _ in 0..<1000 {
      let value = JSONValue.random(depth: 5, &random)
      let bytes = value.bytes
      #expect(verdict(bytes) == nil, "seed \(seed)")
      let read = try JSONValue(bytes)
      expectEqual(read, value, "seed \(seed)")
      // Swift's String compares by canonical equivalence; the bytes must be the same too.
      expectEqual(read.bytes, bytes, "seed \(seed)")
    }
  }

  @Test func membersAreFoundByKeyAndValuesByKind() throws {
    let value = try JSONValue(
      Array("{\"a\":1,\"b\":\"x\",\"c\":[true],\"d\":1.0,\"e\":99999999999999999999}".utf8))
    expectEqual(value["a"]?.integerValue, 1)
    expectEqual(value["b"]?.stringValue, "x")
    expectEqual(value["c"]?.arrayValue, [.boolean(true)])
    expectEqual(value["d"], .number("1.0"))
    #expect(value["d"]?.integerValue == nil)
    #expect(value["e"]?.integerValue == nil)
    #expect(value["f"] == nil)
    #expect(value["a"]?["b"] == nil)
    #expect(value["a"]?.stringValue == nil)
  }

  @Test func valueRefusesWhatTheValidatorRefuses() {
    #expect(throws: JSONError(.duplicateKey, at: 8)) {
      try JSONValue(Array("{\"a\":1,\"a\":2}".utf8))
    }
    #expect(throws: JSONError(.unexpectedEnd, at: 0)) { try JSONValue([UInt8]()) }
    #expect(throws: JSONError(.tooDeep, at: 64)) {
      try JSONValue([UInt8](repeating: UInt8(ascii: "["), count: 100))
    }
  }
}

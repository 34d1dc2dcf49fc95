// The strict validator, the cursor that reads what it passed, and the writer.
@testable import Base

extension FuzzTarget {
  static let json = FuzzTarget(
    name: "json", inputByteCountMax: 2048,
    words: [
      "{", "}", "[", "]", ",", ":", "\"", "true", "false", "null", "\\u0041", "\\ud83d\\ude00",
      "\\ud800", "\\n", "\\\\", "\\\"", "-0", "0.1", "1e9", "9223372036854775807", "\u{e9}",
      "\u{1F600}", "\u{feff}", "\u{0}", "{\"a\":", ",\"a\":", "\"\":[",
    ],
    seeds: {
      let deep = 70
      let texts = [
        "", "{}", "[]", "null", " [ 1 , -2.50e+3 , true , false , null , \"\" ] ",
        "{\"a\":{\"b\":[{\"c\":\"d\"}]},\"e\":\"\\u00e9\\ud83d\\ude00\\n\\\"\\\\\"}",
        "{\"k\":1,\"\\u006b\":2}", "\"\u{e9}\u{1F600}\"", "01", "1.", "[1,]", "{\"a\":1,}",
        "[9223372036854775807,-9223372036854775808,9223372036854775808]",
        String(repeating: "[", count: deep) + String(repeating: "]", count: deep),
        "{" + (0..<60).map { "\"k\($0)\":\($0)" }.joined(separator: ",") + "}",
        "{\"seq\":0,\"type\":\"receipt.uploaded\",\"v\":1,\"data\":{\"receipt\":\"AAAA\"}}",
      ]
      return texts.map { Array($0.utf8) } + [[0x22, 0xC3, 0x28, 0x22], [0x22, 0xED, 0xA0, 0x80]]
    },
    check: { input in
      JSONCheck.compacting(input)
      JSONCheck.walk(input)
      JSONCheck.writing(input)
    })
}

private enum JSONCheck {
  static func compacting(_ input: JSONBytes) {
    let before: [UInt8] = [1, 2, 3]
    var output = before
    let verdict = JSONCheck.error { () throws(JSONError) in try JSONValidator.validate(input) }
    let other = JSONCheck.error { () throws(JSONError) in
      try JSONValidator.compact(input, to: &output)
    }
    require(verdict == other, "validating and compacting judge alike")
    require(output.starts(with: before), "what stood in the output stays")
    guard verdict == nil else { return require(output == before, "an error leaves no output") }
    let compact = Array(output.dropFirst(before.count))
    compact.withUnsafeBytes { bytes in
      require(error { () throws(JSONError) in try JSONValidator.validate(bytes) } == nil, "valid")
      var again: [UInt8] = []
      _ = error { () throws(JSONError) in try JSONValidator.compact(bytes, to: &again) }
      require(again == compact, "compacting what is compact changes nothing")
      require(JSONCheck.raw(bytes) == compact, "the cursor passes over all of a compact text")
    }
    JSONCheck.values(input, compact)
  }

  private static func values(_ input: JSONBytes, _ compact: [UInt8]) {
    do {
      let value = try JSONValue(input)
      require(try JSONValue(compact) == value, "white space means nothing")
      let written = value.bytes
      require(try JSONValue(written) == value, "what is written reads the same")
      require(try JSONValue(written).bytes == written, "the written form is the only one")
    } catch { require(false, "the cursor reads what was validated: \(error)") }
  }

  /// A text as the cursor passes over it.
  private static func raw(_ bytes: JSONBytes) -> [UInt8]? {
    do {
      var cursor = JSONCursor(bytes)
      let raw = try cursor.readRaw()
      try cursor.expectEnd()
      return Array(raw)
    } catch { return nil }
  }

  /// Reads whatever comes, validated or not: nothing may be read outside the bytes.
  static func walk(_ bytes: JSONBytes) {
    var cursor = JSONCursor(bytes)
    do { try walk(&cursor, depth: 0) } catch {
      require(0...bytes.count ~= (error as? JSONError)?.offsetBytes ?? -1, "errors have places")
    }
    require(0...bytes.count ~= cursor.offset, "the cursor stays inside")
  }

  private static func walk(_ cursor: inout JSONCursor, depth: Int) throws {
    if depth == 32 { return try cursor.skipValue() }
    switch try cursor.kind() {
    case .object:
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        if key == "seq" || key.bytes.count > 100 { continue }
        try walk(&cursor, depth: depth + 1)
      }
    case .array:
      try cursor.beginArray()
      while try cursor.nextElement() { try walk(&cursor, depth: depth + 1) }
    case .string: require(try cursor.readString().string.utf8.count >= 0, "strings are read")
    case .number:
      let token = try cursor.readNumber()
      let expected =
        token.first == UInt8(ascii: "+") ? nil : Int64(String(decoding: token, as: UTF8.self))
      require(JSONNumber.integer(token) == expected, "integers are read exactly")
    case .boolean: _ = try cursor.readBoolean()
    case .null: require(try cursor.consumeNull(), "a null is taken")
    }
  }

  /// Any UTF-8 can be written as a string, and is read back.
  static func writing(_ input: JSONBytes) {
    guard String(validating: input, as: UTF8.self) != nil else { return }
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("k")
    writer.string(input)
    writer.endObject()
    writer.bytes.withUnsafeBytes { bytes in
      do {
        try JSONValidator.validate(bytes)
        var cursor = JSONCursor(bytes)
        try cursor.beginObject()
        require(try cursor.nextKey().map { $0 == "k" } ?? false, "the key is there")
        require(try cursor.readString().bytes == Array(input), "a string reads as it was written")
        require(try cursor.nextKey() == nil, "nothing follows")
      } catch { require(false, "what is written is JSON: \(error)") }
    }
  }

  private static func error(_ body: () throws(JSONError) -> Void) -> JSONError? {
    do throws(JSONError) {
      try body()
      return nil
    } catch { return error }
  }
}

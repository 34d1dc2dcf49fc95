// Property lists, as transaction receipts are written.
@testable import AppStore
@testable import AppStoreAuthority

extension FuzzTarget {
  static let propertyList = FuzzTarget(
    name: "property-list", inputByteCountMax: 2048,
    words: [
      "{", "}", "(", ")", "=", ";", "\"", "\\\"", "\\\\", "\\n", "\n", "\"purchase-info\" = ",
      "\"key\" = \"value\";",
    ],
    seeds: {
      let texts = [
        "{}", "{ \"a\" = \"b\"; }", "{\n\t\"a\" = \"b\";\n\t\"c\" = \"\";\n}",
        "{ \"a\" = \"\\\"\\\\\u{e9}\"; }", "{ \"a\" = \"b\"; \"a\" = \"c\"; }", "{ \"a\" = \"b",
        "{ a = b; }", "{ \"a\" = (\"b\"); }",
      ]
      return texts.map { Array($0.utf8) } + [TransactionReceiptPlan().purchaseInfo]
    },
    check: { input in
      let texts: [String: String]
      do throws(PropertyListError) { texts = try PropertyList.texts(in: input) } catch {
        require(0...input.count ~= error.offsetBytes, "errors have places")
        return require(!error.description.isEmpty, "errors have causes")
      }
      require(texts.count <= PropertyList.maximumEntryCount, "there is a most of entries")
      let written = PropertyListText.write(texts)
      do {
        let again = try written.withUnsafeBytes { try PropertyList.texts(in: $0) }
        // Swift calls texts the same that Unicode calls so; here each byte counts.
        let expected = texts.mapValues { Array($0.utf8) }
        require(again.mapValues { Array($0.utf8) } == expected, "texts are read as written")
      } catch { require(false, "what is written is read: \(error)") }
    })
}

/// Property lists with every text in quotes.
enum PropertyListText {
  static func write(_ texts: [String: String]) -> [UInt8] {
    var result = Array("{".utf8)
    for (key, value) in texts {
      append(key, to: &result)
      result.append(UInt8(ascii: "="))
      append(value, to: &result)
      result.append(UInt8(ascii: ";"))
    }
    return result + [UInt8(ascii: "}")]
  }

  private static func append(_ text: String, to result: inout [UInt8]) {
    result.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
        result.append(UInt8(ascii: "\\"))
      }
      result.append(byte)
    }
    result.append(UInt8(ascii: "\""))
  }
}

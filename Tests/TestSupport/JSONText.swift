// JSON for tests, written as Swift literals; digits and the order of members stay as written.
import Base

/// One JSON value as text.
package struct JSONText: Sendable, Equatable {
  package let text: String

  /// A value written by hand.
  package init(raw text: String) { self.text = text }

  /// As a member: leaves the member out.
  package static let absent = JSONText(raw: "")
  package static let null = JSONText(raw: "null")

  /// An object without its absent members; of duplicate keys the last counts.
  package static func object(_ members: [(String, JSONText)]) -> JSONText {
    var kept: [(String, JSONText)] = []
    for (key, value) in members {
      if let place = kept.firstIndex(where: { $0.0 == key }) {
        kept[place].1 = value
      } else {
        kept.append((key, value))
      }
    }
    let texts = kept.filter { $0.1 != .absent }.map {
      JSONText(stringLiteral: $0).text + ":" + $1.text
    }
    return JSONText(raw: "{" + texts.joined(separator: ",") + "}")
  }

  /// An array of values.
  package static func array(_ values: [JSONText]) -> JSONText {
    JSONText(raw: "[" + values.map(\.text).joined(separator: ",") + "]")
  }

  package var bytes: [UInt8] { Array(text.utf8) }

  /// Numbers at and beyond the limits of integers, dates and prices, in every form that a number may have.
  package static let boundaryNumbers: [JSONText] = {
    var texts = [
      "0", "-0", "-0.0", "0.5", "-0.5", "-1", "1e3", "1E+400", "-1e400", "1e-400", "9.3e18",
      "-9.3e18",
    ]
    // Of 32 and 64 bits; then the first and the last instant, and the greatest price.
    for limit in [
      "2147483647", "9223372036854775807", "18446744073709551615", "62135596800000",
      "253402300799999", "99999999999999",
    ] {
      let value = Int128(limit) ?? 0
      for near in [value, value + 1, -value, -value - 1] {
        texts += ["\(near)", "\(near).5", "\"\(near)\""]
      }
    }
    let long = String(repeating: "9", count: 4_000)
    return (texts + [long, "-\(long)", "0.\(long)", "\"\(long)\""]).map { JSONText(raw: $0) }
  }()
}

extension JSONText: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  package init(stringLiteral value: String) {
    var writer = JSONWriter()
    writer.string(value)
    text = String(decoding: writer.bytes, as: UTF8.self)
  }

  package init(integerLiteral value: Int) { text = String(value) }

  package init(booleanLiteral value: Bool) { text = value ? "true" : "false" }

  package init(arrayLiteral elements: JSONText...) { self = .array(elements) }

  package init(dictionaryLiteral elements: (String, JSONText)...) { self = .object(elements) }
}

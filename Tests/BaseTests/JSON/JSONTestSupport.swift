// Helpers of the JSON tests: texts as bytes, and random values from a seed.
import Base
import TestSupport

/// A text, the expected error, and its offset.
struct RefusedText: Sendable, CustomStringConvertible {
  let bytes: [UInt8]
  let cause: JSONError.Cause
  let offsetBytes: Int
  var description: String { "\(String(decoding: bytes, as: UTF8.self).debugDescription): \(cause)" }

  init(_ text: String, _ cause: JSONError.Cause, at offsetBytes: Int) {
    self.init(Array(text.utf8), cause, at: offsetBytes)
  }

  init(_ bytes: [UInt8], _ cause: JSONError.Cause, at offsetBytes: Int) {
    self.bytes = bytes
    self.cause = cause
    self.offsetBytes = offsetBytes
  }
}

/// The validator's verdict: nil if the bytes are valid.
func verdict(
  _ bytes: [UInt8], depthLimit: Int = JSONValidator.defaultDepthLimit
) -> JSONError? {
  // A copy of exactly this size on the heap, so that a sanitizer sees a read past its end.
  let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
  defer { copy.deallocate() }
  copy.copyBytes(from: bytes)
  do throws(JSONError) {
    try JSONValidator.validate(JSONBytes(copy), depthLimit: depthLimit)
    return nil
  } catch {
    return error
  }
}

func verdict(_ text: String) -> JSONError? { verdict(Array(text.utf8)) }

/// Gives `body` a cursor over `bytes`.
func withCursor<Value>(
  _ bytes: [UInt8], _ body: (inout JSONCursor) throws -> Value
) rethrows -> Value {
  let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
  defer { copy.deallocate() }
  copy.copyBytes(from: bytes)
  var cursor = JSONCursor(JSONBytes(copy))
  return try body(&cursor)
}

func withCursor<Value>(
  _ text: String, _ body: (inout JSONCursor) throws -> Value
) rethrows -> Value {
  try withCursor(Array(text.utf8), body)
}

extension JSONValue {
  /// Any value of at most this many levels; keys of an object differ.
  static func random(depth: Int, _ random: inout SeededRandom) -> JSONValue {
    switch random.below(depth > 0 ? 7 : 5) {
    case 0: return .null
    case 1: return .boolean(random.below(2) == 0)
    case 2: return .number(randomNumber(&random))
    case 3, 4: return .string(randomString(&random))
    case 5:
      return .array((0..<random.below(5)).map { _ in .random(depth: depth - 1, &random) })
    default:
      var members: [Member] = []
      for _ in 0..<random.below(6) {
        let key = randomString(&random)
        if members.contains(where: { Array($0.key.utf8) == Array(key.utf8) }) { continue }
        members.append(Member(key, .random(depth: depth - 1, &random)))
      }
      return .object(members)
    }
  }

  private static func randomNumber(_ random: inout SeededRandom) -> String {
    var text = random.below(3) == 0 ? "-" : ""
    text += random.below(4) == 0 ? "0" : String(1 + random.next() % 999_999_999_999)
    if random.below(3) == 0 { text += "." + String(random.next() % 1_000_000) }
    if random.below(4) == 0 {
      text += random.pick(["e", "E"]) + random.pick(["", "+", "-"]) + "07"
    }
    return text
  }

  private static func randomString(_ random: inout SeededRandom) -> String {
    var view = String.UnicodeScalarView()
    for _ in 0..<random.below(random.below(8) == 0 ? 60 : 10) {
      let value: UInt32
      switch random.below(6) {
      case 0: value = UInt32(random.below(0x20))
      case 1: value = random.pick([0x22, 0x5C, 0x2F, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x2028])
      case 2: value = UInt32(random.below(0x11_0000))
      default: value = UInt32(0x20 + random.below(0x5F))
      }
      view.append(Unicode.Scalar(value) ?? "?")
    }
    return String(view)
  }

  /// The value with white space strewn between its tokens.
  func spaced(_ random: inout SeededRandom) -> String {
    func space(_ random: inout SeededRandom) -> String {
      (0..<random.below(3)).map { _ in random.pick([" ", "\n", "\r", "\t"]) }.joined()
    }
    var text = space(&random)
    switch self {
    case .array(let elements):
      text += "[" + space(&random)
      text += elements.map { $0.spaced(&random) }.joined(separator: ",") + "]"
    case .object(let members):
      text += "{" + space(&random)
      text += members.map { member in
        let key = String(decoding: JSONValue.string(member.key).bytes, as: UTF8.self)
        return space(&random) + key + space(&random) + ":" + member.value.spaced(&random)
      }.joined(separator: ",")
      text += "}"
    default: text += String(decoding: bytes, as: UTF8.self)
    }
    return text + space(&random)
  }
}

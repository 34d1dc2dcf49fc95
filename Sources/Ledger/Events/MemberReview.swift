// Collects missing and invalid members while an event is decoded.
import JSON

/// The members of one event that were present, and those that were invalid, by their index in the catalogue's list.
struct MemberReview {
  private var met: UInt32 = 0
  private var wrong: UInt32 = 0

  /// Records that a member is present and whether it is valid.
  @inline(__always)
  mutating func mark(_ place: Int, isRight: Bool) {
    let bit = UInt32(1) << UInt32(place)
    met |= bit
    if !isRight { wrong |= bit }
  }

  /// Whether no member is invalid, or missing although required.
  @inline(__always)
  func isRight(required: UInt32) -> Bool { wrong | (required & ~met) == 0 }

  /// Throws `badField` for the first member, in the catalogue's order, that is invalid, or missing although required.
  /// - Parameters:
  ///   - required: a bit for each required member.
  ///   - names: the members in the catalogue's order.
  @inline(__always)
  func check(
    _ type: EventType, required: UInt32, _ names: @autoclosure () -> [String]
  ) throws(EventError) {
    let faults = wrong | (required & ~met)
    if faults == 0 { return }
    throw .badField(type, field: names()[faults.trailingZeroBitCount])
  }
}

extension JSONCursor {
  /// Reads a string; skips a value of any other kind and returns nil.
  @inline(__always)
  mutating func readStringOrSkip() throws(JSONError) -> JSONString? {
    if try kind() == .string { return try readString() }
    try skipValue()
    return nil
  }

  /// Reads an integer within 64 bits; skips any other value and returns nil.
  @inline(__always)
  mutating func readIntegerOrSkip() throws(JSONError) -> Int64? {
    if try kind() == .number { return JSONNumber.integer(try readNumber()) }
    try skipValue()
    return nil
  }
}

/// The form of UUIDs in events: 36 bytes, lower-case digits.
enum EventUUID {
  static func isOne(_ text: JSONBytes) -> Bool {
    guard text.count == 36 else { return false }
    for place in 0..<36 {
      let byte = text[place]
      switch place {
      case 8, 13, 18, 23: if byte != 0x2D { return false }
      default:
        guard (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte) else { return false }
      }
    }
    return true
  }

  static func isOne(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { isOne(JSONBytes($0)) }
  }
}

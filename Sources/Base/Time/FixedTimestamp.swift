// The fixed form of times in events, read and written without allocating.

extension Timestamp {
  /// The length of the fixed form in bytes: `2026-01-02T03:04:05.678Z`.
  package static let fixedByteCount = 24
  /// The instants that the fixed form can express: the years 1970 to 9999.
  package static let fixedRangeMs: ClosedRange<Int64> = 0...253_402_300_799_999

  /// Reads the fixed form; nil for anything else, including days that do not exist.
  package static func parseFixed(_ text: UnsafeRawBufferPointer) -> Int64? {
    guard text.count == fixedByteCount, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"),
      text[10] == UInt8(ascii: "T"), text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"),
      text[19] == UInt8(ascii: "."), text[23] == UInt8(ascii: "Z"),
      let year = decimalValue(text, 0..<4), let month = decimalValue(text, 5..<7),
      let day = decimalValue(text, 8..<10), let hour = decimalValue(text, 11..<13),
      let minute = decimalValue(text, 14..<16), let second = decimalValue(text, 17..<19),
      let fractionMs = decimalValue(text, 20..<23), year >= 1970,
      let date = CivilDate(year: year, month: month, day: day),
      hour < 24, minute < 60, second < 60
    else { return nil }
    let seconds = date.dayNumber * 86_400 + hour * 3600 + minute * 60 + second
    return Int64(seconds * 1000 + fractionMs)
  }

  /// Writes the fixed form of an instant into the `fixedByteCount` bytes at `target`. An instant outside
  /// `fixedRangeMs` is clamped to it.
  package static func writeFixed(ms: Int64, to target: UnsafeMutableRawPointer) {
    let clamped = Int(min(max(ms, fixedRangeMs.lowerBound), fixedRangeMs.upperBound))
    let (dayNumber, msOfDay) = clamped.quotientAndRemainder(dividingBy: Int(dayMs))
    let date = CivilDate(dayNumber: dayNumber)
    func put(_ value: Int, _ offset: Int, digits: Int) {
      var rest = value
      for place in stride(from: offset + digits - 1, through: offset, by: -1) {
        put(UInt8(ascii: "0") + UInt8(rest % 10), place)
        rest /= 10
      }
    }
    func put(_ character: UInt8, _ offset: Int) {
      target.storeBytes(of: character, toByteOffset: offset, as: UInt8.self)
    }
    put(date.year, 0, digits: 4)
    put(UInt8(ascii: "-"), 4)
    put(date.month, 5, digits: 2)
    put(UInt8(ascii: "-"), 7)
    put(date.day, 8, digits: 2)
    put(UInt8(ascii: "T"), 10)
    put(msOfDay / 3_600_000, 11, digits: 2)
    put(UInt8(ascii: ":"), 13)
    put(msOfDay / 60_000 % 60, 14, digits: 2)
    put(UInt8(ascii: ":"), 16)
    put(msOfDay / 1000 % 60, 17, digits: 2)
    put(UInt8(ascii: "."), 19)
    put(msOfDay % 1000, 20, digits: 3)
    put(UInt8(ascii: "Z"), 23)
  }

  /// The fixed form of an instant. An instant outside `fixedRangeMs` is clamped to it.
  package static func fixedText(ms: Int64) -> String {
    String(unsafeUninitializedCapacity: fixedByteCount) { bytes in
      if let start = bytes.baseAddress { writeFixed(ms: ms, to: start) }
      return fixedByteCount
    }
  }
}

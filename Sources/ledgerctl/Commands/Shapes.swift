// Shapes of values that several commands read.
import Time

/// A UUID in lower case; nil where `text` is none.
func uuidText(_ text: String) -> String? {
  let bytes = Array(text.utf8)
  guard bytes.count == 36 else { return nil }
  for (index, byte) in bytes.enumerated() {
    let isHyphen = [8, 13, 18, 23].contains(index)
    guard isHyphen ? byte == UInt8(ascii: "-") : isHexDigit(byte) else { return nil }
  }
  return text.lowercased()
}

private func isHexDigit(_ byte: UInt8) -> Bool {
  (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
}

/// A position: decimal digits alone, within the range of `Int`.
func positionValue(_ text: String) -> Int? {
  guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
  return Int(text)
}

extension Invocation {
  /// The day that an option names.
  func day(_ name: String) throws(UsageError) -> CivilDate? {
    try value(name, "is no day of the calendar, as in 2026-03-14") { CivilDate($0) }
  }
}

/// An instant as all output shows it: `2026-01-02T03:04:05.678Z`.
func timeText(_ epochMs: Int64) -> String { Timestamp.text(epochMs) }

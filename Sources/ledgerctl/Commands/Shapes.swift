// Argument values that several commands parse.
import Base

/// A UUID in lower case; nil if `text` is not one.
func uuidText(_ text: String) -> String? { UUID16(text)?.description }

/// A position: only decimal digits, within the range of `Int`.
func positionValue(_ text: String) -> Int? {
  guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
  return Int(text)
}

extension Invocation {
  /// The day that an option names.
  func day(_ name: String) throws(UsageError) -> CivilDate? {
    try value(name, "is not a date, as in 2026-03-14") { try? CivilDate(parsing: $0) }
  }
}

/// A time in the format of all output: `2026-01-02T03:04:05.678Z`.
func timeText(_ epochMs: Int64) -> String { Timestamp.text(ms: epochMs) }

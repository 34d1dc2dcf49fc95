// Formatting of counts, sizes, digests and times, and argument values that several commands parse.
import Base

/// `1 event`, `2 events`.
func counted(_ count: Int, _ noun: String) -> String {
  "\(count) \(noun)\(count == 1 ? "" : "s")"
}

/// `17 B`, `1.5 MiB`, rounded down.
package func sizeText(_ byteCount: Int) -> String {
  let names = ["B", "KiB", "MiB", "GiB", "TiB"]
  var (whole, rest, index) = (byteCount, 0, 0)
  while whole >= 1024, index + 1 < names.count {
    (rest, whole, index) = (whole % 1024, whole / 1024, index + 1)
  }
  return index == 0 ? "\(whole) B" : "\(whole).\(rest * 10 / 1024) \(names[index])"
}

extension SHA256Digest {
  /// In base64, as checkpoints write it.
  var base64: String { Base64.text(bytes) }
}

/// A UUID in lower case; nil if `text` is not one.
func uuidText(_ text: String) -> String? { UUID16(text)?.description }

/// A position: only decimal digits, within the range of `Int`.
func positionValue(_ text: String) -> Int? {
  guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
  return Int(text)
}

extension Invocation {
  /// The day that an option names. A position or a time gets a hint, if the command takes them elsewhere.
  func day(_ name: String) throws(UsageError) -> CivilDate? {
    guard let text = value(name) else { return nil }
    if let day = try? CivilDate(parsing: text) { return day }
    var cause = "is not a date, as in 2026-03-14"
    let options = ["as-of", "since", "until"].filter { option in
      command.options.contains { $0.name == option }
    }
    if PointInTime(text) != nil, !options.isEmpty {
      cause += "; a point in time is for \(alternatives(options.map { "--\($0)" }))"
    }
    throw wrong(name, text, cause)
  }
}

/// A time in the format of all output: `2026-01-02T03:04:05.678Z`.
func timeText(_ epochMs: Int64) -> String { Timestamp.text(ms: epochMs) }

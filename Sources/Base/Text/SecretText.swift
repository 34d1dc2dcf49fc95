// Detects texts that look like secrets, so that messages can omit them wherever they come from.

/// Recognizes tokens, receipts, signed data and random keys by their form. It cannot recognize a password
/// made of words.
package enum SecretText {
  /// The prefix of every token of the client API.
  package static let tokenPrefix = "rlt_"

  /// A shorter run is a name, not a complete secret.
  private static let runLengthMin = 16
  /// No file name or identifier is longer.
  private static let nameLengthMax = 255
  private static let pathLengthMax = 1024

  /// The length of an Amazon secret access key: letters of both cases, digits, `+` and `/`.
  private static let accessKeyLength = 40

  /// Whether a text contains what may be a token, a receipt's base64, a JWS, or a key in base64 or
  /// hexadecimal. UUIDs, times and words, however joined, do not count.
  package static func isLikely(_ text: some StringProtocol) -> Bool {
    let bytes = Array(text.utf8)
    if bytes.count < runLengthMin { return false }
    if bytes.count > pathLengthMax { return true }
    // A slash may be part of base64 or separate the names in a path, so try both.
    return runs(of: bytes, with: false).contains { looksRandom(bytes[$0]) || isLongHex(bytes[$0]) }
      || runs(of: bytes, with: true).contains {
        $0.count >= 32 && looksRandom(bytes[$0]) || hasAccessKey(bytes[$0])
      }
  }

  /// Whether a run contains a secret access key, which slashes may join with other names. Slashes within the key leave
  /// too few pairs to detect randomness, so its length decides.
  private static func hasAccessKey(_ run: ArraySlice<UInt8>) -> Bool {
    run.split { "-_=".utf8.contains($0) }.contains { part in
      let slash = UInt8(ascii: "/")
      return part.indices.contains { start in
        guard start == part.startIndex || part[start - 1] == slash,
          part.endIndex - start >= accessKeyLength
        else { return false }
        let end = start + accessKeyLength
        guard end == part.endIndex || part[end] == slash else { return false }
        let kinds = part[start..<end].map(kind)
        return [Kind.lower, .upper, .digit].allSatisfy(kinds.contains)
      }
    }
  }

  /// The text to show instead.
  package static func substitute(_ text: some StringProtocol) -> String {
    "[\(text.unicodeScalars.count) characters, not shown]"
  }

  /// The runs of characters that base64, base64url and hexadecimal use.
  private static func runs(of bytes: [UInt8], with slashes: Bool) -> [Range<Int>] {
    var runs: [Range<Int>] = []
    var start = 0
    for index in 0...bytes.count {
      let belongs =
        index < bytes.count
        && (kind(bytes[index]) != .other || "+-_=".utf8.contains(bytes[index])
          || slashes && bytes[index] == UInt8(ascii: "/"))
      if belongs { continue }
      if index - start >= runLengthMin { runs.append(start..<index) }
      start = index + 1
    }
    return runs
  }

  private enum Kind { case lower, upper, digit, other }

  private static func kind(_ byte: UInt8) -> Kind {
    switch byte {
    case 0x61...0x7A: .lower
    case 0x41...0x5A: .upper
    case 0x30...0x39: .digit
    default: .other
    }
  }

  /// Whether letters and digits are mixed as if at random. In random base64, about half of the adjacent pairs are of
  /// different kinds; in words, dates and numbers, only a few are.
  private static func looksRandom(_ run: ArraySlice<UInt8>) -> Bool {
    if hasToken(run) { return true }
    // JSON in base64: every JWS begins with it.
    if run.starts(with: "eyJ".utf8) { return true }
    let bytes = withoutUUIDs(run)
    if bytes.split(separator: UInt8(ascii: "/")).contains(where: { $0.count > nameLengthMax }) {
      return true
    }
    var (pairs, changes) = (0, 0)
    for (left, right) in zip(bytes, bytes.dropFirst()) {
      let (left, right) = (kind(left), kind(right))
      if left == .other || right == .other { continue }
      pairs += 1
      // A word may begin with a capital letter.
      if left != right, (left, right) != (.upper, .lower) { changes += 1 }
    }
    // With few pairs, a larger share must differ.
    return pairs >= 12 && changes * 100 >= pairs * (pairs < 23 ? 30 : 25)
  }

  /// Whether a token begins anywhere in a run, which may include hyphens before it.
  private static func hasToken(_ run: ArraySlice<UInt8>) -> Bool {
    run.indices.dropLast(runLengthMin).contains { run[$0...].starts(with: tokenPrefix.utf8) }
  }

  private static func isLongHex(_ run: ArraySlice<UInt8>) -> Bool {
    run.split { !isHex($0) }.contains { part in
      part.count >= runLengthMin && part.contains { kind($0) == .digit }
        && part.contains { kind($0) != .digit }
    }
  }

  private static func isHex(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
    default: false
    }
  }

  /// The run with a hyphen in place of each UUID: ids of receipts and apps are not secrets.
  private static func withoutUUIDs(_ run: ArraySlice<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    var rest = run
    while let byte = rest.first {
      if startsWithUUID(rest) {
        result.append(UInt8(ascii: "-"))
        rest = rest.dropFirst(36)
      } else {
        result.append(byte)
        rest = rest.dropFirst()
      }
    }
    return result
  }

  private static func startsWithUUID(_ bytes: ArraySlice<UInt8>) -> Bool {
    let text = bytes.prefix(36)
    guard text.count == 36 else { return false }
    return text.enumerated().allSatisfy { index, byte in
      [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : isHex(byte)
    }
  }
}

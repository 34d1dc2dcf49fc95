// The texts that a configuration holds: addresses, networks, fingerprints, certificates, periods, tokens.
package import Base
import Glibc
import Intake

/// Whether a text has only ASCII letters, digits and some other characters.
func isPlain(_ text: some StringProtocol, _ others: String) -> Bool {
  text.utf8.allSatisfy {
    switch $0 {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: others.utf8.contains($0)
    }
  }
}

/// Where the App Store is asked.
enum EndpointText {
  private static let requirement = "must be an https URL, or an http URL to a loopback address"

  /// What is wrong with a URL; nil where it may be asked. Receipts leave this machine only encrypted.
  static func fault(_ text: String) -> String? {
    guard text.utf8.count <= 2048, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      return requirement
    }
    let isPlain = text.hasPrefix("http://")
    guard isPlain || text.hasPrefix("https://") else { return requirement }
    let rest = text.dropFirst(isPlain ? 7 : 8)
    let authority = rest.prefix { !"/?#\\".contains($0) }
    if authority.contains("@") { return "must not contain a user name or password" }
    if rest.contains("#") || rest.contains("\\") { return requirement }
    guard let (host, port) = split(authority) else { return "has no valid host" }
    if let port, !(UInt16(port).map { $0 > 0 } ?? false) { return "has no port from 1 to 65535" }
    if isPlain, !isLoopback(host) { return requirement }
    return nil
  }

  /// Whether a URL without fault names this machine itself.
  static func isForLoopback(_ url: String) -> Bool {
    let rest = url.dropFirst(url.hasPrefix("http://") ? 7 : 8)
    return split(rest.prefix { !"/?#\\".contains($0) }).map { isLoopback($0.host) } ?? false
  }

  private static func split(
    _ authority: Substring
  ) -> (host: Substring, port: Substring?)? {
    if authority.first == "[" {
      guard let end = authority.firstIndex(of: "]") else { return nil }
      let host = authority[authority.index(after: authority.startIndex)..<end]
      let rest = authority[authority.index(after: end)...]
      guard NetworkText.isIPv6(host), rest.isEmpty || rest.first == ":" else { return nil }
      return (host, rest.isEmpty ? nil : rest.dropFirst())
    }
    let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count <= 2, let host = parts.first, !host.isEmpty,
      isPlain(host, "-.")
    else { return nil }
    return (host, parts.count == 2 ? parts[1] : nil)
  }

  private static func isLoopback(_ host: Substring) -> Bool {
    if host.lowercased() == "localhost" || host == "::1" { return true }
    return host.hasPrefix("127.") && NetworkText.isIPv4(host)
  }
}

/// The path that takes notifications.
enum NotificationsPath {
  static let bytesMax = 255
  private static let reserved = ["client", "v1", "healthz", "readyz", "metrics"]

  /// What is wrong with a path; nil where nothing is. It must have one spelling, and take no request away from
  /// another path of the server.
  static func fault(_ text: String) -> String? {
    let parts = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    guard text.hasPrefix("/"), text.utf8.count <= bytesMax,
      parts.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." && isPlain($0, "-._~") })
    else {
      return
        "must be a path such as /app_store/notifications: at most \(bytesMax) letters, digits and "
        + "the characters - . _ ~ between slashes"
    }
    guard let first = parts.first, !reserved.contains(String(first)) else {
      return "must not begin with /\(parts.first ?? ""), which the server needs for itself"
    }
    return nil
  }
}

/// An address or a network.
enum NetworkText {
  static func isIPv4(_ text: some StringProtocol) -> Bool { bytes(text, AF_INET, 4) != nil }
  static func isIPv6(_ text: some StringProtocol) -> Bool { bytes(text, AF_INET6, 16) != nil }

  /// What is wrong with an address or network; nil where nothing is.
  static func fault(_ text: String) -> String? {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = bytes(parts[0], AF_INET, 4) ?? bytes(parts[0], AF_INET6, 16) else {
      return "must be an address or a network such as 10.0.0.0/8 or ::1"
    }
    guard parts.count == 2 else { return nil }
    let bitCount = address.count * 8
    guard (1...3).contains(parts[1].utf8.count),
      parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let prefix = Int(parts[1]),
      prefix <= bitCount
    else { return "has a prefix that is not from 0 to \(bitCount)" }
    let hasHostBits = (prefix..<bitCount).contains { bit in
      address[bit / 8] & (0x80 >> (bit % 8)) != 0
    }
    if hasHostBits { return "has bits set after its prefix of \(prefix)" }
    return NetworkRange(text).map { NetworkRange.holdInternet([$0]) } == true ? wholeFault : nil
  }

  /// Anyone could name any address as theirs.
  static let wholeFault = "must not cover all addresses: every client would be trusted"

  /// What is wrong with networks together, each of which is good; nil where nothing is.
  static func fault(ofAll texts: [String]) -> String? {
    NetworkRange.holdInternet(texts.compactMap(NetworkRange.init)) ? wholeFault : nil
  }

  private static func bytes(
    _ text: some StringProtocol, _ family: Int32, _ count: Int
  ) -> [UInt8]? {
    if text.utf8.contains(0) { return nil }
    var result = [UInt8](repeating: 0, count: count)
    return inet_pton(family, String(text), &result) == 1 ? result : nil
  }
}

/// A SHA-256 as people and tools write it: 64 digits of either case, with colons between bytes or not.
enum FingerprintText {
  static func digest(_ text: String) -> SHA256Digest? {
    var digits = Array(text.utf8)
    if digits.count == 95 {
      guard stride(from: 2, to: 95, by: 3).allSatisfy({ digits[$0] == UInt8(ascii: ":") })
      else { return nil }
      digits = digits.enumerated().filter { $0.offset % 3 != 2 }.map(\.element)
    }
    let lower = digits.map { (0x41...0x46).contains($0) ? $0 | 0x20 : $0 }
    return lower.withUnsafeBytes { SHA256Digest(hex: $0) }
  }
}

/// Certificates as PEM, or one as DER or its base64.
enum CertificateText {
  static let sizeBytesMax = 256 << 10
  private static let begin = "-----BEGIN CERTIFICATE-----"
  private static let end = "-----END CERTIFICATE-----"

  /// The DER of each certificate; nil where there is none, or one that is not whole.
  static func certificates(_ bytes: [UInt8]) -> [[UInt8]]? {
    // A SEQUENCE with a long length begins like no text.
    if bytes.first == 0x30, bytes.count > 1, bytes[1] & 0x80 != 0 { return [bytes] }
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.contains(begin) else { return decode(Substring(text)).map { [$0] } }
    var result: [[UInt8]] = []
    for part in pieces(text) {
      guard let der = decode(part) else { return nil }
      result.append(der)
    }
    return result.isEmpty ? nil : result
  }

  /// The base64 between each pair of marks.
  private static func pieces(_ text: String) -> [Substring] {
    var result: [Substring] = []
    var isInside = false
    var start = text.startIndex
    for line in text.split(whereSeparator: \.isNewline) {
      let trimmed = line.drop { $0 == " " }
      if trimmed.hasPrefix(begin) {
        isInside = true
        start = line.endIndex
      } else if isInside, trimmed.hasPrefix(end) {
        result.append(text[start..<line.startIndex])
        isInside = false
      }
    }
    // One that does not end is none.
    return isInside ? [] : result
  }

  private static func decode(_ text: Substring) -> [UInt8]? {
    let digits = text.utf8.filter { !(0x09...0x0D).contains($0) && $0 != 0x20 }
    guard !digits.isEmpty else { return nil }
    do { return try Base64.decode(digits) } catch { return nil }
  }
}

/// What the App Store calls the app's shared secret.
package enum SharedSecret {
  package static let requirement = "must be 1 to 255 visible ASCII characters"

  package static func isValid(_ secret: [UInt8]) -> Bool {
    (1...255).contains(secret.count) && secret.allSatisfy { $0 > 0x20 && $0 < 0x7F }
  }
}

/// A time for which something is kept: a whole number of days, weeks, months or years.
package struct RetentionPeriod: Equatable, Sendable {
  /// What a period is counted in. A month is 30 days and a year 365, so that a period is the same on every day.
  package enum Unit: Character, CaseIterable, Sendable {
    case days = "d"
    case weeks = "w"
    case months = "m"
    case years = "y"

    var dayCount: Int64 {
      switch self {
      case .days: 1
      case .weeks: 7
      case .months: 30
      case .years: 365
      }
    }
  }

  static let yearsMax: Int64 = 100
  static let requirement =
    "must be a whole number and d, w, m (30 days) or y (365 days), such as 90d: at most \(yearsMax) years"
  private static let dayMs: Int64 = 86_400_000

  private let count: Int64
  private let unit: Unit

  /// Nil for a text of another form, for none, and for more than 100 years.
  package init?(_ text: String) {
    let digits = text.utf8.dropLast()
    guard let last = text.last, let unit = Unit(rawValue: last), 1...5 ~= digits.count,
      digits.allSatisfy({ 0x30...0x39 ~= $0 }), digits.first != 0x30,
      let count = Int64(String(text.dropLast())),
      count * unit.dayCount <= Self.yearsMax * Unit.years.dayCount
    else { return nil }
    (self.count, self.unit) = (count, unit)
  }

  /// As it was written.
  package var text: String { "\(count)\(unit.rawValue)" }

  /// In milliseconds.
  package var milliseconds: Int64 { count * unit.dayCount * Self.dayMs }
}

/// A time of the day in UTC, to the minute.
package struct TimeOfDay: Equatable, Sendable {
  static let requirement = "must be a time of the day in UTC, such as 03:00"

  /// Minutes after midnight.
  private let minutes: Int

  package init(hour: Int, minute: Int) {
    precondition(0...23 ~= hour && 0...59 ~= minute, "a day has 24 hours of 60 minutes")
    minutes = hour * 60 + minute
  }

  /// Nil unless the text is two digits, a colon and two digits, of a time that exists.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count == 5, bytes[2] == UInt8(ascii: ":"),
      [0, 1, 3, 4].allSatisfy({ 0x30...0x39 ~= bytes[$0] })
    else { return nil }
    let hour = Int(bytes[0] - 0x30) * 10 + Int(bytes[1] - 0x30)
    let minute = Int(bytes[3] - 0x30) * 10 + Int(bytes[4] - 0x30)
    guard hour <= 23, minute <= 59 else { return nil }
    minutes = hour * 60 + minute
  }

  package var text: String {
    func digits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(digits(minutes / 60)):\(digits(minutes % 60))"
  }

  /// Milliseconds after midnight.
  package var milliseconds: Int64 { Int64(minutes) * 60_000 }
}

/// The text of a token: a prefix that scanners for leaked secrets can know, then 32 random bytes in base64url.
package enum TokenText {
  package static let prefix = SecretText.tokenPrefix

  /// A new token.
  package static func make() -> String {
    let text = Base64.text(randomBytes(32)).prefix { $0 != "=" }
    return prefix + text.map { $0 == "+" ? "-" : $0 == "/" ? "_" : String($0) }.joined()
  }

  /// A new public name for a token, which tells nothing about it.
  package static func makeID() -> String {
    "tk-" + randomBytes(6).withUnsafeBytes { Hex.text($0) }
  }

  /// What is kept of a token: SHA-256 of its whole text.
  package static func digest(_ token: UnsafeRawBufferPointer) -> SHA256Digest { SHA256.hash(token) }

  /// What is kept of a token.
  package static func digest(_ token: String) -> SHA256Digest {
    Array(token.utf8).withUnsafeBytes { SHA256.hash($0) }
  }

  /// Whether a text can be a token's public name.
  package static func isID(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count) && isPlain(text, "-_")
  }

  private static func randomBytes(_ count: Int) -> [UInt8] {
    // The system's own source, fit for secrets.
    var generator = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }
}

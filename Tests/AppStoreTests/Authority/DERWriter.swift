// Writes DER for tests: values in, whole elements out.

enum DER {
  static func element(_ identifier: UInt8, _ parts: [UInt8]...) -> [UInt8] {
    let content = parts.flatMap { $0 }
    return [identifier] + length(content.count) + content
  }

  /// The same element with an indefinite length, as BER allows for constructed ones.
  static func indefinite(_ identifier: UInt8, _ parts: [UInt8]...) -> [UInt8] {
    [identifier, 0x80] + parts.flatMap { $0 } + [0, 0]
  }

  static func length(_ count: Int) -> [UInt8] {
    if count < 0x80 { return [UInt8(count)] }
    var octets: [UInt8] = []
    var rest = count
    while rest > 0 {
      octets.insert(UInt8(rest & 0xFF), at: 0)
      rest >>= 8
    }
    return [0x80 | UInt8(octets.count)] + octets
  }

  static func sequence(_ parts: [UInt8]...) -> [UInt8] { element(0x30, parts.flatMap { $0 }) }
  static func set(_ parts: [UInt8]...) -> [UInt8] { element(0x31, parts.flatMap { $0 }) }
  static func octets(_ bytes: [UInt8]) -> [UInt8] { element(0x04, bytes) }
  static func utf8(_ text: String) -> [UInt8] { element(0x0C, Array(text.utf8)) }
  static func ia5(_ text: String) -> [UInt8] { element(0x16, Array(text.utf8)) }
  static let null: [UInt8] = [0x05, 0x00]

  static func integer(_ value: Int64) -> [UInt8] {
    var octets = (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
    while octets.count > 1,
      (octets[0] == 0 && octets[1] < 0x80) || (octets[0] == 0xFF && octets[1] >= 0x80)
    {
      octets.removeFirst()
    }
    return element(0x02, octets)
  }

  static func objectIdentifier(_ text: String) -> [UInt8] {
    let arcs = text.split(separator: ".").compactMap { Int($0) }
    var octets: [UInt8] = []
    for arc in [arcs[0] * 40 + arcs[1]] + arcs.dropFirst(2) {
      var group = [UInt8(arc & 0x7F)]
      var rest = arc >> 7
      while rest > 0 {
        group.insert(UInt8(rest & 0x7F) | 0x80, at: 0)
        rest >>= 7
      }
      octets += group
    }
    return element(0x06, octets)
  }
}

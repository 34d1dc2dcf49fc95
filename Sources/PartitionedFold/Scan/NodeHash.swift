// The hashes of what events have in common: receipts, ids, events that others name.
package import JSON

/// SipHash-2-4 with a fixed key: the same value in every run and every ledger. Equal hashes of different texts do no
/// harm, because they only fold together what could be folded apart.
package struct NodeHash {
  /// What a text names.
  enum Kind: UInt8 {
    case receipt = 0x72
    case transaction = 0x74
    case account = 0x61
    case event = 0x65
    case component = 0x63
  }

  private var v0: UInt64
  private var v1: UInt64
  private var v2: UInt64
  private var v3: UInt64

  private init(_ key0: UInt64, _ key1: UInt64) {
    v0 = key0 ^ 0x736F_6D65_7073_6575
    v1 = key1 ^ 0x646F_7261_6E64_6F6D
    v2 = key0 ^ 0x6C79_6765_6E65_7261
    v3 = key1 ^ 0x7465_6462_7974_6573
  }

  /// The hash of a text; never 0.
  static func hash(_ kind: Kind, _ text: JSONBytes) -> UInt64 {
    let hash = sip(UInt64(kind.rawValue), 0x7265_6365_6970_7473, text)
    return hash == 0 ? 1 : hash
  }

  /// The hash of a text of this kind with a number, as an event's position in a ledger.
  static func hash(_ kind: Kind, seed: UInt64, number: Int) -> UInt64 {
    let hash = withUnsafeBytes(of: UInt64(number).littleEndian) {
      sip(UInt64(kind.rawValue), seed, $0)
    }
    return hash == 0 ? 1 : hash
  }

  package static func sip(_ key0: UInt64, _ key1: UInt64, _ text: JSONBytes) -> UInt64 {
    var state = NodeHash(key0, key1)
    var place = 0
    while place + 8 <= text.count {
      state.add(UInt64(littleEndian: text.loadUnaligned(fromByteOffset: place, as: UInt64.self)))
      place += 8
    }
    var last = UInt64(text.count & 0xFF) << 56
    for offset in place..<text.count {
      last |= UInt64(text[offset]) << (8 * UInt64(offset - place))
    }
    state.add(last)
    state.v2 ^= 0xFF
    for _ in 0..<4 { state.round() }
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3
  }

  @inline(__always)
  private mutating func add(_ word: UInt64) {
    v3 ^= word
    round()
    round()
    v0 ^= word
  }

  @inline(__always)
  private mutating func round() {
    func turned(_ value: UInt64, _ count: UInt64) -> UInt64 {
      value << count | value >> (64 - count)
    }
    v0 &+= v1
    v1 = turned(v1, 13) ^ v0
    v0 = turned(v0, 32)
    v2 &+= v3
    v3 = turned(v3, 16) ^ v2
    v0 &+= v3
    v3 = turned(v3, 21) ^ v0
    v2 &+= v1
    v1 = turned(v1, 17) ^ v2
    v2 = turned(v2, 32)
  }
}

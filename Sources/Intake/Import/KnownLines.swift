// Records which lines and notifications were imported before.
package import Base

/// The lines already in the ledger, by the SHA-256 of their bytes.
package protocol KnownLines {
  func contains(_ digest: SHA256Digest) -> Bool
}

/// The notifications already in the ledger, by their `notificationUUID` as sent.
package protocol KnownNotifications {
  func contains(notificationUUID: String) -> Bool
}

/// The registered app families.
package protocol AppFamilies {
  /// The UUID of the app family with this bundle id.
  func id(forBundleID bundleID: String) -> String?
  /// The App Store's number of the app family with this UUID; nil if it declares none.
  func appAppleID(ofFamily id: String) -> Int64?
}

/// A growing set of digests that keeps half of each one. 128 bits rule out accidental collisions and the
/// forgery of a given line, and an import of a million lines takes 32 MB.
struct DigestSet {
  private struct Slot {
    var high: UInt64
    var low: UInt64
  }

  private var slots = [Slot](repeating: Slot(high: 0, low: 0), count: 1024)
  private(set) var count = 0

  private static func slot(_ digest: SHA256Digest) -> Slot {
    digest.withUnsafeBytes { bytes in
      Slot(
        high: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
        // All zeros marks an empty slot, so the low bit is set; two digests that differ only there (chance
        // 2^-127) coincide.
        low: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self) | 1)
    }
  }

  /// The index of the digest's slot, or of the empty slot where it belongs.
  private func place(of wanted: Slot) -> Int {
    let mask = slots.count - 1
    var index = Int(truncatingIfNeeded: wanted.high) & mask
    while slots[index].low != 0,
      slots[index].low != wanted.low || slots[index].high != wanted.high
    {
      index = (index + 1) & mask
    }
    return index
  }

  func contains(_ digest: SHA256Digest) -> Bool {
    slots[place(of: Self.slot(digest))].low != 0
  }

  mutating func insert(_ digest: SHA256Digest) {
    let wanted = Self.slot(digest)
    let index = place(of: wanted)
    guard slots[index].low == 0 else { return }
    slots[index] = wanted
    count += 1
    if count * 2 > slots.count { grow() }
  }

  private mutating func grow() {
    let old = slots
    slots = [Slot](repeating: Slot(high: 0, low: 0), count: old.count * 2)
    for slot in old where slot.low != 0 { slots[place(of: slot)] = slot }
  }
}

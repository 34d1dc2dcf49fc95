// Where the objects of a copy lie; docs/replication.md.
import Base

/// The keys of a copy's objects, without the target's prefix.
package enum CopyLayout {
  /// The most bytes of a step's header with its line feed.
  package static let stepHeaderByteCountMax = 16 << 20
  /// The most bytes of frames in a step: the frames that are collected, and one more.
  package static let framesByteCountMax = (8 << 20) + (33 << 20)
  package static let stepByteCountMax = stepHeaderByteCountMax + framesByteCountMax
  /// A step after so many that were not complete is complete.
  package static let stepsBetweenCompleteMax = 1_000

  package static let stepsPrefix = "steps/"
  package static let segmentsPrefix = "segments/"
  package static let blocksPrefix = "blocks/"
  package static let checkpointsPrefix = "checkpoints/"
  package static let identityPrefix = "identity/"
  /// The prefixes of objects that steps name.
  package static let contentPrefixes = [
    segmentsPrefix, blocksPrefix, checkpointsPrefix, identityPrefix,
  ]

  package static func stepKey(_ number: Int) -> String { stepsPrefix + padded(number) }

  /// A number or position in 20 digits.
  package static func padded(_ number: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: 20 - digits.count) + digits
  }

  /// The number in a step's key; nil for any other key.
  package static func stepNumber(_ key: String) -> Int? {
    guard key.hasPrefix(stepsPrefix) else { return nil }
    let digits = key.dropFirst(stepsPrefix.count)
    guard digits.utf8.count == 20, digits.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
    return Int(digits)
  }

  static func identityKey(_ digest: SHA256Digest) -> String {
    identityPrefix + "\(Hex.text(digest)).json"
  }
}

extension Hex {
  /// A digest's 64 digits.
  static func text(_ digest: SHA256Digest) -> String {
    digest.withUnsafeBytes { text($0) }
  }
}

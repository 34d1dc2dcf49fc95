// The constants of the on-disk format, for writers and readers.
import CDeflate

/// Sizes, names and fixed bytes of the log; docs/format.md explains them.
package enum Format {
  /// The format version of new ledgers, and of the members of every segment.
  package static let version = 1
  /// The format version of a ledger with redacted lines, and the newest that this program reads.
  package static let versionWithRedactions = 2

  /// The largest event line, including its line feed: 16 MiB.
  package static let lineByteCountMax = 16 << 20
  /// The most event bytes that one frame holds: 32 MiB.
  package static let frameByteCountMax = 32 << 20
  /// The longest frame header: `#`, 8 digits, three numbers of up to 19 digits, separators.
  static let frameHeaderByteCountMax = 1 + 8 + 3 * (1 + 19) + 1
  /// The largest allowed setting for the size at which a tail is sealed.
  static let blockByteCountLimit = 15 << 20
  /// The most event bytes in one block: a tail just below its limit, plus one frame.
  static let blockByteCountMax = blockByteCountLimit + frameByteCountMax
  /// The largest gzip member; deflate adds at most 5 bytes per 64 KiB.
  static let memberByteCountMax = blockByteCountMax + (1 << 20)
  /// Positions fit into 18 digits, and into the signed 64-bit numbers of every tool.
  static let positionMax = 999_999_999_999_999_999

  /// The longest event type.
  static let typeByteCountMax = 64

  /// The first bytes of a gzip member: magic, deflate, FEXTRA only, MTIME 0, XFL 0, OS unknown.
  static let memberStart: [UInt8] = [0x1F, 0x8B, 8, 4, 0, 0, 0, 0, 0, 255]
  /// `RL`: the identifier of our subfield.
  static let subfieldIdentifier: [UInt8] = [0x52, 0x4C]
  /// `memberStart`, XLEN, the subfield's identifier and LEN.
  static let memberPrefixByteCount = 10 + 2 + 4
  /// The part of the subfield that all kinds of members share.
  static let subfieldFixedByteCount = 40
  /// The offset of the CRC in a member.
  static let memberChecksumOffsetBytes = memberPrefixByteCount + 4
  /// CRC-32 and size of the content, at the end of a gzip member.
  static let memberFooterByteCount = 8
  /// The deflate stream of empty content.
  static let emptyDeflate: [UInt8] = [3, 0]
  /// An opening member's subfield before its frontier: the fixed part and the ledger's id.
  static let openingFixedByteCount = subfieldFixedByteCount + 16
  /// A closing member's subfield: the fixed part, block count, segment size, root.
  static let closingSubfieldByteCount = subfieldFixedByteCount + 8 + 8 + 32
  /// The size of a closing member, which is fixed: it can be found from the end of its file.
  static let closingMemberByteCount =
    memberPrefixByteCount + closingSubfieldByteCount + emptyDeflate.count + memberFooterByteCount
  /// The most bytes before a member's deflate stream: a frontier has at most 63 roots.
  static let memberHeaderByteCountMax = memberPrefixByteCount + openingFixedByteCount + 63 * 32

  package static let logDirectoryName = "log"
  package static let identityName = "ledger.json"
  package static let lockName = "lock"
  /// The suffix of unfinished files, which readers ignore.
  package static let temporarySuffix = ".new"

  static let segmentSuffix = ".jsonl.gz"
  static let tailPrefix = "tail-"
  static let tailSuffix = ".log"

  static let directoryPermissions: UInt32 = 0o700
  package static let filePermissions: UInt32 = 0o600
  package static let sealedPermissions: UInt32 = 0o400

  /// The name of the segment that starts at a position.
  package static func segmentName(_ first: Position) -> String { padded(first) + segmentSuffix }

  /// The name of the tail that starts at a position.
  package static func tailName(_ first: Position) -> String {
    tailPrefix + padded(first) + tailSuffix
  }

  /// The first position in a segment's name; nil for other names.
  package static func segmentFirst(_ name: String) -> Position? {
    name.hasSuffix(segmentSuffix) ? position(name.dropLast(segmentSuffix.count)) : nil
  }

  /// The first position in a tail's name; nil for other names.
  package static func tailFirst(_ name: String) -> Position? {
    guard name.hasPrefix(tailPrefix), name.hasSuffix(tailSuffix) else { return nil }
    return position(name.dropFirst(tailPrefix.count).dropLast(tailSuffix.count))
  }

  /// A position or another number, in at least 20 digits.
  package static func padded(_ position: Position) -> String {
    let digits = String(position)
    return String(repeating: "0", count: max(0, 20 - digits.count)) + digits
  }

  static func position(_ digits: Substring) -> Position? {
    guard digits.utf8.count == 20, digits.utf8.allSatisfy({ 0x30...0x39 ~= $0 }),
      let value = Int(digits), value <= positionMax
    else { return nil }
    return value
  }
}

// MARK: - The libdeflate library

package enum DeflateLibrary {
  /// For example `libdeflate 1.14`: the version that this program was built with. The library does not report its own.
  package static var name: String { "libdeflate " + LIBDEFLATE_VERSION_STRING }
}

// The SHA-256 of segments that are in the copy, so that a start need not read all of them.
import Base
import Ledger

/// The file `replication/segments`: a line for each segment with its first position, size, file number, time of change,
/// SHA-256, and `1` once the copy's object was read back. It only saves work: a line that can't be read is left out.
struct SegmentDigests: Equatable {
  static let fileName = "segments"
  private static let byteCountMax = 64 << 20

  struct Entry: Equatable {
    let stamp: FileStamp
    let sha256: SHA256Digest
    var isVerified: Bool
  }

  var entries: [Position: Entry] = [:]

  init() {}

  init(_ bytes: [UInt8]) {
    for line in bytes.split(separator: 0x0A) {
      let words = line.split(separator: 0x20).map { String(decoding: $0, as: UTF8.self) }
      guard words.count == 6, let first = Int(words[0]), let byteCount = Int(words[1]),
        let fileNumber = UInt64(words[2]), let changedAtNs = Int64(words[3]),
        let sha256 = Array(words[4].utf8).withUnsafeBytes({ SHA256Digest(hex: $0) })
      else { continue }
      entries[first] = Entry(
        stamp: FileStamp(byteCount: byteCount, fileNumber: fileNumber, changedAtNs: changedAtNs),
        sha256: sha256, isVerified: words[5] == "1")
    }
  }

  init(of directory: LedgerDirectory) {
    self.init()
    guard let folder = try? directory.folderIfPresent(ReplicationRecord.folderName),
      let file = try? folder.openFile(Self.fileName, .readOnly),
      let bytes = try? file.readSmall(byteCountMax: Self.byteCountMax)
    else { return }
    self = SegmentDigests(bytes)
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    for (first, entry) in entries.sorted(by: { $0.key < $1.key }) {
      bytes +=
        Array(
          "\(Format.padded(first)) \(entry.stamp.byteCount) \(entry.stamp.fileNumber) ".utf8)
      bytes += Array("\(entry.stamp.changedAtNs) \(Hex.text(entry.sha256)) ".utf8)
      bytes += Array("\(entry.isVerified ? 1 : 0)\n".utf8)
    }
    return bytes
  }

  func write(to directory: LedgerDirectory) throws(LedgerError) {
    guard let folder = try directory.folderIfPresent(ReplicationRecord.folderName) else { return }
    try folder.replaceFile(Self.fileName, with: bytes)
  }
}

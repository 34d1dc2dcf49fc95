// The small log that docs/format.md shows byte by byte, made again from fixed salts, clock and id.
import Base
import Foundation
import Ledger
import TestSupport

/// Everything random is fixed: the bytes depend only on the compressor's version.
enum DocumentedLog {
  static let id = LedgerID("00112233-4455-4677-8899-aabbccddeeff")
  static let createdAtMs: Int64 = 1_767_323_045_678
  static let drafts = [
    EventDraft(type: "app.registered", version: 1, data: Array("{\"name\":\"Tide\"}".utf8)),
    EventDraft(
      type: "receipt.verified", version: 1, data: Array("{\"upload\":,\"outcome\":\"valid\"}".utf8),
      references: [PositionReference(offsetBytes: 10, eventIndex: 0)]),
  ]

  /// Makes the log: the first append becomes a block, the second stays in a tail.
  static func make(in path: String) throws {
    let directory = try LedgerDirectory.create(
      path: path, origin: "receipts.example/doc", id: id, createdAtMs: createdAtMs)
    let time = Monitor(createdAtMs)
    let salt = Monitor<UInt8>(0)
    var options = WriterOptions()
    options.clock = {
      time.withLock { time in
        time += 1
        return time
      }
    }
    options.random = { buffer in
      for index in buffer.indices {
        buffer[index] = salt.withLock { salt in
          defer { salt &+= 1 }
          return salt
        }
      }
      return true
    }
    let writer = try LedgerWriter.open(directory, options: options)
    _ = try writer.append(drafts)
    try writer.close()
    options.blockByteCount = 1
    try LedgerWriter.open(directory, options: options).close()
    let second = try LedgerWriter.open(directory, options: options)
    _ = try second.append([drafts[0]])
    try second.close()
  }
}

// Ledgers for tests of replication: real ones, with small blocks and segments.
import Base
import Foundation
import Ledger
import Replication
import TestSupport

/// The bytes of a ledger's files, by path.
func files(
  of path: String, in folders: [String] = ["log", "checkpoints"]
) throws -> [String: [UInt8]] {
  var files: [String: [UInt8]] = [:]
  for folder in folders {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "\(path)/\(folder)")) ?? []
    for name in names {
      files["\(folder)/\(name)"] = try SmallFile.read(
        "\(path)/\(folder)/\(name)", byteCountMax: 1 << 30)
    }
  }
  for name in ["ledger.json", "heads"]
  where FileManager.default.fileExists(atPath: "\(path)/\(name)") {
    files[name] = try SmallFile.read("\(path)/\(name)", byteCountMax: 1 << 20)
  }
  return files
}

/// Steps of one event each, of a few hundred bytes that hardly compress.
func events(_ range: Range<Int>, byteCount: Int = 300) -> [TestEvent] {
  range.map { number in
    var random = SeededRandom(seed: UInt64(number))
    let digits = Array("0123456789abcdefghijklmnopqrstuvwxyz")
    let text = String((0..<byteCount).map { _ in digits.randomElement(using: &random) ?? "-" })
    return .raw(
      type: "test.event", JSONText(raw: "{\"number\":\(number),\"text\":\"\(text)\"}"))
  }
}

/// A ledger with closed segments, blocks of the newest one, and a tail.
func filledLedger(eventCount: Int = 40) throws -> LedgerFixture {
  let ledger = try LedgerFixture(blockByteCount: 1_500, segmentByteCount: 1_500)
  try ledger.append(events(0..<eventCount))
  return ledger
}

func root(of directory: LedgerDirectory, at size: Int? = nil) throws -> SHA256Digest {
  let reader = try LogReader(directory)
  if let damage = reader.damage { throw damage }
  return try reader.frontier(at: size ?? reader.head.size).root
}

func size(of directory: LedgerDirectory) throws -> Int { try LogReader(directory).head.size }

/// Whether every byte of a log is intact.
func isWhole(_ directory: LedgerDirectory) throws -> Bool { try LogAudit(directory).run().isWhole }

// A ledger in a temporary directory, deterministic if a test wants it, and random events.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

/// The name of the tail that begins at a position.
func tailName(_ first: Int) -> String { String(format: "tail-%020d.log", first) }

/// A temporary directory with a ledger in it; removed with the value.
final class LedgerFixture {
  private let temporary: TemporaryDirectory
  let path: String
  let directory: LedgerDirectory

  init(origin: String = "receipts.example/test") throws {
    temporary = try TemporaryDirectory("ledger-test")
    path = temporary.path("ledger")
    directory = try LedgerDirectory.create(path: path, origin: origin)
  }

  var logPath: String { path + "/log" }
  var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: logPath)) ?? []).sorted()
  }
  var tailNames: [String] { names.filter { $0.hasPrefix("tail-") && $0.hasSuffix(".log") } }
  var segmentNames: [String] { names.filter { $0.hasSuffix(".jsonl.gz") } }

  func content(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(fileURLWithPath: logPath + "/" + name)))
  }

  func write(_ content: [UInt8], to name: String) throws {
    let url = URL(fileURLWithPath: logPath + "/" + name)
    if FileManager.default.fileExists(atPath: url.path) {
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: url.path)
    }
    try Data(content).write(to: url)
  }

  func remove(_ name: String) throws {
    try FileManager.default.removeItem(atPath: logPath + "/" + name)
  }

  /// Sizes so small that a few events make blocks and segments, sealed in parallel with the appends, however long that
  /// takes.
  static func smallOptions(block: Int = 1000, segment: Int = 1500) -> WriterOptions {
    var options = WriterOptions()
    options.blockByteCount = block
    options.segmentByteCount = segment
    options.sealingDelayMs = 0
    options.closingLimitMs = 3_600_000
    options.closingInheritedLimitMs = 3_600_000
    return options
  }

  /// Appends this many events one by one and closes.
  func fill(_ count: Int, options: WriterOptions = smallOptions()) throws {
    let writer = try LedgerWriter.open(directory, options: options)
    for index in 0..<count { _ = try writer.append([draft(index)]) }
    try writer.close()
  }

  func draft(_ index: Int, size: Int = 40) -> EventDraft {
    EventDraft(
      type: "test.happened", version: 1,
      data: Array("{\"n\":\(index),\"pad\":\"\(String(repeating: "x", count: size))\"}".utf8))
  }

  /// All lines in order, as a new reader sees them.
  func lines(workers: Int = 2) throws -> [[UInt8]] {
    let reader = try LogReader(directory)
    var lines: [[UInt8]] = []
    var leaves: [SHA256Digest] = []
    var frontier = Frontier()
    let hasher = SHA256()
    try reader.read(from: 0, workers: workers) { chunk in
      expectEqual(chunk.firstPosition, lines.count)
      try chunk.forEachEvent { event in
        lines.append(Array(event.bytes))
        leaves.append(leafHash(lines[lines.count - 1]))
        frontier.append(leafHash: leaves[leaves.count - 1], hasher)
      }
      expectEqual(chunk.endPosition, lines.count)
      expectEqual(chunk.frontierAfter, frontier)
      return true
    }
    expectEqual(reader.head.size, lines.count)
    expectEqual(reader.head.root, naiveRoot(leaves))
    return lines
  }
}

/// A frame of a tail, header line included.
struct FrameBytes {
  let first: Int
  let bytes: [UInt8]

  /// Splits a tail into its frames by their header lines alone.
  static func split(_ tail: [UInt8]) -> [FrameBytes] {
    var frames: [FrameBytes] = []
    var rest = tail[...]
    while !rest.isEmpty {
      let header = rest.prefix { $0 != 0x0A }
      let numbers = String(decoding: header, as: UTF8.self).split(separator: " ").dropFirst()
        .compactMap { Int($0) }
      let frame = rest.prefix(header.count + 1 + numbers[2])
      frames.append(FrameBytes(first: numbers[0], bytes: Array(frame)))
      rest = rest.dropFirst(frame.count)
    }
    return frames
  }
}

/// The leaf of a line by its definition: the text up to the digest's closing quote, and a brace.
func leafHash(_ line: [UInt8]) -> SHA256Digest {
  let text = String(decoding: line, as: UTF8.self)
  let end = text.range(of: "\",\"salt\":")?.lowerBound ?? text.endIndex
  return hash([0] + Array(text[..<end].utf8) + Array("\"}".utf8))
}

func hash(_ bytes: [UInt8]) -> SHA256Digest { bytes.withUnsafeBytes { SHA256.hash($0) } }

/// The tree's root by RFC 6962's recursive definition.
func naiveRoot(_ leaves: [SHA256Digest]) -> SHA256Digest {
  if leaves.isEmpty { return hash([]) }
  if leaves.count == 1 { return leaves[0] }
  var split = 1
  while split * 2 < leaves.count { split *= 2 }
  return hash(
    [1] + naiveRoot(Array(leaves[..<split])).bytes + naiveRoot(Array(leaves[split...])).bytes)
}

func naiveFrontier(_ lines: [[UInt8]]) -> Frontier {
  var frontier = Frontier()
  let hasher = SHA256()
  for line in lines { frontier.append(leafHash: leafHash(line), hasher) }
  return frontier
}

/// Runs a shell command and returns what it prints and its status.
func shell(_ command: String, in directory: String) throws -> (output: [UInt8], status: Int32) {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/bin/sh")
  process.arguments = ["-c", command]
  process.currentDirectoryURL = URL(fileURLWithPath: directory)
  let pipe = Pipe()
  process.standardOutput = pipe
  try process.run()
  let output = pipe.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  return (Array(output), process.terminationStatus)
}

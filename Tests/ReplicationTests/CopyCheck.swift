// Reads a copy by docs/replication.md alone, without the code under test, and reports what it holds.
import Base
import Foundation
import Ledger
import TestSupport

/// What a copy holds at its newest step, found by folding all steps.
struct CopyCheck {
  struct Problem: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  struct Content: Equatable {
    let first: Int
    let end: Int
    let key: String
    let offset: Int
    let byteCount: Int
  }

  struct Frames: Equatable {
    let step: Int
    let tail: Int
    let first: Int
    let end: Int
    let bytes: [UInt8]
  }

  private(set) var stepCount = 0
  private(set) var completeSteps: [Int] = []
  private(set) var epoch = 0
  private(set) var size = 0
  private(set) var root = ""
  private(set) var identity: String?
  private(set) var work: String?
  private(set) var segments: [Content] = []
  private(set) var blocks: [Content] = []
  private(set) var checkpoints: [Int: String] = [:]
  private(set) var frames: [Frames] = []
  /// The steps that hold frames, needed or not.
  private(set) var stepsWithFrames: Set<Int> = []
  private let objects: [String: [UInt8]]

  /// - Parameter objects: all objects of a store at one moment.
  init(_ objects: [String: [UInt8]]) throws {
    self.objects = objects
    var previous = String(repeating: "0", count: 64)
    // Steps after a lost one are useless until the next complete step.
    var isBroken = false
    for key in objects.keys.filter({ $0.hasPrefix("steps/") }).sorted() {
      guard let bytes = objects[key], let number = Int(key.dropFirst(6)) else {
        throw Problem("\(key) is no key of a step")
      }
      if number != stepCount { isBroken = true }
      stepCount = number + 1
      guard let end = bytes.firstIndex(of: 0x0A),
        let json = try? JSONSerialization.jsonObject(with: Data(bytes[...end])) as? [String: Any]
      else {
        isBroken = true
        continue
      }
      if isBroken, json["complete"] as? Bool != true {
        // The next complete step may name their frames.
        if let item = json["frames"] as? [String: Any] {
          try take(frames: item, Array(bytes[(end + 1)...]), number)
        }
        continue
      }
      guard isBroken || json["previous"] as? String == previous else {
        throw Problem("step \(number) does not name the one before")
      }
      isBroken = false
      previous = Self.hash(Array(bytes[...end]))
      try take(json, Array(bytes[(end + 1)...]), number)
    }
    if isBroken { throw Problem("no complete step follows one that is lost") }
    try check()
  }

  private static func padded(_ number: Int) -> String {
    String(repeating: "0", count: 20 - String(number).count) + String(number)
  }

  static func hash(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { SHA256.hash($0) }.hex }

  // MARK: Folding

  private mutating func take(_ json: [String: Any], _ content: [UInt8], _ number: Int) throws {
    guard json["step"] as? Int == number else { throw Problem("a step has another number") }
    let isComplete = json["complete"] as? Bool == true
    let newEpoch = json["epoch"] as? Int ?? 0
    if newEpoch != epoch, !isComplete { throw Problem("an epoch begins with part of a step") }
    epoch = newEpoch
    if isComplete {
      completeSteps.append(number)
      (segments, blocks, checkpoints, work) = ([], [], [:], nil)
      let kept = (json["earlier_frames"] as? [[String: Any]] ?? []).compactMap {
        $0["step"] as? Int
      }
      frames.removeAll { !kept.contains($0.step) }
    }
    if let digest = json["identity"] as? String { identity = "identity/\(digest).json" }
    if let digest = json["work"] as? String { work = "work/\(digest).json" }
    guard json["version"] as? Int == (json["work"] == nil ? nil : 2) else {
      throw Problem("step \(number) has another version")
    }
    for item in json["segments"] as? [[String: Any]] ?? [] {
      let segment = Self.content(item, "segments/")
      segments.removeAll { $0.first >= segment.first && $0.end <= segment.end }
      segments.append(segment)
      blocks.removeAll { $0.end <= segment.end }
    }
    segments.sort { $0.first < $1.first }
    for item in json["blocks"] as? [[String: Any]] ?? [] {
      let block = Self.content(item, "blocks/")
      blocks.removeAll { $0.first == block.first }
      blocks.append(block)
    }
    blocks.sort { $0.first < $1.first }
    for item in json["checkpoints"] as? [[String: Any]] ?? [] {
      guard let size = item["size"] as? Int, let digest = item["sha256"] as? String else {
        continue
      }
      checkpoints[size] = "checkpoints/\(Self.padded(size))-\(digest).txt"
    }
    let end = blocks.last?.end ?? segments.last?.end ?? 0
    frames.removeAll { $0.end <= end }
    if let item = json["frames"] as? [String: Any] { try take(frames: item, content, number) }
    let newSize = json["size"] as? Int ?? -1
    guard newSize >= size else { throw Problem("step \(number) holds fewer events") }
    size = newSize
    root = json["root"] as? String ?? ""
  }

  private mutating func take(
    frames item: [String: Any], _ content: [UInt8], _ number: Int
  ) throws {
    let found = Frames(
      step: number, tail: item["tail"] as? Int ?? -1, first: item["first"] as? Int ?? -1,
      end: item["end"] as? Int ?? -1, bytes: content)
    if !content.isEmpty {
      stepsWithFrames.insert(number)
      guard Self.hash(content) == item["sha256"] as? String,
        content.count == item["bytes"] as? Int
      else { throw Problem("the frames of step \(number) are damaged") }
    }
    frames.append(found)
  }

  private static func content(_ item: [String: Any], _ prefix: String) -> Content {
    let first = item["first"] as? Int ?? -1
    let digest = item["sha256"] as? String ?? ""
    return Content(
      first: first, end: item["end"] as? Int ?? -1,
      key: "\(prefix)\(padded(first))-\(digest).jsonl.gz", offset: item["offset"] as? Int ?? 0,
      byteCount: item["bytes"] as? Int ?? -1)
  }

  private func check() throws {
    if stepCount == 0 { return }
    var next = 0
    for content in segments + blocks {
      guard content.first == next else { throw Problem("nothing holds position \(next)") }
      next = content.end
      let bytes = try object(content.key)
      guard bytes.count == content.byteCount else { throw Problem("\(content.key) is cut off") }
    }
    var offset = 0
    for block in blocks {
      guard block.offset == offset else { throw Problem("\(block.key) is at another offset") }
      offset += block.byteCount
    }
    for frames in frames {
      guard frames.first == next, !frames.bytes.isEmpty else {
        throw Problem("no frames hold position \(next)")
      }
      next = frames.end
    }
    guard next == size else { throw Problem("the copy says \(size), but holds \(next)") }
    for key in checkpoints.values { _ = try object(key) }
    _ = try object(identity ?? "")
    if let work { _ = try object(work) }
  }

  /// An object, checked against the digest in its key.
  private func object(_ key: String) throws -> [UInt8] {
    guard let bytes = objects[key] else { throw Problem("\(key) is missing") }
    guard key.contains(Self.hash(bytes)) else { throw Problem("\(key) has other bytes") }
    return bytes
  }

  // MARK: Contents of the copy

  /// The keys that no step needs any more.
  var unnamedKeys: [String] {
    let named = Set(
      segments.map(\.key) + blocks.map(\.key) + checkpoints.values + [identity ?? "", work ?? ""])
    return objects.keys.filter { !$0.hasPrefix("steps/") && !named.contains($0) }.sorted()
  }

  /// The steps whose frames are not needed any more.
  var supersededSteps: [Int] { stepsWithFrames.subtracting(frames.map(\.step)).sorted() }

  /// The lines of all events, from a ledger assembled from the objects.
  func lines(like directory: LedgerDirectory) throws -> [[UInt8]] {
    let temporary = try TemporaryDirectory()
    let path = temporary.path("restored")
    _ = try LedgerDirectory.create(
      path: path, origin: directory.identity.origin, id: directory.identity.id)
    try Data(object(identity ?? "")).write(to: URL(fileURLWithPath: path + "/ledger.json"))
    for segment in segments {
      try write(try object(segment.key), path, "\(Self.padded(segment.first)).jsonl.gz")
    }
    if let first = blocks.first?.first {
      let bytes = try blocks.flatMap { try object($0.key) }
      try write(bytes, path, "\(Self.padded(first)).jsonl.gz")
    }
    for part in Dictionary(grouping: frames, by: \.tail).values {
      // A complete step may have joined the frames at the beginning of a tail.
      guard let first = part.first?.first else { continue }
      try write(part.flatMap(\.bytes), path, "tail-\(Self.padded(first)).log")
    }
    let restored = try LedgerDirectory.open(path: path)
    let reader = try LogReader(restored)
    if let damage = reader.damage { throw damage }
    guard reader.head.size == size, reader.head.root.hex == root else {
      throw Problem("what is restored has \(reader.head.size) events, or another root")
    }
    return try (0..<size).map { try reader.event(at: $0) }
  }

  private func write(_ bytes: [UInt8], _ path: String, _ name: String) throws {
    let file = URL(fileURLWithPath: "\(path)/log/\(name)")
    try? FileManager.default.removeItem(at: file)
    try Data(bytes).write(to: file)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
  }
}

// Every kind of damage and its verdict: what is reported where, what stays readable, what is left out.
import Base
import Glibc
import Ledger
import TestSupport
import Testing

/// One way to damage a small log.
struct LogDamage: CustomTestStringConvertible, Sendable {
  let name: String
  let verdict: LedgerError.Verdict
  /// The first damaged position.
  let position: Int
  let block: Int?
  /// The positions whose events are not readable any more.
  let lost: Set<Int>
  let apply: @Sendable (SmallLog) -> Void

  var testDescription: String { "\(name): \(verdict.rawValue)" }

  init(
    _ name: String, _ verdict: LedgerError.Verdict, at position: Int, block: Int? = nil,
    lost: some Sequence<Int>, _ apply: @escaping @Sendable (SmallLog) -> Void
  ) {
    self.name = name
    self.verdict = verdict
    self.position = position
    self.block = block
    self.lost = Set(lost)
    self.apply = apply
  }
}

extension LogDamage {
  private static let places = ["first", "second", "next-to-last", "last"]

  /// Changes the members of a segment.
  private static func members(
    _ log: SmallLog, _ segment: Int, _ change: (inout [[UInt8]]) -> Void
  ) {
    var members = log.segments[segment].members
    change(&members)
    log.storage.setContent(log.segments[segment].path, Array(members.joined()))
  }

  /// Damage to blocks: all three of a closed segment, both of the open one.
  static let blocks: [LogDamage] = [(0, 0), (0, 1), (0, 2), (1, 1), (2, 2), (3, 0)].flatMap {
    (segment, block) -> [LogDamage] in
    let position = 3 * segment + block
    let name = "block \(block) of the \(places[segment]) segment"
    let isLastOfClosed = segment < 3 && block == 2
    var damages = [
      LogDamage("\(name), a flipped bit", .corrupt, at: position, block: block, lost: [position]) {
        members($0, segment) { $0[block + 1][$0[block + 1].count - 12] ^= 4 }
      },
      LogDamage("\(name), zeros", .corrupt, at: position, block: block, lost: [position]) {
        members($0, segment) {
          $0[block + 1] = [UInt8](repeating: 0, count: $0[block + 1].count)
        }
      },
      LogDamage(
        "\(name), a byte of it unreadable", .unreadable, at: position, block: block,
        lost: [position]
      ) { log in
        // The search for a header reads so many bytes that they reach into the next blocks.
        let end = log.segments[segment].members[...(block + 1)].reduce(0) { $0 + $1.count }
        log.storage.setFaults(.init(unreadable: [log.segments[segment].path: end - 9..<end - 8]))
      },
      LogDamage("\(name), doubled", .tampered, at: position + 1, block: block + 1, lost: []) {
        members($0, segment) { $0.insert($0[block + 1], at: block + 2) }
      },
    ]
    damages.append(
      LogDamage("\(name), removed", .missing, at: position, block: block, lost: [position]) {
        members($0, segment) { $0.remove(at: block + 1) }
      })
    if !isLastOfClosed {
      damages.append(
        LogDamage(
          "\(name), swapped with the next", .missing, at: position, block: block, lost: [position]
        ) { members($0, segment) { $0.swapAt(block + 1, block + 2) } })
    }
    return damages
  }

  /// Damage to whole segments.
  static let segments: [LogDamage] = (0..<4).flatMap { segment -> [LogDamage] in
    let first = 3 * segment
    let range = first..<min(first + 3, SmallLog.blockCount)
    let name = "the \(places[segment]) segment"
    var damages = [
      LogDamage("\(name) removed", .missing, at: first, lost: range) {
        $0.storage.remove($0.segments[segment].path)
      },
      LogDamage("\(name) emptied", .corrupt, at: first, lost: range) {
        $0.storage.setContent($0.segments[segment].path, [])
      },
      LogDamage("\(name) is another ledger's", .tampered, at: first, lost: range) { log in
        if let other = try? SmallLog(origin: "receipts.example/other") {
          log.storage.setContent(log.segments[segment].path, other.segments[segment].content)
        }
      },
      LogDamage("the opening of \(name) damaged", .corrupt, at: first, lost: []) {
        members($0, segment) { $0[0][30] ^= 1 }
      },
      LogDamage("\(name) can't be read", .unreadable, at: first, lost: range) { log in
        log.storage.setFaults(.init(unreadable: [log.segments[segment].path: 0..<100_000]))
      },
    ]
    if segment < 3 {
      damages += [
        LogDamage("the closing of \(name) damaged", .corrupt, at: first + 3, lost: []) {
          members($0, segment) { $0[4][60] ^= 1 }
        },
        LogDamage("the closing of \(name) removed", .corrupt, at: first + 3, lost: []) {
          members($0, segment) { $0.removeLast() }
        },
        LogDamage(
          "\(name) copied over the next", .tampered, at: first + 3,
          lost: [
            first + 3, first + 4, first + 5,
          ].filter { $0 < SmallLog.blockCount }
        ) { log in
          log.storage.setContent(log.segments[segment + 1].path, log.segments[segment].content)
        },
      ]
    }
    return damages
  }

  /// Damage to the tail's frames; at its very end see "cut off the end".
  static let frames: [LogDamage] = [
    LogDamage("the first frame, a flipped bit", .corrupt, at: 11, lost: [11]) {
      frames($0) { $0[0][40] ^= 1 }
    },
    LogDamage("the next-to-last frame, a flipped bit", .corrupt, at: 12, lost: [12]) {
      frames($0) { $0[1][40] ^= 1 }
    },
    LogDamage("the first frame removed", .missing, at: 11, lost: [11]) {
      frames($0) { $0.remove(at: 0) }
    },
    LogDamage("the next-to-last frame removed", .missing, at: 12, lost: [12]) {
      frames($0) { $0.remove(at: 1) }
    },
    LogDamage("the last frame doubled", .tampered, at: 14, lost: []) {
      frames($0) { $0.append($0[2]) }
    },
    LogDamage("the frames swapped", .missing, at: 11, lost: [11]) {
      frames($0) { $0.swapAt(0, 1) }
    },
    LogDamage("the tail can't be read", .unreadable, at: 11, lost: []) { log in
      log.storage.setFaults(.init(unreadable: [log.tailPath: 0..<100_000]))
    },
  ]

  private static func frames(_ log: SmallLog, _ change: (inout [[UInt8]]) -> Void) {
    var frames = log.frames
    change(&frames)
    log.storage.setContent(log.tailPath, Array(frames.joined()))
  }
}

@Suite("Damage and its verdict")
struct CorruptionTests {
  @Test("Damaged blocks", arguments: LogDamage.blocks)
  func blocks(_ damage: LogDamage) throws { try check(damage) }

  @Test("Damaged segments", arguments: LogDamage.segments)
  func segments(_ damage: LogDamage) throws { try check(damage) }

  @Test("Damaged frames", arguments: LogDamage.frames)
  func frames(_ damage: LogDamage) throws { try check(damage) }

  /// The audit names the damage. A reader returns what lies before it, then its error. A writer does not begin. Reading
  /// past the damage returns everything but what is lost, and reports what that is.
  private func check(_ damage: LogDamage) throws {
    let log = try SmallLog()
    damage.apply(log)
    let (salvaged, report) = try log.salvaged()
    let finding = try #require(report.audit.findings.first)
    expectEqual(finding.damage.verdict, damage.verdict)
    expectEqual(finding.damage.position, damage.position)
    if let block = damage.block { expectEqual(finding.damage.block, block) }
    let kept = log.lines.indices.filter { !damage.lost.contains($0) }
    // Nobody can know what an unreadable file at the very end held.
    let known = report.audit.size
    expectEqual(salvaged, kept.filter { $0 < known }.map { log.lines[$0] })
    expectEqual(Set(report.leftOut.joined()), damage.lost.filter { $0 < known })
    let (found, error) = try log.readable()
    expectEqual(error?.damage?.verdict, damage.verdict)
    expectEqual(error?.exitCode, .corrupted)
    #expect(found == Array(log.lines[..<found.count]) && found.count <= damage.position)
    guard let opening = try LogReader(log.directory).damage else { return }
    let before = log.storage.paths.map { log.storage.content($0) }
    let refusal = #expect(throws: LedgerError.self) { try LedgerWriter.open(log.directory) }
    expectEqual(refusal, opening)
    let after = log.storage.paths.map { log.storage.content($0) }
    expectEqual(after.filter { $0.count > 10 }, before.filter { $0.count > 10 })
  }

  @Test("A block that is consistent with itself, but not with the tree: tampered, and left out")
  func forgedBlock() throws {
    let log = try SmallLog()
    let other = try SmallLog(origin: "receipts.example/other")
    // Salts are random: the same event of another log has another leaf, in a block that is whole.
    var members = log.segments[1].members
    members[2] = other.segments[1].members[2]
    log.storage.setContent(log.segments[1].path, Array(members.joined()))
    let (salvaged, report) = try log.salvaged()
    expectEqual(report.audit.findings.first?.damage.verdict, .tampered)
    expectEqual(report.audit.findings.first?.damage.position, 4)
    // The next block's tree continues from the forged one: which of the two is genuine cannot be
    // decided.
    expectEqual(report.leftOut, [4..<6])
    expectEqual(salvaged, log.lines.indices.filter { $0 != 4 && $0 != 5 }.map { log.lines[$0] })
  }

  @Test("Every bit of the open segment and of the tail: noticed, or the torn last frame")
  func everyBit() throws {
    let log = try SmallLog()
    var flipCount = 0
    for path in [log.segments[3].path, log.tailPath] {
      let content = log.storage.content(path)
      let isTail = path == log.tailPath
      let lastFrame = content.count - (log.frames.last?.count ?? 0)
      for place in content.indices {
        for bit in 0..<8 {
          var changed = content
          changed[place] ^= 1 << bit
          log.storage.setContent(path, changed)
          let (found, error) = try log.readable()
          flipCount += 1
          expectEqual(found, Array(log.lines[..<found.count]), "\(path), byte \(place), bit \(bit)")
          if isTail, place >= lastFrame {
            // Indistinguishable from a crash during the write, so never acknowledged.
            #expect(error == nil && found.count == SmallLog.eventCount - 1, "\(place), \(bit)")
          } else {
            expectEqual(error?.kind, .corruption, "\(path), byte \(place), bit \(bit)")
          }
        }
      }
      log.storage.setContent(path, content)
    }
    #expect(flipCount > 8000)
    try expectEqual(log.readable().lines, log.lines)
  }

  @Test("Every bit of ledger.json: refused, or nothing that the log contradicts")
  func identity() throws {
    let log = try SmallLog()
    let path = "/ledger/ledger.json"
    let content = log.storage.content(path)
    // The id is bound to every segment; the name and the time of creation are nowhere else in the log.
    let free = ["\"origin\":\"", "\"created_at\":\""].compactMap { name -> Range<Int>? in
      guard let start = content.firstRange(of: Array(name.utf8))?.upperBound else { return nil }
      return start..<(content[start...].firstIndex(of: UInt8(ascii: "\"")) ?? start)
    }
    expectEqual(free.count, 2)
    for place in content.indices {
      for bit in 0..<8 {
        var changed = content
        changed[place] ^= 1 << bit
        log.storage.setContent(path, changed)
        guard let directory = try? LedgerDirectory.open(path: "/ledger", storage: log.storage)
        else { continue }
        let report = try LogAudit(directory, workers: 0).run()
        let isFree = free.contains { $0.contains(place) }
        #expect(!report.isWhole || isFree, "byte \(place), bit \(bit)")
      }
    }
  }

  @Test("Every length to which a file can be cut: noticed, torn, or whole events cut off the end")
  func everyLength() throws {
    let log = try SmallLog()
    for path in log.paths {
      let content = log.storage.content(path)
      for length in 0..<content.count {
        log.storage.setContent(path, Array(content[..<length]))
        let (found, error) = try log.readable()
        expectEqual(found, Array(log.lines[..<found.count]), "\(path), \(length)")
        if path == log.tailPath {
          // Nothing lies beyond: the log alone cannot tell this from a crash.
          var whole = 0
          while log.frames[..<(whole + 1)].reduce(0, { $0 + $1.count }) <= length { whole += 1 }
          #expect(error == nil && found.count == SmallLog.blockCount + whole, "\(length)")
        } else {
          expectEqual(error?.kind, .corruption, "\(path), \(length)")
          let (_, report) = try log.salvaged()
          #expect(!report.audit.isWhole && report.audit.size == SmallLog.eventCount, "\(length)")
        }
      }
      log.storage.setContent(path, content)
    }
  }

  @Test("Whole events cut off the end: the log is whole, a checkpoint beyond its end is not")
  func cutOffTheEnd() throws {
    let log = try SmallLog()
    _ = try KeyStore(log.directory).create(isFurther: false)
    let directory = try LedgerDirectory.open(path: "/ledger", storage: log.storage)
    let store = CheckpointStore(directory)
    _ = try store.sign(try LogReader(directory))
    log.storage.setContent(log.tailPath, Array(log.frames[..<2].joined()))
    var report = try LogAudit(directory, rootsAt: store.sizes(), workers: 0).run()
    #expect(report.isWhole && report.size == SmallLog.eventCount - 1)
    report.check(store, sizes: try store.sizes())
    expectEqual(report.findings.map(\.damage.verdict), [.missing])
    expectEqual(report.findings.first?.damage.position, SmallLog.eventCount - 1)
    expectEqual(report.findings.first?.endPosition, SmallLog.eventCount)
  }

  @Test("Reading a whole log past damage leaves nothing out")
  func nothing() throws {
    let log = try SmallLog()
    let (lines, report) = try log.salvaged()
    #expect(lines == log.lines && report.leftOut == [] && report.audit.isWhole)
    expectEqual(report.audit.notes, [])
  }
}

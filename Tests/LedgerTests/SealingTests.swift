// Full tails wait on disk until they become blocks: how many, by whom they are sealed, and what a reader sees.
import Foundation
import Glibc
import Ledger
import TestSupport
import Testing

private func tailName(_ first: Int) -> String { String(format: "tail-%020d.log", first) }

/// Waits up to five minutes: beside other tests an idle thread hardly moves.
private func becomes(_ isSo: () throws -> Bool) rethrows -> Bool {
  for _ in 0..<30_000 {
    if try isSo() { return true }
    usleep(10_000)
  }
  return false
}

@Suite("Sealing")
struct SealingTests {
  @Test(
    "Full tails become blocks while the writer lives, in idle time or not",
    arguments: [Int64(0), 3_600_000])
  func sealedMeanwhile(_ delayMs: Int64) throws {
    let fixture = try LedgerFixture()
    var options = LedgerFixture.smallOptions(block: 500, segment: 4000)
    options.sealingDelayMs = delayMs
    let writer = try LedgerWriter.open(fixture.directory, options: options)
    for index in 0..<40 { _ = try writer.append([fixture.draft(index)]) }
    #expect(becomes { fixture.tailNames.count <= 1 && writer.unsealedTails == UnsealedTails() })
    try writer.close()
    #expect(try fixture.lines().count == 40)
    #expect(try LogAudit(fixture.directory).run().isWhole)
  }

  /// Bounds that two or three tails of 500 bytes of events reach.
  private static let bounds: [(tails: Int, bytes: Int)] = [(4, 2 << 30), (3072, 1500)]

  @Test("Appends wait at either bound of what is not sealed", arguments: bounds)
  func bounded(_ tails: Int, _ bytes: Int) throws {
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    var options = LedgerFixture.smallOptions(block: 500, segment: 1 << 20)
    options.unsealedTailCountMax = tails
    options.unsealedByteCountMax = bytes
    let writer = try LedgerWriter.open(directory, options: options)
    // No block finds room: whoever would have to wait for one is refused instead.
    storage.setFaults(.init(fullFiles: ".jsonl.gz"))
    var count = 0
    let error = #expect(throws: LedgerError.self) {
      while count < 60 {
        _ = try writer.append([CrashRig.draft(count)])
        count += 1
      }
    }
    #expect(error?.cause == String(cString: strerror(ENOSPC)))
    #expect((2...4).contains(writer.unsealedTails.count))
    storage.setFaults(.init())
    #expect(becomes { (try? writer.append([CrashRig.draft(count)])) != nil })
    try writer.close()
    #expect(try CrashRig(.sealing).content(storage) == (0...count).map(CrashRig.data))
  }

  @Test("A ledger that was left with many full tails opens at once, and they are sealed")
  func leftBehind() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    let lines = try fixture.lines()
    for frame in frames { try fixture.write(frame.bytes, to: tailName(frame.first)) }
    // The next one had been begun, and nothing of it was durable.
    try fixture.write([], to: tailName(10))
    #expect(try fixture.lines() == lines)
    #expect(try LogAudit(fixture.directory).run().isWhole)
    let options = LedgerFixture.smallOptions(block: 1)
    let writer = try LedgerWriter.open(fixture.directory, options: options)
    #expect(writer.recovery.unsealedTails == (0..<10).map { "log/" + tailName($0) })
    #expect(writer.recovery.notes == ["removed log/\(tailName(10)): it held no event"])
    #expect(try writer.append([fixture.draft(10)]).firstPosition == 10)
    try writer.close()
    #expect(fixture.tailNames == [tailName(10)])
    #expect(try fixture.lines().prefix(10) == lines[...])
    #expect(try LogAudit(fixture.directory).run().isWhole)
  }

  @Test("A tail that can't be read any more ends the writer, and is left alone")
  func unreadable() throws {
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    storage.setFaults(.init(unreadable: ["/ledger/log/" + tailName(0): 0..<4096]))
    let writer = try LedgerWriter.open(
      directory, options: LedgerFixture.smallOptions(block: 500, segment: 1 << 20))
    var count = 0
    while count < 2000, (try? writer.append([CrashRig.draft(count)])) != nil {
      count += 1
      if count > 20 { usleep(5000) }
    }
    let failure = #expect(throws: LedgerError.self) { try writer.close() }
    #expect(failure?.damage?.verdict == .unreadable && failure?.damage?.position == 0)
    storage.setFaults(.init())
    try LedgerWriter.open(directory).close()
    #expect(try CrashRig(.sealing).content(storage) == (0..<count).map(CrashRig.data))
  }

  @Test("A reader lets go of tails as they become blocks")
  func readerFollows() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    for frame in frames { try fixture.write(frame.bytes, to: tailName(frame.first)) }
    let reader = try LogReader(fixture.directory)
    let head = reader.head
    #expect(try reader.files().filter { $0.kind == .tail }.count == 10)
    try LedgerWriter.open(fixture.directory, options: LedgerFixture.smallOptions(block: 1)).close()
    try reader.letGoOfTails()
    #expect(reader.damage == nil && reader.head == head)
    #expect(try reader.files().allSatisfy { $0.kind != .tail })
    var next = 0
    try reader.read(from: 0) { chunk in
      #expect(chunk.firstPosition == next)
      next = chunk.endPosition
      return true
    }
    #expect(next == 10)
  }

  @Test("What was sealed into further segments since the last look is seen at once")
  func readerSeesRollOver() throws {
    let fixture = try LedgerFixture()
    // Each block closes its segment.
    let writer = try LedgerWriter.open(
      fixture.directory, options: LedgerFixture.smallOptions(block: 2000, segment: 1))
    _ = try writer.append([fixture.draft(0)])
    let reader = try LogReader(fixture.directory)
    // The tail that the reader has open grows, and becomes a block before the next look, like those after it.
    for number in 1..<40 { _ = try writer.append([fixture.draft(number)]) }
    try writer.close()
    try reader.refresh()
    #expect(reader.damage == nil && reader.head.size == 40)
  }

  @Test("A reader of few tails stays where it is until it is asked for more")
  func readerRests() throws {
    let fixture = try LedgerFixture()
    _ = try fixture.fillOneTail()
    let reader = try LogReader(fixture.directory)
    let writer = try LedgerWriter.open(fixture.directory)
    _ = try writer.append([fixture.draft(10)])
    try writer.close()
    try reader.letGoOfTails()
    #expect(reader.head.size == 10)
    try reader.refresh()
    #expect(reader.head.size == 11)
  }
}

#if DEBUG
  @testable import Ledger

  @Suite("The queue of tails that are to be sealed")
  struct SealingQueueTests {
    private static func queue(count: Int = 8, byteCount: Int = 1000) -> SealingQueue {
      SealingQueue(limit: UnsealedTails(count: count, byteCount: byteCount), delayMs: 100)
    }

    private static func tail(_ first: Int, byteCount: Int = 10) -> UnsealedTail {
      UnsealedTail(first: first, eventCount: 1, byteCount: byteCount)
    }

    /// What a worker is told, in a word.
    private static func word(_ task: SealingQueue.Task) -> String {
      switch task {
      case .prepare(let job): "prepare \(job.tail.first)"
      case .seal(let job, _): "seal \(job.tail.first)"
      case .wait(let untilMs): "wait" + (untilMs.map { " until \($0)" } ?? "")
      case .end: "end"
      }
    }

    private static let content = Result<BlockContent, LedgerError>.success(
      BlockContent(events: ByteBuffer(), deflated: ByteBuffer()))
    private static let failure = LedgerError(
      .inputOutput, operation: "write", object: "x", cause: "no room")

    /// Prepares and seals whatever a shift is given until it has to wait.
    private static func work(
      _ queue: inout SealingQueue, _ shift: SealingQueue.Shift, nowMs: Int64
    ) -> [String] {
      var words: [String] = []
      while true {
        let task = queue.next(for: shift, nowMs: nowMs)
        words.append(word(task))
        switch task {
        case .prepare(let job): job.progress = .prepared(content)
        case .seal: queue.finishFirst()
        case .wait, .end: return words
        }
      }
    }

    @Test("In leisure until a tail has waited for long; then on duty, what leisure began too")
    func shifts() {
      var queue = Self.queue()
      #expect(Self.work(&queue, .duty, nowMs: 0) == ["wait"])
      queue.append(Self.tail(0), nowMs: 0)
      queue.append(Self.tail(1), nowMs: 90)
      #expect(Self.work(&queue, .duty, nowMs: 99) == ["wait until 100"])
      #expect(Self.word(queue.next(for: .leisure, nowMs: 99)) == "prepare 0")
      #expect(Self.word(queue.next(for: .leisure, nowMs: 100)) == "wait")
      #expect(queue.isPressing)
      guard case .prepare(let job) = queue.next(for: .duty, nowMs: 100) else {
        Issue.record("nothing to prepare")
        return
      }
      #expect(job.tail.first == 0)
      // The other one on duty prepares the next one meanwhile, and does not seal it before the first.
      #expect(Self.work(&queue, .duty, nowMs: 100) == ["prepare 1", "wait"])
      #expect(queue.take(Self.content, of: job))
      #expect(!queue.take(.failure(Self.failure), of: job))
      #expect(Self.work(&queue, .duty, nowMs: 100) == ["seal 0", "seal 1", "wait"])
    }

    @Test("Once pressing, all that waits is sealed on duty, and then leisure has its turn")
    func drained() {
      var queue = Self.queue()
      for first in 0..<3 { queue.append(Self.tail(first), nowMs: 0) }
      #expect(
        Self.work(&queue, .duty, nowMs: 100)
          == ["prepare 0", "seal 0", "prepare 1", "seal 1", "prepare 2", "seal 2", "wait"])
      queue.append(Self.tail(3), nowMs: 100)
      #expect(Self.work(&queue, .duty, nowMs: 100) == ["wait until 200"])
      #expect(Self.work(&queue, .leisure, nowMs: 100) == ["prepare 3", "wait"])
      #expect(queue.concernsDuty)
      #expect(Self.work(&queue, .duty, nowMs: 100) == ["seal 3", "wait"])
      #expect(queue.unsealed == UnsealedTails())
    }

    /// How many tails, how large, and whether that presses; whether it is full.
    private static let loads = [
      (count: 5, byteCount: 10, presses: false, isFull: false),
      (count: 6, byteCount: 10, presses: true, isFull: false),
      (count: 8, byteCount: 10, presses: true, isFull: true),
      (count: 2, byteCount: 374, presses: false, isFull: false),
      (count: 2, byteCount: 375, presses: true, isFull: false),
      (count: 1, byteCount: 1000, presses: true, isFull: true),
    ]

    @Test("Three quarters of either bound press", arguments: loads)
    func pressing(_ count: Int, _ byteCount: Int, _ presses: Bool, _ isFull: Bool) {
      var queue = Self.queue()
      for first in 0..<count { queue.append(Self.tail(first, byteCount: byteCount), nowMs: 0) }
      #expect(queue.isFull == isFull)
      #expect((Self.word(queue.next(for: .duty, nowMs: 0)) == "prepare 0") == presses)
    }

    @Test("What found no room is tried again after half a second, and not by whoever closes")
    func stalled() {
      var queue = Self.queue()
      queue.append(Self.tail(0), nowMs: 0)
      queue.append(Self.tail(1), nowMs: 0)
      guard case .prepare(let job) = queue.next(for: .leisure, nowMs: 0) else {
        Issue.record("nothing to prepare")
        return
      }
      job.progress = .prepared(Self.content)
      #expect(Self.word(queue.next(for: .duty, nowMs: 1)) == "seal 0")
      queue.failFirst(Self.failure, mayRetry: true, nowMs: 1)
      #expect(queue.stall == Self.failure && queue.failure == nil)
      #expect(Self.word(queue.next(for: .duty, nowMs: 2)) == "wait until 501")
      #expect(Self.word(queue.next(for: .duty, nowMs: 501)) == "seal 0")
      // Nobody leaves while one is being written: it may succeed, and then the others are to be sealed.
      queue.isClosing = true
      #expect(Self.word(queue.next(for: .duty, nowMs: 502)) == "prepare 1")
      queue.failFirst(Self.failure, mayRetry: true, nowMs: 503)
      #expect(Self.word(queue.next(for: .duty, nowMs: 2000)) == "end")
      #expect(queue.unsealed.count == 2)
    }

    @Test("What was read in vain is read again, and a failure for good ends all")
    func failed() {
      var queue = Self.queue()
      queue.append(Self.tail(0), nowMs: 0)
      guard case .prepare(let job) = queue.next(for: .leisure, nowMs: 0) else {
        Issue.record("nothing to prepare")
        return
      }
      job.progress = .prepared(.failure(Self.failure))
      #expect(Self.word(queue.next(for: .duty, nowMs: 0)) == "seal 0")
      queue.failFirst(Self.failure, mayRetry: true, nowMs: 0)
      #expect(Self.word(queue.next(for: .leisure, nowMs: 99)) == "prepare 0")
      job.progress = .prepared(.failure(Self.failure))
      #expect(Self.word(queue.next(for: .duty, nowMs: 600)) == "seal 0")
      queue.failFirst(Self.failure, mayRetry: false, nowMs: 600)
      for shift in [SealingQueue.Shift.leisure, .duty] {
        #expect(Self.word(queue.next(for: shift, nowMs: 600)) == "end")
      }
      #expect(queue.failure == Self.failure)
    }

    @Test("Only what fits in memory is prepared ahead")
    func ahead() {
      var queue = Self.queue(count: 100, byteCount: 1 << 40)
      for first in 0..<20 { queue.append(Self.tail(first, byteCount: 1 << 20), nowMs: 0) }
      var prepared = 0
      while case .prepare = queue.next(for: .leisure, nowMs: 0) { prepared += 1 }
      #expect(prepared == 8)
    }

    /// What became of a tail's file, and the verdict.
    private static let changes: [(name: String, change: @Sendable ([UInt8]) -> [UInt8]?, String)] =
      [
        ("gone", { _ in nil }, "missing"),
        ("cut", { Array($0.dropLast()) }, "corrupt"),
        ("changed", { $0.dropLast(5) + [0x79] + $0.suffix(4) }, "corrupt"),
        ("without its last frame", { FrameBytes.split($0).dropLast().flatMap(\.bytes) }, "corrupt"),
        ("grown", { $0 + [0x78] }, ""),
      ]

    @Test("A tail that is not what was written is not made into a block", arguments: 0..<5)
    func changedTail(_ index: Int) throws {
      let (name, change, verdict) = Self.changes[index]
      let fixture = try LedgerFixture()
      let frames = try fixture.fillOneTail()
      let content = frames.flatMap(\.bytes)
      if let changed = change(content) {
        try fixture.write(changed, to: tailName(0))
      } else {
        try fixture.remove(tailName(0))
      }
      let tail = UnsealedTail(first: 0, eventCount: 10, byteCount: content.count)
      let events = ByteBuffer()
      var found = ""
      do throws(LedgerError) { try tail.readEvents(fixture.directory, into: events) } catch {
        found = error.damage?.verdict.rawValue ?? "\(error)"
      }
      #expect(found == verdict, "\(name)")
    }
  }
#endif

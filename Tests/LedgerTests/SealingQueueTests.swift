// What is sealed next and by which thread; deflating on an idle processor; what is known of a tail.
import Base
import Ledger
import TestSupport
import Testing

@Suite("The queue of tails to be sealed")
struct SealingQueueTests {
  private static func queue(
    count: Int = 8, byteCount: Int = 1000, timing: SealingTiming = SealingTiming(delayMs: 100)
  ) -> SealingQueue {
    SealingQueue(limit: UnsealedTails(count: count, byteCount: byteCount), timing: timing)
  }

  private static func tail(_ first: Int, byteCount: Int = 10) -> UnsealedTail {
    UnsealedTail(first: first, eventCount: 1, byteCount: byteCount)
  }

  /// A worker's task in a word.
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

  /// Prepares and seals whatever a worker gets until it has to wait.
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

  @Test(
    "In the background until a tail has waited for long; then in the foreground, with what was begun"
  )
  func shifts() {
    var queue = Self.queue()
    expectEqual(Self.work(&queue, .foreground, nowMs: 0), ["wait"])
    queue.append(Self.tail(0), nowMs: 0)
    queue.append(Self.tail(1), nowMs: 90)
    expectEqual(Self.work(&queue, .foreground, nowMs: 99), ["wait until 100"])
    expectEqual(Self.word(queue.next(for: .background, nowMs: 99)), "prepare 0")
    expectEqual(Self.word(queue.next(for: .background, nowMs: 100)), "wait")
    #expect(queue.isUrgent)
    guard case .prepare(let job) = queue.next(for: .foreground, nowMs: 100) else {
      Issue.record("nothing to prepare")
      return
    }
    expectEqual(job.tail.first, 0)
    // The other foreground worker prepares the next one meanwhile, and does not seal it before the first.
    expectEqual(Self.work(&queue, .foreground, nowMs: 100), ["prepare 1", "wait"])
    #expect(queue.store(Self.content, of: job))
    #expect(!queue.store(.failure(Self.failure), of: job))
    expectEqual(Self.work(&queue, .foreground, nowMs: 100), ["seal 0", "seal 1", "wait"])
  }

  @Test(
    "Once pressing, all that waits is sealed in the foreground, then the background continues")
  func drained() {
    var queue = Self.queue()
    for first in 0..<3 { queue.append(Self.tail(first), nowMs: 0) }
    expectEqual(
      Self.work(&queue, .foreground, nowMs: 100),
      ["prepare 0", "seal 0", "prepare 1", "seal 1", "prepare 2", "seal 2", "wait"])
    queue.append(Self.tail(3), nowMs: 100)
    expectEqual(Self.work(&queue, .foreground, nowMs: 100), ["wait until 200"])
    expectEqual(Self.work(&queue, .background, nowMs: 100), ["prepare 3", "wait"])
    #expect(queue.concernsForeground)
    expectEqual(Self.work(&queue, .foreground, nowMs: 100), ["seal 3", "wait"])
    expectEqual(queue.unsealed, UnsealedTails())
  }

  @Test("While sealing is held between two blocks, tails are prepared but not sealed")
  func held() {
    var queue = Self.queue()
    queue.append(Self.tail(0), nowMs: 0)
    queue.append(Self.tail(1), nowMs: 0)
    if case .prepare(let first) = queue.next(for: .foreground, nowMs: 100) {
      _ = queue.store(Self.content, of: first)
    }
    let sealing = queue.next(for: .foreground, nowMs: 100)
    expectEqual(Self.word(sealing), "seal 0")
    // A block is being written: the hold waits for its end, and lets no other begin.
    queue.requestHold()
    let isTaken1 = queue.acquireHold()
    #expect(!isTaken1)
    queue.finishFirst()
    expectEqual(Self.work(&queue, .foreground, nowMs: 100), ["prepare 1", "wait"])
    let isTaken2 = queue.acquireHold()
    #expect(isTaken2)
    queue.requestHold()
    let isTaken3 = queue.acquireHold()
    #expect(!isTaken3)
    queue.release(taken: false)
    expectEqual(Self.work(&queue, .foreground, nowMs: 100), ["wait"])
    queue.release()
    expectEqual(Self.work(&queue, .foreground, nowMs: 100), ["seal 1", "wait"])
  }

  @Test("Tails before a position are sealed at once, however short they have waited")
  func hurried() {
    var queue = Self.queue()
    queue.append(Self.tail(0), nowMs: 0)
    expectEqual(Self.work(&queue, .foreground, nowMs: 1), ["wait until 100"])
    queue.hurry(upTo: 1)
    expectEqual(Self.work(&queue, .foreground, nowMs: 1), ["prepare 0", "seal 0", "wait"])
    queue.append(Self.tail(1), nowMs: 1)
    expectEqual(Self.work(&queue, .foreground, nowMs: 1), ["wait until 101"])
  }

  /// How many tails, how large, and whether that presses; whether the queue is full.
  private static let loads = [
    (count: 5, byteCount: 10, presses: false, isFull: false),
    (count: 6, byteCount: 10, presses: true, isFull: false),
    (count: 8, byteCount: 10, presses: true, isFull: true),
    (count: 2, byteCount: 374, presses: false, isFull: false),
    (count: 2, byteCount: 375, presses: true, isFull: false),
    (count: 1, byteCount: 1000, presses: true, isFull: true),
  ]

  @Test("Three quarters of either limit press", arguments: loads)
  func pressing(_ count: Int, _ byteCount: Int, _ presses: Bool, _ isFull: Bool) {
    var queue = Self.queue()
    for first in 0..<count { queue.append(Self.tail(first, byteCount: byteCount), nowMs: 0) }
    expectEqual(queue.isFull, isFull)
    expectEqual((Self.word(queue.next(for: .foreground, nowMs: 0)) == "prepare 0"), presses)
  }

  @Test("A block without room is retried after half a second, but not while closing")
  func stalled() {
    var queue = Self.queue()
    queue.append(Self.tail(0), nowMs: 0)
    queue.append(Self.tail(1), nowMs: 0)
    guard case .prepare(let job) = queue.next(for: .background, nowMs: 0) else {
      Issue.record("nothing to prepare")
      return
    }
    job.progress = .prepared(Self.content)
    expectEqual(Self.word(queue.next(for: .foreground, nowMs: 1)), "seal 0")
    queue.failFirst(Self.failure, mayRetry: true, nowMs: 1)
    #expect(queue.stall == Self.failure && queue.failure == nil)
    expectEqual(Self.word(queue.next(for: .foreground, nowMs: 2)), "wait until 501")
    expectEqual(Self.word(queue.next(for: .foreground, nowMs: 501)), "seal 0")
    // No worker ends while a block is being written: it may succeed, and then the others are to be sealed.
    queue.beginClosing(nowMs: 502)
    expectEqual(Self.word(queue.next(for: .foreground, nowMs: 502)), "prepare 1")
    queue.failFirst(Self.failure, mayRetry: true, nowMs: 503)
    expectEqual(Self.word(queue.next(for: .foreground, nowMs: 2000)), "end")
    expectEqual(queue.unsealed.count, 2)
  }

  @Test("A failed preparation is repeated, and a permanent failure ends everything")
  func failed() {
    var queue = Self.queue()
    queue.append(Self.tail(0), nowMs: 0)
    guard case .prepare(let job) = queue.next(for: .background, nowMs: 0) else {
      Issue.record("nothing to prepare")
      return
    }
    job.progress = .prepared(.failure(Self.failure))
    expectEqual(Self.word(queue.next(for: .foreground, nowMs: 0)), "seal 0")
    queue.failFirst(Self.failure, mayRetry: true, nowMs: 0)
    expectEqual(Self.word(queue.next(for: .background, nowMs: 99)), "prepare 0")
    job.progress = .prepared(.failure(Self.failure))
    expectEqual(Self.word(queue.next(for: .foreground, nowMs: 600)), "seal 0")
    queue.failFirst(Self.failure, mayRetry: false, nowMs: 600)
    for shift in [SealingQueue.Shift.background, .foreground] {
      expectEqual(Self.word(queue.next(for: shift, nowMs: 600)), "end")
    }
    expectEqual(queue.failure, Self.failure)
  }

  @Test("A tail rests before the background handles it")
  func rest() {
    var queue = Self.queue(timing: SealingTiming(restMs: 50, delayMs: 100))
    queue.append(Self.tail(0), nowMs: 10)
    expectEqual(Self.word(queue.next(for: .background, nowMs: 10)), "wait until 60")
    expectEqual(Self.word(queue.next(for: .background, nowMs: 60)), "prepare 0")
    // A pressing tail does not rest.
    queue.beginClosing(nowMs: 61)
    queue.append(Self.tail(1), nowMs: 61)
    expectEqual(
      Self.work(&queue, .foreground, nowMs: 61),
      ["prepare 0", "seal 0", "prepare 1", "seal 1", "end"])
  }

  @Test("Closing seals for a limited time, and for a shorter one what an earlier writer has left")
  func closing() {
    let timing = SealingTiming(delayMs: 100, closingMs: 50, closingInheritedMs: 20)
    for (isInherited, limitMs) in [(false, Int64(50)), (true, 20)] {
      var queue = Self.queue(timing: timing)
      queue.append(Self.tail(0), nowMs: 0, isInherited: isInherited)
      queue.append(Self.tail(1), nowMs: 0)
      queue.beginClosing(nowMs: 1000)
      queue.beginClosing(nowMs: 2000)
      expectEqual(Self.word(queue.next(for: .foreground, nowMs: 999 + limitMs)), "prepare 0")
      for shift in [SealingQueue.Shift.background, .foreground] {
        expectEqual(Self.word(queue.next(for: shift, nowMs: 1000 + limitMs)), "end")
      }
      #expect(queue.unsealed.count == 2 && queue.failure == nil)
    }
  }

  @Test("Waiting for an idle processor can be cancelled, before and during the wait")
  func abandoned() throws {
    let events = ByteBuffer(capacity: 4 << 20)
    events.count = 4 << 20
    for place in 0..<events.count {
      events.storage[place] = UInt8(truncatingIfNeeded: place &* place >> 7)
    }
    let left = try IdleDeflation(events, BlockDeflater(level: 12))
    left.abandon()
    let deflater = try BlockDeflater(level: 6)
    let content = left.wait()
    #expect(content == nil || content?.count ?? 0 > 0)
    // A small one is done before it is asked for, so that nothing of it is lost.
    let small = ByteBuffer()
    small.append("some events")
    let done = try IdleDeflation(small, deflater)
    #expect(done.wait()?.count ?? 0 > 0)
  }

  @Test("What is known of a tail of small frames takes little memory")
  func places() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(2000, options: WriterOptions())
    let state = try LogState(fixture.directory, SHA256(), keptTailCount: 0)
    let tail = try #require(state.tails.first)
    #expect(tail.endPosition == 2000 && tail.endOffsetBytes > 300_000)
    #expect(tail.places.count <= 1 + tail.endOffsetBytes >> 14)
    for position in [0, 1, 77, 1000, 1999] {
      let place = tail.places[tail.index(holding: position)]
      #expect(place.first <= position)
    }
  }

  @Test("Only what fits in memory is prepared ahead")
  func ahead() {
    var queue = Self.queue(count: 100, byteCount: 1 << 40)
    for first in 0..<20 { queue.append(Self.tail(first, byteCount: 1 << 20), nowMs: 0) }
    var prepared = 0
    while case .prepare = queue.next(for: .background, nowMs: 0) { prepared += 1 }
    expectEqual(prepared, 8)
  }

  /// A change to a tail's file, and the verdict.
  private static let changes: [(name: String, change: @Sendable ([UInt8]) -> [UInt8]?, String)] =
    [
      ("gone", { _ in nil }, "missing"),
      ("cut", { Array($0.dropLast()) }, "corrupt"),
      ("changed", { $0.dropLast(5) + [0x79] + $0.suffix(4) }, "corrupt"),
      ("without its last frame", { FrameBytes.split($0).dropLast().flatMap(\.bytes) }, "corrupt"),
      ("grown", { $0 + [0x78] }, ""),
    ]

  @Test("A tail that differs from what was written does not become a block", arguments: 0..<5)
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
    expectEqual(found, verdict, "\(name)")
  }
}

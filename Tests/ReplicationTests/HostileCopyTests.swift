// Malicious copies: none causes a crash, a hang or unbounded memory.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite struct HostileCopyTests {
  /// Restores and audits what it can.
  /// - Returns: how many events it restored; nil if it refused.
  private func attempt(_ store: MemoryStore, _ path: String) -> Int? {
    defer { try? FileManager.default.removeItem(atPath: path) }
    var restore = CopyRestore()
    restore.isPartial = true
    let report = try? restore.run(from: RetryingStore(store, limitMs: 100), to: path)
    _ = try? CopyAudit().run(
      LedgerDirectory.open(path: path), RetryingStore(store, limitMs: 100))
    return report?.size
  }

  @Test func randomBytesAreNoStep() {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    for _ in 0..<20_000 {
      let count = Int.random(in: 0...200, using: &random)
      var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      if Bool.random(using: &random) { bytes.append(0x0A) }
      #expect(Step.parse(bytes) == nil, "seed \(seed)")
    }
  }

  @Test func changedStepsNeverCrashARestore() throws {
    let ledger = try filledLedger(eventCount: 14)
    let store = MemoryStore()
    let copy = TestCopy(of: ledger.directory, in: store)
    try copy.copyAll()
    try ledger.append(events(14..<17))
    try copy.copyFrames()
    try copy.copyFiles(complete: true)
    let whole = store.objects
    let stepKeys = whole.keys.filter { $0.hasPrefix("steps/") }.sorted()
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let temporary = try TemporaryDirectory()
    let numbers = [
      "0", "1", "999999999999999999", "9223372036854775807", "-1", "18446744073709551616",
    ]
    for round in 0..<300 {
      let hostile = MemoryStore()
      hostile.objects = whole
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let key = stepKeys.randomElement(using: &random) ?? ""
        let text = String(decoding: whole[key] ?? [], as: UTF8.self)
        let digits = text.ranges(of: #/:[0-9]+/#)
        guard let place = digits.randomElement(using: &random) else { continue }
        let number = numbers.randomElement(using: &random) ?? "0"
        hostile.objects[key] = Array(text.replacingCharacters(in: place, with: ":" + number).utf8)
      }
      let size = attempt(hostile, temporary.path("\(round)"))
      #expect((0...17).contains(size ?? 0), "seed \(seed)")
    }
    let unchanged = MemoryStore()
    unchanged.objects = whole
    expectEqual(attempt(unchanged, temporary.path("whole")), 17)
  }

  @Test func aChainWithoutACompleteStepIsRefusedSoon() throws {
    let store = MemoryStore()
    var previous = Step.noDigest
    for number in 0..<3_000 {
      var step = Step(
        number: number, epoch: 1, writer: UUID16.random(), ledger: UUID16.random(), atMs: 0,
        previous: previous, size: 0, root: digest([]))
      // Step 0 is well formed only if it is complete.
      step.isComplete = number == 0
      step.identity = number == 0 ? digest([]) : nil
      previous = digest(step.header)
      store.objects[step.key] = step.header
    }
    store.objects[CopyLayout.stepKey(0)] = nil
    store.objects[CopyLayout.stepKey(0)] = [0x7B]
    let temporary = try TemporaryDirectory()
    #expect(throws: (any Error).self) {
      try CopyRestore().run(from: RetryingStore(store), to: temporary.path("restored"))
    }
    #expect(store.calls.count < 5_000)
  }

  @Test func stepsThatNameEachOtherGoRoundNoCircle() throws {
    let ledger = try filledLedger(eventCount: 3)
    let store = MemoryStore()
    let copy = TestCopy(of: ledger.directory, in: store)
    try copy.copyAll()
    let state = try #require(copy.state)
    var step = state.completeStep(epoch: 1, writer: copy.writer, atMs: 0)
    // Frames in a step without frames, in the step itself, and in step 0.
    for number in [step.number, step.number + 1, 0] {
      step.earlierFrames = state.frames.map { EarlierFrames(step: number, $0.frames) }
      store.objects[step.key] = step.header
      let temporary = try TemporaryDirectory()
      #expect(throws: (any Error).self) {
        try CopyRestore().run(from: RetryingStore(store), to: temporary.path("restored"))
      }
    }
  }

  @Test func anObjectThatNeverEndsIsCutOff() throws {
    let ledger = try filledLedger(eventCount: 14)
    let store = MemoryStore()
    let copy = TestCopy(of: ledger.directory, in: store)
    try copy.copyAll()
    let key = try #require(copy.state?.segments.first?.key)
    store.objects[key] = [UInt8](repeating: 0, count: 64 << 20)
    let temporary = try TemporaryDirectory()
    do {
      _ = try CopyRestore().run(from: RetryingStore(store), to: temporary.path("restored"))
      Issue.record("it was taken")
    } catch CopyError.faults(let faults) { expectEqual(faults.map(\.object), [key]) }
  }
}

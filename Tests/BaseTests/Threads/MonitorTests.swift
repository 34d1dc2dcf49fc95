// A monitor: mutual exclusion, waiting for a condition, and its end.
import Base
import Glibc
import TestSupport
import Testing

private struct SomeError: Error {}

/// Runs one body on several threads and waits for their end.
private struct Crew {
  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private var threads: [pthread_t] = []

  init(count: Int, _ run: @escaping @Sendable () -> Void) {
    for _ in 0..<count {
      var thread = pthread_t()
      let code = pthread_create(
        &thread, nil,
        { argument in
          if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
          return nil
        }, Unmanaged.passRetained(Body(run)).toOpaque())
      precondition(code == 0, "no thread")
      threads.append(thread)
    }
  }

  func join() { for thread in threads { pthread_join(thread, nil) } }
}

@Suite("A monitor")
struct MonitorTests {
  @Test("a held monitor is skipped by a caller that does not wait")
  func passesBy() {
    let monitor = Monitor(0)
    expectEqual(monitor.withLockIfFree { $0 + 1 }, 1)
    let seen = Monitor<[Int?]>([])
    monitor.withLock { _ in
      Crew(count: 1) {
        let result = monitor.withLockIfFree { $0 + 1 }
        seen.withLock { $0.append(result) }
      }.join()
    }
    expectEqual(seen.withLock { $0 }, [nil])
  }

  @Test("increments by several threads under the lock are all counted")
  func counts() {
    let monitor = Monitor(0)
    Crew(count: 4) { for _ in 0..<10_000 { monitor.withLock { $0 += 1 } } }.join()
    expectEqual(monitor.withLock { $0 }, 40_000)
  }

  @Test("a body that throws releases the lock, and keeps its changes")
  func throwing() {
    let monitor = Monitor(1)
    #expect(throws: SomeError.self) {
      try monitor.withLock { value throws(SomeError) in
        value = 2
        throw SomeError()
      }
    }
    expectEqual(monitor.withLock { $0 }, 2)
  }

  @Test("a waiting thread continues when its condition holds, each condition for itself")
  func waiting() {
    let monitor = Monitor((asked: 0, answered: 0), conditionCount: 2)
    let crew = Crew(count: 1) {
      for number in 1...1000 {
        let asked = monitor.wait(on: 0) { $0.asked == number ? $0.asked : nil }
        monitor.withLock { $0.answered = asked }
        monitor.signal(1)
      }
    }
    for number in 1...1000 {
      monitor.withLock { $0.asked = number }
      monitor.signal(0)
      let answered = monitor.wait(on: 1) { $0.answered == number ? $0.answered : nil }
      expectEqual(answered, number)
    }
    crew.join()
  }

  @Test("all waiting threads continue after a broadcast")
  func broadcasting() {
    let monitor = Monitor((isOpen: false, passed: 0), conditionCount: 1)
    let crew = Crew(count: 4) {
      let isOpen: Bool = monitor.wait(on: 0) { $0.isOpen ? true : nil }
      if isOpen { monitor.withLock { $0.passed += 1 } }
    }
    monitor.withLock { $0.isOpen = true }
    monitor.broadcast(0)
    crew.join()
    expectEqual(monitor.withLock { $0.passed }, 4)
  }

  @Test("a wait that times out returns nothing; a condition that already holds needs no time")
  func timeOver() {
    let monitor = Monitor(7, conditionCount: 1)
    #expect(monitor.wait(on: 0, limitMs: 0) { $0 == 8 ? true : nil } == nil)
    #expect(monitor.wait(on: 0, limitMs: 0) { $0 == 7 ? true : nil } == true)
  }

  @Test("the state is released with the monitor")
  func release() {
    final class Kept {}
    weak var kept: Kept?
    do {
      let monitor = Monitor(Kept(), conditionCount: 2)
      kept = monitor.withLock { $0 }
      #expect(kept != nil)
    }
    #expect(kept == nil)
  }

  @Test("the state has the alignment of its type", arguments: 0..<4)
  func alignment(conditionCount: Int) {
    let wide = Monitor(SIMD8<Int64>(repeating: 3), conditionCount: conditionCount)
    let address = wide.withLock { state in
      withUnsafePointer(to: &state) { UInt(bitPattern: $0) }
    }
    expectEqual(address % UInt(MemoryLayout<SIMD8<Int64>>.alignment), 0)
    let small = Monitor(UInt8(5), conditionCount: conditionCount)
    expectEqual(small.withLock { $0 }, 5)
    expectEqual(wide.withLock { $0 }, SIMD8(repeating: 3))
  }
}

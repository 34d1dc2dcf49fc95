// A monitor: one thread at a time, waiting until something holds, and what it leaves behind.
import Base
import Glibc
import TestSupport
import Testing

private struct SomeError: Error {}

/// Threads that run one body and are waited for.
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
  @Test("one that somebody else holds is passed by where it need not be waited for")
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

  @Test("what several threads count under the lock is counted once each")
  func counts() {
    let monitor = Monitor(0)
    Crew(count: 4) { for _ in 0..<10_000 { monitor.withLock { $0 += 1 } } }.join()
    expectEqual(monitor.withLock { $0 }, 40_000)
  }

  @Test("a body that throws lets the next one in, and what it changed stays")
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

  @Test("who waits goes on when the condition holds, each condition for itself")
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

  @Test("all who wait go on after a broadcast")
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

  @Test("a wait whose time is over returns nothing; what holds already needs no time")
  func timeOver() {
    let monitor = Monitor(7, conditionCount: 1)
    #expect(monitor.wait(on: 0, limitMs: 0) { $0 == 8 ? true : nil } == nil)
    #expect(monitor.wait(on: 0, limitMs: 0) { $0 == 7 ? true : nil } == true)
  }

  @Test("the state goes with the monitor")
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

  @Test("the state stands where its type may stand", arguments: 0..<4)
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

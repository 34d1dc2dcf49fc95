// Waits with a limit: for what other threads and processes bring about, and for the end of a test.
import Base
import Dispatch
import Glibc

// A build of the programs alone compiles this module too, and has no tests.
#if canImport(Testing)
  package import Testing
#endif

/// Waits until something holds; false if it does not within five minutes, which no machine needs.
package func eventually(_ condition: () throws -> Bool) rethrows -> Bool {
  let endMs = MonotonicClock.nowMs() + 300_000
  while try !condition() {
    if MonotonicClock.nowMs() >= endMs { return false }
    usleep(2_000)
  }
  return true
}

#if canImport(Testing)
  /// Ends the tests' process, with the name of the test, if a test takes longer than half an hour: one that only waits
  /// for processors does not. Unlike `.timeLimit` it also ends a thread that waits for ever.
  package struct BoundedTrait: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    package func provideScope(
      for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
      let name = "\(test.id)"
      let watch = DispatchWorkItem { fatalError("\(name) does not end") }
      DispatchQueue.global().asyncAfter(deadline: .now() + 1_800, execute: watch)
      defer { watch.cancel() }
      try await function()
    }
  }

  extension Trait where Self == BoundedTrait {
    /// For suites with threads, servers and other programs.
    package static var bounded: Self { BoundedTrait() }
  }
#endif

// Waits with a limit, for other threads and processes and for the end of a test.
import Base
import Dispatch
import Glibc

// A build of the programs alone compiles this module too, without the testing library.
#if canImport(Testing)
  package import Testing
#endif

/// Waits for a condition; false if it does not hold within five minutes, far more than any machine
/// needs.
package func eventually(_ condition: () throws -> Bool) rethrows -> Bool {
  let endMs = MonotonicClock.nowMs() + 300_000
  while try !condition() {
    if MonotonicClock.nowMs() >= endMs { return false }
    usleep(2_000)
  }
  return true
}

#if canImport(Testing)
  /// Ends the tests' process, with the test's name, if a test takes longer than half an hour, which waiting for
  /// processors alone does not. Unlike `.timeLimit` it also ends a thread that waits for ever.
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

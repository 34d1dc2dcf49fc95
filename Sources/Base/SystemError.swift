// What a failed system call leaves.

/// The code that a system call failed with.
package struct SystemError: Error, Sendable, Equatable {
  /// The value of `errno`.
  package let code: Int32

  package init(code: Int32) { self.code = code }
}

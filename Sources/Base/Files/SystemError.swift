// The error of a failed system call.

/// The `errno` value of a failed system call.
package struct SystemError: Error, Sendable, Equatable {
  /// The value of `errno`.
  package let code: Int32

  package init(code: Int32) { self.code = code }
}

// The lock of an open file, by which processes take turns.
import Glibc

/// flock(2), exclusive: the lock ends with the descriptor, and with the process.
package enum FileLock {
  /// Takes the lock; false where another has it.
  package static func take(_ descriptor: Int32) throws(SystemError) -> Bool {
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
    if errno == EWOULDBLOCK { return false }
    throw SystemError(code: errno)
  }

  /// Waits until the lock is free, and takes it. Throws `EINTR` where a signal ends the wait.
  package static func wait(_ descriptor: Int32) throws(SystemError) {
    if flock(descriptor, LOCK_EX) != 0 { throw SystemError(code: errno) }
  }

  /// Gives the lock back, also where a child process holds a copy of the descriptor.
  package static func release(_ descriptor: Int32) { flock(descriptor, LOCK_UN) }
}

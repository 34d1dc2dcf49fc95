// Locks on open files, which coordinate processes.
import Glibc

/// flock(2), exclusive. The lock ends when the descriptor is closed or the process exits.
package enum FileLock {
  /// Acquires the lock; returns false if another process or descriptor holds it.
  package static func take(_ descriptor: Int32) throws(SystemError) -> Bool {
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
    if errno == EWOULDBLOCK { return false }
    throw SystemError(code: errno)
  }

  /// Waits for the lock and acquires it. Throws `EINTR` if a signal interrupts the wait.
  package static func wait(_ descriptor: Int32) throws(SystemError) {
    if flock(descriptor, LOCK_EX) != 0 { throw SystemError(code: errno) }
  }

  /// Releases the lock, even if a child process holds a copy of the descriptor.
  package static func release(_ descriptor: Int32) { flock(descriptor, LOCK_UN) }
}

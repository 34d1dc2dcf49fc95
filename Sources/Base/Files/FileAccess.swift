// Files outside a ledger: read whole and locked; the error of a failed system call.
import Glibc

/// Why a small file could not be read.
package enum SmallFileError: Error, Equatable {
  case system(SystemError)
  case notRegular
  case larger(byteCountMax: Int)

  /// The cause, starting with a lower-case letter.
  package var cause: String {
    switch self {
    case .system(let error):
      let text = systemErrorText(error.code)
      return text.prefix(1).lowercased() + text.dropFirst()
    case .notRegular: return "it is not a regular file"
    case .larger(let byteCountMax): return "it is larger than \(byteCountMax) bytes"
    }
  }
}

/// Reads files by path; the path may contain symbolic links.
package enum SmallFile {
  /// The content of a regular file. Does not block if the path names a pipe.
  package static func read(
    _ path: String, byteCountMax: Int
  ) throws(SmallFileError) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .system(SystemError(code: errno)) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw .system(SystemError(code: errno)) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .notRegular }
    return try read(descriptor, byteCountMax: byteCountMax)
  }

  /// The rest of an open file or stream.
  package static func read(
    _ descriptor: Int32, byteCountMax: Int
  ) throws(SmallFileError) -> [UInt8] {
    var content: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: min(byteCountMax + 1, 64 << 10))
    while true {
      let count = Glibc.read(descriptor, &piece, piece.count)
      if count == 0 { return content }
      if count < 0 {
        if errno == EINTR { continue }
        throw .system(SystemError(code: errno))
      }
      content += piece[..<count]
      if content.count > byteCountMax { throw .larger(byteCountMax: byteCountMax) }
    }
  }
}

// MARK: - File locks

/// flock(2), exclusive, between processes. The lock ends when the descriptor is closed or the process exits.
package enum FileLock {
  /// Acquires the lock; returns false if another process or descriptor holds it.
  package static func tryLock(_ descriptor: Int32) throws(SystemError) -> Bool {
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

// MARK: - System errors

/// The `errno` value of a failed system call.
package struct SystemError: Error, Sendable, Equatable {
  /// The value of `errno`.
  package let code: Int32

  package init(code: Int32) { self.code = code }
}

// MARK: - Constants of sockets

/// Linux's constants of sockets. Their C names are visible only with whichever C library a build reads first.
package enum SocketConstant {
  /// `SHUT_RDWR`.
  package static let shutdownBoth: Int32 = 2
  /// `MSG_NOSIGNAL`.
  package static let noSignal: Int32 = 0x4000
}

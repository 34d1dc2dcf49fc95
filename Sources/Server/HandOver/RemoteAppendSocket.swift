// Unix stream sockets: addresses, whole frames, deadlines; whether anyone listens.
import Base
import Glibc
package import Ledger

/// Why a connection can't be used any more.
enum ConnectionFailure: Error {
  /// The peer has closed it.
  case closed
  /// Nothing arrived, or nothing could be sent, for too long.
  case timeout
  /// The peer violated the protocol.
  case malformed(String)
  case system(Int32)
}

/// One end of a connection. Used by one thread; `shutDown` by any.
final class RemoteAppendConnection: Sendable {
  private let descriptor: Int32

  /// Takes over a connected socket.
  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    // Only poll waits, so that each wait has its limit.
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
  }

  deinit { close(descriptor) }

  /// Shuts down both directions: reads and writes of both sides end.
  func shutDown() { shutdown(descriptor, SocketConstant.shutdownBoth) }

  /// The peer's process and user, from the kernel.
  var peer: (processID: Int32, userID: UInt32)? {
    // struct ucred: pid, uid, gid.
    var credentials: (Int32, UInt32, UInt32) = (0, 0, 0)
    var size = socklen_t(MemoryLayout.size(ofValue: credentials))
    guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 else {
      return nil
    }
    return (credentials.0, credentials.1)
  }

  // MARK: Frames

  /// Sends a frame; the timeout applies to each wait for room.
  func send(
    _ kind: RemoteAppendProtocol.Kind, _ content: [UInt8] = [], timeoutMs: Int32
  ) throws(ConnectionFailure) {
    var frame: [UInt8] = []
    frame.reserveCapacity(RemoteAppendProtocol.headerByteCount + content.count)
    withUnsafeBytes(of: UInt32(content.count).littleEndian) { frame.append(contentsOf: $0) }
    frame.append(kind.rawValue)
    frame += content
    var sent = 0
    while sent < frame.count {
      let count = frame.withUnsafeBytes { bytes in
        Glibc.send(
          descriptor, bytes.baseAddress?.advanced(by: sent), bytes.count - sent,
          SocketConstant.noSignal)
      }
      if count >= 0 {
        sent += count
      } else if errno == EAGAIN {
        try wait(for: Int16(POLLOUT), timeoutMs: timeoutMs)
      } else if errno == EPIPE || errno == ECONNRESET {
        throw .closed
      } else if errno != EINTR {
        throw .system(errno)
      }
    }
  }

  /// Receives a frame: one timeout for its beginning, one for each further piece.
  func receive(
    startTimeoutMs: Int32, pieceTimeoutMs: Int32
  ) throws(ConnectionFailure) -> (kind: UInt8, content: [UInt8]) {
    let header = try receive(
      RemoteAppendProtocol.headerByteCount, startTimeoutMs: startTimeoutMs,
      pieceTimeoutMs: pieceTimeoutMs)
    let length = (0..<4).reduce(0) { $0 | Int(header[$1]) << (8 * $1) }
    guard length <= RemoteAppendProtocol.contentByteCountMax else {
      throw .malformed("a frame of \(length) bytes is too large")
    }
    let content = try receive(
      length, startTimeoutMs: pieceTimeoutMs, pieceTimeoutMs: pieceTimeoutMs)
    return (header[4], content)
  }

  private func receive(
    _ byteCount: Int, startTimeoutMs: Int32, pieceTimeoutMs: Int32
  ) throws(ConnectionFailure) -> [UInt8] {
    var bytes: [UInt8] = []
    // The memory grows with the received bytes, not with the announced length.
    var piece = [UInt8](repeating: 0, count: min(byteCount, 64 << 10))
    while bytes.count < byteCount {
      let wanted = min(piece.count, byteCount - bytes.count)
      let count = recv(descriptor, &piece, wanted, 0)
      if count > 0 {
        bytes += piece[..<count]
      } else if count == 0 {
        throw .closed
      } else if errno == EAGAIN {
        try wait(
          for: Int16(POLLIN), timeoutMs: bytes.isEmpty ? startTimeoutMs : pieceTimeoutMs)
      } else if errno == ECONNRESET {
        throw .closed
      } else if errno != EINTR {
        throw .system(errno)
      }
    }
    return bytes
  }

  private func wait(for events: Int16, timeoutMs: Int32) throws(ConnectionFailure) {
    let deadlineMs = MonotonicClock.nowMs() + Int64(timeoutMs)
    while true {
      let restMs = Int32(max(0, deadlineMs - MonotonicClock.nowMs()))
      var request = pollfd(fd: descriptor, events: events, revents: 0)
      let result = poll(&request, 1, restMs)
      if result > 0 { return }
      if result == 0 { throw .timeout }
      if errno != EINTR { throw .system(errno) }
    }
  }
}

/// The socket of a ledger by its path, whatever its length.
enum RemoteAppendAddress {
  /// Calls `body` with the socket's address. The path of a Unix socket is limited to few bytes, and may lead elsewhere
  /// by the time it is used: the socket is reached through the open descriptor of the directory. Nil if neither that
  /// nor a short enough path can be used.
  static func with<Result>(
    _ folder: Folder, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result? {
    var address = sockaddr_un()
    var path = "/proc/self/fd/\(folder.descriptor)"
    if access(path, F_OK) != 0 { path = folder.path }
    path += "/\(RemoteAppendProtocol.socketName)"
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
      errno = ENAMETOOLONG
      return nil
    }
    return fill(&address, path, body)
  }

  private static func fill<Result>(
    _ address: inout sockaddr_un, _ path: String,
    _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }

  /// A new stream socket that no child process inherits; negative after a failure.
  static func makeSocket() -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    return descriptor
  }
}

/// Whether a server holds a ledger, as its socket shows.
package enum LedgerService {
  /// Whether a server listens; nil if there is no socket, as after an ordinary end. Connects, and sends nothing.
  package static func isListening(_ directory: LedgerDirectory) throws(LedgerError) -> Bool? {
    let name = RemoteAppendProtocol.socketName
    guard try directory.root.status(name)?.kind == .other else { return nil }
    let descriptor = RemoteAppendAddress.makeSocket()
    defer { if descriptor >= 0 { close(descriptor) } }
    let code: Int32? = RemoteAppendAddress.with(directory.root) { address, size in
      guard descriptor >= 0 else { return errno }
      while connect(descriptor, address, size) != 0 { if errno != EINTR { return errno } }
      return 0
    }
    switch code ?? errno {
    case 0: return true
    case ECONNREFUSED: return false
    case ENOENT: return nil
    case let code:
      throw LedgerError(
        .inputOutput, operation: "connect", object: directory.fullPath(name),
        cause: systemErrorText(code))
    }
  }
}

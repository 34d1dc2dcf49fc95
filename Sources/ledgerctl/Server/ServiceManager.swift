// What a service manager is told of a running server: the protocol of sd_notify(3).
import Base
import Glibc

/// The socket at which systemd, or another supervisor with its protocol, waits for messages.
final class ServiceManager: Sendable {
  private let path: String
  private let descriptor: Int32
  /// Receives the cause of the first message that could not be sent.
  private let onFailure: @Sendable (String) -> Void
  private let state = Monitor((hasFailed: false, progressDueMs: Int64.min))

  /// Nil if no service manager waits.
  init?(onFailure: @escaping @Sendable (String) -> Void) {
    guard let path = environmentValue("NOTIFY_SOCKET") else { return nil }
    self.path = path
    self.onFailure = onFailure
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    guard descriptor >= 0 else { return }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    // A manager that reads nothing must not stop the server.
    var limit = timeval(tv_sec: Self.sendingLimitSeconds, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  private static let sendingLimitSeconds = 5

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// How long it waits for a heartbeat; nil if it expects none from this process.
  static var watchdogMs: Int64? {
    if let id = environmentValue("WATCHDOG_PID"), Int32(id) != getpid() { return nil }
    guard let text = environmentValue("WATCHDOG_USEC"), let microseconds = Int64(text) else {
      return nil
    }
    return microseconds >= 1000 ? microseconds / 1000 : nil
  }

  /// What the server is doing.
  func report(_ status: String) { send("STATUS=\(visible(status))") }

  /// As `report`, at most once a second.
  func reportProgress(_ status: String) {
    let nowMs = MonotonicClock.nowMs()
    let isDue = state.withLock { state in
      guard nowMs >= state.progressDueMs else { return false }
      state.progressDueMs = nowMs + 1000
      return true
    }
    if isDue { report(status) }
  }

  func reportReady(_ status: String) { send("READY=1\nSTATUS=\(visible(status))") }
  func reportAlive() { send("WATCHDOG=1") }
  func reportStopping() { send("STOPPING=1\nSTATUS=Stopping") }

  private func send(_ message: String) {
    guard let code = failure(sending: message) else { return }
    let isFirst = state.withLock { state in
      defer { state.hasFailed = true }
      return !state.hasFailed
    }
    if isFirst { onFailure("the service manager can't be notified: \(systemErrorText(code))") }
  }

  /// The `errno` of a message that could not be sent; nil after success.
  private func failure(sending message: String) -> Int32? {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let name = Array(path.utf8)
    guard name.count < MemoryLayout.size(ofValue: address.sun_path) else { return ENAMETOOLONG }
    withUnsafeMutableBytes(of: &address.sun_path) { bytes in
      bytes.copyBytes(from: name)
      // The name of an abstract socket begins with a zero byte, and ends where the address does.
      if name.first == UInt8(ascii: "@") { bytes[0] = 0 }
    }
    let headSize = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
    while true {
      let sent = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          sendto(
            descriptor, message, message.utf8.count, SocketConstant.noSignal, $0,
            socklen_t(headSize + name.count))
        }
      }
      if sent >= 0 { return nil }
      if errno != EINTR { return errno }
    }
  }
}

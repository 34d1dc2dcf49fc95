// A small HTTP/1.1 client that posts JSON to a loopback address and keeps its connection.
private import Glibc

/// Where something is posted to: `http://127.0.0.1:8080/path`.
package struct PostAddress: Sendable, Equatable {
  package let port: UInt16
  package let path: String

  /// Nil for anything but plain HTTP to this machine.
  package init?(_ url: String) {
    let scheme = "http://"
    guard url.hasPrefix(scheme), url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
    let rest = url.dropFirst(scheme.count)
    let authority = rest.prefix { $0 != "/" }
    let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
    guard let host = parts.first, host == "127.0.0.1" || host == "localhost", parts.count <= 2,
      let port = parts.count == 2 ? UInt16(parts[1]) : 80, port > 0
    else { return nil }
    self.port = port
    let path = rest.dropFirst(authority.count)
    self.path = path.isEmpty ? "/" : String(path)
  }
}

/// What became of one request.
package enum PostResult: Sendable, Equatable {
  /// The HTTP status.
  case status(Int)
  /// No connection.
  case refused
  /// The connection ended before a status came.
  case cut
  case timedOut

  package var isSuccess: Bool { if case .status(200...206) = self { true } else { false } }

  /// As the App Store's notification history names it.
  package var name: String {
    switch self {
    case .status: isSuccess ? "SUCCESS" : "UNSUCCESSFUL_HTTP_RESPONSE_CODE"
    case .refused: "SOCKET_ISSUE"
    case .cut: "PREMATURE_CLOSE"
    case .timedOut: "TIMED_OUT"
    }
  }
}

/// One connection; made when it is needed, and again after it broke.
package final class HTTPPost {
  private let address: PostAddress
  private let timeoutMs: Int64
  private var descriptor: Int32 = -1
  private static let headBytesMax = 16_384
  private static let bodyBytesMax = 1 << 20

  package init(_ address: PostAddress, timeoutMs: Int64) {
    self.address = address
    self.timeoutMs = timeoutMs
  }

  deinit { disconnect() }

  /// Posts a body and reads the answer to its end. A kept connection that the server has closed meanwhile is made
  /// again.
  package func post(_ body: [UInt8]) -> PostResult {
    let isKept = descriptor >= 0
    let result = exchange(body)
    if isKept, result == .cut { return exchange(body) }
    return result
  }

  private func exchange(_ body: [UInt8]) -> PostResult {
    if descriptor < 0, !connectSocket() { return .refused }
    let head =
      "POST \(address.path) HTTP/1.1\r\nHost: 127.0.0.1:\(address.port)\r\n"
      + "User-Agent: App Store stand-in\r\nContent-Type: application/json\r\n"
      + "Content-Length: \(body.count)\r\n\r\n"
    guard send(Array(head.utf8) + body) else { return broken() }
    return receive()
  }

  private func broken() -> PostResult {
    let isLate = errno == EAGAIN || errno == EWOULDBLOCK
    disconnect()
    return isLate ? .timedOut : .cut
  }

  private func disconnect() {
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }

  private func connectSocket() -> Bool {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
    guard descriptor >= 0 else { return false }
    var limit = timeval(tv_sec: Int(timeoutMs / 1000), tv_usec: Int(timeoutMs % 1000) * 1000)
    let size = socklen_t(MemoryLayout<timeval>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
    var target = sockaddr_in()
    target.sin_family = sa_family_t(AF_INET)
    target.sin_port = address.port.bigEndian
    target.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let status = withUnsafePointer(to: &target) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if status != 0 { disconnect() }
    return status == 0
  }

  private func send(_ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(
          descriptor, $0.baseAddress.map { $0 + sent }, $0.count - sent,
          Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  /// Reads head and body. The body is counted and thrown away.
  private func receive() -> PostResult {
    var head: [UInt8] = []
    var bodyStart: Int?
    while bodyStart == nil {
      guard head.count < Self.headBytesMax, readPiece(into: &head) else { return broken() }
      bodyStart = Self.end(of: head)
    }
    let lines = String(decoding: head[..<(bodyStart ?? 0)], as: UTF8.self).lowercased()
      .split(separator: "\r\n")
    guard let first = lines.first?.split(separator: " "), first.count >= 2,
      let status = Int(first[1])
    else {
      disconnect()
      return .cut
    }
    func value(_ name: String) -> Substring? {
      lines.first { $0.hasPrefix(name + ":") }?.dropFirst(name.count + 1).drop { $0 == " " }
    }
    let length = value("content-length").flatMap { Int($0) }
    guard let length, length <= Self.bodyBytesMax, value("connection") != "close" else {
      disconnect()
      return .status(status)
    }
    var body = Array(head[(bodyStart ?? 0)...])
    while body.count < length, readPiece(into: &body) {}
    if body.count != length { disconnect() }
    return .status(status)
  }

  private func readPiece(into bytes: inout [UInt8]) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 8_192)
    while true {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count < 0, errno == EINTR { continue }
      if count == 0 { errno = 0 }
      guard count > 0 else { return false }
      bytes += buffer[..<count]
      return true
    }
  }

  /// Where the head's empty line ends.
  private static func end(of bytes: [UInt8]) -> Int? {
    var index = 3
    while index < bytes.count {
      if bytes[index] == 0x0A, bytes[index - 1] == 0x0D, bytes[index - 2] == 0x0A {
        return index + 1
      }
      index += 1
    }
    return nil
  }
}

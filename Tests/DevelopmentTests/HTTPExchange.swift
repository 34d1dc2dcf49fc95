// A client over a plain socket that sees what a library would hide: where a response breaks off.
import Base
import Glibc
import Testing

/// One connection to a loopback port.
final class HTTPClient {
  private let descriptor: Int32

  struct Answer {
    var status = 0
    var body: [UInt8] = []
    /// Whether the connection ended before the whole body came.
    var isCut = false
    /// The header `Retry-After`.
    var retryAfter: String?

    var text: String { String(decoding: body, as: UTF8.self) }
  }

  init(port: UInt16) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(status == 0)
  }

  deinit { close(descriptor) }

  /// Nil if the connection ended without a byte.
  func exchange(
    _ method: String, _ path: String, _ body: [UInt8] = [], headers: [String] = []
  ) throws -> Answer? {
    let lines = ["Host: x", "Content-Length: \(body.count)"] + headers
    let head = "\(method) \(path) HTTP/1.1\r\n" + lines.joined(separator: "\r\n") + "\r\n\r\n"
    let request = Array(head.utf8) + body
    var sent = 0
    while sent < request.count {
      let count = request.withUnsafeBytes {
        send(
          descriptor, $0.baseAddress.map { $0 + sent }, $0.count - sent,
          SocketConstant.noSignal)
      }
      if count <= 0 { return nil }
      sent += count
    }
    return try readAnswer()
  }

  private func readAnswer() throws -> Answer? {
    var received: [UInt8] = []
    let separator = Array("\r\n\r\n".utf8)
    while received.suffix(4) != separator[...] {
      guard let piece = readPiece(1) else { return received.isEmpty ? nil : Answer(isCut: true) }
      received += piece
    }
    let head = String(decoding: received, as: UTF8.self)
    var answer = Answer(status: Int(head.split(separator: " ")[1]) ?? 0)
    let line = head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
    answer.retryAfter = head.split(separator: "\r\n").first { $0.hasPrefix("Retry-After: ") }
      .map { String($0.dropFirst(13)) }
    let length = try #require(line.flatMap { Int($0.dropFirst(15).drop { $0 == " " }) })
    while answer.body.count < length {
      guard let piece = readPiece(length - answer.body.count) else {
        answer.isCut = true
        break
      }
      answer.body += piece
    }
    return answer
  }

  private func readPiece(_ most: Int) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: min(most, 1 << 20))
    let count = recv(descriptor, &buffer, buffer.count, 0)
    return count > 0 ? Array(buffer.prefix(count)) : nil
  }
}

// A tiny server for the load generator: it answers each upload by a script.
import Base
import Glibc
import Testing

/// Listens on loopback until it is stopped; a thread for each connection.
final class ScriptedServer: Sendable {
  enum Action: Sendable {
    /// A status with a receipt's id in the body.
    case answer(Int)
    /// Announces that the connection closes after the response, and closes it.
    case answerAndClose(Int)
    /// Closes instead of responding.
    case cut
  }

  /// The recorded parts of a request.
  struct Seen: Sendable {
    var head: String
    var body: String
  }

  private struct State {
    var seen: [Seen] = []
    var connectionCount = 0
    var descriptors: [Int32] = []
    var isStopped = false
  }

  let port: UInt16
  private let listener: Int32
  private let script: @Sendable (Int) -> Action
  private let state = Monitor(State())

  static let receiptID = "6f1c0f5e-3d4a-5b6c-8d7e-9f0a1b2c3d4e"

  /// `script` gets the number of the request, from 0 in the order of arrival.
  init(port: UInt16 = 0, script: @escaping @Sendable (Int) -> Action) throws {
    self.script = script
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var yes: Int32 = 1
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, size) == 0 && listen(listener, 64) == 0
          && getsockname(listener, $0, &size) == 0
      }
    }
    try #require(isBound)
    self.port = UInt16(bigEndian: address.sin_port)
    Self.thread { [self] in acceptAll() }
  }

  var seen: [Seen] { state.withLock { $0.seen } }
  var connectionCount: Int { state.withLock { $0.connectionCount } }

  /// Closes the port and every connection.
  func stop() {
    state.withLock { state in
      if state.isStopped { return }
      state.isStopped = true
      shutdown(listener, Int32(SHUT_RDWR))
      close(listener)
      for descriptor in state.descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
  }

  private static func thread(_ body: @escaping @Sendable () -> Void) {
    final class Box: Sendable {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { context in
        if let context { Unmanaged<Box>.fromOpaque(context).takeRetainedValue().body() }
        return nil
      }, Unmanaged.passRetained(Box(body)).toOpaque())
    pthread_detach(thread)
  }

  private func acceptAll() {
    while true {
      let descriptor = accept(listener, nil, nil)
      if descriptor < 0 { return }
      state.withLock {
        $0.connectionCount += 1
        $0.descriptors.append(descriptor)
      }
      Self.thread { [self] in
        serve(descriptor)
        state.withLock { state in state.descriptors.removeAll { $0 == descriptor } }
        close(descriptor)
      }
    }
  }

  private func serve(_ descriptor: Int32) {
    while let request = readRequest(descriptor) {
      let number = state.withLock { state in
        state.seen.append(request)
        return state.seen.count - 1
      }
      switch script(number) {
      case .answer(let status):
        guard answer(status, "", descriptor) else { return }
      case .answerAndClose(let status):
        _ = answer(status, "Connection: close\r\n", descriptor)
        return
      case .cut: return
      }
    }
  }

  private func answer(_ status: Int, _ header: String, _ descriptor: Int32) -> Bool {
    let body = "{\"id\":\"\(Self.receiptID)\",\"in_app_purchases\":[{\"id\":\"\"}]}"
    let text = Array(
      "HTTP/1.1 \(status) X\r\n\(header)content-length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
    return send(descriptor, text, text.count, Int32(MSG_NOSIGNAL)) == text.count
  }

  private func readRequest(_ descriptor: Int32) -> Seen? {
    var received: [UInt8] = []
    let separator = Array("\r\n\r\n".utf8)
    while received.suffix(4) != separator[...] {
      var byte: UInt8 = 0
      guard recv(descriptor, &byte, 1, 0) == 1 else { return nil }
      received.append(byte)
    }
    let head = String(decoding: received, as: UTF8.self)
    let line = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
    guard let line, let length = Int(line.dropFirst(16)) else { return nil }
    var body: [UInt8] = []
    while body.count < length {
      var piece = [UInt8](repeating: 0, count: length - body.count)
      let count = recv(descriptor, &piece, piece.count, 0)
      guard count > 0 else { return nil }
      body += piece.prefix(count)
    }
    return Seen(head: head, body: String(decoding: body, as: UTF8.self))
  }
}

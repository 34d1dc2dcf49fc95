// A scripted HTTP server on loopback, which misbehaves on demand.
import Base
import Foundation

/// Serves each connection on a thread of its own until it ends.
package final class ScriptedServer: Sendable {
  /// A request as it came.
  package struct Request: Sendable {
    /// `POST /path HTTP/1.1` and the header lines.
    package let head: [String]
    package let body: [UInt8]
    /// The number of its connection, from 0.
    package let connection: Int
    /// How many requests came before it, over all connections.
    package let index: Int

    package var path: String {
      let words = head[0].split(separator: " ")
      return words.count > 1 ? String(words[1]) : ""
    }

    package var text: String { String(decoding: body, as: UTF8.self) }

    /// The values of a header, by its name in lower case.
    package func values(_ name: String) -> [String] {
      head.dropFirst().compactMap { line in
        let parts = line.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == name else { return nil }
        return parts[1].trimmingCharacters(in: .whitespaces)
      }
    }
  }

  /// One reaction of the server to a request.
  package indirect enum Reaction: Sendable {
    /// A whole response with a Content-Length.
    case respond(Int, [UInt8], headers: [String] = [])
    /// These bytes, whatever they are.
    case send([UInt8])
    /// These bytes repeatedly, until the client disconnects.
    case flood([UInt8], thenAgain: [UInt8])
    /// Nothing more, with the connection left open.
    case hang
    /// The connection is closed.
    case close
    case sleep(milliseconds: Int)
    case all([Reaction])

    package static func json(_ text: String) -> Reaction { .respond(200, Array(text.utf8)) }
    package static func text(_ text: String) -> Reaction { .send(Array(text.utf8)) }
  }

  package typealias Script = @Sendable (Request) -> Reaction

  private struct State {
    var requests: [Request] = []
    /// By connection; nil for those that have ended.
    var descriptors: [Int32?] = []
    var activeCount = 0
    var mostActiveCount = 0
    var isStopped = false
  }

  package let port: Int
  private let listener: Int32
  private let state = Monitor(State())
  private let script: Script

  /// - Parameter port: 0 for one of the system's choice; one that a stopped server had is free at once.
  package init(port: Int = 0, _ script: @escaping Script) throws {
    self.script = script
    (listener, self.port) = try Self.listen(port: port, backlog: 512)
    let accept = Thread { [listener, weak self] in
      while true {
        let descriptor = Glibc.accept(listener, nil, nil)
        if descriptor < 0, errno == EINTR || errno == ECONNABORTED { continue }
        guard descriptor >= 0, let self, let number = self.admit(descriptor) else {
          if descriptor >= 0 { Glibc.close(descriptor) }
          Glibc.close(listener)
          return
        }
        let connection = Thread { [weak self] in
          guard let server = self else { return }
          while server.serve(descriptor, number) {}
          server.end(number)
        }
        connection.start()
      }
    }
    accept.start()
  }

  deinit { stop() }

  /// Closes everything.
  package func stop() {
    let isFirst = state.withLock { state in
      defer { state.isStopped = true }
      return !state.isStopped
    }
    guard isFirst else { return }
    // Wakes the accepting thread, which closes the socket.
    Glibc.shutdown(listener, SocketConstant.shutdownBoth)
    dropConnections()
  }

  /// Closes the present connections, and keeps listening.
  package func dropConnections() {
    state.withLock { state in
      // Ended connections are closed: their descriptors may belong to others.
      for case let descriptor? in state.descriptors {
        Glibc.shutdown(descriptor, SocketConstant.shutdownBoth)
      }
    }
  }

  /// All requests so far, in the order in which they were read.
  package var requests: [Request] { state.withLock { $0.requests } }
  package var connectionCount: Int { state.withLock { $0.descriptors.count } }
  /// The most requests that were in progress at once.
  package var mostActiveCount: Int { state.withLock { $0.mostActiveCount } }

  package func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

  /// A loopback socket on a port of the system's choice, which listens unless the backlog is nil.
  package static func listen(
    port: Int = 0, backlog: Int32?
  ) throws -> (descriptor: Int32, port: Int) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var reuses: Int32 = backlog == nil ? 0 : 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &reuses, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard bind(descriptor, address, length) == 0 else { return errno }
        if let backlog, Glibc.listen(descriptor, backlog) != 0 { return errno }
        return getsockname(descriptor, address, &length) == 0 ? 0 : errno
      }
    }
    if code != 0 { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO) }
    return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
  }

  // MARK: One connection

  private func admit(_ descriptor: Int32) -> Int? {
    state.withLock { state in
      if state.isStopped { return nil }
      state.descriptors.append(descriptor)
      return state.descriptors.count - 1
    }
  }

  private func end(_ number: Int) {
    state.withLock { state in
      if let descriptor = state.descriptors[number] { Glibc.close(descriptor) }
      state.descriptors[number] = nil
    }
  }

  /// Serves one request; false at the connection's end.
  private func serve(_ descriptor: Int32, _ number: Int) -> Bool {
    guard let (head, body) = Self.readRequest(descriptor) else { return false }
    let request = state.withLock { state in
      let request = Request(
        head: head, body: body, connection: number, index: state.requests.count)
      state.requests.append(request)
      state.activeCount += 1
      state.mostActiveCount = max(state.mostActiveCount, state.activeCount)
      return request
    }
    let reaction = script(request)
    return perform(reaction, descriptor)
  }

  private func noteEnd() { state.withLock { $0.activeCount -= 1 } }

  private func perform(_ reaction: Reaction, _ descriptor: Int32, isLast: Bool = true) -> Bool {
    switch reaction {
    case .respond(let status, let body, let headers):
      let lines =
        ["HTTP/1.1 \(status) Scripted", "Content-Length: \(body.count)"] + headers + ["", ""]
      // Before the bytes: once the client has them, it may ask again at once.
      if isLast { noteEnd() }
      return Self.write(Array(lines.joined(separator: "\r\n").utf8) + body, descriptor)
    case .send(let bytes): return Self.write(bytes, descriptor)
    case .flood(let first, let again):
      guard Self.write(first, descriptor) else { return false }
      while Self.write(again, descriptor) {}
      return false
    case .hang:
      var byte: UInt8 = 0
      while recv(descriptor, &byte, 1, 0) > 0 {}
      return false
    case .close: return false
    case .sleep(let milliseconds):
      usleep(UInt32(milliseconds) * 1_000)
      return true
    case .all(let reactions):
      for (index, reaction) in reactions.enumerated() {
        let isLast = index == reactions.count - 1
        guard perform(reaction, descriptor, isLast: isLast) else { return false }
      }
      return true
    }
  }

  private static func write(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes {
        send(
          descriptor, $0.baseAddress.map { $0 + written }, bytes.count - written,
          SocketConstant.noSignal)
      }
      if count <= 0 { return false }
      written += count
    }
    return true
  }

  private static func readRequest(_ descriptor: Int32) -> (head: [String], body: [UInt8])? {
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    var head: [String]?
    var bodyStart = 0
    var bodyCount = 0
    let end = Array("\r\n\r\n".utf8)
    while true {
      if head == nil, let place = Self.firstIndex(of: end, in: received) {
        let lines = String(decoding: received[..<place], as: UTF8.self)
          .components(separatedBy: "\r\n")
        head = lines
        bodyStart = place + end.count
        let length = lines.first { $0.lowercased().hasPrefix("content-length:") }
        bodyCount =
          length.flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0
      }
      if let head, received.count >= bodyStart + bodyCount {
        return (head, Array(received[bodyStart..<bodyStart + bodyCount]))
      }
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count <= 0 { return nil }
      received += buffer[..<count]
    }
  }

  private static func firstIndex(of pattern: [UInt8], in bytes: [UInt8]) -> Int? {
    guard bytes.count >= pattern.count else { return nil }
    return (0...bytes.count - pattern.count).first {
      bytes[$0..<$0 + pattern.count].elementsEqual(pattern)
    }
  }
}

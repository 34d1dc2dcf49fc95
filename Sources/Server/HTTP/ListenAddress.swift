// The address on which a server listens, `127.0.0.1:8080` or `[::1]:8080`, and its socket.
import Base
import Glibc

extension Failure {
  /// A failed system call of the HTTP server.
  init(_ operation: String, _ object: String, errno code: Int32) {
    let cause = code == EADDRINUSE ? "the address is in use already" : systemErrorText(code)
    self.init(operation: operation, object: object, cause: cause)
  }
}

/// A numeric address and a port. Names are not resolved: the server must not choose among a name's addresses.
package struct ListenAddress: Equatable, Sendable, CustomStringConvertible {
  package let address: NetworkAddress
  /// 0 lets the system choose.
  package let port: UInt16

  /// Parses `127.0.0.1:8080` or `[::1]:8080`; nil for anything else.
  package init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":") else { return nil }
    var host = text[..<colon]
    let digits = text[text.index(after: colon)...]
    let isBracketed = host.first == "["
    if isBracketed {
      guard host.last == "]" else { return nil }
      host = host.dropFirst().dropLast()
    }
    guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let port = UInt16(digits), let address = NetworkAddress(String(host)),
      isBracketed == host.contains(":")
    else { return nil }
    self.address = address
    self.port = port
  }

  package var description: String {
    let text = address.description
    return text.contains(":") ? "[\(text)]:\(port)" : "\(text):\(port)"
  }

  /// Roughly what the system buffers of a response for a peer that does not read; by default, megabytes.
  private static let unsentBytesMax: Int32 = 64 << 10

  /// Opens a listening socket, which the caller closes.
  func listen(backlog: Int32) throws(Failure) -> Int32 {
    let family = address.isIPv4 ? AF_INET : AF_INET6
    let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | sockCloexec, 0)
    guard descriptor >= 0 else { throw Failure("listen on", description, errno: errno) }
    var on: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
    // Connections inherit this option.
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, size)
    var unsent = Self.unsentBytesMax
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &unsent, size)
    if !address.isIPv4 { setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &on, size) }
    guard bind(descriptor) == 0, Glibc.listen(descriptor, backlog) == 0 else {
      let code = errno
      close(descriptor)
      throw Failure("listen on", description, errno: code)
    }
    return descriptor
  }

  private var sockCloexec: Int32 { Int32(SOCK_CLOEXEC.rawValue) }

  private func bind(_ descriptor: Int32) -> Int32 {
    if address.isIPv4 {
      var target = sockaddr_in()
      target.sin_family = sa_family_t(AF_INET)
      target.sin_port = port.bigEndian
      withUnsafeMutableBytes(of: &target.sin_addr) { $0.copyBytes(from: address.bytes.suffix(4)) }
      return withUnsafeBytes(of: &target) { Self.bind(descriptor, $0) }
    }
    var target = sockaddr_in6()
    target.sin6_family = sa_family_t(AF_INET6)
    target.sin6_port = port.bigEndian
    withUnsafeMutableBytes(of: &target.sin6_addr) { $0.copyBytes(from: address.bytes) }
    return withUnsafeBytes(of: &target) { Self.bind(descriptor, $0) }
  }

  private static func bind(_ descriptor: Int32, _ target: UnsafeRawBufferPointer) -> Int32 {
    guard let base = target.baseAddress else { return -1 }
    return Glibc.bind(
      descriptor, base.assumingMemoryBound(to: sockaddr.self), socklen_t(target.count))
  }

  /// The port that a socket is bound to.
  static func port(of descriptor: Int32) -> UInt16 {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutableBytes(of: &storage) { bytes in
      guard let base = bytes.baseAddress,
        getsockname(descriptor, base.assumingMemoryBound(to: sockaddr.self), &size) == 0
      else { return 0 }
      // The port is at the same offset in both families.
      return UInt16(bytes[2]) << 8 | UInt16(bytes[3])
    }
  }
}

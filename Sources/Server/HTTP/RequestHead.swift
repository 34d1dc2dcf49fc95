// Checks a request line and headers against the grammar before anything else. The library is lenient where a proxy in
// front of it may be strict; a head that two readers could take for different requests is rejected here, and the
// connection ends.
import Glibc

/// The pieces of a head in the library's buffer. Valid while the request is first handled.
struct RawHead {
  struct Header {
    let name: UnsafeRawBufferPointer
    let value: UnsafeRawBufferPointer
  }

  let method: UnsafeRawBufferPointer
  /// As sent, except that the library has replaced the separators of a query (`?`, `&`, `=`) by zeros; nil if the
  /// request line had none.
  let target: UnsafeRawBufferPointer?
  let version: UnsafeRawBufferPointer
  var headers: [Header] = []
  /// The whole head, from the method to the empty line, in bytes.
  let countBytes: Int

  /// Whether the pieces follow each other as in a strict head: one space, one space, and CRLF after each line. The
  /// library writes zeros over the separators, but does not move the pieces: a lone CR or LF as a line's end, a folded
  /// line, a NUL in a value all leave another gap.
  var isContiguous: Bool {
    guard let first = method.baseAddress, let target, let targetStart = target.baseAddress,
      let versionStart = version.baseAddress
    else { return false }
    guard targetStart == first + method.count + 1, versionStart == targetStart + target.count + 1
    else { return false }
    var lineEnd = versionStart + version.count
    for header in headers {
      guard let name = header.name.baseAddress, let value = header.value.baseAddress,
        name == lineEnd + 2, value >= name + header.name.count + 1
      else { return false }
      lineEnd = value + header.value.count
    }
    return lineEnd + 4 == first + countBytes
  }
}

/// The content of a valid head.
struct RequestHead {
  let method: String
  /// The target's path, as sent: nothing is decoded, so nothing can be decoded twice.
  let path: String
  let hasQuery: Bool
  let contentLength: Int?
  let isChunked: Bool
  /// White space after `chunked`: it is legal, but the library then does not recognise the body as chunked, and waits
  /// for the end of the connection.
  let isUnboundedForLibrary: Bool
  let contentTypes: [String]
  let contentEncodings: [String]
  /// The value of each `Authorization` line.
  let authorizations: [UnsafeRawBufferPointer]
  let forwardedFor: [String]

  var hasBody: Bool { isChunked || (contentLength ?? 0) > 0 }

  static let targetBytesMax = 2048
  static let headBytesMax = 16 << 10

  init(_ raw: RawHead) throws(HTTPResponse) {
    if let target = raw.target, target.count > Self.targetBytesMax {
      throw HTTPResponse(
        414, .targetTooLong, "the target is longer than \(Self.targetBytesMax) bytes"
      ).closing()
    }
    guard raw.countBytes <= Self.headBytesMax else {
      throw HTTPResponse(
        431, .headTooLarge, "the request line and headers are larger than 16 KiB"
      ).closing()
    }
    guard raw.isContiguous, let target = raw.target else {
      throw .malformed(
        "the head has a line that does not end with CRLF, a folded line, or stray space")
    }
    guard !raw.method.isEmpty, raw.method.allSatisfy(Self.isTokenByte) else {
      throw .malformed("the method is not a token")
    }
    let version = String(decoding: raw.version, as: UTF8.self)
    guard version == "HTTP/1.1" || version == "HTTP/1.0" else {
      throw .malformed("the protocol is neither HTTP/1.1 nor HTTP/1.0")
    }
    method = String(decoding: raw.method, as: UTF8.self)
    path = try Self.path(of: target)
    hasQuery = target.contains(0)
    let fields = try Fields(raw.headers)
    try fields.checkFraming(isFirstVersion: version == "HTTP/1.0")
    contentLength = try fields.contentLength()
    isChunked = !fields.transferEncodings.isEmpty
    isUnboundedForLibrary = fields.hasPaddedEncoding
    contentTypes = fields.contentTypes.map(Self.text)
    contentEncodings = fields.contentEncodings.map(Self.text)
    authorizations = fields.authorizations
    forwardedFor = fields.forwardedFor.map(Self.text)
  }

  /// Origin form, or absolute form, whose authority is ignored.
  private static func path(of target: UnsafeRawBufferPointer) throws(HTTPResponse) -> String {
    guard target.allSatisfy({ (0x21...0x7E).contains($0) || $0 == 0 }) else {
      throw .malformed("the target has a byte that must be percent-encoded")
    }
    var text = Substring(String(decoding: target.prefix { $0 != 0 }, as: UTF8.self))
    if text.utf8.first != UInt8(ascii: "/") {
      for scheme in ["http://", "https://"] where text.lowercased().hasPrefix(scheme) {
        let authority = text.dropFirst(scheme.count)
        text = authority.drop { $0 != "/" }
      }
    }
    guard text.utf8.first == UInt8(ascii: "/"), !text.utf8.contains(UInt8(ascii: "#")) else {
      throw .malformed("the target is not a path")
    }
    return String(text)
  }

  private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
    String(decoding: bytes, as: UTF8.self)
  }

  static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"),
      UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"),
      UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "^"), UInt8(ascii: "_"),
      UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
      true
    default: false
    }
  }
}

/// The headers that matter here, each with all its lines.
private struct Fields {
  var hosts: [UnsafeRawBufferPointer] = []
  var contentLengths: [UnsafeRawBufferPointer] = []
  var transferEncodings: [UnsafeRawBufferPointer] = []
  /// Whether white space follows a transfer encoding.
  var hasPaddedEncoding = false
  var contentTypes: [UnsafeRawBufferPointer] = []
  var contentEncodings: [UnsafeRawBufferPointer] = []
  var authorizations: [UnsafeRawBufferPointer] = []
  var forwardedFor: [UnsafeRawBufferPointer] = []

  init(_ headers: [RawHead.Header]) throws(HTTPResponse) {
    for header in headers {
      guard !header.name.isEmpty, header.name.allSatisfy(RequestHead.isTokenByte) else {
        throw .malformed("a header's name is not a token")
      }
      guard header.value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
        throw .malformed("a header's value has a control character")
      }
      let value = trimmed(header.value)
      switch header.name.count {
      case 4 where isEqual(header.name, "host"): hosts.append(value)
      case 12 where isEqual(header.name, "content-type"): contentTypes.append(value)
      case 13 where isEqual(header.name, "authorization"): authorizations.append(value)
      case 14 where isEqual(header.name, "content-length"): contentLengths.append(value)
      case 15 where isEqual(header.name, "x-forwarded-for"): forwardedFor.append(value)
      case 16 where isEqual(header.name, "content-encoding"): contentEncodings.append(value)
      case 17 where isEqual(header.name, "transfer-encoding"):
        transferEncodings.append(value)
        if value.count < header.value.count { hasPaddedEncoding = true }
      default: break
      }
    }
  }

  /// Rejects everything from which two readers could derive different ends of the request.
  func checkFraming(isFirstVersion: Bool) throws(HTTPResponse) {
    if hosts.count > 1 { throw .malformed("Host is given more than once") }
    if hosts.isEmpty, !isFirstVersion { throw .malformed("Host is missing") }
    if let host = hosts.first, !isHost(host) { throw .malformed("Host is not a host") }
    if contentLengths.count > 1 { throw .malformed("Content-Length is given more than once") }
    if transferEncodings.count > 1 { throw .malformed("Transfer-Encoding is given more than once") }
    guard let encoding = transferEncodings.first else { return }
    if !contentLengths.isEmpty {
      throw .malformed("Content-Length and Transfer-Encoding are both given")
    }
    if isFirstVersion { throw .malformed("HTTP/1.0 does not support Transfer-Encoding") }
    if !isEqual(encoding, "chunked") { throw .malformed("Transfer-Encoding is not chunked") }
  }

  func contentLength() throws(HTTPResponse) -> Int? {
    guard let text = contentLengths.first else { return nil }
    guard !text.isEmpty, text.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw .malformed("Content-Length is not a number")
    }
    // A number that does not fit exceeds every limit, and is rejected there.
    return Int(String(decoding: text, as: UTF8.self)) ?? .max
  }

  private func trimmed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var end = bytes.count
    while end > 0, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: bytes[..<end])
  }

  /// Compares with a lower-case name.
  private func isEqual(_ bytes: UnsafeRawBufferPointer, _ name: StaticString) -> Bool {
    guard bytes.count == name.utf8CodeUnitCount else { return false }
    for index in 0..<bytes.count {
      let byte = bytes[index]
      let lower = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
      if lower != name.utf8Start[index] { return false }
    }
    return true
  }

  /// A name or an address, with a port or without: `example.com:80`, `[::1]:8080`.
  private func isHost(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let first = bytes.first else { return false }
    if first == UInt8(ascii: "[") {
      let text = String(decoding: bytes, as: UTF8.self)
      guard let end = text.firstIndex(of: "]"),
        let address = NetworkAddress(String(text[text.index(after: text.startIndex)..<end])),
        !address.isIPv4 || text[..<end].contains("::")
      else { return false }
      return isPort(text[text.index(after: end)...].utf8)
    }
    let name = bytes.prefix { $0 != UInt8(ascii: ":") }
    let isName = name.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
        || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
    }
    return !name.isEmpty && isName && isPort(bytes[name.endIndex...])
  }

  private func isPort(_ bytes: some Collection<UInt8>) -> Bool {
    if bytes.isEmpty { return true }
    let digits = bytes.dropFirst()
    return bytes.first == UInt8(ascii: ":") && digits.count <= 5
      && digits.allSatisfy { (0x30...0x39).contains($0) }
  }
}

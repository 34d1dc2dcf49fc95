// The requests of a run, made before it starts: heads and bodies in one piece of memory.
import Glibc
import ProgramSupport

/// Requests by index; the bodies of the file in turn, or at random.
final class RequestSet {
  struct Entry {
    let head: UnsafeRawBufferPointer
    let body: UnsafeRawBufferPointer
    /// Where in the body the digits stand that tell uploads apart; -1 where they stay as they are.
    let markerOffset: Int
  }

  static let markerDigits = 12
  private static let marker = Array("\"upload\":\"".utf8)

  let count: Int
  private let entries: UnsafeMutablePointer<Entry>
  private let bodies: UnsafeMutableRawBufferPointer
  private let heads: UnsafeMutableRawBufferPointer
  /// Nil takes the bodies in turn.
  private let seed: UInt64?

  /// - Parameters:
  ///   - path: a file with one body a line.
  ///   - token: nil to send none.
  ///   - seed: which body each request has; nil for all in turn.
  ///   - isUnique: overwrite the digits of `"upload":"000000000000"` with the upload's number.
  init(path: String, target: Target, token: String?, seed: UInt64?, isUnique: Bool) throws {
    self.seed = seed
    var input = try LineInput(path: path)
    var text: [UInt8] = []
    var lines: [Range<Int>] = []
    while let line = try input.next() {
      if line.isEmpty { continue }
      lines.append(text.count..<text.count + line.count)
      text += line
    }
    guard !lines.isEmpty else { throw ProgramError("read", path, "holds no body") }
    bodies = UnsafeMutableRawBufferPointer.allocate(byteCount: text.count, alignment: 16)
    bodies.copyBytes(from: text)
    // Bodies of one size share a head.
    var headText: [UInt8] = []
    var headPlaces: [Int: Range<Int>] = [:]
    for line in lines where headPlaces[line.count] == nil {
      let first = headText.count
      headText += Array(target.head(token: token, bodyBytes: line.count).utf8)
      headPlaces[line.count] = first..<headText.count
    }
    heads = UnsafeMutableRawBufferPointer.allocate(byteCount: headText.count, alignment: 1)
    heads.copyBytes(from: headText)
    count = lines.count
    entries = UnsafeMutablePointer<Entry>.allocate(capacity: lines.count)
    for (index, line) in lines.enumerated() {
      let body = UnsafeRawBufferPointer(rebasing: bodies[line])
      let head = UnsafeRawBufferPointer(rebasing: heads[headPlaces[line.count] ?? 0..<0])
      (entries + index).initialize(
        to: Entry(
          head: head, body: body, markerOffset: isUnique ? Self.markerOffset(in: body) : -1))
    }
    if isUnique, (0..<count).contains(where: { entries[$0].markerOffset < 0 }) {
      throw ProgramError(
        "read", path, "--unique needs \"upload\":\"000000000000\" in each body")
    }
  }

  deinit {
    entries.deallocate()
    heads.deallocate()
    bodies.deallocate()
  }

  func entry(_ number: Int) -> Entry {
    guard let seed else { return entries[number % count] }
    // The same number always has the same body, also when the rest of it is sent later.
    var hash = (seed &+ UInt64(number)) &* 0x9E37_79B9_7F4A_7C15
    hash = (hash ^ hash >> 29) &* 0xBF58_476D_1CE4_E5B9
    return entries[Int((hash ^ hash >> 32) % UInt64(count))]
  }

  private static func markerOffset(in body: UnsafeRawBufferPointer) -> Int {
    // The digits stand behind the receipt, which is long: looked for from the end.
    var place = body.count - marker.count - markerDigits
    while place >= 0 {
      let found = UnsafeRawBufferPointer(rebasing: body[place..<place + marker.count])
      if found.elementsEqual(marker) {
        let digits = body[(place + marker.count)..<(place + marker.count + markerDigits)]
        return digits.allSatisfy { (0x30...0x39).contains($0) } ? place + marker.count : -1
      }
      place -= 1
    }
    return -1
  }
}

/// Where uploads go: an address, a port and a path.
struct Target {
  let host: String
  let port: UInt16
  let path: String

  /// Reads `http://127.0.0.1:8080/client/itunes_connect/receipts`; hosts are IPv4 addresses or localhost.
  init(_ url: String) throws(UsageError) {
    let scheme = "http://"
    guard url.hasPrefix(scheme) else { throw UsageError(message: "--url needs an http:// address") }
    let rest = url.dropFirst(scheme.count)
    let authority = rest.prefix { $0 != "/" }
    let path = String(rest.dropFirst(authority.count))
    let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), let port = parts.count == 2 ? UInt16(parts[1]) : 80 else {
      throw UsageError(message: "--url '\(url)' has no readable host and port")
    }
    host = parts[0] == "localhost" ? "127.0.0.1" : String(parts[0])
    self.port = port
    self.path = path.isEmpty ? "/client/itunes_connect/receipts" : path
    var address = in_addr()
    guard inet_pton(AF_INET, host, &address) == 1 else {
      throw UsageError(message: "--url names neither an IPv4 address nor localhost")
    }
  }

  var socketAddress: sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    inet_pton(AF_INET, host, &address.sin_addr)
    return address
  }

  /// - Parameter token: nil for a request without one.
  func head(token: String?, bodyBytes: Int) -> String {
    let authorization = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
    return "POST \(path) HTTP/1.1\r\nHost: \(host):\(port)\r\n\(authorization)"
      + "Content-Type: application/json\r\nContent-Length: \(bodyBytes)\r\n\r\n"
  }
}

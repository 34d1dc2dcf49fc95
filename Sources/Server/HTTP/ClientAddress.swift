// The client address of a request: the peer's, or the one that a trusted proxy reports.
package import Base
import Glibc
import Intake

/// An IPv4 or IPv6 address. IPv4 within IPv6 (`::ffff:192.0.2.1`) is IPv4.
package struct NetworkAddress: Equatable, Hashable, Sendable, CustomStringConvertible {
  /// 16 bytes; IPv4 in its IPv6 form.
  let bytes: [UInt8]

  private static let mappedPrefix: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]

  var isIPv4: Bool { bytes.starts(with: Self.mappedPrefix) }

  /// The bytes as a number.
  fileprivate var number: UInt128 { bytes.reduce(0) { $0 << 8 | UInt128($1) } }

  /// Parses a numeric address; nil for anything else, including zones (`%eth0`).
  package init?(_ text: String) {
    // No address is longer, and C would stop at a NUL.
    guard text.utf8.count < Int(INET6_ADDRSTRLEN), !text.utf8.contains(0) else { return nil }
    var four = in_addr()
    if inet_pton(AF_INET, text, &four) == 1 {
      bytes = Self.mappedPrefix + withUnsafeBytes(of: &four) { Array($0) }
      return
    }
    var six = in6_addr()
    guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
    bytes = withUnsafeBytes(of: &six) { Array($0) }
  }

  /// - Parameter ipv4: the 4 bytes of an IPv4 address.
  init(ipv4: [UInt8]) {
    precondition(ipv4.count == 4, "an IPv4 address has 4 bytes")
    bytes = Self.mappedPrefix + ipv4
  }

  /// The address of a socket; nil for another family.
  init?(_ socketAddress: UnsafePointer<sockaddr>) {
    let raw = UnsafeRawPointer(socketAddress)
    // The family stands first in addresses of all families.
    switch Int32(raw.loadUnaligned(as: sa_family_t.self)) {
    case AF_INET:
      let four = raw.loadUnaligned(as: sockaddr_in.self).sin_addr
      bytes = Self.mappedPrefix + withUnsafeBytes(of: four) { Array($0) }
    case AF_INET6:
      let six = raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr
      bytes = withUnsafeBytes(of: six) { Array($0) }
    default: return nil
    }
  }

  package var description: String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let size = socklen_t(text.count)
    let (family, part) = isIPv4 ? (AF_INET, bytes.suffix(4)) : (AF_INET6, bytes[...])
    return part.withUnsafeBytes { address in
      guard let base = address.baseAddress, inet_ntop(family, base, &text, size) != nil else {
        return ""
      }
      return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }
}

/// An address, or all addresses that begin with some bits.
struct NetworkRange: Sendable, Equatable {
  let address: NetworkAddress
  /// Of the 128 bits.
  let prefixBits: Int

  /// Parses `::1`, `10.0.0.0/8` or `2001:db8::/32`; nil for anything else.
  init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard let first = parts.first, parts.count <= 2, let address = NetworkAddress(String(first))
    else { return nil }
    self.address = address
    guard parts.count == 2 else {
      prefixBits = 128
      return
    }
    // `::ffff:0:0/96` is the network of all IPv4 addresses in IPv6 form.
    let isShort = address.isIPv4 && !first.contains(":")
    guard !parts[1].isEmpty, parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let bits = Int(parts[1]), bits <= (isShort ? 32 : 128)
    else { return nil }
    prefixBits = isShort ? bits + 96 : bits
  }

  /// Whether networks together contain every address of an Internet peer: all of IPv4 below multicast (224.0.0.0), or
  /// all assigned IPv6 addresses (2000::/3). Such a configuration trusts everyone.
  static func holdInternet(_ networks: [NetworkRange]) -> Bool {
    let bounds = networks.map(\.bounds).sorted { $0.first < $1.first }
    return ["0.0.0.0 223.255.255.255", "2000:: 3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"].contains {
      let ends = $0.split(separator: " ").compactMap { NetworkAddress(String($0))?.number }
      var next = ends[0]
      for bound in bounds where bound.first <= next && bound.last >= next {
        if bound.last >= ends[1] { return true }
        next = bound.last + 1
      }
      return false
    }
  }

  /// Its first and its last address.
  private var bounds: (first: UInt128, last: UInt128) {
    let hostBits = prefixBits == 0 ? UInt128.max : (1 << UInt128(128 - prefixBits)) - 1
    return (address.number & ~hostBits, address.number | hostBits)
  }

  func contains(_ other: NetworkAddress) -> Bool {
    let (whole, rest) = prefixBits.quotientAndRemainder(dividingBy: 8)
    guard address.bytes.prefix(whole) == other.bytes.prefix(whole) else { return false }
    guard rest > 0 else { return true }
    let mask = UInt8(truncatingIfNeeded: 0xFF00 >> rest)
    return address.bytes[whole] & mask == other.bytes[whole] & mask
  }
}

/// The networks whose `X-Forwarded-For` is trusted.
package struct TrustedProxies: Sendable {
  private let networks: [NetworkRange]

  /// - Parameter texts: addresses and networks: `::1`, `10.0.0.0/8`, `2001:db8::/32`.
  package init(_ texts: [String]) throws(Failure) {
    var networks: [NetworkRange] = []
    for text in texts {
      guard let network = NetworkRange(text) else {
        throw Failure(
          operation: "trust the proxy", object: PrintableText.shortened(text),
          cause: "it is neither an address nor a network such as 10.0.0.0/8")
      }
      networks.append(network)
    }
    guard !NetworkRange.holdInternet(networks) else {
      throw Failure(
        operation: "trust proxies", object: PrintableText.shortened(texts.joined(separator: ", ")),
        cause: "they \(NetworkText.wholeFault)")
    }
    self.networks = networks
  }

  private func contains(_ address: NetworkAddress) -> Bool {
    networks.contains { $0.contains(address) }
  }

  /// The client's address: the peer's; if that is a trusted proxy, the last hop that is not one. A hop that is not an
  /// address ends the search: what precedes it cannot be trusted.
  /// - Parameter forwardedFor: the values of all `X-Forwarded-For` lines, in order.
  package func client(peer: NetworkAddress, forwardedFor: [String]) -> NetworkAddress {
    var client = peer
    guard contains(client) else { return client }
    // Empty list elements are ignored (RFC 9110, section 5.6.1).
    let hops = forwardedFor.joined(separator: ",").split(separator: ",").map(Self.trimmed)
    for hop in hops.reversed() where !hop.isEmpty {
      guard let address = Self.hop(hop) else { return client }
      client = address
      if !contains(client) { return client }
    }
    return client
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var text = text
    while let first = text.first, first == " " || first == "\t" { text = text.dropFirst() }
    while let last = text.last, last == " " || last == "\t" { text = text.dropLast() }
    return text
  }

  /// `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:4711`.
  private static func hop(_ text: Substring) -> NetworkAddress? {
    var text = text
    if text.first == "[" {
      guard let end = text.firstIndex(of: "]") else { return nil }
      return NetworkAddress(String(text[text.index(after: text.startIndex)..<end]))
    }
    if text.count(where: { $0 == ":" }) == 1, let colon = text.firstIndex(of: ":") {
      text = text[..<colon]
    }
    return NetworkAddress(String(text))
  }
}

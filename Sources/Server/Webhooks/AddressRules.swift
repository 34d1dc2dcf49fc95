// To which addresses webhooks may be sent: public ones, and private ones that the configuration names.

/// Decides about each address that is connected to, after its name was looked up: a name may change its address.
package struct AddressRules: Sendable, Equatable {
  private let privateNetworks: [NetworkRange]

  /// What no host of the public Internet has: RFC 6890 and its registry, and multicast.
  private static let reservedIPv4 = ranges([
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
  ])
  /// All that is given out for hosts; loopback, link-local, unique local and multicast addresses lie outside.
  private static let globalIPv6 = ranges(["2000::/3"])
  /// Of these: tunnels, which hide an IPv4 address, and what is for documents.
  private static let reservedIPv6 = ranges([
    "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
  ])
  /// An IPv4 address in the last 4 bytes, for networks without IPv4 (RFC 6052).
  private static let translated = ranges(["64:ff9b::/96"])
  private static let loopback = ranges(["127.0.0.0/8", "::1"])

  /// - Parameter privateNetworks: addresses and networks as config.json has them; what is neither is left out.
  package init(privateNetworks: [String] = []) {
    self.privateNetworks = Self.ranges(privateNetworks)
  }

  private static func ranges(_ texts: [String]) -> [NetworkRange] {
    texts.compactMap { NetworkRange($0) }
  }

  /// Whether a delivery may go to an address.
  /// - Parameter isForLoopback: whether the URL names this machine itself, which only it may then be.
  package func allow(_ address: NetworkAddress, isForLoopback: Bool) -> Bool {
    if isForLoopback { return Self.loopback.contains { $0.contains(address) } }
    return Self.isPublic(address) || privateNetworks.contains { $0.contains(address) }
  }

  private static func isPublic(_ address: NetworkAddress) -> Bool {
    func lies(in ranges: [NetworkRange]) -> Bool { ranges.contains { $0.contains(address) } }
    if address.isIPv4 { return !lies(in: reservedIPv4) }
    if lies(in: translated) {
      return isPublic(NetworkAddress(ipv4: Array(address.bytes.suffix(4))))
    }
    return lies(in: globalIPv6) && !lies(in: reservedIPv6)
  }
}

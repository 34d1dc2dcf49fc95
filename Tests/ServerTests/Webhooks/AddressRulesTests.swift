// The addresses that webhooks may go to: a table of every kind of address that is not public.
import Server
import Testing

@Suite struct AddressRulesTests {
  private func isAllowed(
    _ text: String, _ networks: [String] = [], isForLoopback: Bool = false
  ) throws -> Bool {
    AddressRules(privateNetworks: networks).allow(
      try #require(NetworkAddress(text)), isForLoopback: isForLoopback)
  }

  @Test(arguments: [
    "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "128.0.0.1",
    "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.0.1",
    "223.255.255.255",
    "::ffff:8.8.8.8", "64:ff9b::808:808", "2606:4700::1111", "2a00:1450:4001::1",
  ])
  func publicAddressesAreAllowed(address: String) throws { #expect(try isAllowed(address)) }

  @Test(arguments: [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254", "169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.255",
    "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1",
    "2001::1", "2001:0:53aa:64c::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::1",
    "2002:808:808::1",
    "3fff::1", "fc00::1", "fd12:3456::1", "fe80::1", "fec0::1", "ff02::1", "ff0e::1", "5f00::1",
  ])
  func addressesThatAreNotPublicAreRefused(address: String) throws {
    #expect(try !isAllowed(address))
  }

  @Test func aPrivateNetworkThatIsNamedIsAllowedAndNoOther() throws {
    let networks = ["10.1.0.0/16", "fd12::/16", "127.0.0.1"]
    for address in ["10.1.2.3", "::ffff:10.1.2.3", "fd12::7", "127.0.0.1"] {
      #expect(try isAllowed(address, networks))
    }
    for address in ["10.2.0.1", "fd13::7", "127.0.0.2", "::1"] {
      #expect(try !isAllowed(address, networks))
    }
  }

  @Test func aURLOfThisMachineLeadsNowhereElse() throws {
    for address in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
      #expect(try isAllowed(address, isForLoopback: true))
    }
    for address in ["8.8.8.8", "10.0.0.1", "::"] {
      #expect(try !isAllowed(address, ["10.0.0.0/8"], isForLoopback: true))
    }
  }
}

// An upload's client address, and the lines of the access log.
import Base
import Glibc
import Server
import TestSupport
import Testing

struct ProxyCase: CustomTestStringConvertible, Sendable {
  let name: String
  var peer = "10.0.0.1"
  let forwarded: [String]
  let client: String

  var testDescription: String { name }
}

@Suite("HTTP client address", .bounded) struct HTTPClientAddressTests {
  static let cases: [ProxyCase] = [
    ProxyCase(name: "nothing forwarded", forwarded: [], client: "10.0.0.1"),
    ProxyCase(
      name: "a peer that is no proxy is not believed", peer: "192.0.2.9",
      forwarded: ["198.51.100.1"], client: "192.0.2.9"),
    ProxyCase(name: "one hop", forwarded: ["198.51.100.1"], client: "198.51.100.1"),
    ProxyCase(
      name: "the last hop that is no proxy, not the first",
      forwarded: ["203.0.113.5, 198.51.100.1, 10.9.9.9"], client: "198.51.100.1"),
    ProxyCase(
      name: "all lines are one list", forwarded: ["203.0.113.5", "198.51.100.1", "10.9.9.9"],
      client: "198.51.100.1"),
    ProxyCase(name: "proxies alone", forwarded: ["10.0.0.3, 10.0.0.2"], client: "10.0.0.3"),
    ProxyCase(
      name: "what is no address ends the search", forwarded: ["198.51.100.1, unknown, 10.0.0.2"],
      client: "10.0.0.2"),
    ProxyCase(name: "an empty hop", forwarded: ["198.51.100.1 ,"], client: "198.51.100.1"),
    ProxyCase(
      name: "empty hops anywhere",
      forwarded: [",203.0.113.5,\t,198.51.100.1", "", " , 10.0.0.2,,"],
      client: "198.51.100.1"),
    ProxyCase(name: "empty hops alone", forwarded: [" ,", ""], client: "10.0.0.1"),
    ProxyCase(name: "a port", forwarded: ["198.51.100.1:4711"], client: "198.51.100.1"),
    ProxyCase(name: "IPv6", forwarded: ["2001:DB9:0::1"], client: "2001:db9::1"),
    ProxyCase(name: "IPv6 with a port", forwarded: ["[2001:db9::1]:4711"], client: "2001:db9::1"),
    ProxyCase(name: "IPv4 within IPv6", forwarded: ["::ffff:198.51.100.1"], client: "198.51.100.1"),
    ProxyCase(
      name: "a proxy as IPv4 within IPv6", peer: "::ffff:10.0.0.1", forwarded: ["198.51.100.1"],
      client: "198.51.100.1"),
    ProxyCase(
      name: "a proxy of IPv6", peer: "2001:db8:ffff::1", forwarded: ["198.51.100.1"],
      client: "198.51.100.1"),
  ]

  @Test("is the peer's, or the one that trusted proxies report", arguments: cases)
  func client(_ proxy: ProxyCase) throws {
    let proxies = try TrustedProxies(["10.0.0.0/8", "2001:db8::/32"])
    let peer = try #require(NetworkAddress(proxy.peer))
    expectEqual(proxies.client(peer: peer, forwardedFor: proxy.forwarded).description, proxy.client)
  }

  @Test(
    "a text that is not a network is refused",
    arguments: ["", "x", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "::/129", "/8"])
  func noNetwork(_ text: String) {
    #expect(throws: Failure.self) { _ = try TrustedProxies([text]) }
  }

  @Test(
    "networks that cover all addresses, alone or together, are refused: they would trust every client",
    arguments: [
      "0.0.0.0/0", "10.0.0.0/0", "::/0", "2001:db8::/0", "::ffff:0:0/96", "::ffff:10.0.0.0/96",
      "::/80", "::/1", "2000::/3", "0.0.0.0/1 128.0.0.0/1", "128.0.0.0/1 ::1 0.0.0.0/1",
      "0.0.0.0/1 128.0.0.0/2 192.0.0.0/3", "::ffff:0:0/97 128.0.0.0/1", "2000::/4 3000::/4",
      "0.0.0.0/2 64.0.0.0/2 100.0.0.0/6 128.0.0.0/1", "8000::/1 ::/2 4000::/2",
    ])
  func allAddresses(_ texts: String) {
    #expect {
      _ = try TrustedProxies(["10.0.0.0/8"] + texts.split(separator: " ").map(String.init))
    } throws: { error in
      String(describing: error).contains("must not cover all addresses")
    }
  }

  @Test(
    "networks that leave out some addresses are accepted",
    arguments: [
      "0.0.0.0/1", "128.0.0.0/1", "8000::/1", "::/97", "::fffe:0:0/96", "0.0.0.0/1 128.0.0.0/2",
      "0.0.0.0/1 128.0.0.0/2 192.0.0.0/4 208.0.0.1/32", "2000::/4 3800::/5", "128.0.0.0/1 2000::/4",
    ])
  func halfOfAll(_ texts: String) throws {
    _ = try TrustedProxies(texts.split(separator: " ").map(String.init))
  }

  @Test("prefixes may end inside a byte")
  func prefix() throws {
    let proxies = try TrustedProxies(["172.16.0.0/12"])
    func isTrusted(_ text: String) throws -> Bool {
      let hop = try #require(NetworkAddress("192.0.2.1"))
      return proxies.client(
        peer: try #require(NetworkAddress(text)), forwardedFor: ["192.0.2.1"]) == hop
    }
    #expect(try isTrusted("172.31.255.255"))
    #expect(try !isTrusted("172.32.0.0"))
    #expect(try !isTrusted("172.15.255.255"))
  }

  /// The lines that a server wrote for these requests.
  private static func log(_ requests: [String]) throws -> [JSONValue] {
    try ServerFixture.accessLog {
      $0.trustedProxies = ["127.0.0.1"]
    } during: { fixture in
      for request in requests { _ = try fixture.exchange(request) }
    }
  }

  @Test("the access log has request and response, without a secret")
  func accessLog() throws {
    let secret = "user-4711"
    let lines = try Self.log([
      ServerFixture.upload(
        "{\"receipt\":\"AAAA\",\"user_identifier\":\"\(secret)\"}",
        headers: ["X-Forwarded-For: 198.51.100.1"]),
      ServerFixture.upload("{\"receipt\":\"AAAA\",\"ip_address\":null}"),
      ServerFixture.get("/client/itunes_connect/receipts/\(secret)?\(secret)"),
      ServerFixture.upload(token: secret),
      ServerFixture.upload("{\"receipt\":\"AAAA\",\"ip_address\":null,\"country_code\":\"ZZ\"}"),
      ServerFixture.question("{\"user_identifier\":\"\(secret)\"}", path: "/v1/entitlements"),
    ])
    try #require(lines.count == 6)
    expectEqual(lines.map { $0["status"]?.integerValue }, [200, 200, 400, 401, 422, 200])
    expectEqual(lines[5]["route"]?.stringValue, "/v1/entitlements")
    expectEqual(lines[5]["app_family_id"]?.stringValue, ServerFixture.family)
    expectEqual(lines[0]["method"]?.stringValue, "POST")
    expectEqual(lines[0]["route"]?.stringValue, "/client/itunes_connect/receipts")
    expectEqual(lines[0]["peer"]?.stringValue, "198.51.100.1")
    expectEqual(lines[0]["app_family_id"]?.stringValue, ServerFixture.family)
    expectEqual(lines[0]["bytes_in"]?.integerValue, 48)
    expectEqual(lines[0]["bytes_out"]?.integerValue, Int64(ScriptedService.receiptBody.count))
    expectEqual(lines[1]["peer"], .null)
    expectEqual(lines[4]["peer"], .null)
    expectEqual(lines[2]["route"]?.stringValue, "/client/itunes_connect/receipts/{id}")
    for line in lines {
      let text = String(decoding: line.bytes, as: UTF8.self)
      #expect(!text.contains(secret) && !text.contains(ServerFixture.token))
    }
  }

  @Test("newly configured proxies are trusted at once")
  func replacedProxies() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let request = ServerFixture.upload(headers: ["X-Forwarded-For: 198.51.100.1"])
    _ = try fixture.exchange(request)
    try fixture.server.replaceTrustedProxies(["127.0.0.0/8"])
    _ = try fixture.exchange(request)
    expectEqual(fixture.service.uploads.map(\.peerAddress), ["127.0.0.1", "198.51.100.1"])
  }

  @Test("an access log with a closed reader blocks nothing")
  func goneLog() throws {
    var ends: [Int32] = [0, 0]
    expectEqual(pipe(&ends), 0)
    close(ends[0])
    let log = try AccessLog(descriptor: ends[1])
    let fixture = try ServerFixture(accessLog: log)
    for _ in 0..<3 { try expectEqual(fixture.exchange(ServerFixture.upload())?.status, 200) }
    fixture.server.shutdown(graceMs: 0)
    log.finish()
    close(ends[1])
  }

  @Test("an access log that is never read is abandoned at the end")
  func fullLog() throws {
    var ends: [Int32] = [0, 0]
    expectEqual(pipe(&ends), 0)
    let log = try AccessLog(descriptor: ends[1])
    for number in 0..<2000 {
      log.append(
        AccessLogEntry(
          timeMs: 0, requestID: "\(number)", method: "GET", route: nil, status: 200, bodyBytesIn: 0,
          bodyBytesOut: 0, durationMicroseconds: 0, peer: nil, appFamily: nil))
    }
    log.finish()
    for end in ends { close(end) }
  }
}

@Suite("HTTP metrics exposition", .bounded) struct HTTPMetricsTests {
  @Test(
    "series with alerts start at 0, since alerts would miss the first increase otherwise",
    arguments: [
      "operator_alarms_total{alarm=\"status_21000\"}",
      "operator_alarms_total{alarm=\"status_21001\"}",
      "operator_alarms_total{alarm=\"status_21004\"}", "http_requests_total{status=\"503\"}",
      "http_requests_total{status=\"401\"}", "http_requests_total{status=\"402\"}",
    ])
  func zeroFromTheStart(_ series: String) {
    let lines = String(decoding: Metrics().exposition(), as: UTF8.self).split(separator: "\n")
    #expect(lines.contains { $0 == "receipt_ledger_\(series) 0" })
  }

  @Test("is the text that Prometheus reads")
  func exposition() {
    let metrics = Metrics()
    metrics.count(.requests, label: "200", by: 2)
    metrics.count(.requests, label: "4\"\\\n")
    metrics.set(.headPosition, 12)
    metrics.set(.queueAgeSeconds, 1.5)
    metrics.observe(.requestSeconds, seconds: 0.002)
    metrics.observe(.requestSeconds, seconds: 60)
    let lines = String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
    for line in [
      "# TYPE receipt_ledger_http_requests_total counter",
      "receipt_ledger_http_requests_total{status=\"200\"} 2",
      "receipt_ledger_http_requests_total{status=\"4\\\"\\\\\\n\"} 1",
      "receipt_ledger_appended_events_total 0",
      "receipt_ledger_head_position 12",
      "receipt_ledger_verification_queue_oldest_seconds 1.5",
      "# TYPE receipt_ledger_http_request_seconds histogram",
      "receipt_ledger_http_request_seconds_bucket{le=\"0.001\"} 0",
      "receipt_ledger_http_request_seconds_bucket{le=\"0.0025\"} 1",
      "receipt_ledger_http_request_seconds_bucket{le=\"10\"} 1",
      "receipt_ledger_http_request_seconds_bucket{le=\"+Inf\"} 2",
      "receipt_ledger_http_request_seconds_sum 60.002",
      "receipt_ledger_http_request_seconds_count 2",
    ] { #expect(lines.contains { $0 == line }, "\(line)") }
    expectEqual(
      lines.filter { $0.hasPrefix("# HELP ") }.count, lines.filter { $0.hasPrefix("# TYPE ") }.count
    )
  }
}

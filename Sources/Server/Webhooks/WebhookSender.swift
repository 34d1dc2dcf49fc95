// Sends deliveries over HTTPS on libcurl: many at once on one thread, and only to addresses that are allowed.
import Base
import CCurl
import Glibc
package import Ledger

/// libcurl's set of transfers. Threads other than the sender's may call only `wake()`.
final class WebhookTransfers: @unchecked Sendable {
  // Unchecked: curl_multi_wakeup is thread-safe, and other threads use nothing else.
  let handle: UnsafeMutableRawPointer

  /// Runs once per process; libcurl requires it before any other call.
  private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// Nil if libcurl is out of memory.
  init?() {
    guard Self.isReady, let handle = curl_multi_init() else { return nil }
    self.handle = handle
  }

  deinit { curl_multi_cleanup(handle) }

  func wake() { _ = curl_multi_wakeup(handle) }
}

/// One POST.
struct WebhookRequest {
  let url: String
  /// Whether the URL names this machine itself.
  let isForLoopback: Bool
  /// Besides Content-Type: `name: value`.
  let headers: [String]
  let body: [UInt8]
}

/// Keeps connections and reuses them. Used by one thread.
final class WebhookSender<Tag> {
  private let transfers: WebhookTransfers
  private let rules: AddressRules
  /// Keyed by libcurl's handle.
  private var running: [UnsafeMutableRawPointer: (transfer: WebhookTransfer, tag: Tag)] = [:]

  init(_ transfers: WebhookTransfers, _ rules: AddressRules) {
    self.transfers = transfers
    self.rules = rules
  }

  /// Starts a request, whose result `perform()` will return; returns false if libcurl is out of memory.
  func start(_ request: WebhookRequest, _ tag: Tag) -> Bool {
    guard let transfer = WebhookTransfer(request, rules),
      curl_multi_add_handle(transfers.handle, transfer.handle) == CURLM_OK
    else { return false }
    running[transfer.handle] = (transfer, tag)
    return true
  }

  /// Lets the transfers go on; returns those that have ended.
  func perform() -> [(Tag, WebhookOutcome)] {
    var stillRunning: Int32 = 0
    guard curl_multi_perform(transfers.handle, &stillRunning) == CURLM_OK else {
      return cancelAll().map { ($0, .failed("libcurl failed")) }
    }
    var ended: [(Tag, WebhookOutcome)] = []
    var remaining: Int32 = 0
    while let message = curl_multi_info_read(transfers.handle, &remaining) {
      guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle else {
        continue
      }
      // Removing the handle frees the message.
      let code = message.pointee.data.result
      curl_multi_remove_handle(transfers.handle, handle)
      if let (transfer, tag) = running.removeValue(forKey: handle) {
        ended.append((tag, transfer.outcome(code)))
      }
    }
    return ended
  }

  /// Waits until a transfer can go on, another thread wakes the sender, or the time is over.
  func wait(limitMs: Int32) {
    // libcurl shortens this wait to its own next timeout.
    if curl_multi_poll(transfers.handle, nil, 0, limitMs, nil) != CURLM_OK { usleep(10_000) }
  }

  /// Gives up all requests.
  func cancelAll() -> [Tag] {
    for handle in running.keys { curl_multi_remove_handle(transfers.handle, handle) }
    defer { running = [:] }
    return running.values.map(\.tag)
  }

  deinit { _ = cancelAll() }
}

/// A libcurl handle with one request. It must not move or be freed while libcurl uses it.
private final class WebhookTransfer {
  let handle: UnsafeMutableRawPointer
  private let isForLoopback: Bool
  private let rules: AddressRules
  private let body: UnsafeMutableRawBufferPointer
  private var headers: UnsafeMutablePointer<curl_slist>?
  private var answerByteCount = 0
  private var headerByteCount = 0
  private var isCut = false
  private var hasRefusedAddress = false

  private static let connectTimeoutMs = 5_000
  private static let timeoutMs = 10_000
  /// What a receiver answers is not looked at; beyond this it is not even read.
  private static let answerBytesMax = 64 << 10
  private static let headerBytesMax = 64 << 10

  /// Nil if libcurl is out of memory or lacks a feature needed for safety.
  init?(_ request: WebhookRequest, _ rules: AddressRules) {
    guard let handle = curl_easy_init() else { return nil }
    self.handle = handle
    self.rules = rules
    isForLoopback = request.isForLoopback
    body = UnsafeMutableRawBufferPointer.allocate(byteCount: request.body.count, alignment: 1)
    body.copyBytes(from: request.body)
    guard setHeaders(request.headers), configure(), prepare(request) else { return nil }
  }

  deinit {
    curl_easy_cleanup(handle)
    curl_slist_free_all(headers)
    body.deallocate()
  }

  private func setHeaders(_ texts: [String]) -> Bool {
    // libcurl omits a header without content, so it does not wait for `100 Continue`.
    for header in ["Content-Type: application/json", "Expect:"] + texts {
      guard let longer = curl_slist_append(headers, header) else { return false }
      headers = longer
    }
    return ccurl_set_list(handle, CURLOPT_HTTPHEADER, headers) == CURLE_OK
  }

  private func configure() -> Bool {
    let numbers: [(CURLoption, Int)] = [
      (CURLOPT_NOSIGNAL, 1), (CURLOPT_POST, 1), (CURLOPT_FOLLOWLOCATION, 0),
      (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2),
      (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
      // On a shared connection, one stall would stop all deliveries.
      (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)), (CURLOPT_HTTP09_ALLOWED, 0),
      (CURLOPT_CONNECTTIMEOUT_MS, Self.connectTimeoutMs), (CURLOPT_TIMEOUT_MS, Self.timeoutMs),
      // A name server that hangs must not block the thread beyond the timeout.
      (CURLOPT_QUICK_EXIT, 1), (CURLOPT_TCP_KEEPALIVE, 1),
    ]
    for (option, value) in numbers where ccurl_set_long(handle, option, value) != CURLE_OK {
      return false
    }
    return ccurl_set_text(handle, CURLOPT_USERAGENT, "receipt-ledger") == CURLE_OK
      // None, whatever the environment names: a proxy would look the name up itself, and nobody would check what it
      // connects to.
      && ccurl_set_text(handle, CURLOPT_PROXY, "") == CURLE_OK
      && ccurl_set_receive(handle, CURLOPT_WRITEFUNCTION, receiveBody) == CURLE_OK
      && ccurl_set_receive(handle, CURLOPT_HEADERFUNCTION, receiveHeader) == CURLE_OK
      && ccurl_set_open_socket(handle, openSocket) == CURLE_OK
  }

  private func prepare(_ request: WebhookRequest) -> Bool {
    let context = Unmanaged.passUnretained(self).toOpaque()
    let scheme = request.url.hasPrefix("http://") ? "http" : "https"
    return ccurl_set_text(handle, CURLOPT_URL, request.url) == CURLE_OK
      && ccurl_set_text(handle, CURLOPT_PROTOCOLS_STR, scheme) == CURLE_OK
      && ccurl_set_pointer(handle, CURLOPT_POSTFIELDS, body.baseAddress) == CURLE_OK
      && ccurl_set_offset(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count)) == CURLE_OK
      && ccurl_set_pointer(handle, CURLOPT_WRITEDATA, context) == CURLE_OK
      && ccurl_set_pointer(handle, CURLOPT_HEADERDATA, context) == CURLE_OK
      && ccurl_set_pointer(handle, CURLOPT_OPENSOCKETDATA, context) == CURLE_OK
  }

  /// How the request ended. libcurl must have released the handle.
  func outcome(_ code: CURLcode) -> WebhookOutcome {
    var status = 0
    _ = ccurl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
    // An answer that is cut because it is long has a status all the same.
    guard code == CURLE_OK || isCut else { return .failed(cause(code)) }
    switch status {
    case 200...299: return .delivered
    case 410: return .gone
    case 300...399: return .failed("HTTP status \(status): redirects are not followed")
    default: return .failed("HTTP status \(status)")
    }
  }

  private func cause(_ code: CURLcode) -> String {
    switch code {
    case _ where hasRefusedAddress: "the host has an address that is not public"
    case CURLE_COULDNT_RESOLVE_HOST: "the host's name cannot be looked up"
    case CURLE_COULDNT_CONNECT: "cannot connect"
    case CURLE_OPERATION_TIMEDOUT: "timed out"
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR:
      "no trusted TLS connection could be made"
    default: "the connection was lost"
    }
  }

  // MARK: Called by libcurl

  fileprivate func take(_ byteCount: Int) -> Int {
    answerByteCount += byteCount
    guard answerByteCount <= Self.answerBytesMax else {
      isCut = true
      return 0
    }
    return byteCount
  }

  fileprivate func takeHeader(_ byteCount: Int) -> Int {
    headerByteCount += byteCount
    return headerByteCount <= Self.headerBytesMax ? byteCount : 0
  }

  /// A socket for an address that is allowed; -1 for another.
  fileprivate func socket(for address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
    guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return -1 }
    // The struct ends with a `sockaddr`, behind which the rest of a longer address follows.
    let raw = UnsafeRawPointer(address) + offset
    guard
      let target = NetworkAddress(raw.assumingMemoryBound(to: sockaddr.self)),
      rules.allow(target, isForLoopback: isForLoopback)
    else {
      hasRefusedAddress = true
      return -1
    }
    let kind = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
    return Glibc.socket(address.pointee.family, kind, address.pointee.protocol)
  }
}

private func receiveBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int {
  guard let context else { return 0 }
  return Unmanaged<WebhookTransfer>.fromOpaque(context).takeUnretainedValue().take(size * count)
}

private func receiveHeader(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int {
  guard let context else { return 0 }
  return Unmanaged<WebhookTransfer>.fromOpaque(context).takeUnretainedValue()
    .takeHeader(size * count)
}

/// libcurl asks for a socket for each address that it tries.
private func openSocket(
  _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype,
  _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
  guard let context, let address else { return -1 }
  return Unmanaged<WebhookTransfer>.fromOpaque(context).takeUnretainedValue().socket(for: address)
}

// MARK: - One delivery outside of a server, to test a webhook

/// Sends a test and waits for its end.
package enum WebhookProbe {
  /// - Returns: how it ended; what it was is of type `test`.
  package static func send(
    to webhook: Configuration.Webhook, of family: String, _ settings: Configuration.Webhooks,
    _ ledger: LedgerIdentity, nowMs: Int64 = Timestamp.now()
  ) -> WebhookOutcome {
    guard let transfers = WebhookTransfers() else {
      return .failed("libcurl cannot be initialised")
    }
    let sender = WebhookSender<Void>(
      transfers, AddressRules(privateNetworks: settings.privateNetworks))
    let delivery = WebhookDelivery(testOf: family, nowMs: nowMs)
    let request = webhook.request(
      delivery, id: delivery.id(in: ledger), nowMs: nowMs,
      isForLoopback: EndpointText.isForLoopback(webhook.url))
    guard sender.start(request, ()) else { return .failed("libcurl is out of memory") }
    while true {
      if let (_, outcome) = sender.perform().first { return outcome }
      sender.wait(limitMs: 1_000)
    }
  }
}

// MARK: - To which addresses webhooks may be sent: public ones, and private ones that the configuration names

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

// One request under way: a reused libcurl handle, what it sends and what it receives.
import Base
internal import CCurl
private import Glibc
private import Synchronization

/// Set once, read by all transfers.
package final class CancelFlag: Sendable {
  private let flag = Atomic<Bool>(false)

  package init() {}

  package var isSet: Bool { flag.load(ordering: .acquiring) }
  package func set() { flag.store(true, ordering: .releasing) }
}

/// A libcurl handle with the data that it sends and receives. One thread uses it at a time. It must not move or be
/// freed while libcurl uses it: libcurl holds its address.
package final class HTTPTransfer {
  /// Receives the body of a response with status 200 or 206 as it comes; false ends the transfer.
  package typealias Receiver = (UnsafeRawBufferPointer) -> Bool

  let handle: UnsafeMutableRawPointer
  private let options: HTTPOptions
  private var request: HTTPRequest?
  private var receiver: Receiver?
  private var headers: UnsafeMutablePointer<curl_slist>?
  private var sentByteCount = 0
  private var outcome = HTTPOutcome()
  private var bodyByteCount = 0
  private var headerByteCount = 0
  private var hasWholeHeader = false
  private var isChunked = false
  private var hasRefusedAddress = false

  /// The headers of a response take about 1 KiB; libcurl does not limit their total size.
  private static let headerBytesMax = 64 << 10
  /// A number, a date or a region is shorter.
  private static let keptHeaderBytesMax = 64
  private static let retryAfterSecondsMax: curl_off_t = 86_400

  /// Runs once per process; libcurl requires it before any other call.
  static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// Nil if libcurl is out of memory or lacks a feature needed for safety.
  package init?(_ options: HTTPOptions) {
    guard Self.isLibraryReady, let handle = curl_easy_init() else { return nil }
    self.handle = handle
    self.options = options
    guard configure() else { return nil }
  }

  deinit {
    curl_easy_cleanup(handle)
    curl_slist_free_all(headers)
  }

  /// Carries out a request on this thread, and returns when the response is whole.
  /// - Parameter receiver: without one, the body is collected.
  package func perform(_ request: HTTPRequest, _ receiver: Receiver? = nil) -> HTTPOutcome {
    guard prepare(request) else {
      reset()
      return HTTPOutcome(.outOfMemory)
    }
    self.receiver = receiver
    return finish(curl_easy_perform(handle))
  }

  // MARK: Options and requests

  /// Sets the options that all requests share.
  private func configure() -> Bool {
    var numbers: [(CURLoption, Int)] = [
      (CURLOPT_NOSIGNAL, 1), (CURLOPT_FOLLOWLOCATION, 0),
      (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2),
      (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
      // One connection per request: on a shared connection, one stall would stop all requests.
      (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)), (CURLOPT_HTTP09_ALLOWED, 0),
      (CURLOPT_CONNECTTIMEOUT_MS, options.connectTimeoutMs),
      (CURLOPT_TIMEOUT_MS, options.timeoutMs),
      (CURLOPT_LOW_SPEED_LIMIT, options.stallBytesPerSecond),
      (CURLOPT_LOW_SPEED_TIME, options.stallSeconds),
      // A name server that hangs must not block the thread beyond the timeout.
      (CURLOPT_QUICK_EXIT, 1), (CURLOPT_TCP_KEEPALIVE, 1),
      (CURLOPT_PATH_AS_IS, options.keepsPath ? 1 : 0),
      // Without it the progress function is not called.
      (CURLOPT_NOPROGRESS, options.cancelFlag == nil ? 1 : 0),
    ]
    if options.hasLargeBuffers {
      numbers += [(CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10), (CURLOPT_BUFFERSIZE, 128 << 10)]
    }
    for (option, value) in numbers where ccurl_set_long(handle, option, value) != CURLE_OK {
      return false
    }
    let context = Unmanaged.passUnretained(self).toOpaque()
    return ccurl_set_text(handle, CURLOPT_USERAGENT, "receipt-ledger") == CURLE_OK
      && ccurl_set_receive(handle, CURLOPT_WRITEFUNCTION, receiveBody) == CURLE_OK
      && ccurl_set_receive(handle, CURLOPT_HEADERFUNCTION, receiveHeader) == CURLE_OK
      && ccurl_set_receive(handle, CURLOPT_READFUNCTION, readBody) == CURLE_OK
      && ccurl_set_seek(handle, seekBody) == CURLE_OK
      && ccurl_set_progress(handle, checkProgress) == CURLE_OK
      && ccurl_set_open_socket(handle, openSocket) == CURLE_OK
      && ccurl_set_connected(handle, checkConnection) == CURLE_OK
      && [
        CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA,
        CURLOPT_XFERINFODATA, CURLOPT_OPENSOCKETDATA, CURLOPT_PREREQDATA,
      ].allSatisfy { ccurl_set_pointer(handle, $0, context) == CURLE_OK }
  }

  /// Prepares one request; false if libcurl is out of memory.
  func prepare(_ request: HTTPRequest) -> Bool {
    precondition(
      request.isAllowed == nil || request.avoidsProxy, "a proxy would connect unchecked")
    self.request = request
    (outcome, sentByteCount, bodyByteCount, headerByteCount) = (HTTPOutcome(), 0, 0, 0)
    (hasWholeHeader, isChunked, hasRefusedAddress) = (false, false, false)
    // libcurl omits a header without content, so it does not wait for `100 Continue`.
    for header in request.headers + ["Expect:"] {
      guard let longer = curl_slist_append(headers, header) else { return false }
      headers = longer
    }
    let sendsBody = request.method == .post || request.method == .put
    // An empty proxy means none, whatever the environment says; nil means what the environment says.
    return ccurl_set_long(handle, sendsBody ? CURLOPT_UPLOAD : CURLOPT_HTTPGET, 1) == CURLE_OK
      && ccurl_set_text(handle, CURLOPT_CUSTOMREQUEST, request.method.rawValue) == CURLE_OK
      && ccurl_set_offset(
        handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(request.body.byteCount)) == CURLE_OK
      && ccurl_set_text(handle, CURLOPT_URL, request.url) == CURLE_OK
      && ccurl_set_text(handle, CURLOPT_PROTOCOLS_STR, request.scheme) == CURLE_OK
      && ccurl_set_text(handle, CURLOPT_PROXY, request.avoidsProxy ? "" : nil) == CURLE_OK
      && ccurl_set_list(handle, CURLOPT_HTTPHEADER, headers) == CURLE_OK
  }

  /// Frees what belongs to the request.
  func reset() {
    _ = ccurl_set_list(handle, CURLOPT_HTTPHEADER, nil)
    curl_slist_free_all(headers)
    (headers, request, receiver, outcome) = (nil, nil, nil, HTTPOutcome())
  }

  // MARK: Outcomes

  /// Returns the outcome of the request and forgets it. libcurl must have released the handle.
  func finish(_ code: CURLcode) -> HTTPOutcome {
    defer { reset() }
    let status = status
    outcome.status = status > 0 ? status : nil
    outcome.failure = outcome.failure ?? failure(code)
    let seconds = offset(CURLINFO_RETRY_AFTER)
    if seconds > 0 {
      outcome.retryAfterMs = Int(min(seconds, Self.retryAfterSecondsMax)) * 1_000
    }
    return outcome
  }

  private func failure(_ code: CURLcode) -> HTTPFailure? {
    let text = curl_easy_strerror(code).map { String(cString: $0) } ?? "unknown error"
    switch code {
    case CURLE_OK:
      // libcurl treats a header that is cut off as a header without a body.
      guard hasWholeHeader, let status = outcome.status else { return .incompleteHeader }
      let hasLength = isChunked || announcedByteCount >= 0
      let hasNoBody = status == 204 || bodyByteCount == 0 && status != 200
      return hasLength || hasNoBody || !options.needsBodyLength ? nil : .unknownLength
    case _ where hasRefusedAddress: return .refusedAddress
    case CURLE_ABORTED_BY_CALLBACK: return .cancelled
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: return .unknownHost
    case CURLE_COULDNT_CONNECT: return .cannotConnect
    case CURLE_OPERATION_TIMEDOUT:
      return offset(CURLINFO_PRETRANSFER_TIME_T) > 0 ? .timeout : .connectTimeout
    case CURLE_PARTIAL_FILE: return .incompleteBody
    case CURLE_GOT_NOTHING: return .closedWithoutResponse
    case CURLE_PEER_FAILED_VERIFICATION: return .untrustedCertificate
    case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED,
      CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR,
      CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
      CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_SHUTDOWN_FAILED:
      return .tlsFailed(text)
    default: return .other(text)
    }
  }

  private var status: Int {
    var status = 0
    _ = ccurl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
    return status
  }

  /// -1 if the response does not announce it.
  private var announcedByteCount: curl_off_t { offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T) }

  private func offset(_ info: CURLINFO) -> curl_off_t {
    var value: curl_off_t = -1
    _ = ccurl_get_offset(handle, info, &value)
    return value
  }

  // MARK: What libcurl calls

  /// Stores or passes on bytes of the body. Returns how many; fewer than given ends the transfer.
  fileprivate func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard let request else { return 0 }
    let isContent = status == 200 || status == 206
    let limit = isContent ? request.bodyBytesMax : request.errorBytesMax
    // The announced size is known before the first byte: no part of a body that is too large is passed on.
    guard bytes.count <= limit - bodyByteCount, announcedByteCount <= limit else {
      outcome.failure = .bodyTooLarge
      return 0
    }
    bodyByteCount += bytes.count
    guard isContent, let receiver else {
      outcome.body.append(contentsOf: bytes)
      return bytes.count
    }
    if receiver(bytes) { return bytes.count }
    outcome.failure = .stopped
    return 0
  }

  fileprivate func receive(line: UnsafeRawBufferPointer) -> Int {
    headerByteCount += line.count
    // Each status line starts new headers. What follows a body is no longer a header.
    if line.starts(with: "HTTP/".utf8) {
      (hasWholeHeader, isChunked) = (false, false)
    } else if line.first == UInt8(ascii: "\r") || line.first == UInt8(ascii: "\n") {
      hasWholeHeader = true
    } else if !hasWholeHeader {
      if Self.value(of: "transfer-encoding", in: line)?.lowercased() == "chunked" {
        isChunked = true
      }
      for name in options.keptHeaders {
        if let value = Self.value(of: name, in: line) { outcome.headers[name] = value }
      }
    }
    guard headerByteCount <= Self.headerBytesMax else {
      outcome.failure = .headerTooLarge
      return 0
    }
    return line.count
  }

  /// The value of a header's line, if it has this name (in lower case) and is short.
  private static func value(of name: String, in line: UnsafeRawBufferPointer) -> String? {
    guard line.count > name.utf8.count, line[name.utf8.count] == UInt8(ascii: ":"),
      zip(line, name.utf8).allSatisfy({ $0 == $1 || $0 | 0x20 == $1 })
    else { return nil }
    let value = line.dropFirst(name.utf8.count + 1)
    guard value.count <= keptHeaderBytesMax else { return nil }
    return String(decoding: value.filter { $0 > 0x20 && $0 < 0x7F }, as: UTF8.self)
  }

  /// Gives libcurl the next bytes to send.
  fileprivate func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let body = request?.body, sentByteCount < body.byteCount else { return 0 }
    let wanted = UnsafeMutableRawBufferPointer(
      rebasing: buffer.prefix(body.byteCount - sentByteCount))
    do throws(SystemError) {
      let count = try body.copy(wanted, sentByteCount)
      sentByteCount += count
      if count == wanted.count { return count }
      outcome.failure = .unreadableBody(nil)
    } catch { outcome.failure = .unreadableBody(error) }
    return Int(CURL_READFUNC_ABORT)
  }

  /// libcurl sends a request again if a kept connection turns out to be closed.
  fileprivate func seek(_ offset: Int) -> Bool {
    guard let body = request?.body, (0...body.byteCount).contains(offset) else { return false }
    sentByteCount = offset
    return true
  }

  fileprivate var isCancelled: Bool { options.cancelFlag?.isSet == true }

  /// Whether a request may go to an address; nil is an address of another family than IPv4 and IPv6.
  fileprivate func allows(_ address: String?) -> Bool {
    guard let isAllowed = request?.isAllowed else { return true }
    if let address, isAllowed(address) { return true }
    hasRefusedAddress = true
    return false
  }
}

private func transfer(_ context: UnsafeMutableRawPointer?) -> HTTPTransfer? {
  context.map { Unmanaged<HTTPTransfer>.fromOpaque($0).takeUnretainedValue() }
}

private func receiveBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int {
  transfer(context)?.receive(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
}

private func receiveHeader(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int {
  transfer(context)?.receive(line: UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
}

private func readBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int {
  let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
  return transfer(context)?.read(buffer) ?? Int(CURL_READFUNC_ABORT)
}

private func seekBody(
  _ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: Int32
) -> Int32 {
  let isDone = origin == SEEK_SET && transfer(context)?.seek(Int(offset)) == true
  return isDone ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
}

/// About once a second, and whenever bytes come or go.
private func checkProgress(
  _ context: UnsafeMutableRawPointer?, _: curl_off_t, _: curl_off_t, _: curl_off_t, _: curl_off_t
) -> Int32 {
  transfer(context)?.isCancelled == true ? 1 : 0
}

/// libcurl asks for a socket for each address that it tries.
private func openSocket(
  _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype,
  _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
  guard let address, transfer(context)?.allows(text(of: address)) == true else { return -1 }
  let kind = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
  return socket(address.pointee.family, kind, address.pointee.protocol)
}

private func text(of address: UnsafePointer<curl_sockaddr>) -> String? {
  var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
  guard ccurl_address(address, &text) != nil else { return nil }
  return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

/// Before each request, as a kept connection asks for no socket.
private func checkConnection(
  _ context: UnsafeMutableRawPointer?, _ address: UnsafeMutablePointer<CChar>?,
  _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32
) -> Int32 {
  let address = address.map { String(cString: $0) }
  return transfer(context)?.allows(address) == true ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
}

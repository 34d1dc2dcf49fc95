// One request under way: a reused libcurl handle, the request's bytes and the answer's.
internal import CCurl

/// A libcurl handle with the data it sends and receives. Only the client's thread uses it. It must not move
/// or be freed while libcurl uses it: libcurl holds its address and the request's.
final class Transfer {
  let handle: UnsafeMutableRawPointer
  private let answerBytesMax: Int
  /// The request's headers, those that all requests have included.
  private var headers: UnsafeMutablePointer<curl_slist>?
  private var request: UnsafeMutableRawBufferPointer?
  private var answer: [UInt8] = []
  private var headerByteCount = 0
  private var hasWholeHeader = false
  private var isTooLarge = false
  private var retryAfter: String?

  /// The headers of an answer take about 1 KiB; libcurl does not limit their total size.
  private static let headerBytesMax = 64 << 10

  /// How much of `Retry-After` is kept; a number or a date is shorter.
  private static let retryAfterBytesMax = 64

  /// Nil if libcurl is out of memory or lacks a feature needed for safety.
  init?(_ options: HTTPClientOptions) {
    guard let handle = curl_easy_init() else { return nil }
    self.handle = handle
    answerBytesMax = options.answerBytesMax
    guard Self.configure(handle, options) else { return nil }
  }

  deinit {
    curl_easy_cleanup(handle)
    curl_slist_free_all(headers)
    request?.deallocate()
  }

  /// libcurl omits a header without content, so it does not wait for `100 Continue`.
  private static let commonHeaders = [
    "Content-Type: application/json", "Accept: application/json", "Expect:",
  ]

  private static func headers(_ own: [String]) -> UnsafeMutablePointer<curl_slist>? {
    var list: UnsafeMutablePointer<curl_slist>?
    for header in commonHeaders + own {
      guard let longer = curl_slist_append(list, header) else {
        curl_slist_free_all(list)
        return nil
      }
      list = longer
    }
    return list
  }

  /// Sets the options that all requests share.
  private static func configure(
    _ handle: UnsafeMutableRawPointer, _ options: HTTPClientOptions
  ) -> Bool {
    let numbers: [(CURLoption, Int)] = [
      (CURLOPT_NOSIGNAL, 1), (CURLOPT_FOLLOWLOCATION, 0),
      (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2),
      (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
      // One connection per call: on a shared connection, one stall would stop all calls.
      (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)), (CURLOPT_HTTP09_ALLOWED, 0),
      (CURLOPT_CONNECTTIMEOUT_MS, options.connectTimeoutMs),
      (CURLOPT_TIMEOUT_MS, options.timeoutMs),
      // A name server that hangs must not block the thread beyond the timeout.
      (CURLOPT_QUICK_EXIT, 1), (CURLOPT_TCP_KEEPALIVE, 1),
    ]
    for (option, value) in numbers where ccurl_set_long(handle, option, value) != CURLE_OK {
      return false
    }
    return ccurl_set_text(handle, CURLOPT_USERAGENT, "receipt-ledger") == CURLE_OK
      && ccurl_set_receive(handle, CURLOPT_WRITEFUNCTION, receiveBody) == CURLE_OK
      && ccurl_set_receive(handle, CURLOPT_HEADERFUNCTION, receiveHeader) == CURLE_OK
  }

  /// Prepares one request. The transfer must outlive it.
  func prepare(_ request: HTTPRequest) -> Bool {
    guard let list = Self.headers(request.headers) else { return false }
    headers = list
    let body = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(request.body.count, 1), alignment: 1)
    body.copyBytes(from: request.body)
    self.request = body
    answer = []
    headerByteCount = 0
    hasWholeHeader = false
    isTooLarge = false
    retryAfter = nil
    let context = Unmanaged.passUnretained(self).toOpaque()
    let target = request.target
    // An empty proxy means none, whatever the environment says; nil means what the environment says.
    return ccurl_set_text(handle, CURLOPT_URL, target.url + request.path) == CURLE_OK
      && ccurl_set_text(handle, CURLOPT_PROTOCOLS_STR, target.scheme) == CURLE_OK
      && ccurl_set_text(handle, CURLOPT_PROXY, target.isPlainLoopback ? "" : nil) == CURLE_OK
      && ccurl_set_list(handle, CURLOPT_HTTPHEADER, list) == CURLE_OK
      && prepare(request.method, body, byteCount: request.body.count)
      && ccurl_set_pointer(handle, CURLOPT_WRITEDATA, context) == CURLE_OK
      && ccurl_set_pointer(handle, CURLOPT_HEADERDATA, context) == CURLE_OK
  }

  private func prepare(
    _ method: HTTPRequest.Method, _ body: UnsafeMutableRawBufferPointer, byteCount: Int
  ) -> Bool {
    switch method {
    case .get: ccurl_set_long(handle, CURLOPT_HTTPGET, 1) == CURLE_OK
    case .post:
      ccurl_set_long(handle, CURLOPT_POST, 1) == CURLE_OK
        && ccurl_set_pointer(handle, CURLOPT_POSTFIELDS, body.baseAddress) == CURLE_OK
        && ccurl_set_offset(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(byteCount)) == CURLE_OK
    }
  }

  /// Returns the result of the request and clears it. libcurl must have released the handle.
  func finish(_ code: CURLcode) -> HTTPOutcome {
    defer { forget() }
    var status = 0
    _ = ccurl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
    let known = status > 0 ? status : nil
    guard code == CURLE_OK else { return HTTPOutcome(.failure(failure(code)), status: known) }
    // libcurl treats a header that is cut off as a header without a body.
    guard hasWholeHeader, known != nil else {
      return HTTPOutcome(.failure(.connectionFailed), status: known)
    }
    return HTTPOutcome(.answer(answer), status: known, retryAfter: retryAfter)
  }

  /// Frees the request's and the answer's bytes.
  func forget() {
    _ = ccurl_set_pointer(handle, CURLOPT_POSTFIELDS, nil)
    _ = ccurl_set_list(handle, CURLOPT_HTTPHEADER, nil)
    curl_slist_free_all(headers)
    headers = nil
    request?.deallocate()
    request = nil
    answer = []
  }

  private func failure(_ code: CURLcode) -> HTTPFailure {
    switch code {
    case _ where isTooLarge: return .answerTooLarge
    case CURLE_OPERATION_TIMEDOUT:
      var sentAfterMicros: curl_off_t = 0
      _ = ccurl_get_offset(handle, CURLINFO_PRETRANSFER_TIME_T, &sentAfterMicros)
      return sentAfterMicros == 0 ? .connectTimeout : .timeout
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE,
      CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_ENGINE_NOTFOUND,
      CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_SHUTDOWN_FAILED:
      return .tlsFailed
    default: return .connectionFailed
    }
  }

  /// Stores the bytes. Returns the number stored; fewer than given ends the transfer.
  fileprivate func take(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard bytes.count <= answerBytesMax - answer.count else {
      isTooLarge = true
      return 0
    }
    answer.append(contentsOf: bytes)
    return bytes.count
  }

  fileprivate func takeHeader(_ line: UnsafeRawBufferPointer) -> Int {
    headerByteCount += line.count
    // Each status line starts new headers. What follows a body is no longer a header.
    if line.starts(with: "HTTP/".utf8) {
      hasWholeHeader = false
    } else if line.first == UInt8(ascii: "\r") || line.first == UInt8(ascii: "\n") {
      hasWholeHeader = true
    } else if let value = Self.value(of: "retry-after", in: line) {
      retryAfter = value
    }
    guard headerByteCount <= Self.headerBytesMax else {
      isTooLarge = true
      return 0
    }
    return line.count
  }

  /// The value of a header's line, if it has this name (in lower case) and is short.
  private static func value(of name: String, in line: UnsafeRawBufferPointer) -> String? {
    guard line.count > name.utf8.count, line[name.utf8.count] == UInt8(ascii: ":"),
      zip(line, name.utf8).allSatisfy({ $0 | 0x20 == $1 })
    else { return nil }
    let value = line.dropFirst(name.utf8.count + 1)
    guard value.count <= retryAfterBytesMax else { return nil }
    return String(decoding: value.filter { $0 > 0x20 && $0 < 0x7F }, as: UTF8.self)
  }
}

private func receiveBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int {
  guard let context else { return 0 }
  let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
  return transfer.take(UnsafeRawBufferPointer(start: bytes, count: size * count))
}

private func receiveHeader(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int {
  guard let context else { return 0 }
  let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
  return transfer.takeHeader(UnsafeRawBufferPointer(start: bytes, count: size * count))
}

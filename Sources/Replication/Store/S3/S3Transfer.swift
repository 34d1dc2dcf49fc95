// One request under way: a reused libcurl handle, what it sends and what it gets.
import Base
import CCurl
import Synchronization

/// A request as libcurl needs it.
struct S3Request {
  enum Method: String {
    case get = "GET"
    case put = "PUT"
    case delete = "DELETE"
  }

  let method: Method
  let url: String
  /// `Name: value`, all that are sent beyond libcurl's own.
  let headers: [String]
  let body: ObjectBody?
}

/// What comes back: the status, headers that matter, and the body unless it was passed on.
struct S3Answer {
  var status = 0
  var body: [UInt8] = []
  var byteCount = 0
  var region: String?
  var retryAfterMs: Int?
}

/// Why there is no answer.
enum S3TransferFailure: Error {
  /// Starts with a lower-case letter.
  case connection(String)
  case tooLarge
  case cancelled
  /// The file that is sent could not be read, or is shorter than it was.
  case file(String)
  /// What the one who takes the bytes throws.
  case taker(ObjectStoreError)
  case noMemory
}

/// Set once, read by all transfers.
final class CancelFlag: Sendable {
  private let flag = Atomic<Bool>(false)
  var isSet: Bool { flag.load(ordering: .acquiring) }
  func set() { flag.store(true, ordering: .releasing) }
}

/// Limits of transfers.
package struct S3Limits: Sendable {
  package var connectTimeoutMs = 10_000
  /// A transfer slower than `stallBytesPerSecond` for so long is given up.
  package var stallSeconds = 30
  package var stallBytesPerSecond = 1_024

  package init() {}
}

/// A libcurl handle with the data it sends and receives. One thread uses it at a time. It must not move or be freed
/// while libcurl uses it: libcurl holds its address.
final class S3Transfer {
  typealias Taker = (UnsafeRawBufferPointer) -> Result<Void, ObjectStoreError>

  private let handle: UnsafeMutableRawPointer
  private let cancelFlag: CancelFlag
  private var sent: ObjectBody?
  private var sentOffset = 0
  private var answer = S3Answer()
  private var headerByteCount = 0
  private var hasWholeHeader = false
  private var isChunked = false
  /// Takes the body of an answer with status 200; others are collected.
  private var taker: Taker?
  private var byteCountMax = 0
  private var failure: S3TransferFailure?
  /// The status alone is asked for: a longer body ends the transfer.
  private var wantsStatusOnly = false
  private var hasEnough = false

  /// The headers of an answer take about 1 KiB; libcurl does not limit their total size.
  private static let headerBytesMax = 64 << 10
  /// Lists of 1,000 objects take about 0.5 MB.
  static let documentBytesMax = 4 << 20

  private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// Nil if libcurl is out of memory or lacks a feature needed for safety.
  init?(_ endpoint: S3Endpoint, _ limits: S3Limits, _ cancelFlag: CancelFlag) {
    guard Self.isReady, let handle = curl_easy_init() else { return nil }
    self.handle = handle
    self.cancelFlag = cancelFlag
    guard Self.configure(handle, endpoint, limits) else { return nil }
  }

  deinit { curl_easy_cleanup(handle) }

  /// Sets the options that all requests share.
  private static func configure(
    _ handle: UnsafeMutableRawPointer, _ endpoint: S3Endpoint, _ limits: S3Limits
  ) -> Bool {
    let numbers: [(CURLoption, Int)] = [
      (CURLOPT_NOSIGNAL, 1), (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_PATH_AS_IS, 1),
      (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2),
      (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
      // One connection per call: on a shared connection, one stall would stop all calls.
      (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)), (CURLOPT_HTTP09_ALLOWED, 0),
      (CURLOPT_CONNECTTIMEOUT_MS, limits.connectTimeoutMs),
      (CURLOPT_LOW_SPEED_LIMIT, limits.stallBytesPerSecond),
      (CURLOPT_LOW_SPEED_TIME, limits.stallSeconds),
      // A name server that hangs must not block the thread beyond the time-out.
      (CURLOPT_QUICK_EXIT, 1), (CURLOPT_TCP_KEEPALIVE, 1),
      // Without it the progress function is not called.
      (CURLOPT_NOPROGRESS, 0), (CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10),
      (CURLOPT_BUFFERSIZE, 128 << 10),
    ]
    for (option, value) in numbers where ccurl_set_long(handle, option, value) != CURLE_OK {
      return false
    }
    // An empty proxy means none, whatever the environment says; nil means what the environment says.
    return ccurl_set_text(handle, CURLOPT_USERAGENT, "receipt-ledger") == CURLE_OK
      && ccurl_set_text(handle, CURLOPT_PROTOCOLS_STR, endpoint.scheme) == CURLE_OK
      && ccurl_set_text(handle, CURLOPT_PROXY, endpoint.isLoopback ? "" : nil) == CURLE_OK
      && ccurl_set_receive(handle, CURLOPT_WRITEFUNCTION, receiveBody) == CURLE_OK
      && ccurl_set_receive(handle, CURLOPT_HEADERFUNCTION, receiveHeader) == CURLE_OK
      && ccurl_set_receive(handle, CURLOPT_READFUNCTION, readBody) == CURLE_OK
      && ccurl_set_seek(handle, seekBody) == CURLE_OK
      && ccurl_set_progress(handle, noteProgress) == CURLE_OK
  }

  /// Carries out a request, and returns when the answer is whole.
  /// - Parameters:
  ///   - byteCountMax: of the body of an answer with status 200; others may have 4 MiB.
  ///   - wantsStatusOnly: a body of an answer with status 200 or 206 is not waited for.
  ///   - taker: gets the body of an answer with status 200; without one it is collected.
  func perform(
    _ request: S3Request, byteCountMax: Int, wantsStatusOnly: Bool = false, taker: Taker? = nil
  ) throws(S3TransferFailure) -> S3Answer {
    (answer, failure, self.taker) = (S3Answer(), nil, taker)
    (sent, sentOffset) = (request.body, 0)
    (headerByteCount, hasWholeHeader, isChunked) = (0, false, false)
    (self.byteCountMax, self.wantsStatusOnly, hasEnough) = (byteCountMax, wantsStatusOnly, false)
    var list: UnsafeMutablePointer<curl_slist>?
    defer {
      _ = ccurl_set_list(handle, CURLOPT_HTTPHEADER, nil)
      curl_slist_free_all(list)
      (answer, self.taker, sent) = (S3Answer(), nil, nil)
    }
    // libcurl omits a header without content, so it does not wait for `100 Continue`.
    for header in request.headers + ["Expect:"] {
      guard let longer = curl_slist_append(list, header) else { throw .noMemory }
      list = longer
    }
    guard prepare(request, list) else { throw .noMemory }
    let code = curl_easy_perform(handle)
    return try result(code)
  }

  private func prepare(_ request: S3Request, _ list: UnsafeMutablePointer<curl_slist>?) -> Bool {
    let context = Unmanaged.passUnretained(self).toOpaque()
    let isPrepared =
      request.method == .put
      ? ccurl_set_long(handle, CURLOPT_UPLOAD, 1) == CURLE_OK
      : ccurl_set_long(handle, CURLOPT_HTTPGET, 1) == CURLE_OK
    let method = request.method == .delete ? request.method.rawValue : nil
    return isPrepared
      && ccurl_set_text(handle, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK
      && ccurl_set_text(handle, CURLOPT_URL, request.url) == CURLE_OK
      && ccurl_set_list(handle, CURLOPT_HTTPHEADER, list) == CURLE_OK
      && ccurl_set_offset(
        handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(request.body?.byteCount ?? 0)) == CURLE_OK
      && [
        CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA,
        CURLOPT_XFERINFODATA,
      ].allSatisfy { ccurl_set_pointer(handle, $0, context) == CURLE_OK }
  }

  private func result(_ code: CURLcode) throws(S3TransferFailure) -> S3Answer {
    if let failure { throw failure }
    if code == CURLE_ABORTED_BY_CALLBACK { throw .cancelled }
    var status = 0
    _ = ccurl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
    answer.status = status
    if hasEnough { return answer }
    guard code == CURLE_OK else { throw .connection(Self.cause(code)) }
    // libcurl treats a header that is cut off as a header without a body.
    guard hasWholeHeader, status > 0 else { throw .connection("the answer is cut off") }
    var announced: curl_off_t = -1
    _ = ccurl_get_offset(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced)
    // Otherwise the end of the connection ends the body, wherever it comes.
    guard announced >= 0 || isChunked || answer.byteCount == 0 && status != 200 || status == 204
    else { throw .connection("the answer does not say how long it is") }
    var seconds: curl_off_t = 0
    if ccurl_get_offset(handle, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK, seconds > 0 {
      answer.retryAfterMs = Int(min(seconds, 86_400)) * 1_000
    }
    return answer
  }

  private static func cause(_ code: CURLcode) -> String {
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
      return "the host's name is unknown"
    case CURLE_COULDNT_CONNECT: return "no connection"
    case CURLE_OPERATION_TIMEDOUT: return "the time is up: no connection, or nothing more comes"
    case CURLE_PARTIAL_FILE: return "the answer is cut off"
    case CURLE_GOT_NOTHING: return "the connection was closed without an answer"
    case CURLE_PEER_FAILED_VERIFICATION: return "the server's certificate is not trusted"
    default:
      // A constant text of libcurl's.
      let text = curl_easy_strerror(code).map { String(cString: $0) } ?? "unknown error"
      return "no answer: libcurl says '\(text)'"
    }
  }

  // MARK: What libcurl calls

  fileprivate var isCancelled: Bool { cancelFlag.isSet }

  /// Stores or passes on the bytes. Returns the number taken; fewer than given ends the transfer.
  fileprivate func take(_ bytes: UnsafeRawBufferPointer) -> Int {
    var status = 0
    _ = ccurl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
    let isContent = status == 200 || status == 206
    if wantsStatusOnly, isContent {
      hasEnough = true
      return 0
    }
    let limit = isContent ? byteCountMax : Self.documentBytesMax
    guard bytes.count <= limit - answer.byteCount, !announcesMore(than: limit) else {
      failure = .tooLarge
      return 0
    }
    answer.byteCount += bytes.count
    guard isContent, let taker else {
      answer.body.append(contentsOf: bytes)
      return bytes.count
    }
    if case .failure(let error) = taker(bytes) {
      failure = .taker(error)
      return 0
    }
    return bytes.count
  }

  /// Known before the first byte: nothing is passed on of what is too large.
  private func announcesMore(than limit: Int) -> Bool {
    var announced: curl_off_t = -1
    _ = ccurl_get_offset(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced)
    return announced > limit
  }

  fileprivate func takeHeader(_ line: UnsafeRawBufferPointer) -> Int {
    headerByteCount += line.count
    // Each status line starts new headers. What follows a body is no longer a header.
    if line.starts(with: "HTTP/".utf8) {
      (hasWholeHeader, isChunked) = (false, false)
    } else if line.first == UInt8(ascii: "\r") || line.first == UInt8(ascii: "\n") {
      hasWholeHeader = true
    } else if !hasWholeHeader, let value = Self.value(of: "x-amz-bucket-region", in: line) {
      if S3Endpoint.isRegion(value) { answer.region = value }
    } else if !hasWholeHeader, let value = Self.value(of: "transfer-encoding", in: line) {
      isChunked = value.lowercased() == "chunked"
    }
    guard headerByteCount <= Self.headerBytesMax else {
      failure = .tooLarge
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
    guard value.count <= 64 else { return nil }
    return String(decoding: value.filter { $0 > 0x20 && $0 < 0x7F }, as: UTF8.self)
  }

  /// Gives libcurl the next bytes to send.
  fileprivate func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let sent else { return 0 }
    let wanted = min(buffer.count, sent.byteCount - sentOffset)
    do throws(SystemError) {
      let count = try sent.copy(to: buffer, fromOffset: sentOffset)
      guard count == wanted else {
        failure = .file("the file is shorter than it was")
        return Int(CURL_READFUNC_ABORT)
      }
      sentOffset += count
      return count
    } catch {
      failure = .file("the file cannot be read: \(SmallFileError.system(error).cause)")
      return Int(CURL_READFUNC_ABORT)
    }
  }

  /// libcurl sends a request again if a kept connection turns out to be closed.
  fileprivate func seek(_ offset: Int) -> Bool {
    guard let sent, (0...sent.byteCount).contains(offset) else { return false }
    sentOffset = offset
    return true
  }
}

private func transfer(_ context: UnsafeMutableRawPointer?) -> S3Transfer? {
  context.map { Unmanaged<S3Transfer>.fromOpaque($0).takeUnretainedValue() }
}

private func receiveBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int {
  transfer(context)?.take(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
}

private func receiveHeader(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int {
  transfer(context)?.takeHeader(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
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
  let isDone = origin == 0 && transfer(context)?.seek(Int(offset)) == true
  return isDone ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
}

/// About once a second, and whenever bytes come or go.
private func noteProgress(
  _ context: UnsafeMutableRawPointer?, _: curl_off_t, _: curl_off_t, _: curl_off_t, _: curl_off_t
) -> Int32 {
  transfer(context)?.isCancelled == true ? 1 : 0
}

// A bucket that is asked over S3's API.
import Base
import HTTPClient

/// Limits of transfers.
package struct S3Limits: Sendable {
  package var connectTimeoutMs = 10_000
  /// A transfer slower than `stallBytesPerSecond` for so long is given up.
  package var stallSeconds = 30
  package var stallBytesPerSecond = 1_024

  package init() {}
}

/// Objects in a bucket. Each call takes a connection from a pool, or opens one.
package final class S3Store: ObjectStore {
  package let name: String
  private let endpoint: S3Endpoint
  private let signature: S3Signature
  /// With its slash, or empty.
  private let prefix: String
  private let options: HTTPOptions
  private let cancelFlag = CancelFlag()
  private let idle = Monitor(Idle())
  private let clock: @Sendable () -> Int64

  /// Transfers between two calls. Sendable because each is used by the one thread that took it out.
  private struct Idle: @unchecked Sendable { var transfers: [HTTPTransfer] = [] }

  /// More calls at once than these work, but open connections of their own.
  private static let idleCountMax = 16
  /// Lists of 1,000 objects take about 0.5 MB.
  private static let documentBytesMax = 4 << 20
  private static let regionHeader = "x-amz-bucket-region"

  /// - Parameters:
  ///   - bucket: its name; `ReplicationTarget` checks it.
  ///   - prefix: what stands before each key, without the slash at its end; may be empty.
  ///   - region: what requests are signed for; `endpoint` may be of any store.
  ///   - clock: the time in epoch milliseconds, for signatures.
  package init(
    bucket: String, prefix: String, endpoint: S3Endpoint, region: String,
    credentials: S3Credentials, limits: S3Limits = S3Limits(),
    clock: @escaping @Sendable () -> Int64 = Timestamp.now
  ) {
    name = prefix.isEmpty ? "s3://\(bucket)" : "s3://\(bucket)/\(prefix)"
    self.prefix = prefix.isEmpty ? "" : prefix + "/"
    self.endpoint = endpoint
    signature = S3Signature(credentials: credentials, region: region)
    self.clock = clock
    var options = HTTPOptions(connectTimeoutMs: limits.connectTimeoutMs)
    options.stallSeconds = limits.stallSeconds
    options.stallBytesPerSecond = limits.stallBytesPerSecond
    options.keptHeaders = [Self.regionHeader]
    (options.needsBodyLength, options.keepsPath, options.hasLargeBuffers) = (true, true, true)
    options.cancelFlag = cancelFlag
    self.options = options
  }

  package func cancel() { cancelFlag.set() }

  // MARK: Objects

  package func put(_ key: String, _ body: ObjectBody) throws(ObjectStoreError) {
    let call = try Call("put", key, .put, body: body)
    let answer = try perform(call)
    guard Self.isStored(answer) else { throw failure(answer, of: call) }
  }

  package func create(
    _ key: String, _ body: ObjectBody
  ) throws(ObjectStoreError) -> PutOutcome {
    var call = try Call("create", key, .put, body: body)
    call.headers = [("if-none-match", "*")]
    let answer = try perform(call)
    if answer.status == 412 { return .exists }
    guard Self.isStored(answer) else { throw failure(answer, of: call) }
    return .stored
  }

  /// An answer can be 200 and still say that it went wrong.
  private static func isStored(_ answer: HTTPOutcome) -> Bool {
    (answer.status == 200 || answer.status == 201 || answer.status == 204)
      && S3ErrorDocument(answer.body) == nil
  }

  package func get(_ key: String, byteCountMax: Int) throws(ObjectStoreError) -> [UInt8]? {
    let call = try Call("get", key, .get)
    let answer = try perform(call, byteCountMax: byteCountMax)
    if answer.status == 200 { return answer.body }
    if Self.isMissing(answer) { return nil }
    throw failure(answer, of: call)
  }

  package func read(
    _ key: String, byteCountMax: Int,
    _ body: (UnsafeRawBufferPointer) throws(ObjectStoreError) -> Void
  ) throws(ObjectStoreError) -> Bool {
    let call = try Call("read", key, .get)
    var thrown: ObjectStoreError?
    // Nothing keeps it beyond the call.
    let result = withoutActuallyEscaping(body) { body in
      Result { () throws(ObjectStoreError) in
        try perform(call, byteCountMax: byteCountMax) { bytes in
          do throws(ObjectStoreError) { try body(bytes) } catch { thrown = error }
          return thrown == nil
        }
      }
    }
    let answer = try result.get()
    if let thrown { throw thrown }
    if answer.status == 200 { return true }
    if Self.isMissing(answer) { return false }
    throw failure(answer, of: call)
  }

  /// Asks for the first byte: the answer to HEAD would not say whether the object or the bucket is missing.
  package func contains(_ key: String) throws(ObjectStoreError) -> Bool {
    var call = try Call("look for", key, .get)
    call.headers = [("range", "bytes=0-0")]
    // A store that ignores the range sends all of it.
    let answer = try perform(call, byteCountMax: .max) { _ in false }
    // 416: it is empty.
    if answer.status == 200 || answer.status == 206 || answer.status == 416 { return true }
    if Self.isMissing(answer) { return false }
    throw failure(answer, of: call)
  }

  package func delete(_ key: String) throws(ObjectStoreError) {
    let call = try Call("delete", key, .delete)
    let answer = try perform(call)
    guard [200, 202, 204].contains(answer.status) || Self.isMissing(answer) else {
      throw failure(answer, of: call)
    }
  }

  /// Only what the store itself says: any server may answer 404.
  private static func isMissing(_ answer: HTTPOutcome) -> Bool {
    answer.status == 404 && S3ErrorDocument(answer.body)?.code == "NoSuchKey"
  }

  // MARK: Lists

  package func list(prefix: String, after: String?) throws(ObjectStoreError) -> [ObjectEntry] {
    var entries: [ObjectEntry] = []
    var after = after
    // A store may give fewer than it is asked for.
    while true {
      let page = try page(
        prefix: prefix, after: after, entryCountMax: S3ListDocument.entryCountMax - entries.count)
      entries += page.entries
      guard page.isTruncated, entries.count < S3ListDocument.entryCountMax else { return entries }
      after = page.entries.last?.key
    }
  }

  private func page(
    prefix keyPrefix: String, after: String?, entryCountMax: Int
  ) throws(ObjectStoreError) -> S3ListDocument {
    let whole = prefix + keyPrefix
    var call = Call(list: name)
    call.query = [
      ("list-type", "2"), ("max-keys", String(entryCountMax)), ("prefix", whole),
    ]
    if let after { call.query.append(("start-after", prefix + after)) }
    let answer = try perform(call, byteCountMax: Self.documentBytesMax)
    guard answer.status == 200 else { throw failure(answer, of: call) }
    let document: S3ListDocument?
    do throws(XMLFault) {
      document = try S3ListDocument(answer.body)
    } catch { throw unexpected(call, "the list is malformed: \(error.cause)") }
    guard var page = document else { throw failure(answer, of: call) }
    guard page.entries.count <= entryCountMax else {
      throw unexpected(call, "the list has more objects than were asked for")
    }
    guard !page.isTruncated || !page.entries.isEmpty else {
      throw unexpected(call, "the list continues, but has no objects")
    }
    var last = after.map { prefix + $0 }
    for entry in page.entries {
      guard entry.key.utf8.starts(with: whole.utf8) else {
        throw unexpected(call, "the list has keys that were not asked for")
      }
      guard last.map({ ObjectKey.precedes($0, entry.key) }) != false else {
        throw unexpected(call, "the list is not in the order of its keys")
      }
      last = entry.key
    }
    page.entries = page.entries.map { entry in
      ObjectEntry(
        key: String(decoding: entry.key.utf8.dropFirst(prefix.utf8.count), as: UTF8.self),
        byteCount: entry.byteCount)
    }
    return page
  }

  // MARK: Calls

  /// A request before it is signed.
  private struct Call {
    let operation: String
    let object: String
    let method: HTTPRequest.Method
    /// Without the prefix; nil asks for the bucket.
    let key: String?
    let body: ObjectBody?
    var query: [(name: String, value: String)] = []
    /// Beyond those that all calls have; they are signed.
    var headers: [(name: String, value: String)] = []

    init(
      _ operation: String, _ key: String, _ method: HTTPRequest.Method, body: ObjectBody? = nil
    ) throws(ObjectStoreError) {
      try ObjectKey.check(key, operation: operation)
      (self.operation, object, self.method, self.key, self.body) = (
        operation, key, method, key, body
      )
    }

    init(list name: String) {
      (operation, object, method, key, body) = ("list", name, .get, nil, nil)
    }
  }

  private func signed(_ call: Call, byteCountMax: Int) -> HTTPRequest {
    let time = S3Signature.time(ms: clock())
    let payload = (call.body ?? .bytes([])).sha256.hex
    let key = call.key.map { "/" + S3Signature.encoded(prefix + $0, keepsSlashes: true) }
    let path = endpoint.bucketPath + (key ?? (endpoint.bucketPath.isEmpty ? "/" : ""))
    var headers =
      call.headers + [
        ("host", endpoint.host), ("x-amz-content-sha256", payload), ("x-amz-date", time),
      ]
    if let token = signature.credentials.sessionToken {
      headers.append(("x-amz-security-token", token))
    }
    let authorization = signature.authorization(
      of: S3Signature.Request(
        method: call.method.rawValue, path: path, query: call.query, headers: headers,
        payload: payload, time: time))
    headers.append(("authorization", authorization))
    if call.body != nil { headers.append(("content-type", "application/octet-stream")) }
    let query = S3Signature.query(call.query)
    var request = HTTPRequest(
      call.method, endpoint.origin + path + (query.isEmpty ? "" : "?" + query),
      headers: headers.map { "\($0.name): \($0.value)" },
      bodyBytesMax: byteCountMax, errorBytesMax: Self.documentBytesMax)
    if let body = call.body {
      request.body = HTTPBody(byteCount: body.byteCount) { (buffer, offset) throws(SystemError) in
        try body.copy(to: buffer, fromOffset: offset)
      }
    }
    request.avoidsProxy = endpoint.isLoopback
    return request
  }

  /// - Parameters:
  ///   - byteCountMax: of the body of a response with status 200 or 206; others may have 4 MiB.
  ///   - receiver: gets that body, and may end it; without one it is collected.
  private func perform(
    _ call: Call, byteCountMax: Int = documentBytesMax, _ receiver: HTTPTransfer.Receiver? = nil
  ) throws(ObjectStoreError) -> HTTPOutcome {
    if cancelFlag.isSet { throw error(.cancelled, call, "the store is no longer used") }
    guard let transfer = idle.withLock({ $0.transfers.popLast() }) ?? HTTPTransfer(options) else {
      throw error(.unavailable, call, "libcurl lacks memory or a feature")
    }
    defer {
      idle.withLock { idle in
        if idle.transfers.count < Self.idleCountMax { idle.transfers.append(transfer) }
      }
    }
    let outcome = transfer.perform(signed(call, byteCountMax: byteCountMax), receiver)
    switch outcome.failure {
    case nil, .stopped: return outcome
    case .headerTooLarge, .bodyTooLarge:
      throw error(.tooLarge, call, "the response is larger than allowed")
    case .cancelled: throw error(.cancelled, call, "the store is no longer used")
    case .unreadableBody(nil): throw unexpected(call, "the file is shorter than it was")
    case .unreadableBody(let fault?):
      throw unexpected(call, "the file cannot be read: \(SmallFileError.system(fault).cause)")
    case let failure?: throw error(.unavailable, call, Self.cause(failure))
    }
  }

  private static func cause(_ failure: HTTPFailure) -> String {
    switch failure {
    case .unknownHost: "the host's name is unknown"
    case .cannotConnect: "no connection"
    case .connectTimeout, .timeout: "timed out: no connection, or no more data"
    case .incompleteHeader, .incompleteBody: "the response is cut off"
    case .unknownLength: "the response does not state its length"
    case .closedWithoutResponse: "the connection was closed without a response"
    case .untrustedCertificate: "the server's certificate is not trusted"
    case .outOfMemory: "libcurl lacks memory"
    case .tlsFailed(let text), .other(let text): "no response: libcurl: '\(text)'"
    default: "no response"
    }
  }

  private func error(
    _ kind: ObjectStoreError.Kind, _ call: Call, _ cause: String
  ) -> ObjectStoreError {
    ObjectStoreError(kind, operation: call.operation, object: call.object, cause: cause)
  }

  private func unexpected(_ call: Call, _ cause: String) -> ObjectStoreError {
    error(.unexpected, call, cause)
  }

  private func failure(_ answer: HTTPOutcome, of call: Call) -> ObjectStoreError {
    let refusal = S3Refusal(
      status: answer.status ?? 0, S3ErrorDocument(answer.body),
      region: answer.headers[Self.regionHeader].flatMap { S3Endpoint.isRegion($0) ? $0 : nil },
      signedRegion: signature.region)
    return ObjectStoreError(
      refusal.kind, operation: call.operation, object: call.object, cause: refusal.cause,
      retryAfterMs: answer.retryAfterMs)
  }
}

// The S3 store against a server that answers, and one that misbehaves.
import Base
import Foundation
import Replication
import TestSupport
import Testing

@Suite("a store that speaks S3", .bounded) struct S3StoreTests {
  static let secret = "SECRETACCESSKEY"

  static func store(
    _ server: ScriptedServer, prefix: String = "p", token: String? = nil, stallSeconds: Int = 30
  ) throws -> S3Store {
    let credentials = try #require(
      S3Credentials(accessKeyID: "ACCESSKEYID", secretAccessKey: secret, sessionToken: token))
    var limits = S3Limits()
    limits.stallSeconds = stallSeconds
    let endpoint = try S3Endpoint(
      url: "http://127.0.0.1:\(server.port)", region: "eu-west-1", bucket: "copies")
    return S3Store(
      bucket: "copies", prefix: prefix, endpoint: endpoint, region: "eu-west-1",
      credentials: credentials, limits: limits, clock: { 1_369_353_600_000 })
  }

  static func error(_ status: Int, _ code: String?, headers: [String] = [])
    -> ScriptedServer.Reaction
  {
    .respond(
      status, Array((code.map { "<Error><Code>\($0)</Code></Error>" } ?? "").utf8), headers: headers
    )
  }

  static func xml(_ text: String) -> ScriptedServer.Reaction { .respond(200, Array(text.utf8)) }

  /// The error that a call throws; the test fails if it throws none.
  static func failure(
    _ body: () throws -> Void, _ place: SourceLocation = #_sourceLocation
  ) throws -> ObjectStoreError {
    try #require(
      #expect(throws: ObjectStoreError.self, sourceLocation: place) { try body() })
  }

  // MARK: Requests

  @Test(
    "a put sends its length, its digest and a signature, and nothing that is not needed"
  )
  func put() throws {
    let server = try ScriptedServer { _ in .respond(200, []) }
    let store = try Self.store(server, token: "TOKEN")
    try store.put("steps/1", .bytes(Array("hello".utf8)))
    let request = try #require(server.requests.first)
    expectEqual(request.head[0], "PUT /copies/p/steps/1 HTTP/1.1")
    expectEqual(request.body, Array("hello".utf8))
    expectEqual(request.values("content-length"), ["5"])
    expectEqual(request.values("host"), ["127.0.0.1:\(server.port)"])
    expectEqual(
      request.values("x-amz-content-sha256"),
      ["2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"])
    expectEqual(request.values("x-amz-date"), ["20130524T000000Z"])
    expectEqual(request.values("x-amz-security-token"), ["TOKEN"])
    let authorization = try #require(request.values("authorization").first)
    #expect(authorization.contains("Credential=ACCESSKEYID/20130524/eu-west-1/s3/aws4_request"))
    #expect(
      authorization.contains(
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"))
    for name in ["expect", "transfer-encoding", "if-none-match", "cookie", "accept-encoding"] {
      expectEqual(request.values(name), [], "\(name)")
    }
  }

  @Test("a create has a signed condition; 412 means that the key exists")
  func create() throws {
    let server = try ScriptedServer { request in
      request.index == 0 ? .respond(200, []) : Self.error(412, "PreconditionFailed")
    }
    let store = try Self.store(server, prefix: "")
    try expectEqual(store.create("steps/1", .bytes([])), .stored)
    try expectEqual(store.create("steps/1", .bytes([])), .exists)
    let request = server.requests[0]
    expectEqual(request.head[0], "PUT /copies/steps/1 HTTP/1.1")
    expectEqual(request.values("if-none-match"), ["*"])
    expectEqual(request.values("content-length"), ["0"])
    #expect(request.values("authorization")[0].contains("SignedHeaders=host;if-none-match;"))
  }

  @Test("a part of a file is sent, and sent again if the kept connection was closed")
  func file() throws {
    let folder = try TemporaryDirectory()
    let content = SeededBytes.make(count: 700_000)
    try Data([1, 2, 3] + content + [4]).write(to: URL(fileURLWithPath: folder.path("f")))
    let descriptor = open(folder.path("f"), O_RDONLY)
    defer { close(descriptor) }
    let body = ObjectBody.file(
      descriptor: descriptor, offsetBytes: 3, byteCount: content.count,
      sha256: content.withUnsafeBytes { SHA256.hash($0) })
    let server = try ScriptedServer { _ in .respond(200, []) }
    let store = try Self.store(server)
    try store.put("blocks/1", body)
    server.dropConnections()
    try store.put("blocks/2", body)
    expectEqual(server.requests.map { $0.body }, [content, content])
    expectEqual(server.requests[1].values("content-length"), ["700000"])
    let longer = ObjectBody.file(
      descriptor: descriptor, offsetBytes: 3, byteCount: content.count + 2,
      sha256: body.sha256)
    let error = try Self.failure { try store.put("blocks/3", longer) }
    expectEqual(error.kind, .unexpected)
    expectEqual(error.cause, "the file is shorter than it was")
  }

  @Test("connections are kept for the next call, also by other threads")
  func reuse() throws {
    let server = try ScriptedServer { _ in .respond(200, [7]) }
    let store = try Self.store(server)
    for _ in 0..<5 { try expectEqual(store.get("k", byteCountMax: 1), [7]) }
    try WorkerThread { _ = try? store.get("k", byteCountMax: 1) }.join()
    expectEqual(server.requests.count, 6)
    expectEqual(server.connectionCount, 1)
  }

  @Test("keys that no copy has are refused before anything is sent")
  func keys() throws {
    let server = try ScriptedServer { _ in .respond(200, []) }
    let store = try Self.store(server)
    for key in ["", "/a", "a/", "a//b", "a/../b", "./a", "a b", "a_b", "é", "a\r\nx: y", "a?b"] {
      try expectEqual(Self.failure { try store.delete(key) }.kind, .unexpected)
    }
    #expect(server.requests.isEmpty)
  }

  // MARK: Responses

  struct Refusal: CustomTestStringConvertible, Sendable {
    let status: Int
    var code: String?
    let kind: ObjectStoreError.Kind
    var says = ""
    var headers: [String] = []
    var retryAfterMs: Int?
    var testDescription: String { "\(status) \(code ?? "without a code")" }
  }

  static let refusals: [Refusal] = [
    .init(
      status: 301, code: "PermanentRedirect", kind: .noBucket, says: "in the region us-east-2",
      headers: ["x-amz-bucket-region: us-east-2", "Location: http://127.0.0.1:1/"]),
    .init(
      status: 307, kind: .noBucket, says: "check region", headers: ["Location: http://127.0.0.1:1/"]
    ),
    .init(
      status: 400, code: "AuthorizationHeaderMalformed</Code><Region>us-east-2</Region><Code>",
      kind: .noBucket, says: "AuthorizationHeaderMalformed: the bucket is in the region us-east-2"),
    .init(
      status: 400, code: "AuthorizationHeaderMalformed</Code><Region>US!</Region><Code>",
      kind: .noBucket, says: "check region"),
    .init(status: 400, code: "ExpiredToken", kind: .denied, says: "expired"),
    .init(status: 400, code: "RequestTimeout", kind: .unavailable),
    .init(status: 400, code: "XAmzContentSHA256Mismatch", kind: .unexpected),
    .init(status: 401, kind: .denied),
    .init(status: 403, code: "AccessDenied", kind: .denied, says: "403 AccessDenied"),
    .init(
      status: 403, code: "SignatureDoesNotMatch", kind: .denied,
      says: "the secret access key is wrong"),
    .init(status: 403, code: "RequestTimeTooSkewed", kind: .denied, says: "clock is wrong"),
    .init(status: 404, code: "NoSuchBucket", kind: .noBucket, says: "no such bucket"),
    .init(status: 404, kind: .unexpected, says: "check the endpoint"),
    .init(status: 408, kind: .unavailable),
    .init(status: 409, code: "ConditionalRequestConflict", kind: .unavailable),
    .init(status: 429, kind: .unavailable, headers: ["Retry-After: 7"], retryAfterMs: 7_000),
    .init(status: 500, code: "InternalError", kind: .unavailable),
    .init(
      status: 501, code: "NotImplemented", kind: .unexpected, says: "cannot do what a copy needs"),
    .init(
      status: 503, code: "SlowDown", kind: .unavailable, headers: ["retry-after: 99999999"],
      retryAfterMs: 86_400_000),
    .init(status: 507, kind: .full),
    .init(status: 403, code: "QuotaExceeded", kind: .full),
    .init(status: 200, code: "InternalError", kind: .unavailable),
    .init(status: 418, code: "Tea\u{7}pot", kind: .unexpected),
  ]

  @Test("each refusal has its kind, with status and code but without a secret", arguments: refusals)
  func refusal(_ given: Refusal) throws {
    let server = try ScriptedServer { _ in
      Self.error(given.status, given.code, headers: given.headers)
    }
    let store = try Self.store(server, token: "SESSIONTOKEN")
    var calls: [() throws -> Void] = [
      { try store.put("k", .bytes(Array("CONTENT".utf8))) },
      { _ = try store.create("k", .bytes(Array("CONTENT".utf8))) },
      { _ = try store.list(prefix: "", after: nil) },
    ]
    // Here 200 means the object itself, or a successful deletion.
    if given.status != 200 {
      calls += [
        { _ = try store.get("k", byteCountMax: 9) }, { _ = try store.contains("k") },
        { try store.delete("k") },
        {
          _ = try store.read("k", byteCountMax: 9) { _ in Issue.record("nothing is to be passed on")
          }
        },
      ]
    }
    for call in calls {
      let error = try Self.failure { try call() }
      expectEqual(error.kind, given.kind)
      #expect(error.cause.contains("\(given.status)"))
      #expect(given.says.isEmpty || error.description.contains(given.says))
      expectEqual(error.retryAfterMs, given.retryAfterMs)
      expectEqual(error.isTransient, (given.kind == .unavailable))
      for secret in ["ACCESSKEYID", Self.secret, "SESSIONTOKEN", "Signature=", "CONTENT", "\u{7}"] {
        #expect(!error.description.contains(secret))
      }
    }
    expectEqual(server.requests.count, calls.count, "nothing is followed or repeated")
  }

  @Test("an object that the store reports missing is nil; deleting it does nothing")
  func missing() throws {
    let server = try ScriptedServer { _ in Self.error(404, "NoSuchKey") }
    let store = try Self.store(server)
    #expect(try store.get("k", byteCountMax: 1) == nil)
    #expect(try !store.contains("k"))
    #expect(try !store.read("k", byteCountMax: 1) { _ in })
    try store.delete("k")
  }

  @Test("an object's existence is checked without fetching it", arguments: [200, 206, 416])
  func contains(_ status: Int) throws {
    let head = "HTTP/1.1 \(status) X\r\nContent-Length: 999999999\r\n\r\n"
    let server = try ScriptedServer { _ in
      status == 416
        ? Self.error(416, "InvalidRange")
        : .flood(Array(head.utf8), thenAgain: [UInt8](repeating: 1, count: 65_536))
    }
    #expect(try Self.store(server).contains("k"))
    expectEqual(server.requests[0].values("range"), ["bytes=0-0"])
  }

  @Test("an object is passed on as it came, up to the limit")
  func read() throws {
    let content = SeededBytes.make(count: 300_000)
    let server = try ScriptedServer { _ in .respond(200, content) }
    let store = try Self.store(server)
    var read: [UInt8] = []
    #expect(try store.read("k", byteCountMax: 300_000) { read.append(contentsOf: $0) })
    expectEqual(read, content)
    try expectEqual(store.get("k", byteCountMax: 300_000), content)
    let error = try Self.failure { _ = try store.get("k", byteCountMax: 299_999) }
    expectEqual(error.kind, .tooLarge)
  }

  @Test("an error of the reader ends the call")
  func readerThrows() throws {
    let server = try ScriptedServer { _ in .respond(200, [1]) }
    let mine = ObjectStoreError(.unexpected, operation: "check", object: "k", cause: "mine")
    let error = try Self.failure {
      _ = try Self.store(server).read("k", byteCountMax: 1) { _ throws(ObjectStoreError) in
        throw mine
      }
    }
    expectEqual(error, mine)
  }

  static let cutOffs: [(String, String)] = [
    ("a body that ends too early", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"),
    (
      "a chunk that ends too early",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n12345"
    ),
    (
      "chunks without an end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"
    ),
    ("a body without a length", "HTTP/1.1 200 OK\r\n\r\n12345"),
    ("a header that ends too early", "HTTP/1.1 200 OK\r\nContent-Le"), ("nothing", ""),
  ]

  @Test("a truncated response is not a short object", arguments: cutOffs)
  func cutOff(_ name: String, _ text: String) throws {
    let server = try ScriptedServer { _ in .all([.text(text), .close]) }
    let store = try Self.store(server)
    try expectEqual(Self.failure { _ = try store.get("k", byteCountMax: 99) }.kind, .unavailable)
    try expectEqual(
      Self.failure { _ = try store.read("k", byteCountMax: 99) { _ in } }.kind, .unavailable)
  }

  @Test("chunked responses are read whole")
  func chunked() throws {
    let server = try ScriptedServer { _ in
      .text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    }
    try expectEqual(Self.store(server).get("k", byteCountMax: 5), Array("abcde".utf8))
  }

  @Test("endless responses of every kind are abandoned")
  func endless() throws {
    let again = [UInt8](repeating: UInt8(ascii: "<"), count: 65_536)
    for head in [
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 503 X\r\n\r\n",
      "HTTP/1.1 200 OK\r\nX: ",
    ] {
      let server = try ScriptedServer { _ in
        head.contains("chunked")
          ? .flood(
            Array(head.utf8), thenAgain: Array("10000\r\n".utf8) + again + Array("\r\n".utf8))
          : .flood(Array(head.utf8), thenAgain: again)
      }
      let store = try Self.store(server)
      let kinds = [
        try Self.failure { _ = try store.get("k", byteCountMax: 1_000) }.kind,
        try Self.failure { _ = try store.list(prefix: "", after: nil) }.kind,
      ]
      #expect(kinds.allSatisfy { $0 == .tooLarge || $0 == .unavailable })
    }
  }

  @Test("a server that falls silent is abandoned after the limit")
  func stall() throws {
    let server = try ScriptedServer { _ in
      .all([.text("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n1"), .hang])
    }
    let store = try Self.store(server, stallSeconds: 3)
    let error = try Self.failure { _ = try store.get("k", byteCountMax: 99) }
    expectEqual(error.kind, .unavailable)
    #expect(error.cause.contains("timed out"))
  }

  @Test("without a server there is no connection")
  func noServer() throws {
    let (descriptor, port) = try ScriptedServer.listen(backlog: nil)
    defer { close(descriptor) }
    let credentials = try #require(S3Credentials(accessKeyID: "I", secretAccessKey: "S"))
    let endpoint = try S3Endpoint(url: "http://127.0.0.1:\(port)", region: nil, bucket: "copies")
    let store = S3Store(
      bucket: "copies", prefix: "", endpoint: endpoint, region: "x", credentials: credentials)
    let error = try Self.failure { _ = try store.get("k", byteCountMax: 99) }
    expectEqual(error.kind, .unavailable)
    expectEqual(error.cause, "no connection")
  }

  @Test("cancel ends calls in progress and all later ones")
  func cancel() throws {
    let server = try ScriptedServer { _ in .hang }
    let store = try Self.store(server)
    let kinds = Monitor([ObjectStoreError.Kind](), conditionCount: 1)
    let threads = try (0..<3).map { _ in
      try WorkerThread {
        do throws(ObjectStoreError) { _ = try store.get("k", byteCountMax: 1) } catch {
          kinds.withLock { $0.append(error.kind) }
        }
      }
    }
    #expect(eventually { server.requests.count == 3 })
    store.cancel()
    for thread in threads { thread.join() }
    expectEqual(kinds.withLock { $0 }, [.cancelled, .cancelled, .cancelled])
    try expectEqual(Self.failure { try store.delete("k") }.kind, .cancelled)
    expectEqual(server.requests.count, 3)
  }

  // MARK: Lists

  static func page(_ keys: [String], isTruncated: Bool = false) -> ScriptedServer.Reaction {
    let entries = keys.map { "<Contents><Key>\($0)</Key><Size>3</Size></Contents>" }.joined()
    return xml(
      "<ListBucketResult><IsTruncated>\(isTruncated)</IsTruncated>\(entries)</ListBucketResult>")
  }

  @Test("a list is requested with sorted parameters, and continued if the store gives less")
  func list() throws {
    let server = try ScriptedServer { request in
      request.index == 0 ? Self.page(["p/a/1", "p/a/2"], isTruncated: true) : Self.page(["p/a/3"])
    }
    let entries = try Self.store(server).list(prefix: "a/", after: "a/0")
    expectEqual(entries, ["a/1", "a/2", "a/3"].map { ObjectEntry(key: $0, byteCount: 3) })
    expectEqual(
      server.requests.map { $0.path },
      [
        "/copies?list-type=2&max-keys=1000&prefix=p%2Fa%2F&start-after=p%2Fa%2F0",
        "/copies?list-type=2&max-keys=998&prefix=p%2Fa%2F&start-after=p%2Fa%2F2",
      ])
  }

  @Test(
    "a list that contradicts itself is refused",
    arguments: [
      page(["p/a/2", "p/a/1"]), page(["p/a/1", "p/a/1"]), page(["p/a/0"]), page(["q/a/1"]),
      page(["p/b"]), page([], isTruncated: true), xml("<ListBucketResult/>"), xml("<html/>"),
      xml("not XML"), .respond(200, []), page((1_000...2_001).map { "p/a/\($0)" }),
    ])
  func lyingList(_ reaction: ScriptedServer.Reaction) throws {
    let server = try ScriptedServer { _ in reaction }
    let store = try Self.store(server)
    let error = try Self.failure { _ = try store.list(prefix: "a/", after: "a/0") }
    expectEqual(error.kind, .unexpected)
  }
}

enum SeededBytes {
  static func make(count: Int) -> [UInt8] {
    var random = SeededRandom(seed: 22)
    return random.bytes(count: count)
  }
}

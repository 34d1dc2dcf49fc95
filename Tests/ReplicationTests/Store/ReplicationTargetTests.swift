// Targets and endpoints: what is accepted, and what is refused.
import Replication
import TestSupport
import Testing

@Suite("targets of replication") struct ReplicationTargetTests {
  @Test(
    "buckets with and without a prefix, and directories, are read and written alike",
    arguments: [
      ("s3://abc", ReplicationTarget.s3(bucket: "abc", prefix: "")),
      ("s3://my.bucket-1/Shop_1/a.b-c", .s3(bucket: "my.bucket-1", prefix: "Shop_1/a.b-c")),
      ("file:///mnt/disk 2/copy", .directory(path: "/mnt/disk 2/copy")),
    ])
  func reads(_ text: String, _ target: ReplicationTarget) throws {
    try expectEqual(ReplicationTarget(parsing: text), target)
    expectEqual("\(target)", text)
  }

  @Test(
    "other targets are refused",
    arguments: [
      "", "abc", "s3:abc", "http://abc", "file://host/path", "file://relative", "s3://",
      "s3://ab", "s3://Abc", "s3://a_b_c", "s3://-abc", "s3://abc-", "s3://a..b",
      "s3://192.168.0.1",
      "s3://xn--abc", "s3://abc-s3alias", "s3://abc--use1-az4--x-s3",
      "s3://" + String(repeating: "a", count: 64),
      "s3://abc/", "s3://abc/a/", "s3://abc//a", "s3://abc/a//b", "s3://abc/../a", "s3://abc/./a",
      "s3://abc/a b", "s3://abc/é", "s3://abc/a%2Fb", "s3://abc/a?b", "s3://user@abc/x",
      "s3://abc/" + String(repeating: "a", count: 201),
      "file:///", "file:///a/", "file:///a//b", "file:///a/../b", "file:///a/./b", "file:///a%20b",
      "file:///a?b", "file:///a#b", "file:///a\nb",
      "file:///" + String(repeating: "a", count: 2_000),
    ])
  func refuses(_ text: String) {
    #expect(throws: ReplicationTarget.Fault.self) { try ReplicationTarget(parsing: text) }
  }

  struct Address: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var url: String?
    var region: String?
    var bucket = "copies"
    let origin: String
    var path = ""
    var isLoopback = false
  }

  static let addresses: [Address] = [
    .init(
      testDescription: "Amazon's, by the bucket's name", region: "eu-central-1",
      origin: "https://copies.s3.eu-central-1.amazonaws.com"),
    .init(
      testDescription: "Amazon's, a bucket with dots", region: "eu-central-1", bucket: "my.copies",
      origin: "https://s3.eu-central-1.amazonaws.com", path: "/my.copies"),
    .init(
      testDescription: "Amazon's in China", region: "cn-north-1",
      origin: "https://copies.s3.cn-north-1.amazonaws.com.cn"),
    .init(
      testDescription: "another store", url: "https://S3.Example.com:443/",
      origin: "https://s3.example.com", path: "/copies"),
    .init(
      testDescription: "another store's port", url: "https://s3.example.com:9000",
      origin: "https://s3.example.com:9000", path: "/copies"),
    .init(
      testDescription: "one on this machine", url: "http://127.0.0.1:8333",
      origin: "http://127.0.0.1:8333", path: "/copies", isLoopback: true),
    .init(
      testDescription: "one on this machine by IPv6", url: "http://[::1]:80",
      origin: "http://[::1]", path: "/copies", isLoopback: true),
    .init(
      testDescription: "one on this machine by name", url: "http://LocalHost:1",
      origin: "http://localhost:1", path: "/copies", isLoopback: true),
  ]

  @Test("a bucket's address follows from endpoint and region", arguments: addresses)
  func address(_ given: Address) throws {
    let endpoint = try S3Endpoint(url: given.url, region: given.region, bucket: given.bucket)
    expectEqual(endpoint.origin, given.origin)
    expectEqual(endpoint.bucketPath, given.path)
    expectEqual(endpoint.isLoopback, given.isLoopback)
  }

  static let refusedEndpoints: [(String?, String?, S3Endpoint.Fault)] = [
    (nil, nil, .region), (nil, "EU", .badRegion), ("https://a.example", "a.b/c", .badRegion),
    ("", nil, .notAURL), ("https://", nil, .notAURL), ("https://a b", nil, .notAURL),
    ("ftp://a.example", nil, .scheme), ("http://a.example", nil, .remoteHTTP),
    ("http://128.0.0.1", nil, .remoteHTTP), ("http://localhost.example", nil, .remoteHTTP),
    ("https://u:p@a.example", nil, .credentials), ("https://u@a.example", nil, .credentials),
    ("https://a.example/x", nil, .path), ("https://a.example/?x", nil, .path),
    ("https://a.example/#x", nil, .path),
  ]

  @Test("other endpoints are refused", arguments: refusedEndpoints)
  func refusedEndpoint(_ url: String?, _ region: String?, _ fault: S3Endpoint.Fault) {
    #expect(throws: fault) { try S3Endpoint(url: url, region: region, bucket: "copies") }
  }

  @Test("a bucket needs credentials; a directory needs nothing")
  func stores() throws {
    let bucket = try ReplicationTarget(parsing: "s3://abc/p")
    #expect(throws: ReplicationTarget.Fault.self) { try bucket.store(nil) }
    let credentials = try #require(S3Credentials(accessKeyID: "I", secretAccessKey: "S"))
    let settings = ReplicationTarget.S3Settings(
      endpoint: nil, region: "eu-west-1", credentials: credentials)
    try expectEqual(bucket.store(settings).name, "s3://abc/p")
    try expectEqual(ReplicationTarget(parsing: "file:///a/b").store(nil).name, "file:///a/b")
  }
}

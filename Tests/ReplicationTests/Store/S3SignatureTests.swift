// Signatures against those that Amazon publishes for its API.
import Replication
import TestSupport
import Testing

@Suite("signatures of S3 requests") struct S3SignatureTests {
  /// The key of Amazon's examples; it opens nothing.
  static let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
  static let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

  struct Example: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var method = "GET"
    var path = "/"
    var query: [(name: String, value: String)] = []
    var headers: [(name: String, value: String)] = []
    var payload = S3SignatureTests.empty
    let signature: String
  }

  static let examples: [Example] = [
    .init(
      testDescription: "a part of an object", path: "/test.txt", headers: [("range", "bytes=0-9")],
      signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    .init(
      testDescription: "a put with a key that is encoded", method: "PUT",
      path: "/" + S3Signature.encoded("test$file.text"),
      headers: [
        ("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
      ], payload: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
      signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    .init(
      testDescription: "a parameter without a value", query: [("lifecycle", "")],
      signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    .init(
      testDescription: "a list, its parameters in another order",
      query: [("prefix", "J"), ("max-keys", "2")],
      signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
  ]

  @Test("Amazon's examples have the published signatures", arguments: examples)
  func example(_ given: Example) throws {
    let credentials = try #require(
      S3Credentials(accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: Self.secret))
    let signature = S3Signature(credentials: credentials, region: "us-east-1")
    let headers = [
      ("x-amz-date", "20130524T000000Z"), ("host", "examplebucket.s3.amazonaws.com"),
      ("x-amz-content-sha256", given.payload),
    ]
    let text = signature.authorization(
      of: S3Signature.Request(
        method: given.method, path: given.path, query: given.query,
        headers: given.headers + headers, payload: given.payload, time: "20130524T000000Z"))
    #expect(
      text.hasPrefix(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"))
    #expect(text.hasSuffix(",Signature=\(given.signature)"))
  }

  @Test("a query is sorted, and all but letters, digits and -._~ is encoded")
  func query() {
    let query = S3Signature.query([
      ("start-after", "a/b c+=&é"), ("list-type", "2"), ("prefix", "-._~"), ("Big", ""),
    ])
    expectEqual(query, "Big=&list-type=2&prefix=-._~&start-after=a%2Fb%20c%2B%3D%26%C3%A9")
    expectEqual(S3Signature.encoded("a/b:c", keepsSlashes: true), "a/b%3Ac")
  }

  @Test("the time is that of the header")
  func time() { expectEqual(S3Signature.time(ms: 1_369_353_600_999), "20130524T000000Z") }
}

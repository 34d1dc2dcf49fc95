// Signatures of requests: AWS Signature Version 4, in the header `Authorization`.
import Base
import CCrypto

/// Signs requests to one region's S3. libcurl's own signatures differ from version to version; see docs/decisions.md.
package struct S3Signature: Sendable {
  let credentials: S3Credentials
  let region: String

  package init(credentials: S3Credentials, region: String) {
    (self.credentials, self.region) = (credentials, region)
  }

  /// What is signed of a request.
  package struct Request {
    let method: String
    /// As it is sent, percent-encoded once.
    let path: String
    /// Names and values before they are encoded.
    let query: [(name: String, value: String)]
    /// Names in lower case; values without blanks at their ends.
    let headers: [(name: String, value: String)]
    /// The header `x-amz-content-sha256`.
    let payload: String
    /// `20130524T000000Z`, the header `x-amz-date`.
    let time: String

    package init(
      method: String, path: String, query: [(name: String, value: String)],
      headers: [(name: String, value: String)], payload: String, time: String
    ) {
      (self.method, self.path, self.query) = (method, path, query)
      (self.headers, self.payload, self.time) = (headers, payload, time)
    }
  }

  /// The header's value.
  package func authorization(of request: Request) -> String {
    let headers = request.headers.sorted { ObjectKey.precedes($0.name, $1.name) }
    let names = headers.map { $0.name }.joined(separator: ";")
    let lines =
      [request.method, request.path, Self.query(request.query)]
      + headers.map { "\($0.name):\($0.value)" } + ["", names, request.payload]
    let scope = "\(request.time.prefix(8))/\(region)/s3/aws4_request"
    let text = [
      "AWS4-HMAC-SHA256", request.time, scope,
      Self.hash(lines.joined(separator: "\n")),
    ].joined(separator: "\n")
    let signature = Self.code(of: text, key: key(day: String(request.time.prefix(8))))
    return "AWS4-HMAC-SHA256 Credential=\(credentials.accessKeyID)/\(scope),"
      + "SignedHeaders=\(names),Signature=\(signature.withUnsafeBytes { Hex.text($0) })"
  }

  /// The key of one day.
  package func key(day: String) -> [UInt8] {
    [day, region, "s3", "aws4_request"].reduce(Array("AWS4\(credentials.secretAccessKey)".utf8)) {
      Self.code(of: $1, key: $0)
    }
  }

  /// The query as it is signed and sent: sorted by the encoded names, of which none may be
  /// there twice.
  package static func query(_ parameters: [(name: String, value: String)]) -> String {
    let pairs = parameters.map { (name: encoded($0.name), value: encoded($0.value)) }
    return pairs.sorted { ObjectKey.precedes($0.name, $1.name) }
      .map { "\($0.name)=\($0.value)" }.joined(separator: "&")
  }

  /// Percent-encodes all bytes but letters, digits and `-._~`.
  package static func encoded(_ text: String, keepsSlashes: Bool = false) -> String {
    var result: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: result.append(byte)
      case 0x2F where keepsSlashes: result.append(byte)
      default:
        result.append(UInt8(ascii: "%"))
        for digit in [byte >> 4, byte & 15] {
          let lower = Hex.digit(digit)
          result.append(lower >= 0x61 ? lower - 0x20 : lower)
        }
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// `20130524T000000Z` of an instant.
  package static func time(ms: Int64) -> String {
    String(Timestamp.text(ms: ms).prefix(19).filter { $0 != "-" && $0 != ":" }) + "Z"
  }

  private static func hash(_ text: String) -> String {
    Array(text.utf8).withUnsafeBytes { SHA256.hash($0).hex }
  }

  /// HMAC-SHA-256.
  private static func code(of text: String, key: [UInt8]) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: SHA256Digest.byteCount)
    var byteCount = 0
    let message = Array(text.utf8)
    let made = EVP_Q_mac(
      nil, "HMAC", nil, "SHA256", nil, key, key.count, message, message.count, &code, code.count,
      &byteCount)
    guard made != nil, byteCount == code.count else { fatalError("HMAC: libcrypto failed") }
    return code
  }
}

// Signatures of requests: AWS Signature Version 4, in the header `Authorization`.
import Base
import CCrypto
import HTTPClient

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

// MARK: - Where a bucket is: the address of requests, and which addresses are refused

/// The address of a bucket.
package struct S3Endpoint: Sendable, Equatable {
  /// `https://host`, with the port if it is not the scheme's.
  package let origin: String
  /// The header `Host`.
  let host: String
  /// What the path begins with: `/bucket`, or nothing if the bucket is in the host's name.
  package let bucketPath: String
  /// Connect directly, whatever proxies the environment names.
  package let isLoopback: Bool

  /// Why an endpoint is refused; never shows it, because it may contain secrets.
  package enum Fault: String, Error, Sendable, CustomStringConvertible {
    case notAURL = "it is not a URL"
    case credentials = "it contains a user name or password; name a credentials file instead"
    case scheme = "it must use https, or http to a loopback address"
    case remoteHTTP = "http is allowed only to loopback addresses; a copy needs https"
    case path = "it may have no path, query or fragment"
    case region = "the region must be given"
    case badRegion = "a region has 1 to 40 lower-case letters, digits and hyphens"

    package var description: String { rawValue }
  }

  /// A bucket of Amazon S3, or with `url` of the store there.
  package init(url: String?, region: String?, bucket: String) throws(Fault) {
    if let region, !Self.isRegion(region) { throw .badRegion }
    if let url {
      let store = try Self.address(url)
      (origin, host, isLoopback) = ("\(store.scheme)://\(store.host)", store.host, store.isLoopback)
      bucketPath = "/" + bucket
    } else {
      guard let region else { throw .region }
      let service = "s3.\(region).amazonaws.com" + (region.hasPrefix("cn-") ? ".cn" : "")
      // The certificate of the service covers one label before its name.
      let isInPath = bucket.utf8.contains(UInt8(ascii: "."))
      isLoopback = false
      host = isInPath ? service : "\(bucket).\(service)"
      bucketPath = isInPath ? "/" + bucket : ""
      origin = "https://\(host)"
    }
  }

  static func isRegion(_ text: String) -> Bool {
    (1...40).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-")
      }
  }

  private static func address(_ url: String) throws(Fault) -> HTTPURL {
    guard !url.isEmpty, url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw .notAURL }
    let address: HTTPURL
    do throws(HTTPURL.Fault) { address = try HTTPURL(url) } catch {
      switch error {
      case .notAURL: throw .notAURL
      case .credentials: throw .credentials
      case .scheme: throw .scheme
      case .remoteHTTP: throw .remoteHTTP
      }
    }
    guard address.isOrigin else { throw .path }
    return address
  }
}

// MARK: - What an answer that is not the wanted one means

/// The kind of error and its cause in words.
struct S3Refusal: Equatable {
  let kind: ObjectStoreError.Kind
  /// Has the status and the store's error code; starts with a lower-case letter.
  let cause: String

  /// - Parameter region: what the header says.
  init(status: Int, _ document: S3ErrorDocument?, region: String?, signedRegion: String) {
    let code = document?.code
    let shown = "the store answers \(status)" + (code.map { " \($0)" } ?? "")
    kind = Self.kind(status: status, code: code)
    let region = region ?? document?.region
    switch (kind, code) {
    case (.noBucket, _) where region != nil && region != signedRegion:
      cause = "\(shown): the bucket is in the region \(region ?? "")"
    case (.noBucket, "NoSuchBucket"): cause = "\(shown): there is no such bucket"
    case (.noBucket, "InvalidBucketName"): cause = "\(shown): the bucket cannot have this name"
    case (.noBucket, _): cause = "\(shown): the bucket is elsewhere; check region and endpoint"
    case (.denied, "RequestTimeTooSkewed"): cause = "\(shown): this machine's clock is wrong"
    case (.denied, "SignatureDoesNotMatch"): cause = "\(shown): the secret access key is wrong"
    case (.denied, "InvalidAccessKeyId"): cause = "\(shown): the access key is unknown"
    case (.denied, "ExpiredToken"): cause = "\(shown): the credentials have expired"
    case (.denied, "AccessDenied") where status == 403:
      cause =
        "\(shown): the credentials do not allow this; they need to read, write, delete and list"
    case (.unexpected, _) where status == 404:
      cause = "\(shown), and does not name what is missing; check the endpoint"
    case (.unexpected, _) where status == 501:
      cause = "\(shown): it cannot do what a copy needs"
    default: cause = shown
    }
  }

  private static func kind(status: Int, code: String?) -> ObjectStoreError.Kind {
    switch code {
    case "NoSuchBucket", "InvalidBucketName", "AuthorizationHeaderMalformed",
      "IllegalLocationConstraintException", "PermanentRedirect", "TemporaryRedirect":
      return .noBucket
    case "AccessDenied", "ExpiredToken", "InvalidToken", "TokenRefreshRequired",
      "InvalidAccessKeyId", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "AccountProblem":
      return .denied
    case "QuotaExceeded", "XMinioStorageFull", "InsufficientStorage": return .full
    // The last comes with status 400: the connection was idle for too long.
    case "SlowDown", "ServiceUnavailable", "InternalError", "ConditionalRequestConflict",
      "OperationAborted", "RequestTimeout":
      return .unavailable
    default: break
    }
    switch status {
    case 301, 302, 307, 308: return .noBucket
    case 401, 403: return .denied
    case 408, 409, 425, 429: return .unavailable
    case 501, 505: return .unexpected
    case 507: return .full
    case 500...599: return .unavailable
    default: return .unexpected
    }
  }
}

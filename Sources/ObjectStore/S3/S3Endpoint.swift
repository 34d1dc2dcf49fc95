// Where a bucket is: the address of requests, and which addresses are refused.
import CCurl
import Glibc

/// The address of a bucket.
package struct S3Endpoint: Sendable, Equatable {
  /// `https://host`, with the port if it is not the scheme's.
  package let origin: String
  /// The only protocol allowed.
  let scheme: String
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
      (scheme, host, isLoopback) = try Self.parts(of: url)
      bucketPath = "/" + bucket
    } else {
      guard let region else { throw .region }
      let service = "s3.\(region).amazonaws.com" + (region.hasPrefix("cn-") ? ".cn" : "")
      // The certificate of the service covers one label before its name.
      let isInPath = bucket.utf8.contains(UInt8(ascii: "."))
      (scheme, isLoopback) = ("https", false)
      host = isInPath ? service : "\(bucket).\(service)"
      bucketPath = isInPath ? "/" + bucket : ""
    }
    origin = "\(scheme)://\(host)"
  }

  static func isRegion(_ text: String) -> Bool {
    (1...40).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-")
      }
  }

  private static func parts(
    of url: String
  ) throws(Fault) -> (scheme: String, host: String, isLoopback: Bool) {
    guard let parts = curl_url() else { throw .notAURL }
    defer { curl_url_cleanup(parts) }
    guard !url.isEmpty, url.utf8.count <= 2_048,
      url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
      curl_url_set(parts, CURLUPART_URL, url, UInt32(CURLU_NON_SUPPORT_SCHEME)) == CURLUE_OK
    else { throw .notAURL }
    guard part(CURLUPART_USER, of: parts) == nil, part(CURLUPART_PASSWORD, of: parts) == nil
    else { throw .credentials }
    guard let scheme = part(CURLUPART_SCHEME, of: parts)?.lowercased() else { throw .notAURL }
    guard scheme == "https" || scheme == "http" else { throw .scheme }
    guard let host = part(CURLUPART_HOST, of: parts)?.lowercased(), !host.isEmpty
    else { throw .notAURL }
    let isLoopback = isLoopback(host)
    guard scheme == "https" || isLoopback else { throw .remoteHTTP }
    guard part(CURLUPART_PATH, of: parts) ?? "/" == "/", part(CURLUPART_QUERY, of: parts) == nil,
      part(CURLUPART_FRAGMENT, of: parts) == nil
    else { throw .path }
    let port = part(CURLUPART_PORT, of: parts)
    let standardPort = scheme == "http" ? "80" : "443"
    return (scheme, host + (port.flatMap { $0 == standardPort ? nil : ":\($0)" } ?? ""), isLoopback)
  }

  private static func part(_ part: CURLUPart, of parts: OpaquePointer) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(parts, part, &text, 0) == CURLUE_OK, let text else { return nil }
    defer { curl_free(text) }
    return String(cString: text)
  }

  /// `localhost` (which libcurl never looks up), 127.0.0.0/8 or ::1.
  private static func isLoopback(_ host: String) -> Bool {
    if host == "localhost" || host == "[::1]" { return true }
    var address = in_addr()
    return inet_pton(AF_INET, host, &address) == 1
      && UInt32(bigEndian: address.s_addr) >> 24 == 127
  }
}

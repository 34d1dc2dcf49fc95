// The target of a copy, as configurations and command lines name it.

/// A bucket with a prefix, or a directory.
package enum ReplicationTarget: Sendable, Equatable, CustomStringConvertible {
  /// The prefix may be empty.
  case s3(bucket: String, prefix: String)
  case directory(path: String)

  /// Why a target is rejected; starts with a lower-case letter.
  package struct Fault: Error, Sendable, Equatable, CustomStringConvertible {
    package let cause: String
    package var description: String { cause }

    package init(cause: String) { self.cause = cause }
  }

  private static let prefixByteCountMax = 200
  private static let pathByteCountMax = 1_024

  /// Reads `s3://bucket`, `s3://bucket/prefix` or `file:///path`.
  package init(parsing text: String) throws(Fault) {
    if text.hasPrefix("s3://") {
      let rest = text.dropFirst(5)
      let bucket = rest.prefix { $0 != "/" }
      try Self.checkBucket(bucket)
      let prefix = rest.dropFirst(bucket.count + 1)
      if rest.count > bucket.count { try Self.checkPrefix(prefix) }
      self = .s3(bucket: String(bucket), prefix: String(prefix))
    } else if text.hasPrefix("file:///") {
      let path = text.dropFirst(7)
      try Self.checkPath(path)
      self = .directory(path: String(path))
    } else {
      throw Fault(cause: "it is neither s3://BUCKET/PREFIX nor file:///PATH")
    }
  }

  /// In the form that `init(parsing:)` reads.
  package var description: String {
    switch self {
    case .s3(let bucket, let prefix): prefix.isEmpty ? "s3://\(bucket)" : "s3://\(bucket)/\(prefix)"
    case .directory(let path): "file://\(path)"
    }
  }

  /// S3's rules for bucket names. Other kinds of buckets, whose names end with `--x-s3` and the like, do not list in
  /// order.
  private static func checkBucket(_ name: Substring) throws(Fault) {
    guard (3...63).contains(name.utf8.count),
      name.utf8.allSatisfy({ isLetterOrDigit($0) || $0 == 0x2D || $0 == 0x2E }),
      let first = name.utf8.first, let last = name.utf8.last, isLetterOrDigit(first),
      isLetterOrDigit(last), !has(name, ".."), !isAddress(name)
    else {
      throw Fault(
        cause: "a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens, "
          + "and starts and ends with a letter or digit")
    }
    let isReserved =
      ["xn--", "sthree-", "amzn-s3-demo-"].contains { name.hasPrefix($0) }
      || ["-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"].contains { name.hasSuffix($0) }
    if isReserved { throw Fault(cause: "S3 reserves this bucket's name") }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte)
  }

  private static func has(_ text: Substring, _ part: String) -> Bool {
    text.indices.contains { text[$0...].hasPrefix(part) }
  }

  private static func isAddress(_ name: Substring) -> Bool {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts.allSatisfy { !$0.isEmpty && $0.allSatisfy { $0.isNumber } }
  }

  private static func checkPrefix(_ prefix: Substring) throws(Fault) {
    let isPlain = prefix.utf8.allSatisfy { byte in
      isLetterOrDigit(byte) || (0x41...0x5A).contains(byte)
        || [0x2D, 0x2E, 0x2F, 0x5F].contains(byte)
    }
    guard isPlain, prefix.utf8.count <= prefixByteCountMax else {
      throw Fault(
        cause: "a prefix has at most \(prefixByteCountMax) ASCII letters, digits, and . _ / -")
    }
    try checkParts(prefix, "the prefix")
  }

  private static func checkPath(_ path: Substring) throws(Fault) {
    guard path.utf8.count <= pathByteCountMax,
      path.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
    else {
      throw Fault(
        cause: "a path has at most \(pathByteCountMax) bytes and no control characters")
    }
    // The path is used as written. In a URL these characters would have another meaning.
    guard !path.contains(where: { "%?#".contains($0) }) else {
      throw Fault(cause: "a path may not contain %, ? or #")
    }
    try checkParts(path.dropFirst(), "the path")
  }

  private static func checkParts(_ text: Substring, _ name: String) throws(Fault) {
    for part in text.split(separator: "/", omittingEmptySubsequences: false) {
      if part.isEmpty { throw Fault(cause: "\(name) has an empty part, or ends with a slash") }
      if part == "." || part == ".." { throw Fault(cause: "\(name) has a part '\(part)'") }
    }
  }
}

extension ReplicationTarget {
  /// What a store that speaks S3 needs beyond the target.
  package struct S3Settings: Sendable {
    /// Nil for Amazon S3.
    package var endpoint: String?
    /// Nil if the endpoint's store has no regions.
    package var region: String?
    package var credentials: S3Credentials

    package init(endpoint: String?, region: String?, credentials: S3Credentials) {
      (self.endpoint, self.region, self.credentials) = (endpoint, region, credentials)
    }
  }

  /// The region for which requests to a store without regions are signed.
  private static let commonRegion = "us-east-1"

  /// Creates the store; sends no request yet.
  /// - Parameter settings: needed for S3; ignored for a directory.
  package func store(_ settings: S3Settings?) throws(Fault) -> any ObjectStore {
    switch self {
    case .directory(let path): return DirectoryStore(path: path)
    case .s3(let bucket, let prefix):
      guard let settings else { throw Fault(cause: "credentials are missing") }
      let endpoint: S3Endpoint
      do throws(S3Endpoint.Fault) {
        endpoint = try S3Endpoint(url: settings.endpoint, region: settings.region, bucket: bucket)
      } catch { throw Fault(cause: "the endpoint or region is refused: \(error)") }
      return S3Store(
        bucket: bucket, prefix: prefix, endpoint: endpoint,
        region: settings.region ?? Self.commonRegion, credentials: settings.credentials)
    }
  }
}

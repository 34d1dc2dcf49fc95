// The routes, the checks of a request before its body is read, and the tokens.
package import Base

/// The target of a request.
enum Route: Equatable {
  case upload
  case transactions
  case notifications
  /// The id as given in the path.
  case receipt(String)
  /// What a user bought.
  case purchases
  /// What a user is entitled to.
  case entitlements
  /// Erasure requests.
  case erasures
  /// An erasure request, by its id as given in the path.
  case erasure(String)
  case health
  case readiness
  case metrics
  case unknown

  static let receiptsPath = "/client/itunes_connect/receipts"
  static let transactionsPath = "/client/app_store/transactions"
  static let purchasesPath = "/v1/purchases"
  static let entitlementsPath = "/v1/entitlements"
  static let erasuresPath = "/v1/erasures"
  /// The access log's name for the path of notifications, whatever it is.
  static let notificationsTemplate = "/app_store/notifications"

  /// A path has one spelling: no trailing slash, no percent-encoding, case matters; ids are in lower case.
  /// - Parameter notificationsPath: the configured one.
  init(path: String, servesMetrics: Bool, notificationsPath: String) {
    if servesMetrics {
      self = path == "/metrics" ? .metrics : .unknown
    } else if path == Self.receiptsPath {
      self = .upload
    } else if path == Self.transactionsPath {
      self = .transactions
    } else if path == Self.purchasesPath {
      self = .purchases
    } else if path == Self.entitlementsPath {
      self = .entitlements
    } else if path == Self.erasuresPath {
      self = .erasures
    } else if path.hasPrefix(Self.erasuresPath + "/") {
      let id = path.dropFirst(Self.erasuresPath.count + 1)
      self = id.isEmpty || id.contains("/") ? .unknown : .erasure(String(id))
    } else if path == "/healthz" {
      self = .health
    } else if path == "/readyz" {
      self = .readiness
    } else if path.hasPrefix(Self.receiptsPath + "/") {
      let id = path.dropFirst(Self.receiptsPath.count + 1)
      self = id.isEmpty || id.contains("/") ? .unknown : .receipt(String(id))
    } else if path == notificationsPath {
      self = .notifications
    } else {
      self = .unknown
    }
  }

  /// The path's template, without ids; nil for an unknown path.
  var template: String? {
    switch self {
    case .upload: Self.receiptsPath
    case .transactions: Self.transactionsPath
    case .notifications: Self.notificationsTemplate
    case .receipt: Self.receiptsPath + "/{id}"
    case .purchases: Self.purchasesPath
    case .entitlements: Self.entitlementsPath
    case .erasures: Self.erasuresPath
    case .erasure: Self.erasuresPath + "/{id}"
    case .health: "/healthz"
    case .readiness: "/readyz"
    case .metrics: "/metrics"
    case .unknown: nil
    }
  }

  /// Whether it has a body.
  private var isPost: Bool {
    self == .upload || self == .transactions || self == .notifications || namesUser
  }

  /// Whether its body is small because it contains little more than a user.
  var namesUser: Bool { self == .purchases || self == .entitlements || self == .erasures }

  var allowedMethods: [String] { isPost ? ["POST"] : ["GET", "HEAD"] }

  /// The scope that a request's token must have; nil if no token is needed.
  var scope: Configuration.Token.Scope? {
    switch self {
    case .upload, .transactions, .receipt: .upload
    case .purchases, .entitlements: .read
    case .erasures, .erasure: .erase
    // The signature in its body is the proof.
    case .notifications: nil
    case .health, .readiness, .metrics, .unknown: nil
    }
  }

  var needsToken: Bool { scope != nil }

  /// Rejects requests whose head is wrong, including those with an unknown token.
  /// - Returns: the token's app family, if a token is needed.
  func admit(
    _ head: RequestHead, authenticator: TokenAuthenticator, bodyBytesMax: Int
  ) throws(HTTPResponse) -> UUID16? {
    guard self != .unknown else { throw .pathNotFound }
    guard allowedMethods.contains(head.method) else {
      throw .methodNotAllowed(allowedMethods.joined(separator: ", "))
    }
    let grant = needsToken ? try Self.grant(head, authenticator) : nil
    if let scope, let grant, grant.scope != scope { throw .insufficientScope(scope) }
    // A token or an id in a query would end up in the logs of a proxy.
    guard !head.hasQuery else {
      throw HTTPResponse(400, .unexpectedQuery, "this path takes no query")
    }
    if isPost {
      try Self.checkContent(head, bodyBytesMax: bodyBytesMax)
    } else if head.hasBody {
      throw HTTPResponse(400, .unexpectedBody, "this request takes no body")
    }
    return grant?.appFamily
  }

  private static func grant(
    _ head: RequestHead, _ authenticator: TokenAuthenticator
  ) throws(HTTPResponse) -> TokenGrant {
    guard let value = head.authorizations.first else {
      throw .unauthorized("Authorization is missing")
    }
    guard head.authorizations.count == 1 else {
      throw .unauthorized("Authorization is given more than once", error: "invalid_request")
    }
    guard let token = BearerToken.text(in: value) else {
      throw .unauthorized(
        "Authorization is not Bearer and a token", error: "invalid_request")
    }
    guard let grant = authenticator.grant(of: token) else {
      throw .unauthorized("the token is unknown or revoked", error: "invalid_token")
    }
    return grant
  }

  private static func checkContent(
    _ head: RequestHead, bodyBytesMax: Int
  ) throws(HTTPResponse) {
    guard head.contentTypes.count == 1, let type = head.contentTypes.first,
      MediaType.isJSON(type)
    else {
      throw HTTPResponse(
        415, .unsupportedMediaType, "Content-Type is not application/json in UTF-8")
    }
    guard head.contentEncodings.allSatisfy({ $0.lowercased() == "identity" }) else {
      throw HTTPResponse(415, .unsupportedMediaType, "the body has a Content-Encoding")
    }
    // RFC 9112, section 6.3, lets a server require this.
    if head.isUnboundedForLibrary {
      throw HTTPResponse(
        411, .lengthRequired,
        "white space follows Transfer-Encoding: remove it, or send Content-Length")
    }
    if let length = head.contentLength, length > bodyBytesMax {
      throw .bodyTooLarge(limitBytes: bodyBytesMax)
    }
  }
}

/// `Bearer` and a token, in the form of RFC 6750.
enum BearerToken {
  static let bytesMax = 512

  static func text(in value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    let scheme = StaticString("bearer")
    var offset = scheme.utf8CodeUnitCount
    guard value.count > offset, value[offset] == 0x20 else { return nil }
    for index in 0..<offset where value[index] | 0x20 != scheme.utf8Start[index] { return nil }
    while offset < value.count, value[offset] == 0x20 { offset += 1 }
    let token = UnsafeRawBufferPointer(rebasing: value[offset...])
    guard !token.isEmpty, token.count <= bytesMax, token.allSatisfy(isTokenByte) else {
      return nil
    }
    return token
  }

  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "+"), UInt8(ascii: "/"),
      UInt8(ascii: "="):
      true
    default: false
    }
  }
}

/// The one media type that is accepted.
enum MediaType {
  /// `application/json`, with or without `charset=utf-8`. Other parameters are ignored.
  static func isJSON(_ value: String) -> Bool {
    if value == "application/json" { return true }
    var parts = value.split(separator: ";", omittingEmptySubsequences: false).map(trimmed)
    guard !parts.isEmpty, parts.removeFirst().lowercased() == "application/json" else {
      return false
    }
    return parts.allSatisfy { parameter in
      guard !parameter.isEmpty else { return true }
      let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2 else { return false }
      guard pair[0].lowercased() == "charset" else { return true }
      return ["utf-8", "\"utf-8\"", "utf8", "\"utf8\""].contains(pair[1].lowercased())
    }
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var text = text
    while let first = text.first, first == " " || first == "\t" { text = text.dropFirst() }
    while let last = text.last, last == " " || last == "\t" { text = text.dropLast() }
    return text
  }
}

// MARK: - Tokens

/// What a token allows: requests of one scope about one app family.
package struct TokenGrant: Equatable, Sendable {
  package let appFamily: UUID16
  package let scope: Configuration.Token.Scope
}

/// The tokens of a configuration; they may be replaced while requests are answered.
package final class TokenAuthenticator: Sendable {
  private struct Known: Sendable {
    let sha256: SHA256Digest
    let grant: TokenGrant
  }

  private let known: Monitor<[Known]>

  package init(_ tokens: [Configuration.Token] = []) {
    known = Monitor(Self.usable(tokens))
  }

  /// Replaces the tokens for all later requests.
  package func replace(_ tokens: [Configuration.Token]) {
    let usable = Self.usable(tokens)
    known.withLock { $0 = usable }
  }

  /// A revoked token, or one whose app family id is invalid, is rejected.
  private static func usable(_ tokens: [Configuration.Token]) -> [Known] {
    tokens.compactMap { token in
      guard token.revokedAtMs == nil, let family = UUID16(token.appFamilyID) else { return nil }
      return Known(
        sha256: token.sha256, grant: TokenGrant(appFamily: family, scope: token.scope))
    }
  }

  /// What a token allows; nil for a token that is unknown or revoked.
  package func grant(of token: UnsafeRawBufferPointer) -> TokenGrant? {
    let digest = SHA256.hash(token)
    let candidates = known.withLock { $0 }
    var found: TokenGrant?
    // Every candidate is compared in full, so that the time reveals nothing about near matches.
    for candidate in candidates where Self.isEqual(candidate.sha256, digest) {
      found = candidate.grant
    }
    return found
  }

  private static func isEqual(_ left: SHA256Digest, _ right: SHA256Digest) -> Bool {
    left.withUnsafeBytes { left in
      right.withUnsafeBytes { right in
        var difference: UInt8 = 0
        for index in 0..<SHA256Digest.byteCount { difference |= left[index] ^ right[index] }
        return difference == 0
      }
    }
  }
}

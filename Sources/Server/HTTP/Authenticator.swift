// Whose token a request bears.
package import Base

/// What a token allows: requests of one scope about one app family.
package struct TokenGrant: Equatable, Sendable {
  package let appFamily: UUID16
  package let scope: Configuration.Token.Scope

  package init(appFamily: UUID16, scope: Configuration.Token.Scope) {
    self.appFamily = appFamily
    self.scope = scope
  }
}

/// The holder of the tokens.
package protocol Authenticator: AnyObject, Sendable {
  /// What a token allows; nil for a token that is unknown or revoked.
  func grant(of token: UnsafeRawBufferPointer) -> TokenGrant?
}

/// The tokens of a configuration; they may be replaced while requests are answered.
package final class TokenAuthenticator: Authenticator {
  private struct Known: Sendable {
    let sha256: SHA256Digest
    let grant: TokenGrant
  }

  private let known: Monitor<[Known]>

  package init(_ tokens: [Configuration.Token] = []) {
    known = Monitor(Self.usable(tokens))
  }

  /// Puts other tokens in force, for every request that comes from now on.
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

  package func grant(of token: UnsafeRawBufferPointer) -> TokenGrant? {
    let digest = SHA256.hash(token)
    let candidates = known.withLock { $0 }
    var found: TokenGrant?
    // Every candidate is compared in full: the time taken reveals nothing about near matches.
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

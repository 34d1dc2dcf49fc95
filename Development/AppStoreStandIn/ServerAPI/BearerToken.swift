// The tokens that callers of the App Store Server API show.
import AppStoreAuthority
import Base

/// Checks tokens (JWT, ES256) as the App Store does.
struct BearerToken: Sendable {
  let key: SigningKey
  let bundleID: String

  private static let lengthMax = 4_096
  private static let lifetimeMaxSeconds: Int64 = 3_600
  /// By how much clocks may differ.
  private static let skewSeconds: Int64 = 60

  /// Whether the value of the header `Authorization` lets its sender in.
  /// - Parameter nowSeconds: epoch seconds.
  func isGood(_ authorization: String?, nowSeconds: Int64) -> Bool {
    guard let authorization, authorization.hasPrefix("Bearer "),
      authorization.utf8.count <= Self.lengthMax
    else { return false }
    let parts = authorization.utf8.dropFirst(7)
      .split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map { Array($0) }
    guard parts.count == 3, let header = Self.object(parts[0]), let claims = Self.object(parts[1]),
      let signature = try? Base64.decode(parts[2], .url)
    else { return false }
    return header["alg"]?.stringValue == "ES256" && header["typ"]?.stringValue == "JWT"
      && header["kid"]?.stringValue?.isEmpty == false
      && isGood(claims: claims, nowSeconds: nowSeconds)
      && key.verifies(es256: signature, of: parts[0] + [UInt8(ascii: ".")] + parts[1])
  }

  private func isGood(claims: JSONValue, nowSeconds: Int64) -> Bool {
    guard let expires = claims["exp"]?.integerValue, claims["iss"]?.stringValue?.isEmpty == false
    else { return false }
    // Apple's own libraries leave it out.
    let issued = claims["iat"].map { $0.integerValue ?? .max } ?? nowSeconds
    return claims["aud"]?.stringValue == "appstoreconnect-v1"
      && claims["bid"]?.stringValue == bundleID && issued <= nowSeconds + Self.skewSeconds
      && expires > nowSeconds
      && expires.subtractingReportingOverflow(issued).partialValue <= Self.lifetimeMaxSeconds
  }

  private static func object(_ part: [UInt8]) -> JSONValue? {
    // `try?`: the App Store gives no cause either.
    (try? Base64.decode(part, .url)).flatMap { try? JSONValue($0) }
  }
}

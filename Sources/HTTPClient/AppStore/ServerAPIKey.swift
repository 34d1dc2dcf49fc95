// The private key of the App Store Server API, and the tokens that it signs.
private import Base
private import CCrypto

/// Why a text is not a key of the App Store Server API. No case holds any of the text.
package enum ServerAPIKeyError: String, Error, Sendable {
  case notPKCS8 =
    "must be a private key in PEM (PKCS#8, not encrypted), as App Store Connect gives it"
  case notP256 = "must be a private key on the curve P-256"
}

/// A private key on P-256. Safe to use from several threads at once.
package final class ServerAPIKey: @unchecked Sendable, Equatable {
  // Unchecked: libcrypto locks what it computes late inside a key; nothing else changes it.
  private let handle: OpaquePointer
  /// Of the file, to tell keys apart.
  private let digest: SHA256Digest

  /// The largest file of a key; a real one has 257 bytes.
  package static let sizeBytesMax = 8 << 10

  /// - Parameter pem: the file as App Store Connect gives it, `AuthKey_….p8`.
  package init(pem: [UInt8]) throws(ServerAPIKeyError) {
    guard pem.count <= Self.sizeBytesMax,
      String(decoding: pem, as: UTF8.self).contains("-----BEGIN PRIVATE KEY-----")
    else { throw .notPKCS8 }
    let read = pem.withUnsafeBytes { text -> OpaquePointer? in
      // It refers to the text, and copies nothing.
      guard let memory = BIO_new_mem_buf(text.baseAddress, Int32(clamping: text.count)) else {
        return nil
      }
      defer { BIO_free(memory) }
      // Without a callback libcrypto would ask the terminal for a passphrase.
      return PEM_read_bio_PrivateKey(memory, nil, { _, _, _, _ in 0 }, nil)
    }
    ERR_clear_error()
    guard let read else { throw .notPKCS8 }
    var name = [CChar](repeating: 0, count: 64)
    var length = 0
    guard EVP_PKEY_get_base_id(read) == EVP_PKEY_EC,
      EVP_PKEY_get_group_name(read, &name, name.count, &length) == 1,
      String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        == "prime256v1"
    else {
      EVP_PKEY_free(read)
      ERR_clear_error()
      throw .notP256
    }
    handle = read
    digest = pem.withUnsafeBytes { SHA256.hash($0) }
  }

  deinit { EVP_PKEY_free(handle) }

  package static func == (left: ServerAPIKey, right: ServerAPIKey) -> Bool {
    left.digest == right.digest
  }

  /// The signature of ES256: R, then S, 32 bytes each; nil if libcrypto has no memory.
  func sign(_ content: [UInt8]) -> [UInt8]? {
    guard let context = EVP_MD_CTX_new() else { return nil }
    defer { EVP_MD_CTX_free(context) }
    var der = [UInt8](repeating: 0, count: 128)
    var count = der.count
    guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, handle) == 1,
      EVP_DigestSign(context, &der, &count, content, content.count) == 1
    else { return nil }
    let parsed = der.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      return d2i_ECDSA_SIG(nil, &cursor, count)
    }
    guard let parsed else { return nil }
    defer { ECDSA_SIG_free(parsed) }
    var raw = [UInt8](repeating: 0, count: 64)
    let isWhole = raw.withUnsafeMutableBufferPointer { raw in
      BN_bn2binpad(ECDSA_SIG_get0_r(parsed), raw.baseAddress, 32) == 32
        && BN_bn2binpad(ECDSA_SIG_get0_s(parsed), raw.baseAddress.map { $0 + 32 }, 32) == 32
    }
    return isWhole ? raw : nil
  }
}

/// Whom the App Store Server API knows: a key of a team, and an app of it. Makes the tokens of calls.
package final class ServerAPIAccount: Sendable {
  /// How long a token is good, and how long before its end a new one is made. Apple allows an hour.
  static let tokenLifeMs: Int64 = 20 * 60_000
  static let renewalMs: Int64 = 5 * 60_000
  private static let audience = "appstoreconnect-v1"

  package let issuerID: String
  package let keyID: String
  package let bundleID: String
  private let key: ServerAPIKey
  private let newest: Monitor<(text: String, madeAtMs: Int64)?>

  package init(issuerID: String, keyID: String, key: ServerAPIKey, bundleID: String) {
    self.issuerID = issuerID
    self.keyID = keyID
    self.key = key
    self.bundleID = bundleID
    newest = Monitor(nil)
  }

  /// The token (a JWT) for a call; nil if libcrypto fails.
  /// - Parameter nowMs: epoch milliseconds.
  package func token(nowMs: Int64) -> String? {
    newest.withLock { newest in
      // A clock that was set back makes a token that is not good yet.
      if let newest, (0..<Self.tokenLifeMs - Self.renewalMs).contains(nowMs - newest.madeAtMs) {
        return newest.text
      }
      guard let text = makeToken(nowMs: nowMs) else { return nil }
      newest = (text, nowMs)
      return text
    }
  }

  /// Gives up a token that the App Store refused: the next call gets a fresh one.
  package func discardToken() { newest.withLock { $0 = nil } }

  private func makeToken(nowMs: Int64) -> String? {
    var header = JSONWriter()
    header.beginObject()
    header.member("alg", "ES256")
    header.member("kid", keyID)
    header.member("typ", "JWT")
    header.endObject()
    var claims = JSONWriter()
    claims.beginObject()
    claims.member("iss", issuerID)
    claims.member("iat", nowMs / 1000)
    claims.member("exp", (nowMs + Self.tokenLifeMs) / 1000)
    claims.member("aud", Self.audience)
    claims.member("bid", bundleID)
    claims.endObject()
    let signed =
      Base64.encode(header.bytes, .url) + [UInt8(ascii: ".")] + Base64.encode(claims.bytes, .url)
    guard let signature = key.sign(signed) else { return nil }
    let token = signed + [UInt8(ascii: ".")] + Base64.encode(signature, .url)
    return String(decoding: token, as: UTF8.self)
  }
}

// The library behind digests and signatures.
import CCrypto

package enum CryptoLibrary {
  /// For example `OpenSSL 3.0.16`, as this system has it.
  package static var name: String {
    "OpenSSL "
      + (OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? unknownVersion)
  }

  /// What stands for the version of a library that does not tell it.
  package static let unknownVersion = "of an unknown version"
}

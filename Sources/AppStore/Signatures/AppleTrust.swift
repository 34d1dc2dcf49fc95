// Which hosts and certificates are Apple's: those that answer for the App Store, and those that sign receipts and objects.
package import Base
package import JSON

/// Distinguishes Apple's hosts and certificates from configured ones.
package enum AppleTrust {
  /// Whether a host, as `VerifyReceiptOptions.host(of:)` returns it, is one of Apple's for verifyReceipt.
  package static func isHost(_ host: JSONString) -> Bool {
    host == "buy.itunes.apple.com" || host == "sandbox.itunes.apple.com"
  }

  package static func isHost(_ host: String) -> Bool {
    host == "buy.itunes.apple.com" || host == "sandbox.itunes.apple.com"
  }

  /// SHA-256 fingerprints of Apple's roots and of the intermediates that ship with the program.
  package static let certificates = Set(
    AppleCertificates.shippedIntermediates.map(\.fingerprint) + [.appleRoot, .appleRootG3])
}

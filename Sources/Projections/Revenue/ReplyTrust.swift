// What vouches for the reply that a sale rests on.
import AppStore
import Base
package import Ledger

/// Where the reply came from in which a sale was first observed.
enum ReplyTrust: Int8, CaseIterable {
  /// Its event is of a program that did not record it.
  case notRecorded
  /// A host of Apple's answered.
  case appStore
  /// A host answered that an operator has configured.
  case configured
  /// An import brought it.
  case imported
  /// There is no reply yet: the sale is pending (rule R1).
  case unconfirmed

  /// The word in reports.
  var word: StaticString {
    switch self {
    case .notRecorded: "not_recorded"
    case .appStore: "app_store"
    case .configured: "configured"
    case .imported: "imported"
    case .unconfirmed: "unconfirmed"
    }
  }

  /// What a verification of the App Store says of itself.
  init(_ result: ReceiptVerifiedView) {
    if let host = result.host {
      self = AppleTrust.isHost(host) ? .appStore : .configured
    } else {
      self = result.isImported ? .imported : .notRecorded
    }
  }
}

extension TrustDeclared {
  /// What is not Apple's own, in words that name it; empty where all is.
  package var foreignTrust: [String] {
    var words: [String] = []
    for (endpoint, host) in [("production", productionHost), ("sandbox", sandboxHost)]
    where !AppleTrust.isHost(host) { words.append("host \(host) for \(endpoint)") }
    func add(_ kind: String, _ digests: [Digest32]) {
      for digest in digests where !AppleTrust.certificates.contains(digest) {
        words.append("\(kind) \(digest.hex)")
      }
    }
    add("root", roots)
    for certificate in intermediates where !AppleTrust.certificates.contains(certificate.sha256) {
      words.append("intermediate '\(certificate.name)' \(certificate.sha256.hex)")
    }
    add("local testing signer", localTestingSigners)
    return words
  }
}

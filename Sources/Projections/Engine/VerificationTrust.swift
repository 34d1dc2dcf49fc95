// What events record about the source of replies and about trust beyond Apple's own.
import AppStore
import Base
package import Ledger
import Revenue

extension ReplyTrust {
  /// What a verification by the App Store records about its source.
  init(_ result: ReceiptVerifiedView) {
    if let host = result.host {
      self = AppleTrust.isHost(host) ? .appStore : .configured
    } else {
      self = result.isImported ? .imported : .notRecorded
    }
  }
}

extension TrustDeclared {
  /// The trust that is not Apple's own, in words; empty if all is Apple's.
  package var foreignTrust: [String] {
    var words: [String] = []
    for (endpoint, host) in [("production", productionHost), ("sandbox", sandboxHost)]
    where !AppleTrust.isHost(host) { words.append("host \(host) for \(endpoint)") }
    func add(_ kind: String, _ digests: [SHA256Digest]) {
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

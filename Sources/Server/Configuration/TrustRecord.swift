// Whom a configuration trusts, as the event that records it.
package import AppStore
package import AppStoreClient
import Intake
package import Ledger

extension TrustDeclared {
  /// What is in force by a configuration.
  /// - Parameter verifier: made of the configuration's `trust`.
  /// - Throws: where no client can work with an endpoint's URL.
  package init(
    _ appStore: Configuration.AppStore, _ trust: Configuration.Trust, _ verifier: ReceiptVerifier
  ) throws(VerifyReceiptOptionsError) {
    let options = appStore.clientOptions
    let receiptRoots = trust.verifierConfiguration.pinnedRoots
    self.init(
      productionHost: try options.host(of: .production),
      sandboxHost: try options.host(of: .sandbox),
      roots: Array(receiptRoots.union(trust.signedObjectRoots)),
      intermediates: verifier.configuredCertificates
        .filter { !receiptRoots.contains($0.fingerprint) }.map {
          Certificate(name: $0.name, sha256: $0.fingerprint)
        },
      localTestingSigners: Array(Set(trust.localTestingSigners)))
  }
}

extension LedgerWriter {
  /// Appends what is in force, unless it is what was recorded last. It is durable when this returns.
  /// - Returns: whether an event was appended, which is still to be folded.
  package func record(
    _ trust: TrustDeclared, after recorded: TrustDeclared?
  ) throws(LedgerError) -> Bool {
    if trust == recorded { return false }
    _ = try positions(of: submit([trust.draft]))
    return true
  }
}

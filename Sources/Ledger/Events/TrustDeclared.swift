// trust.declared: the hosts and certificates that verification trusts from here on.
package import Base
package import JSON

/// The App Store's hosts and the certificates that verification trusts from this event on.
package struct TrustDeclared: Equatable, Sendable {
  /// A certificate that verifies transaction receipts.
  package struct Certificate: Equatable, Sendable {
    /// The subject's common name; empty if it has none.
    package var name: String
    /// SHA-256 of the DER.
    package var sha256: SHA256Digest

    package init(name: String, sha256: SHA256Digest) { (self.name, self.sha256) = (name, sha256) }
  }

  /// The host that verifies Production receipts, with its port if the URL contains one.
  package var productionHost: String
  package var sandboxHost: String
  /// SHA-256 fingerprints of the pinned roots, including Apple's, ascending.
  package var roots: [SHA256Digest]
  /// The configured intermediates, without the built-in ones. Ascending by fingerprint.
  package var intermediates: [Certificate]
  /// SHA-256 fingerprints of signers of `Xcode` and `LocalTesting` receipts, ascending.
  package var localTestingSigners: [SHA256Digest]

  package init(
    productionHost: String, sandboxHost: String, roots: [SHA256Digest],
    intermediates: [Certificate],
    localTestingSigners: [SHA256Digest]
  ) {
    self.productionHost = productionHost
    self.sandboxHost = sandboxHost
    self.roots = roots.sorted { $0.hex < $1.hex }
    self.intermediates = intermediates.sorted { $0.sha256.hex < $1.sha256.hex }
    self.localTestingSigners = localTestingSigners.sorted { $0.hex < $1.hex }
  }

  /// The event's data. The same trust gives the same bytes.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("production_host", productionHost)
    writer.member("sandbox_host", sandboxHost)
    writer.member("roots_sha256", roots.map(\.hex))
    writer.key("intermediates")
    writer.beginArray()
    for certificate in intermediates {
      writer.beginObject()
      writer.member("name", certificate.name)
      writer.member("sha256", certificate.sha256.hex)
      writer.endObject()
    }
    writer.endArray()
    writer.member("local_testing_signers_sha256", localTestingSigners.map(\.hex))
    writer.endObject()
    return writer.bytes
  }

  /// The event.
  package var draft: EventDraft { EventDraft(.trustDeclared, data) }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let members = try EventMembers(.trustDeclared, data)
    func host(_ name: String) throws(EventError) -> String {
      let host = try members.string(name)
      if host.isEmpty { throw members.fault(name) }
      return host
    }
    let (productionHost, sandboxHost) = (try host("production_host"), try host("sandbox_host"))
    let roots = try members.digests("roots_sha256")
    var intermediates: [Certificate] = []
    for certificate in try members.objects("intermediates") {
      intermediates.append(
        Certificate(name: try certificate.string("name"), sha256: try certificate.digest("sha256")))
    }
    self.init(
      productionHost: productionHost, sandboxHost: sandboxHost, roots: roots,
      intermediates: intermediates,
      localTestingSigners: try members.digests("local_testing_signers_sha256"))
  }
}

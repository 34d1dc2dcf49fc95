// trust.declared: whom verification trusts from here on.
package import Base
package import JSON

/// The App Store and the certificates that verifications rest on, as they were in force when it was appended.
package struct TrustDeclared: Equatable, Sendable {
  /// A certificate that transaction receipts are checked with.
  package struct Certificate: Equatable, Sendable {
    /// The subject's common name; empty where it has none.
    package var name: String
    /// SHA-256 of the DER.
    package var sha256: SHA256Digest

    package init(name: String, sha256: SHA256Digest) { (self.name, self.sha256) = (name, sha256) }
  }

  /// The host that is asked about receipts of Production, with its port where the URL names one.
  package var productionHost: String
  package var sandboxHost: String
  /// SHA-256 fingerprints of the pinned roots, Apple's included, ascending.
  package var roots: [SHA256Digest]
  /// Those that were configured; Apple's come with the program. Ascending by fingerprint.
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

  /// The event's data: the same trust gives the same bytes.
  package var data: [UInt8] {
    var writer = JSONWriter()
    func fingerprints(_ key: StaticString, _ digests: [SHA256Digest]) {
      writer.key(key)
      writer.beginArray()
      for digest in digests { writer.string(digest.hex) }
      writer.endArray()
    }
    writer.beginObject()
    writer.key("production_host")
    writer.string(productionHost)
    writer.key("sandbox_host")
    writer.string(sandboxHost)
    fingerprints("roots_sha256", roots)
    writer.key("intermediates")
    writer.beginArray()
    for certificate in intermediates {
      writer.beginObject()
      writer.key("name")
      writer.string(certificate.name)
      writer.key("sha256")
      writer.string(certificate.sha256.hex)
      writer.endObject()
    }
    writer.endArray()
    fingerprints("local_testing_signers_sha256", localTestingSigners)
    writer.endObject()
    return writer.bytes
  }

  /// The event.
  package var draft: EventDraft {
    let type = EventType.trustDeclared
    return EventDraft(type: type.rawValue, version: type.currentVersion, data: data)
  }

  /// Throws `badField` where a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let type = EventType.trustDeclared
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(data) } catch { throw .malformed(type, error) }
    func host(_ name: String) throws(EventError) -> String {
      guard let host = value[name]?.stringValue, !host.isEmpty else {
        throw .badField(type, field: name)
      }
      return host
    }
    func fingerprints(_ name: String) throws(EventError) -> [SHA256Digest] {
      guard let array = value[name]?.arrayValue else { throw .badField(type, field: name) }
      let digests = array.compactMap(\.digestValue)
      guard digests.count == array.count else { throw .badField(type, field: name) }
      return digests
    }
    let (productionHost, sandboxHost) = (try host("production_host"), try host("sandbox_host"))
    let roots = try fingerprints("roots_sha256")
    guard let array = value["intermediates"]?.arrayValue else {
      throw .badField(type, field: "intermediates")
    }
    var intermediates: [Certificate] = []
    for member in array {
      guard let name = member["name"]?.stringValue, let sha256 = member.digest("sha256") else {
        throw .badField(type, field: "intermediates")
      }
      intermediates.append(Certificate(name: name, sha256: sha256))
    }
    self.init(
      productionHost: productionHost, sandboxHost: sandboxHost, roots: roots,
      intermediates: intermediates,
      localTestingSigners: try fingerprints("local_testing_signers_sha256"))
  }
}

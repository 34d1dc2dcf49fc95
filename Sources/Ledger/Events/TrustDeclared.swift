// trust.declared: the hosts and certificates that verification trusts from here on.
package import Base

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
  /// The origin of the ledger for whose events alone it holds; nil for all.
  package private(set) var mergedFrom: String?

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
    mergedFrom = MergedEvent.source(of: data)?.origin
  }
}

// MARK: - signatures.accepted: signed objects of an earlier event that were judged invalid, and are good now

/// Objects of one fetched page whose signatures were refused for a reason of time or trust, and were found good later.
/// They count from this event's position on.
package struct SignaturesAccepted: Equatable, Sendable {
  /// An object of the page, and the verdict on it.
  package struct Object: Equatable, Sendable {
    /// Its place in the page's list, from 0.
    package var index: Int
    /// The fingerprint of the root that its chain ends in.
    package var root: SHA256Digest

    package init(index: Int, root: SHA256Digest) { (self.index, self.root) = (index, root) }
  }

  /// The position of the `transactions.fetched`.
  package var page: Position
  /// When they were found good, in epoch milliseconds.
  package var occurredAtMs: Int64
  /// Of its `transactions`, in rising order.
  package var transactions: [Object]
  /// Of its `renewals`, in rising order.
  package var renewals: [Object]

  package init(
    page: Position, occurredAtMs: Int64, transactions: [Object], renewals: [Object]
  ) {
    self.page = page
    self.occurredAtMs = occurredAtMs
    self.transactions = transactions
    self.renewals = renewals
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("page", page)
    writer.member("occurred_at", Timestamp.fixedText(ms: occurredAtMs))
    func list(_ name: StaticString, _ objects: [Object]) {
      writer.key(name)
      writer.beginArray()
      for object in objects {
        writer.beginObject()
        writer.member("index", object.index)
        SignedObjectRecord.Verdict.valid(root: object.root).writeMembers(to: &writer)
        writer.endObject()
      }
      writer.endArray()
    }
    list("transactions", transactions)
    list("renewals", renewals)
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let members = try EventMembers(.signaturesAccepted, data)
    page = try members.count("page")
    var time = try members.string("occurred_at")
    guard let occurredAtMs = time.withUTF8({ Timestamp.parseFixed(JSONBytes($0)) }) else {
      throw members.fault("occurred_at")
    }
    self.occurredAtMs = occurredAtMs
    func list(_ name: String) throws(EventError) -> [Object] {
      var objects: [Object] = []
      for object in try members.objects(name) {
        let index = try object.count("index")
        guard try object.string("outcome") == SignedObjectRecord.Verdict.validWord,
          index > objects.last?.index ?? -1
        else { throw members.fault(name) }
        objects.append(Object(index: index, root: try object.digest("root_sha256")))
      }
      return objects
    }
    transactions = try list("transactions")
    renewals = try list("renewals")
  }
}

// snapshot.created: a snapshot of the projections was made; its position and digests.
package import Base

/// Authenticates a snapshot: only a process that may append can record it. It reveals nothing about the snapshot's
/// content.
package struct SnapshotCreated: Equatable, Sendable {
  /// A projection in the snapshot.
  package struct Version: Equatable, Sendable {
    package var name: String
    package var version: Int

    package init(name: String, version: Int) { (self.name, self.version) = (name, version) }
  }

  /// The number of events that the snapshot contains.
  package var size: Int
  /// The root of the tree of these events.
  package var root: SHA256Digest
  package var projections: [Version]
  /// SHA-256 of the snapshot's salt followed by the digest of its rows.
  package var contentSHA256: SHA256Digest
  /// SHA-256 of the snapshot's salt followed by the SHA-256 of its file.
  package var fileSHA256: SHA256Digest

  package init(
    size: Int, root: SHA256Digest, projections: [Version], contentSHA256: SHA256Digest,
    fileSHA256: SHA256Digest
  ) {
    self.size = size
    self.root = root
    self.projections = projections
    self.contentSHA256 = contentSHA256
    self.fileSHA256 = fileSHA256
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("size", size)
    writer.member("root", Base64.text(root.bytes))
    writer.key("projections")
    writer.beginObject()
    for projection in projections {
      writer.key(projection.name)
      writer.integer(projection.version)
    }
    writer.endObject()
    writer.member("content_sha256", contentSHA256.hex)
    writer.member("file_sha256", fileSHA256.hex)
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let members = try EventMembers(.snapshotCreated, data)
    size = try members.count("size")
    root = try members.root("root")
    projections = try members.named("projections", \.integerValue)
      .map { Version(name: $0.name, version: Int($0.value)) }
    contentSHA256 = try members.digest("content_sha256")
    fileSHA256 = try members.digest("file_sha256")
  }
}

// snapshot.created: a snapshot of the projections was made, and what it must hold.
package import Base
package import JSON

/// What vouches for a snapshot: only a process that may append can record it, and it reveals nothing of
/// the snapshot's content.
package struct SnapshotCreated: Equatable, Sendable {
  /// A projection in the snapshot.
  package struct Version: Equatable, Sendable {
    package var name: String
    package var version: Int

    package init(name: String, version: Int) { (self.name, self.version) = (name, version) }
  }

  /// How many events the snapshot has folded.
  package var size: Int
  /// The root of the tree of these events.
  package var root: SHA256Digest
  package var projections: [Version]
  /// SHA-256 of the snapshot's salt followed by the digest of its rows.
  package var contentSHA256: SHA256Digest
  /// SHA-256 of the snapshot's salt followed by the SHA-256 of its compressed file.
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
    writer.key("size")
    writer.integer(size)
    writer.key("root")
    writer.string(Base64.text(root.bytes))
    writer.key("projections")
    writer.beginObject()
    for projection in projections {
      writer.key(projection.name)
      writer.integer(projection.version)
    }
    writer.endObject()
    writer.key("content_sha256")
    writer.string(contentSHA256.hex)
    writer.key("file_sha256")
    writer.string(fileSHA256.hex)
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` where a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let type = EventType.snapshotCreated
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(data) } catch { throw .malformed(type, error) }
    guard let size = value.eventCount("size") else { throw .badField(type, field: "size") }
    guard let root = value.root("root") else { throw .badField(type, field: "root") }
    guard case .object(let members) = value["projections"] ?? .null else {
      throw .badField(type, field: "projections")
    }
    var projections: [Version] = []
    for member in members {
      guard let version = member.value.integerValue else {
        throw .badField(type, field: "projections")
      }
      projections.append(Version(name: member.key, version: Int(version)))
    }
    guard let content = value.digest("content_sha256") else {
      throw .badField(type, field: "content_sha256")
    }
    guard let file = value.digest("file_sha256") else {
      throw .badField(type, field: "file_sha256")
    }
    self.init(
      size: size, root: root, projections: projections, contentSHA256: content, fileSHA256: file)
  }
}

/// Members that several events have.
extension JSONValue {
  /// A number of events.
  func eventCount(_ name: String) -> Int? {
    guard let number = self[name]?.integerValue, number >= 0 else { return nil }
    return Int(number)
  }

  /// The root of a tree, in base64.
  func root(_ name: String) -> SHA256Digest? {
    guard let text = self[name]?.stringValue, let bytes = try? Base64.decode(Array(text.utf8))
    else { return nil }
    return bytes.withUnsafeBytes { SHA256Digest($0) }
  }

  /// A SHA-256 in hex.
  func digest(_ name: String) -> SHA256Digest? { self[name]?.digestValue }

  /// The value as a SHA-256 in hex.
  var digestValue: SHA256Digest? {
    guard let text = stringValue else { return nil }
    return Array(text.utf8).withUnsafeBytes { SHA256Digest(hex: $0) }
  }
}

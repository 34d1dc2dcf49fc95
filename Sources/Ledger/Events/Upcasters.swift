// Old versions of events, read as the current ones. Stored bytes are never rewritten for a schema's sake.
package import JSON

/// Turns the data of one version of a type into that of the next.
package struct Upcaster: Sendable {
  package let type: EventType
  /// The version that it reads; it returns the one after it.
  package let fromVersion: Int
  package let upcast: @Sendable (JSONValue) throws(JSONError) -> JSONValue

  package init(
    _ type: EventType, fromVersion: Int,
    upcast: @escaping @Sendable (JSONValue) throws(JSONError) -> JSONValue
  ) {
    self.type = type
    self.fromVersion = fromVersion
    self.upcast = upcast
  }
}

/// The chain of upcasters of all types.
package struct Upcasters: Sendable {
  /// Those of this program. Each change of a type's data adds one here and raises its current version.
  package static let standard = Upcasters([])

  private let steps: [Upcaster]
  private let currentVersions: [EventType: Int]

  /// `currentVersions` overrides the catalogue's, so that a chain can be tried before it is needed.
  package init(_ steps: [Upcaster], currentVersions: [EventType: Int] = [:]) {
    self.steps = steps
    self.currentVersions = currentVersions
  }

  private func currentVersion(of type: EventType) -> Int {
    currentVersions[type] ?? type.currentVersion
  }

  /// The data in the current version, or nil where `data` is that already.
  package func upcast(
    _ type: EventType, version: Int, data: JSONBytes
  ) throws(EventError) -> [UInt8]? {
    let current = currentVersion(of: type)
    if version == current { return nil }
    if version > current { throw .newerVersion(type, version: version) }
    var chain: [Upcaster] = []
    for step in version..<current {
      guard let upcaster = steps.first(where: { $0.type == type && $0.fromVersion == step })
      else { throw .missingUpcaster(type, version: step) }
      chain.append(upcaster)
    }
    do throws(JSONError) {
      var value = try JSONValue(data)
      for upcaster in chain { value = try upcaster.upcast(value) }
      return value.bytes
    } catch {
      throw .malformed(type, error)
    }
  }
}

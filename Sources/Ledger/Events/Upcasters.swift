// Converts old event versions to the current ones. Stored bytes are never rewritten.
package import JSON

/// Converts the data of one version of a type to the next version.
package struct Upcaster: Sendable {
  package let type: EventType
  /// The version that it reads; it returns the next one.
  package let fromVersion: Int
  package let upcast: @Sendable (JSONValue) throws(JSONError) -> JSONValue
}

/// The chain of upcasters of all types.
package struct Upcasters: Sendable {
  /// The upcasters of this program. Each change to a type's data adds one here and raises the type's current version.
  package static let standard = Upcasters(steps: [])

  private let steps: [Upcaster]

  /// The data in the current version; nil if the decoder takes `data` as it is.
  package func upcast(
    _ type: EventType, version: Int, data: JSONBytes
  ) throws(EventError) -> [UInt8]? {
    let current = type.currentVersion
    if type.reads(version) { return nil }
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

// Where the data of an old version would become that of the next one. Stored bytes are never rewritten.

extension EventType {
  /// Throws unless the decoder takes data of a version as it is: no type has an older one yet.
  package func checkVersion(_ version: Int) throws(EventError) {
    if reads(version) { return }
    throw version > currentVersion
      ? .newerVersion(self, version: version) : .missingUpcaster(self, version: version)
  }
}

// A copy that a command line names, in place of config.json.

extension Configuration.Replication {
  /// Why an option is refused.
  package struct GivenFault: Error, Sendable, Equatable {
    /// The option's name.
    package let option: String
    /// Starts with a lower-case letter.
    package let cause: String
  }

  /// - Parameter credentialsFile: a path, relative to the current directory.
  package init(
    given target: String, option: String, endpoint: String?, region: String?,
    credentialsFile: String?
  ) throws(GivenFault) {
    self.init(target: target)
    (self.endpoint, self.region, self.credentialsFile) = (endpoint, region, credentialsFile)
    if let credentialsFile {
      do throws(SecretFile.Fault) {
        credentials = try SecretFile.read(credentialsFile, in: ".", byteCountMax: 16 << 10)
      } catch { throw GivenFault(option: "credentials-file", cause: error.cause) }
    }
    guard let fault = faults.first else { return }
    let names = ["target": option, "credentials_file": "credentials-file"]
    throw GivenFault(option: names[fault.member] ?? fault.member, cause: fault.cause)
  }
}

// The copy that config.json or a command line names: what may be wrong with it, and the store that it means.
import Base
import Glibc
import Intake
package import Replication

extension Configuration.Replication {
  var faults: [ConfigurationError.Problem] {
    let parsed: ReplicationTarget
    do throws(ReplicationTarget.Fault) { parsed = try ReplicationTarget(parsing: target) } catch {
      return [.init("target", error.cause)]
    }
    guard case .s3 = parsed else {
      return [("endpoint", endpoint), ("region", region), ("credentials_file", credentials?.name)]
        .filter { $0.1 != nil }.map { .init($0.0, "cannot be used with a directory") }
    }
    do throws(S3CredentialsError) {
      guard try s3Credentials() != nil else {
        let cause = "is missing, and the environment has no AWS_ACCESS_KEY_ID"
        return [.init("credentials_file", cause)]
      }
    } catch {
      let source = credentials == nil ? "is missing, and in the environment: " : ""
      return [.init("credentials_file", "\(source)\(error)")]
    }
    do throws(ReplicationTarget.Fault) { _ = try store() } catch {
      return [.init(endpoint == nil ? "region" : "endpoint", error.cause)]
    }
    return []
  }

  /// Those of the file or, if none is named, of the environment.
  private func s3Credentials() throws(S3CredentialsError) -> S3Credentials? {
    if let credentials { return try S3Credentials(parsing: credentials.content) }
    return try S3Credentials(environment: { name in getenv(name).map { String(cString: $0) } })
  }

  /// Makes the store; asks nothing of it yet.
  package func store() throws(ReplicationTarget.Fault) -> any ObjectStore {
    let parsed = try ReplicationTarget(parsing: target)
    let parsedCredentials: S3Credentials?
    do throws(S3CredentialsError) { parsedCredentials = try s3Credentials() } catch {
      throw ReplicationTarget.Fault(cause: "the credentials are refused: \(error)")
    }
    return try parsed.store(
      parsedCredentials.map {
        ReplicationTarget.S3Settings(endpoint: endpoint, region: region, credentials: $0)
      })
  }

  /// Why an option is refused.
  package struct ArgumentFault: Error, Sendable, Equatable {
    /// The option's name.
    package let option: String
    /// Starts with a lower-case letter.
    package let cause: String
  }

  /// A copy that a command line names, in place of config.json.
  /// - Parameter credentialsFile: a path, relative to the current directory.
  package init(
    argument target: String, option: String, endpoint: String?, region: String?,
    credentialsFile: String?
  ) throws(ArgumentFault) {
    (self.target, self.endpoint, self.region) = (target, endpoint, region)
    if let name = credentialsFile {
      do throws(SecretFile.Fault) {
        let content = try SecretFile.read(name, in: ".", byteCountMax: Self.credentialsBytesMax)
        credentials = NamedFile(name, content)
      } catch { throw ArgumentFault(option: "credentials-file", cause: error.cause) }
    }
    guard let fault = faults.first else { return }
    let names = ["target": option, "credentials_file": "credentials-file"]
    throw ArgumentFault(option: names[fault.path] ?? fault.path, cause: fault.cause)
  }
}

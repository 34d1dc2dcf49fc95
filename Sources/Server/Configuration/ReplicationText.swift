// How config.json names a copy, what may be wrong with it, and the store that it means.
import Glibc
import JSON
package import ObjectStore

extension Configuration.Replication {
  /// What is wrong with a member; starts with a lower-case letter.
  struct Fault {
    let member: String
    let cause: String
  }

  /// What is wrong, by the names of the members.
  var faults: [Fault] {
    let parsed: ReplicationTarget
    do throws(ReplicationTarget.Fault) { parsed = try ReplicationTarget(parsing: target) } catch {
      return [Fault(member: "target", cause: error.cause)]
    }
    guard case .s3 = parsed else {
      return [("endpoint", endpoint), ("region", region), ("credentials_file", credentialsFile)]
        .filter { $0.1 != nil }
        .map { Fault(member: $0.0, cause: "is of no use for a directory") }
    }
    do throws(S3CredentialsError) {
      guard try s3Credentials() != nil else {
        return [
          Fault(
            member: "credentials_file",
            cause: "is missing, and the environment has no AWS_ACCESS_KEY_ID")
        ]
      }
    } catch {
      let source = credentials == nil ? "is missing, and of the environment " : ""
      return [Fault(member: "credentials_file", cause: "\(source)\(error)")]
    }
    do throws(ReplicationTarget.Fault) { _ = try store() } catch {
      return [Fault(member: endpoint == nil ? "region" : "endpoint", cause: error.cause)]
    }
    return []
  }

  /// Those of the file or, if none is named, of the environment.
  private func s3Credentials() throws(S3CredentialsError) -> S3Credentials? {
    if let credentials { return try S3Credentials(parsing: credentials) }
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

  /// As config.json has it, without the credentials.
  var json: JSONValue {
    var members: [JSONValue.Member] = [.init("target", .string(target))]
    if let endpoint { members.append(.init("endpoint", .string(endpoint))) }
    if let region { members.append(.init("region", .string(region))) }
    if let credentialsFile {
      members.append(.init("credentials_file", .string(credentialsFile)))
    }
    members.append(.init("mode", .string(mode.rawValue)))
    members.append(.init("sync_limit_ms", .number(String(syncLimitMs))))
    return .object(members)
  }
}

// How config.json names a copy, what may be wrong with it, and the store that it means.
package import Base
import Glibc
import Intake
package import Replication

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

// MARK: - How config.json writes how long something is kept, and at which time of the day something is done

/// A time for which something is kept: a whole number of days, weeks, months or years.
package struct RetentionPeriod: Equatable, Sendable {
  /// What a period is counted in. A month is 30 days and a year 365, so that a period is the same on every day.
  package enum Unit: Character, CaseIterable, Sendable {
    case days = "d"
    case weeks = "w"
    case months = "m"
    case years = "y"

    var dayCount: Int64 {
      switch self {
      case .days: 1
      case .weeks: 7
      case .months: 30
      case .years: 365
      }
    }
  }

  static let yearsMax: Int64 = 100
  static let requirement =
    "must be a whole number and d, w, m (30 days) or y (365 days), such as 90d: at most \(yearsMax) years"
  private static let dayMs: Int64 = 86_400_000

  private let count: Int64
  private let unit: Unit

  /// Nil for a text of another form, for none, and for more than 100 years.
  package init?(_ text: String) {
    let digits = text.utf8.dropLast()
    guard let last = text.last, let unit = Unit(rawValue: last), 1...5 ~= digits.count,
      digits.allSatisfy({ 0x30...0x39 ~= $0 }), digits.first != 0x30,
      let count = Int64(String(text.dropLast())),
      count * unit.dayCount <= Self.yearsMax * Unit.years.dayCount
    else { return nil }
    (self.count, self.unit) = (count, unit)
  }

  /// As it was written.
  package var text: String { "\(count)\(unit.rawValue)" }

  /// In milliseconds.
  package var milliseconds: Int64 { count * unit.dayCount * Self.dayMs }
}

/// A time of the day in UTC, to the minute.
package struct TimeOfDay: Equatable, Sendable {
  static let requirement = "must be a time of the day in UTC, such as 03:00"

  /// Minutes after midnight.
  private let minutes: Int

  package init(hour: Int, minute: Int) {
    precondition(0...23 ~= hour && 0...59 ~= minute, "a day has 24 hours of 60 minutes")
    minutes = hour * 60 + minute
  }

  /// Nil unless the text is two digits, a colon and two digits, of a time that exists.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count == 5, bytes[2] == UInt8(ascii: ":"),
      [0, 1, 3, 4].allSatisfy({ 0x30...0x39 ~= bytes[$0] })
    else { return nil }
    let hour = Int(bytes[0] - 0x30) * 10 + Int(bytes[1] - 0x30)
    let minute = Int(bytes[3] - 0x30) * 10 + Int(bytes[4] - 0x30)
    guard hour <= 23, minute <= 59 else { return nil }
    minutes = hour * 60 + minute
  }

  package var text: String {
    func digits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(digits(minutes / 60)):\(digits(minutes % 60))"
  }

  /// Milliseconds after midnight.
  package var milliseconds: Int64 { Int64(minutes) * 60_000 }
}

// MARK: - Tokens of the client API: how one is made, and what is kept of it

/// The text of a token: a prefix that scanners for leaked secrets can know, then 32 random bytes in base64url.
package enum TokenText {
  package static let prefix = SecretText.tokenPrefix

  /// A new token.
  package static func make() -> String {
    let text = Base64.text(randomBytes(32)).prefix { $0 != "=" }
    return prefix + text.map { $0 == "+" ? "-" : $0 == "/" ? "_" : String($0) }.joined()
  }

  /// A new public name for a token, which tells nothing about it.
  package static func makeID() -> String {
    "tk-" + randomBytes(6).withUnsafeBytes { Hex.text($0) }
  }

  /// What is kept of a token: SHA-256 of its whole text.
  package static func digest(_ token: UnsafeRawBufferPointer) -> SHA256Digest { SHA256.hash(token) }

  /// What is kept of a token.
  package static func digest(_ token: String) -> SHA256Digest {
    Array(token.utf8).withUnsafeBytes { SHA256.hash($0) }
  }

  /// Whether a text can be a token's public name.
  package static func isID(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy {
        switch $0 {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
      }
  }

  private static func randomBytes(_ count: Int) -> [UInt8] {
    // The system's own source, fit for secrets.
    var generator = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }
}

// MARK: - A copy that a command line names, in place of config.json

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

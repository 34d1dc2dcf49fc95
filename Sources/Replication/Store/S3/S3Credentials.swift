// The credentials of a store that speaks S3, and the file that holds them.
import Base

/// What signs requests. No description shows anything of it.
package struct S3Credentials: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  let accessKeyID: String
  let secretAccessKey: String
  let sessionToken: String?

  /// Nil unless all are printable ASCII without spaces, as headers need them.
  package init?(accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil) {
    guard Self.isPlain(accessKeyID, byteCountMax: 128), !accessKeyID.utf8.contains(0x2F),
      Self.isPlain(secretAccessKey, byteCountMax: 256),
      sessionToken.map({ Self.isPlain($0, byteCountMax: 8 << 10) }) != false
    else { return nil }
    self.accessKeyID = accessKeyID
    self.secretAccessKey = secretAccessKey
    self.sessionToken = sessionToken
  }

  package var description: String { "credentials" }
  package var customMirror: Mirror { Mirror(self, children: []) }

  private static func isPlain(_ text: String, byteCountMax: Int) -> Bool {
    (1...byteCountMax).contains(text.utf8.count)
      && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  }
}

/// Why a file of credentials is refused. Shows nothing of the file's text.
package enum S3CredentialsError: Error, Sendable, Equatable, CustomStringConvertible {
  case notText
  case tooLarge
  /// By the line's number, from 1.
  case line(Int, LineFault)
  case missing(String)
  /// A value that no header can hold.
  case value

  package enum LineFault: String, Sendable {
    case form = "it is not of the form `name = value`"
    case section = "only the section [default] is known"
    case beforeSection = "it stands before the section [default]"
    case name =
      "only aws_access_key_id, aws_secret_access_key and aws_session_token are known"
    case twice = "the name is given twice"
    case noValue = "the value is missing"
  }

  /// The cause, starting with a lower-case letter.
  package var description: String {
    switch self {
    case .notText: "it is not UTF-8"
    case .tooLarge: "it is larger than \(S3Credentials.fileByteCountMax) bytes"
    case .line(let number, let fault): "line \(number): \(fault.rawValue)"
    case .missing(let name): "\(name) is missing"
    case .value: "a value has characters that no key or token has, or is too long"
    }
  }
}

extension S3Credentials {
  package static let fileByteCountMax = 16 << 10

  private static let names = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"]

  /// Reads the form of the AWS command line's credentials file: the section `[default]` with `aws_access_key_id`,
  /// `aws_secret_access_key` and, if there is one, `aws_session_token`. Lines that begin with `#` or `;` are comments.
  package init(parsing file: [UInt8]) throws(S3CredentialsError) {
    if file.count > Self.fileByteCountMax { throw .tooLarge }
    guard let text = String(validating: file, as: UTF8.self) else { throw .notText }
    var values: [String: String] = [:]
    var isInSection = false
    // A carriage return and a line feed are one character.
    let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    for (index, untrimmed) in lines.enumerated() {
      let line = Self.trimmed(untrimmed)
      if line.isEmpty || line.hasPrefix("#") || line.hasPrefix(";") { continue }
      if line.hasPrefix("[") {
        guard line == "[default]", !isInSection else { throw .line(index + 1, .section) }
        isInSection = true
        continue
      }
      do {
        let (name, value) = try Self.pair(line, isInSection: isInSection)
        if values.updateValue(value, forKey: name) != nil {
          throw S3CredentialsError.LineFault.twice
        }
      } catch let fault as S3CredentialsError.LineFault {
        throw .line(index + 1, fault)
      } catch { preconditionFailure("no other error is thrown") }
    }
    for name in Self.names.prefix(2) where values[name] == nil { throw .missing(name) }
    guard let id = values[Self.names[0]], let secret = values[Self.names[1]],
      let credentials = S3Credentials(
        accessKeyID: id, secretAccessKey: secret, sessionToken: values[Self.names[2]])
    else { throw .value }
    self = credentials
  }

  /// Reads `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`; nil if neither of the first two is set.
  package init?(
    environment value: (String) -> String?
  ) throws(S3CredentialsError) {
    let names = Self.names.map { $0.uppercased() }
    let values = names.map { name in value(name).flatMap { $0.isEmpty ? nil : $0 } }
    if values[0] == nil, values[1] == nil { return nil }
    guard let id = values[0] else { throw .missing(names[0]) }
    guard let secret = values[1] else { throw .missing(names[1]) }
    guard
      let credentials = S3Credentials(
        accessKeyID: id, secretAccessKey: secret, sessionToken: values[2])
    else { throw .value }
    self = credentials
  }

  private static func pair(
    _ line: Substring, isInSection: Bool
  ) throws(S3CredentialsError.LineFault) -> (name: String, value: String) {
    guard isInSection else { throw .beforeSection }
    guard let separator = line.firstIndex(of: "=") else { throw .form }
    let name = String(trimmed(line[..<separator]))
    let value = String(trimmed(line[line.index(after: separator)...]))
    guard names.contains(name) else { throw .name }
    guard !value.isEmpty else { throw .noValue }
    return (name, value)
  }

  private static func trimmed(_ text: Substring) -> Substring {
    let isBlank = { (character: Character) in character == " " || character == "\t" }
    var text = text.drop(while: isBlank)
    while let last = text.last, isBlank(last) { text.removeLast() }
    return text
  }
}

extension S3CredentialsError.LineFault: Error {}

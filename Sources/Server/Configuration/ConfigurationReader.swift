// From the JSON of config.json to a configuration: strict, and every problem with its path.
import AppStore
import Base
import HTTPClient
import Intake

/// A section of config.json: an object with settings of its own.
protocol SettingsSection {
  /// The defaults. Those of required members are replaced before anyone sees them.
  init()
  static var settings: [Setting<Self>] { get }
  /// What is wrong between members that are good by themselves, by their names.
  var faults: [ConfigurationError.Problem] { get }
}

extension SettingsSection {
  var faults: [ConfigurationError.Problem] { [] }

  /// As config.json has it, without optional members that have their defaults: earlier programs refuse members that
  /// they do not know. Masked: with the defaults, and without any secret.
  func json(isMasked: Bool) -> JSONValue {
    let standard = Self()
    return .object(
      Self.settings.compactMap { setting in
        guard let key = isMasked ? setting.shownKey : setting.key,
          let value = setting.json(self, isMasked),
          isMasked || setting.isRequired || value != setting.json(standard, false)
        else { return nil }
        return JSONValue.Member(key, value)
      })
  }
}

/// A setting as docs/configuration.md describes it.
package struct SettingRow {
  /// Its place in config.json: `apps.ID.webhook.url`.
  package private(set) var path: String
  /// The values it takes, in words or Markdown.
  package let values: String
  /// Its default as JSON; nil without one.
  package var standard: String?
  package var isRequired = false

  func inside(_ prefix: String) -> SettingRow {
    var row = self
    row.path = prefix + path
    return row
  }
}

/// One member of a section.
struct Setting<Section> {
  let key: String
  /// The name under which commands show it; nil if they never do.
  let shownKey: String?
  var isRequired = false
  /// The values it takes; empty for a section, whose members say it.
  let values: String
  var innerRows: [SettingRow] = []
  let read: (inout ConfigurationReader, inout Section, JSONValue, _ path: String) -> Void
  let json: (Section, _ isMasked: Bool) -> JSONValue?
}

extension Setting {
  init<Value>(
    _ key: String, _ property: WritableKeyPath<Section, Value>, _ form: SettingForm<Value>,
    isRequired: Bool = false, isShown: Bool = true
  ) {
    self.init(
      key: key, shownKey: isShown ? key : nil, isRequired: isRequired, values: form.values,
      innerRows: form.rows,
      read: { reader, section, value, path in
        guard let value = form.read(&reader, value, path) else { return }
        section[keyPath: property] = value
      }, json: { form.json($0[keyPath: property], $1) })
  }

  init<Value>(
    _ key: String, optional property: WritableKeyPath<Section, Value?>,
    _ form: SettingForm<Value>, isRequired: Bool = false
  ) {
    self.init(key, property, form.optional, isRequired: isRequired)
  }
}

extension Setting where Section: SettingsSection {
  /// This setting and those inside it.
  var rows: [SettingRow] {
    let standard = isRequired ? nil : json(Section(), true)
    let own = SettingRow(
      path: key, values: values,
      standard: standard.map { String(decoding: $0.bytes, as: UTF8.self) }, isRequired: isRequired)
    return (values.isEmpty ? [] : [own]) + innerRows.map { $0.inside(key) }
  }
}

/// Reads one configuration and gathers what is wrong with it.
struct ConfigurationReader {
  /// The ledger's directory, to which file names in the configuration are relative.
  private let directoryPath: String
  private(set) var problems: [ConfigurationError.Problem] = []
  /// The files that were named, as paths that can be opened.
  private(set) var filePaths: [String] = []

  init(directoryPath: String) { self.directoryPath = directoryPath }

  /// The configuration that the text means; to be used only where there are no problems.
  mutating func read(_ root: JSONValue) -> Configuration { section(root, "") ?? Configuration() }

  /// A section without problems.
  mutating func section<Section: SettingsSection>(_ value: JSONValue, _ path: String) -> Section? {
    guard case .object(let members) = value else { return fail(path, "must be an object") }
    let problemCount = problems.count
    let prefix = path.isEmpty ? "" : "\(path)."
    let settings = Section.settings
    let known = settings.map(\.key)
    for key in members.map(\.key) where !known.contains(where: { $0.hasSameBytes(as: key) }) {
      fail(
        prefix + PrintableText.shortened(key),
        "there is no such setting\(hint(for: key, among: known))")
    }
    var section = Section()
    for setting in settings {
      if let member = value[setting.key] {
        setting.read(&self, &section, member, prefix + setting.key)
      } else if setting.isRequired {
        fail(prefix + setting.key, "is missing")
      }
    }
    guard problems.count == problemCount else { return nil }
    for fault in section.faults { fail(prefix + fault.path, fault.cause) }
    return problems.count == problemCount ? section : nil
  }

  /// The elements of a list; nil for one with a problem.
  mutating func list<Element>(
    _ value: JSONValue, _ path: String,
    _ read: (inout ConfigurationReader, JSONValue, String) -> Element?
  ) -> [Element?] {
    guard case .array(let elements) = value else {
      fail(path, "must be a list")
      return []
    }
    return elements.enumerated().map { read(&self, $1, "\(path)[\($0)]") }
  }

  mutating func secretFile(_ name: String, _ path: String, _ byteCountMax: Int) -> [UInt8]? {
    filePaths.append(name.hasPrefix("/") ? name : "\(directoryPath)/\(name)")
    do throws(SecretFile.Fault) {
      return try SecretFile.read(name, in: directoryPath, byteCountMax: byteCountMax)
    } catch { return fail(path, error.cause) }
  }

  /// The certificates of an entry: its text, or the file that it names.
  mutating func certificates(
    _ value: JSONValue, _ path: String, pinnedRoots: Set<SHA256Digest>
  ) -> [[UInt8]]? {
    let bytes: [UInt8]
    switch value {
    case .string(let text): bytes = Array(text.utf8)
    case .object(let members):
      guard members.count == 1, members[0].key == "file", case .string(let name) = members[0].value,
        !name.isEmpty, !name.utf8.contains(0)
      else { return fail(path, #"must be a string or {"file": PATH}"#) }
      let filePath = name.hasPrefix("/") ? name : "\(directoryPath)/\(name)"
      filePaths.append(filePath)
      do throws(SmallFileError) {
        bytes = try SmallFile.read(filePath, byteCountMax: CertificateText.sizeBytesMax)
      } catch { return fail(path, "the file cannot be read: \(error.cause)") }
    default: return fail(path, #"must be a string or {"file": PATH}"#)
    }
    guard let certificates = CertificateText.certificates(bytes) else {
      return fail(path, "is not a certificate in PEM or DER (in a string: base64)")
    }
    do throws(ReceiptVerifier.ConfigurationError) {
      _ = try ReceiptVerifier(
        configuration: .init(pinnedRoots: pinnedRoots, transactionIntermediates: certificates))
    } catch {
      switch error {
      case .unreadableCertificate: return fail(path, "is a certificate that cannot be read")
      case .unusableCertificate:
        return fail(
          path, "is neither a pinned root nor an intermediate that signs receipt signers")
      }
    }
    return certificates
  }

  mutating func fail(_ path: String, _ cause: String) {
    problems.append(ConfigurationError.Problem(path, cause))
  }

  mutating func fail<Value>(_ path: String, _ cause: String) -> Value? {
    fail(path, cause)
    return nil
  }
}

/// Why a configuration cannot be used. Holds no token, no shared secret, and no value that might be one.
package struct ConfigurationError: ReportableError, Equatable, Sendable, CustomStringConvertible {
  /// One thing that is wrong.
  package struct Problem: Equatable, Sendable, CustomStringConvertible {
    /// Where: `app_store.timeout_ms`, `tokens[2].sha256`; empty for the file as a whole.
    package let path: String
    package let cause: String

    init(_ path: String, _ cause: String) { (self.path, self.cause) = (path, cause) }

    package var description: String { path.isEmpty ? cause : "\(path): \(cause)" }
  }

  /// What was attempted, as a verb phrase: "read", "write".
  package let operation: String
  /// The file's path.
  package let object: String
  /// At least one; the first of them, and in place of the others how many they are.
  package let problems: [Problem]
  private static let problemCountMax = 100

  init(_ operation: String, _ object: String, _ problems: [Problem]) {
    (self.operation, self.object) = (operation, object)
    let furtherCount = problems.count - Self.problemCountMax
    self.problems =
      furtherCount > 0
      ? problems.prefix(Self.problemCountMax) + [Problem("", "\(furtherCount) more problems")]
      : problems
  }

  package var description: String {
    "\(operation) \(object): \(problems.map(\.description).joined(separator: "; "))"
  }

  package func lines(for command: String) -> [String] {
    problems.map { "\(operation): \(object): \($0)" }
  }
}

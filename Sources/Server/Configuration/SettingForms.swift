// The kinds of values in config.json: how each is read, shown and described.
import Base
import HTTPClient
import Intake

/// A kind of value in config.json.
struct SettingForm<Value> {
  /// Which values it takes, in words or Markdown.
  let values: String
  /// The settings inside it; their paths begin with what follows the name of this one.
  var rows: [SettingRow] = []
  /// Reads a value; nil after a problem.
  let read: (inout ConfigurationReader, JSONValue, _ path: String) -> Value?
  /// The value as config.json has it, or with its secrets masked; nil for one that is left out.
  let json: (Value, _ isMasked: Bool) -> JSONValue?

  /// The same for a member that may be missing.
  var optional: SettingForm<Value?> {
    SettingForm<Value?>(values: values, rows: rows, read: read) { value, isMasked in
      value.flatMap { json($0, isMasked) }
    }
  }

  /// The same for a value that is never shown.
  private var secret: Self {
    Self(values: values, read: read) { $1 ? .string("(set)") : json($0, false) }
  }

  /// A text; `requirement` says what one must be that `parse` refuses.
  private static func text(
    _ values: String, _ requirement: String, _ text: @escaping (Value) -> String,
    _ parse: @escaping (String) -> Value?
  ) -> Self {
    Self(
      values: values,
      read: { reader, value, path in
        guard let text = value.stringValue else { return reader.fail(path, "must be a string") }
        return parse(text) ?? reader.fail(path, requirement)
      }, json: { value, _ in .string(text(value)) })
  }

  static func list<Element>(
    _ element: SettingForm<Element>,
    faults: @escaping ([Element?]) -> [ConfigurationError.Problem] = { _ in [] }
  ) -> Self where Value == [Element] {
    Self(
      values: element.values.isEmpty ? "list" : "list of \(element.values)",
      rows: element.rows.map { $0.inside("[]") },
      read: { reader, value, path in
        let elements = reader.list(value, path, element.read)
        for fault in faults(elements) { reader.fail(path + fault.path, fault.cause) }
        return elements.compactMap { $0 }
      }, json: { elements, isMasked in .array(elements.compactMap { element.json($0, isMasked) }) })
  }

  /// An object whose keys are the ids of app families.
  static func byFamily<Element>(
    _ what: String, _ element: SettingForm<Element>
  ) -> Self where Value == [String: Element] {
    Self(
      values: "",
      rows: element.values.isEmpty
        ? element.rows.map { $0.inside(".ID") } : [SettingRow(path: ".ID", values: element.values)],
      read: { reader, value, path in
        guard case .object(let members) = value else {
          return reader.fail(path, "must be an object of app family ids and \(what)")
        }
        var result: Value = [:]
        for (index, member) in members.enumerated() {
          // An operator may have put a secret where the id belongs: it is not shown.
          guard let id = UUID16(member.key)?.description else {
            reader.fail(path, "key number \(index + 1) is not an app family id")
            continue
          }
          guard let element = element.read(&reader, member.value, "\(path).\(id)") else { continue }
          if result.updateValue(element, forKey: id) != nil {
            reader.fail("\(path).\(id)", "is given twice")
          }
        }
        return result
      },
      json: { families, isMasked in
        .object(
          families.sorted { $0.key < $1.key }.compactMap { id, value in
            element.json(value, isMasked).map { JSONValue.Member(id, $0) }
          })
      })
  }
}

extension SettingForm where Value: SettingsSection {
  static var section: Self {
    Self(
      values: "", rows: Value.settings.flatMap(\.rows).map { $0.inside(".") },
      read: { $0.section($1, $2) }, json: { $0.json(isMasked: $1) })
  }
}

extension SettingForm where Value: FixedWidthInteger {
  static func integer(_ range: ClosedRange<Int64>) -> Self {
    let values = "\(range.lowerBound) to \(range.upperBound)"
    return Self(
      values: values,
      read: { reader, value, path in
        value.integerValue.flatMap { range.contains($0) ? Value(exactly: $0) : nil }
          ?? reader.fail(path, "must be an integer from \(values)")
      }, json: { number, _ in .number(String(number)) })
  }
}

extension SettingForm where Value: CaseIterable & RawRepresentable<String> {
  /// One of a few words.
  static var choice: Self {
    let words = Value.allCases.map(\.rawValue)
    let others = words.dropLast().joined(separator: ", ")
    return text(
      words.map { "`\($0)`" }.joined(separator: ", "), "must be \(others) or \(words.last ?? "")",
      \.rawValue, Value.init(rawValue:))
  }
}

extension SettingForm<Bool> {
  static var flag: Self {
    Self(
      values: "`true`, `false`",
      read: { reader, value, path in
        if case .boolean(let flag) = value { return flag }
        return reader.fail(path, "must be true or false")
      }, json: { flag, _ in .boolean(flag) })
  }
}

extension SettingForm<String> {
  /// A text in which `fault` finds nothing wrong.
  static func text(
    _ values: String, _ fault: @escaping (String) -> String? = { _ in nil }
  ) -> Self {
    let text = text(values, "", { $0 }, { $0 })
    return Self(
      values: values,
      read: { reader, value, path in
        guard let text = text.read(&reader, value, path) else { return nil }
        return fault(text).map { reader.fail(path, $0) } ?? text
      }, json: text.json)
  }

  static var url: Self { text("https URL; http only to this machine", EndpointText.fault) }
  /// Paths are put behind it.
  static var baseURL: Self {
    text("such a URL, without a query") {
      EndpointText.fault($0) ?? ($0.contains("?") ? "must not contain a query" : nil)
    }
  }
  static var notificationsPath: Self {
    text("letters, digits and `-._~` between slashes, at most 255 bytes", NotificationsPath.fault)
  }
  static var serverAPIID: Self {
    let values = "1 to 64 letters, digits and hyphens"
    return text(values) {
      (1...64).contains($0.utf8.count) && isPlain($0, "-")
        ? nil : "must be \(values), as App Store Connect shows it"
    }
  }
  static var tokenID: Self {
    let values = "1 to 64 letters, digits, hyphens and underscores"
    return text(values) { TokenText.isID($0) ? nil : "must be \(values)" }
  }
  static var familyID: Self {
    text("UUID", "is not an app family id", { $0 }, { UUID16($0)?.description })
  }
}

extension SettingForm<[String]> {
  /// Addresses and networks; `wholeFault` is the problem where they cover all addresses.
  static func networks(_ wholeFault: String) -> Self {
    .list(
      .text("addresses and networks, such as `10.0.0.0/8`, `::1`") { text in
        NetworkText.fault(text).map { $0 == NetworkText.wholeFault ? wholeFault : $0 }
      },
      faults: {
        NetworkText.fault(ofAll: $0.compactMap { $0 }) == nil ? [] : [.init("", wholeFault)]
      })
  }
}

extension SettingForm<SHA256Digest> {
  static var fingerprint: Self {
    text(
      "SHA-256: 64 hexadecimal digits, with colons or without",
      "must be a SHA-256 fingerprint: 64 hexadecimal digits", \.hex, FingerprintText.digest)
  }
}

extension SettingForm<Int64> {
  static var time: Self {
    text(
      "RFC 3339 time", "is not a time such as 2026-01-02T03:04:05.678Z", { Timestamp.text(ms: $0) },
      { try? Timestamp.parse($0) })
  }
}

extension SettingForm<RetentionPeriod> {
  static var retention: Self {
    text(
      "a whole number and `d`, `w`, `m` (30 days) or `y` (365 days), at most 100 years",
      RetentionPeriod.requirement, \.text, RetentionPeriod.init)
  }
}

extension SettingForm<TimeOfDay> {
  static var timeOfDay: Self {
    text("`\"00:00\"` to `\"23:59\"`", TimeOfDay.requirement, \.text, TimeOfDay.init)
  }
}

extension SettingForm<WebhookSecret> {
  static var webhookSecret: Self {
    text(
      "`whsec_` and base64 of 24 to 64 bytes", WebhookSecret.requirement, \.text,
      WebhookSecret.init
    ).secret
  }
}

extension SettingForm<[UInt8]> {
  static var sharedSecret: Self {
    text(
      "1 to 255 visible ASCII characters", SharedSecret.requirement,
      { String(decoding: $0, as: UTF8.self) },
      { SharedSecret.isValid(Array($0.utf8)) ? Array($0.utf8) : nil }
    ).secret
  }
}

extension SettingForm<NamedFile<[UInt8]>> {
  static func secretFile(_ byteCountMax: Int) -> Self {
    Self(
      values: "path, relative to the ledger",
      read: { reader, value, path in
        guard let name = value.stringValue else { return reader.fail(path, "must be a string") }
        guard !name.isEmpty, !name.utf8.contains(0) else {
          return reader.fail(path, "must name a file")
        }
        return reader.secretFile(name, path, byteCountMax).map { NamedFile(name, $0) }
      }, json: { file, _ in .string(file.name) })
  }
}

extension SettingForm<NamedFile<ServerAPIKey>> {
  static var privateKey: Self {
    let file = SettingForm<NamedFile<[UInt8]>>.secretFile(ServerAPIKey.sizeBytesMax)
    return Self(
      values: file.values,
      read: { reader, value, path in
        guard let file = file.read(&reader, value, path) else { return nil }
        do throws(ServerAPIKeyError) {
          return NamedFile(file.name, try ServerAPIKey(pem: file.content))
        } catch { return reader.fail(path, error.rawValue) }
      }, json: { file, _ in .string(file.name) })
  }
}

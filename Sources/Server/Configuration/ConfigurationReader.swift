// From the JSON of config.json to a configuration: strict, and every problem with its path.
import AppStore
import AppStoreClient
import Base
import Intake

/// Reads one configuration and gathers what is wrong with it.
struct ConfigurationReader {
  /// The ledger's directory, from which file names in the configuration go out.
  private let directoryPath: String
  private(set) var problems: [ConfigurationError.Problem] = []
  /// The files that were named, as paths that can be opened.
  private(set) var filePaths: [String] = []

  init(directoryPath: String) { self.directoryPath = directoryPath }

  /// The limits of each number.
  private enum Limit {
    static let timeoutMs: ClosedRange<Int64> = 1...600_000
    /// An answer of 16 MiB would fit no event, and so could not be kept as evidence.
    static let answerBytes: ClosedRange<Int64> = 1024...(15 << 20)
    static let calls: ClosedRange<Int64> = 1...1024
    static let callsPerSecond: ClosedRange<Int64> = 1...10_000
    static let retryMs: ClosedRange<Int64> = 100...604_800_000
    static let reuseMs: ClosedRange<Int64> = 0...86_400_000
    static let forgedBytes: ClosedRange<Int64> = 0...(1 << 40)
    static let disableAfterDays: ClosedRange<Int64> = 1...30
    static let notifications: ClosedRange<Int64> = 1...65_536
    static let syncLimitMs: ClosedRange<Int64> = 100...600_000
    static let notificationsPerSecond: ClosedRange<Int64> = 1...100_000
  }

  /// The configuration that the text means; to be used only where there are no problems.
  mutating func read(_ root: JSONValue) -> Configuration {
    var result = Configuration()
    forEachMember(
      of: root, at: "",
      known: [
        "app_store", "verification", "trust", "trusted_proxies", "shared_secrets", "apps", "tokens",
        "webhooks", "notifications", "retention", "erasures", "replication",
      ]
    ) { reader, key, value in
      switch key {
      case "app_store": result.appStore = reader.appStore(value, key)
      case "verification": result.verification = reader.verification(value, key)
      case "trust": result.trust = reader.trust(value, key)
      case "trusted_proxies":
        result.trustedProxies = reader.list(value, key) { reader, value, path in
          guard let text = reader.text(value, path) else { return nil }
          if let fault = NetworkText.fault(text) { return reader.fail(path, fault) }
          return text
        }
        if let fault = NetworkText.fault(ofAll: result.trustedProxies) { reader.fail(key, fault) }
      case "shared_secrets": result.sharedSecrets = reader.sharedSecrets(value, key)
      case "apps": result.apps = reader.apps(value, key)
      case "webhooks": result.webhooks = reader.webhooks(value, key)
      case "notifications": result.notifications = reader.notifications(value, key)
      case "retention": result.retention = reader.retention(value, key)
      case "erasures": result.erasures = reader.erasures(value, key)
      case "replication": result.replication = reader.replication(value, key)
      default: result.tokens = reader.tokens(value, key)
      }
    }
    return result
  }

  // MARK: Sections

  private mutating func appStore(_ value: JSONValue, _ path: String) -> Configuration.AppStore {
    var result = Configuration.AppStore()
    forEachMember(
      of: value, at: path,
      known: [
        "production_url", "sandbox_url", "connect_timeout_ms", "timeout_ms", "answer_bytes_max",
        "calls_max", "server_api_production_url", "server_api_sandbox_url",
        "server_api_calls_per_second", "daily_sync",
      ]
    ) { reader, key, value in
      let path = "\(path).\(key)"
      switch key {
      case "production_url": result.productionURL = reader.url(value, path)
      case "sandbox_url": result.sandboxURL = reader.url(value, path)
      case "connect_timeout_ms":
        result.connectTimeoutMs = Int(reader.integer(value, path, Limit.timeoutMs))
      case "timeout_ms": result.timeoutMs = Int(reader.integer(value, path, Limit.timeoutMs))
      case "answer_bytes_max":
        result.answerBytesMax = Int(reader.integer(value, path, Limit.answerBytes))
      case "server_api_production_url":
        result.serverAPIProductionURL = reader.baseURL(value, path)
      case "server_api_sandbox_url": result.serverAPISandboxURL = reader.baseURL(value, path)
      case "server_api_calls_per_second":
        result.serverAPICallsPerSecond = Int(reader.integer(value, path, Limit.callsPerSecond))
      case "daily_sync": result.dailySync = reader.flag(value, path)
      default: result.callsMax = Int(reader.integer(value, path, Limit.calls))
      }
    }
    return result
  }

  private mutating func verification(
    _ value: JSONValue, _ path: String
  ) -> Configuration.Verification {
    var result = Configuration.Verification()
    forEachMember(
      of: value, at: path,
      known: ["retry_first_ms", "retry_ceiling_ms", "reuse_reply_ms", "forged_bytes_daily_max"]
    ) { reader, key, value in
      let path = "\(path).\(key)"
      switch key {
      case "retry_first_ms": result.retryFirstMs = reader.integer(value, path, Limit.retryMs)
      case "retry_ceiling_ms": result.retryCeilingMs = reader.integer(value, path, Limit.retryMs)
      case "reuse_reply_ms": result.reuseReplyMs = reader.integer(value, path, Limit.reuseMs)
      default: result.forgedBytesDailyMax = reader.integer(value, path, Limit.forgedBytes)
      }
    }
    if problems.isEmpty, result.retryCeilingMs < result.retryFirstMs {
      fail("\(path).retry_ceiling_ms", "is less than retry_first_ms, \(result.retryFirstMs)")
    }
    return result
  }

  private mutating func notifications(
    _ value: JSONValue, _ path: String
  ) -> Configuration.Notifications {
    var result = Configuration.Notifications()
    forEachMember(of: value, at: path, known: ["path", "in_progress_max", "sandbox_per_second"]) {
      reader, key, value in
      let path = "\(path).\(key)"
      switch key {
      case "path":
        guard let text = reader.text(value, path) else { return }
        if let fault = NotificationsPath.fault(text) { reader.fail(path, fault) }
        result.path = text
      case "in_progress_max":
        result.inProgressMax = Int(reader.integer(value, path, Limit.notifications))
      default:
        result.sandboxPerSecond = Int(reader.integer(value, path, Limit.notificationsPerSecond))
      }
    }
    return result
  }

  private mutating func retention(
    _ value: JSONValue, _ path: String
  ) -> Configuration.Retention {
    var result = Configuration.Retention()
    forEachMember(
      of: value, at: path, known: ["ip_address", "identifier_for_vendor", "metadata"]
    ) { reader, key, value in
      let path = "\(path).\(key)"
      guard let text = reader.text(value, path) else { return }
      guard let period = RetentionPeriod(text) else {
        return reader.fail(path, RetentionPeriod.requirement)
      }
      switch key {
      case "ip_address": result.ipAddress = period
      case "identifier_for_vendor": result.identifierForVendor = period
      default: result.metadata = period
      }
    }
    return result
  }

  private mutating func erasures(_ value: JSONValue, _ path: String) -> Configuration.Erasures {
    var result = Configuration.Erasures()
    forEachMember(of: value, at: path, known: ["daily_at"]) { reader, key, value in
      let path = "\(path).\(key)"
      guard let text = reader.text(value, path) else { return }
      guard let time = TimeOfDay(text) else { return reader.fail(path, TimeOfDay.requirement) }
      result.dailyAt = time
    }
    return result
  }

  private mutating func replication(
    _ value: JSONValue, _ path: String
  ) -> Configuration.Replication? {
    var result = Configuration.Replication(target: "")
    let problemCount = problems.count
    forEachMember(
      of: value, at: path,
      known: ["target", "endpoint", "region", "credentials_file", "mode", "sync_limit_ms"]
    ) { reader, key, value in
      let path = "\(path).\(key)"
      switch key {
      case "target": result.target = reader.text(value, path) ?? ""
      case "endpoint": result.endpoint = reader.baseURL(value, path)
      case "region": result.region = reader.text(value, path)
      case "credentials_file":
        guard let name = reader.text(value, path) else { return }
        guard !name.isEmpty, !name.utf8.contains(0) else {
          return reader.fail(path, "must name a file")
        }
        result.credentialsFile = name
        result.credentials = reader.secret(name, path)
      case "mode":
        guard let text = reader.text(value, path) else { return }
        guard let mode = Configuration.Replication.Mode(rawValue: text) else {
          return reader.fail(path, "must be async or sync")
        }
        result.mode = mode
      default: result.syncLimitMs = reader.integer(value, path, Limit.syncLimitMs)
      }
    }
    guard problems.count == problemCount else { return nil }
    for fault in result.faults { fail("\(path).\(fault.member)", fault.cause) }
    return problems.count == problemCount ? result : nil
  }

  private mutating func secret(_ name: String, _ path: String) -> [UInt8]? {
    filePaths.append(name.hasPrefix("/") ? name : "\(directoryPath)/\(name)")
    do throws(SecretFile.Fault) {
      return try SecretFile.read(name, in: directoryPath, byteCountMax: 16 << 10)
    } catch { return fail(path, error.cause) }
  }

  private mutating func trust(_ value: JSONValue, _ path: String) -> Configuration.Trust {
    var result = Configuration.Trust()
    // Roots first: whether a certificate is of use depends on them.
    var certificates: JSONValue?
    forEachMember(
      of: value, at: path,
      known: [
        "additional_roots_sha256", "transaction_intermediates", "local_testing_signers_sha256",
      ]
    ) { reader, key, value in
      switch key {
      case "additional_roots_sha256":
        result.additionalRoots = reader.fingerprints(value, "\(path).\(key)")
      case "transaction_intermediates": certificates = value
      default: result.localTestingSigners = reader.fingerprints(value, "\(path).\(key)")
      }
    }
    guard let certificates else { return result }
    let roots = Set(result.additionalRoots + [.appleRoot])
    result.transactionIntermediates = list(certificates, "\(path).transaction_intermediates") {
      reader, value, path in reader.certificates(value, path, pinnedRoots: roots)
    }.flatMap { $0 }
    return result
  }

  private mutating func sharedSecrets(_ value: JSONValue, _ path: String) -> [String: [UInt8]] {
    guard case .object(let members) = value else {
      fail(path, "must be an object of app family ids and shared secrets")
      return [:]
    }
    var result: [String: [UInt8]] = [:]
    for (index, member) in members.enumerated() {
      // An operator may have swapped the two and put the secret where the id belongs: it is not shown.
      guard let id = UUID16(member.key)?.description else {
        fail(path, "key number \(index + 1) is not an app family id")
        continue
      }
      guard case .string(let secret) = member.value, SharedSecret.isValid(Array(secret.utf8)) else {
        fail("\(path).\(id)", SharedSecret.requirement)
        continue
      }
      if result.updateValue(Array(secret.utf8), forKey: id) != nil {
        fail("\(path).\(id)", "is given twice")
      }
    }
    return result
  }

  private mutating func apps(_ value: JSONValue, _ path: String) -> [String: Configuration.App] {
    guard case .object(let members) = value else {
      fail(path, "must be an object of app family ids and settings")
      return [:]
    }
    var result: [String: Configuration.App] = [:]
    for (index, member) in members.enumerated() {
      guard let id = UUID16(member.key)?.description else {
        fail(path, "key number \(index + 1) is not an app family id")
        continue
      }
      var app = Configuration.App()
      forEachMember(
        of: member.value, at: "\(path).\(id)", known: ["accept_sandbox", "server_api", "webhook"]
      ) { reader, key, value in
        let path = "\(path).\(id).\(key)"
        switch key {
        case "server_api": app.serverAPI = reader.serverAPI(value, path)
        case "webhook": app.webhook = reader.webhook(value, path)
        default: app.acceptsSandbox = reader.flag(value, path)
        }
      }
      if result.updateValue(app, forKey: id) != nil {
        fail("\(path).\(id)", "is given twice")
      }
    }
    return result
  }

  private mutating func tokens(_ value: JSONValue, _ path: String) -> [Configuration.Token] {
    var ids = Set<String>()
    var digests = Set<SHA256Digest>()
    return list(value, path) { reader, value, path in
      guard let token = reader.token(value, path) else { return nil }
      if !ids.insert(token.id).inserted {
        reader.fail("\(path).id", "is already used by another token")
      }
      if !digests.insert(token.sha256).inserted {
        reader.fail("\(path).sha256", "is already used by another token")
      }
      return token
    }
  }

  private mutating func token(_ value: JSONValue, _ path: String) -> Configuration.Token? {
    var texts: [String: String] = [:]
    let problemCount = problems.count
    let known = ["id", "app_family_id", "scope", "created_at", "revoked_at", "sha256"]
    let optional = ["scope", "revoked_at"]
    forEachMember(of: value, at: path, known: known) { reader, key, value in
      if let text = reader.text(value, "\(path).\(key)") { texts[key] = text }
    }
    guard problems.count == problemCount else { return nil }
    for key in known where !optional.contains(key) && texts[key] == nil {
      fail("\(path).\(key)", "is missing")
    }
    guard let id = texts["id"], let family = texts["app_family_id"], let sha256 = texts["sha256"],
      let createdAt = texts["created_at"]
    else { return nil }
    if !TokenText.isID(id) {
      fail("\(path).id", "must be 1 to 64 letters, digits, hyphens and underscores")
    }
    guard let familyID = UUID16(family)?.description else {
      return fail("\(path).app_family_id", "is not an app family id")
    }
    guard let scope = Configuration.Token.Scope(rawValue: texts["scope"] ?? "upload") else {
      return fail("\(path).scope", "must be upload, read or erase")
    }
    guard let digest = FingerprintText.digest(sha256) else {
      return fail("\(path).sha256", "must be 64 hexadecimal digits")
    }
    guard let createdAtMs = time(createdAt, "\(path).created_at") else { return nil }
    var revokedAtMs: Int64?
    if let revokedAt = texts["revoked_at"] {
      revokedAtMs = time(revokedAt, "\(path).revoked_at")
    }
    return Configuration.Token(
      id: id, sha256: digest, appFamilyID: familyID, scope: scope, createdAtMs: createdAtMs,
      revokedAtMs: revokedAtMs)
  }

  private mutating func serverAPI(
    _ value: JSONValue, _ path: String
  ) -> Configuration.ServerAPI? {
    let known = ["issuer_id", "key_id", "private_key_file"]
    var texts: [String: String] = [:]
    let problemCount = problems.count
    forEachMember(of: value, at: path, known: known) { reader, key, value in
      guard let text = reader.text(value, "\(path).\(key)") else { return }
      if key == "private_key_file" {
        guard !text.isEmpty, !text.utf8.contains(0) else {
          return reader.fail("\(path).\(key)", "must name a file")
        }
      } else if !ServerAPIText.isID(text) {
        return reader.fail("\(path).\(key)", ServerAPIText.requirement)
      }
      texts[key] = text
    }
    guard problems.count == problemCount else { return nil }
    for key in known where texts[key] == nil { fail("\(path).\(key)", "is missing") }
    guard let issuerID = texts["issuer_id"], let keyID = texts["key_id"],
      let file = texts["private_key_file"],
      let key = privateKey(file, "\(path).private_key_file")
    else { return nil }
    return Configuration.ServerAPI(
      issuerID: issuerID, keyID: keyID, privateKeyFile: file, privateKey: key)
  }

  private mutating func privateKey(_ name: String, _ path: String) -> ServerAPIKey? {
    filePaths.append(name.hasPrefix("/") ? name : "\(directoryPath)/\(name)")
    let pem: [UInt8]
    do throws(SecretFile.Fault) {
      pem = try SecretFile.read(name, in: directoryPath, byteCountMax: ServerAPIKey.sizeBytesMax)
    } catch { return fail(path, error.cause) }
    do throws(ServerAPIKeyError) { return try ServerAPIKey(pem: pem) } catch {
      return fail(path, error.rawValue)
    }
  }

  private mutating func webhook(_ value: JSONValue, _ path: String) -> Configuration.Webhook? {
    var url: String?
    var secrets: [String: WebhookSecret] = [:]
    var untilMs: Int64?
    let problemCount = problems.count
    forEachMember(
      of: value, at: path, known: ["url", "secret", "previous_secret", "previous_secret_until"]
    ) { reader, key, value in
      let path = "\(path).\(key)"
      switch key {
      case "url": url = reader.url(value, path)
      case "previous_secret_until":
        untilMs = reader.text(value, path).flatMap { text in
          (try? Timestamp.parse(text)) ?? reader.fail(path, "must be an RFC 3339 time")
        }
      default:
        secrets[key] = reader.text(value, path).flatMap { text in
          WebhookSecret(text) ?? reader.fail(path, WebhookSecret.requirement)
        }
      }
    }
    guard problems.count == problemCount else { return nil }
    guard let url else { return fail("\(path).url", "is missing") }
    guard let secret = secrets["secret"] else { return fail("\(path).secret", "is missing") }
    var webhook = Configuration.Webhook(url: url, secret: secret)
    switch (secrets["previous_secret"], untilMs) {
    case (nil, nil): break
    case (nil, _): return fail("\(path).previous_secret", "is missing")
    case (_, nil): return fail("\(path).previous_secret_until", "is missing")
    case (let previous?, let untilMs?):
      webhook.previous = .init(secret: previous, untilMs: untilMs)
    }
    return webhook
  }

  private static let wholeFault = "must not cover all addresses"

  private mutating func webhooks(_ value: JSONValue, _ path: String) -> Configuration.Webhooks {
    var result = Configuration.Webhooks()
    forEachMember(of: value, at: path, known: ["private_networks", "disable_after_days"]) {
      reader, key, value in
      switch key {
      case "disable_after_days":
        result.disableAfterDays = Int(
          reader.integer(value, "\(path).\(key)", Limit.disableAfterDays))
      default:
        result.privateNetworks = reader.list(value, "\(path).\(key)") { reader, value, path in
          guard let text = reader.text(value, path) else { return nil }
          guard let fault = NetworkText.fault(text) else { return text }
          return reader.fail(path, fault == NetworkText.wholeFault ? Self.wholeFault : fault)
        }
        if NetworkText.fault(ofAll: result.privateNetworks) != nil {
          reader.fail("\(path).\(key)", Self.wholeFault)
        }
      }
    }
    return result
  }

  // MARK: Values

  private mutating func url(_ value: JSONValue, _ path: String) -> String {
    guard let text = text(value, path) else { return "" }
    if let fault = EndpointText.fault(text) { fail(path, fault) }
    return text
  }

  /// Paths are put behind it.
  private mutating func baseURL(_ value: JSONValue, _ path: String) -> String {
    let text = url(value, path)
    if text.contains("?") { fail(path, "must not contain a query") }
    return text
  }

  private mutating func fingerprints(_ value: JSONValue, _ path: String) -> [SHA256Digest] {
    list(value, path) { reader, value, path in
      guard let text = reader.text(value, path) else { return nil }
      return FingerprintText.digest(text)
        ?? reader.fail(path, "must be a SHA-256 fingerprint: 64 hexadecimal digits")
    }
  }

  /// The certificates of an entry: its text, or the file that it names.
  private mutating func certificates(
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

  private mutating func time(_ text: String, _ path: String) -> Int64? {
    do { return try Timestamp.parse(text) } catch {
      return fail(path, "is not a time such as 2026-01-02T03:04:05.678Z")
    }
  }

  private mutating func integer(
    _ value: JSONValue, _ path: String, _ range: ClosedRange<Int64>
  ) -> Int64 {
    if let number = value.integerValue, range.contains(number) { return number }
    fail(path, "must be an integer from \(range.lowerBound) to \(range.upperBound)")
    return range.lowerBound
  }

  private mutating func flag(_ value: JSONValue, _ path: String) -> Bool {
    if case .boolean(let flag) = value { return flag }
    fail(path, "must be true or false")
    return true
  }

  private mutating func text(_ value: JSONValue, _ path: String) -> String? {
    value.stringValue ?? fail(path, "must be a string")
  }

  private mutating func list<Element>(
    _ value: JSONValue, _ path: String,
    _ read: (inout ConfigurationReader, JSONValue, String) -> Element?
  ) -> [Element] {
    guard case .array(let elements) = value else {
      fail(path, "must be a list")
      return []
    }
    var result: [Element] = []
    for (index, element) in elements.enumerated() {
      if let element = read(&self, element, "\(path)[\(index)]") { result.append(element) }
    }
    return result
  }

  private mutating func forEachMember(
    of value: JSONValue, at path: String, known: [String],
    _ read: (inout ConfigurationReader, String, JSONValue) -> Void
  ) {
    guard case .object(let members) = value else {
      fail(path, "must be an object")
      return
    }
    for member in members {
      guard known.contains(member.key) else {
        let name = PrintableText.shortened(member.key)
        fail(
          path.isEmpty ? name : "\(path).\(name)",
          "there is no such setting\(hint(for: member.key, among: known))")
        continue
      }
      read(&self, member.key, member.value)
    }
  }

  private mutating func fail(_ path: String, _ cause: String) {
    problems.append(ConfigurationError.Problem(path, cause))
  }

  private mutating func fail<Value>(_ path: String, _ cause: String) -> Value? {
    fail(path, cause)
    return nil
  }
}

// A configuration as JSON: indented for people, and with its secrets masked for showing.
package import Base

extension JSONValue {
  /// Sets a member of an object, in its place or as the last one.
  mutating func set(_ key: String, _ value: JSONValue) {
    guard case .object(var members) = self else { return }
    if let index = members.firstIndex(where: { $0.key.hasSameBytes(as: key) }) {
      members[index].value = value
    } else {
      members.append(Member(key, value))
    }
    self = .object(members)
  }

  /// The value's text with a member or element a line, and a line feed at its end.
  package var indentedBytes: [UInt8] {
    var text: [UInt8] = []
    appendIndented(to: &text, level: 0)
    text.append(UInt8(ascii: "\n"))
    return text
  }

  private func appendIndented(to text: inout [UInt8], level: Int) {
    func newLine(_ level: Int) {
      text.append(UInt8(ascii: "\n"))
      text.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * level))
    }
    switch self {
    case .object(let members) where !members.isEmpty:
      text.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { text.append(UInt8(ascii: ",")) }
        newLine(level + 1)
        text += JSONValue.string(member.key).bytes + Array(": ".utf8)
        member.value.appendIndented(to: &text, level: level + 1)
      }
      newLine(level)
      text.append(UInt8(ascii: "}"))
    case .array(let elements) where !elements.isEmpty:
      text.append(UInt8(ascii: "["))
      for (index, element) in elements.enumerated() {
        if index > 0 { text.append(UInt8(ascii: ",")) }
        newLine(level + 1)
        element.appendIndented(to: &text, level: level + 1)
      }
      newLine(level)
      text.append(UInt8(ascii: "]"))
    default: text += bytes
    }
  }
}

extension Configuration.Token {
  /// The token as config.json holds it.
  var json: JSONValue { .object(members(showsDefaults: false)) }

  fileprivate func members(showsDefaults: Bool) -> [JSONValue.Member] {
    var members: [JSONValue.Member] = [
      .init("id", .string(id)), .init("app_family_id", .string(appFamilyID)),
    ]
    // Earlier programs refuse a member that they do not know, and know tokens that upload alone.
    if showsDefaults || scope != .upload { members.append(.init("scope", .string(scope.rawValue))) }
    members.append(.init("created_at", .string(Timestamp.text(ms: createdAtMs))))
    if let revokedAtMs {
      members.append(.init("revoked_at", .string(Timestamp.text(ms: revokedAtMs))))
    }
    return members + [.init("sha256", .string(sha256.hex))]
  }
}

extension Configuration.Webhook {
  /// The webhook as config.json holds it.
  var json: JSONValue {
    json(secret: secret.text, previousSecret: previous?.secret.text)
  }

  /// The same but for its secrets.
  var masked: JSONValue { json(secret: Configuration.mask, previousSecret: Configuration.mask) }

  private func json(secret: String, previousSecret: String?) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("url", .string(url)), .init("secret", .string(secret)),
    ]
    if let previous, let previousSecret {
      members.append(.init("previous_secret", .string(previousSecret)))
      members.append(
        .init("previous_secret_until", .string(Timestamp.text(ms: previous.untilMs))))
    }
    return .object(members)
  }
}

extension Configuration.ServerAPI {
  /// The key's names, and the file that holds it.
  var masked: JSONValue {
    .object([
      .init("issuer_id", .string(issuerID)), .init("key_id", .string(keyID)),
      .init("private_key_file", .string(privateKeyFile)),
    ])
  }
}

extension Configuration.Retention {
  /// What is kept for a limited time alone.
  fileprivate var json: JSONValue {
    let members: [(String, RetentionPeriod?)] = [
      ("ip_address", ipAddress), ("identifier_for_vendor", identifierForVendor),
      ("metadata", metadata),
    ]
    return .object(
      members.compactMap { name, period in
        period.map { JSONValue.Member(name, .string($0.text)) }
      })
  }
}

extension Configuration {
  /// What is shown instead of a secret.
  package static let mask = "(set)"

  /// The configuration in effect, defaults included, as JSON without any secret: of tokens all but the
  /// digest, of shared secrets that they are set.
  package var masked: JSONValue {
    func number(_ value: some BinaryInteger) -> JSONValue { .number(String(value)) }
    func texts(_ values: [String]) -> JSONValue { .array(values.map { .string($0) }) }
    var members: [JSONValue.Member] = [
      .init(
        "app_store",
        .object([
          .init("production_url", .string(appStore.productionURL)),
          .init("sandbox_url", .string(appStore.sandboxURL)),
          .init("connect_timeout_ms", number(appStore.connectTimeoutMs)),
          .init("timeout_ms", number(appStore.timeoutMs)),
          .init("answer_bytes_max", number(appStore.answerBytesMax)),
          .init("calls_max", number(appStore.callsMax)),
          .init("server_api_production_url", .string(appStore.serverAPIProductionURL)),
          .init("server_api_sandbox_url", .string(appStore.serverAPISandboxURL)),
          .init("server_api_calls_per_second", number(appStore.serverAPICallsPerSecond)),
          .init("daily_sync", .boolean(appStore.dailySync)),
        ])),
      .init(
        "verification",
        .object([
          .init("retry_first_ms", number(verification.retryFirstMs)),
          .init("retry_ceiling_ms", number(verification.retryCeilingMs)),
          .init("reuse_reply_ms", number(verification.reuseReplyMs)),
          .init("forged_bytes_daily_max", number(verification.forgedBytesDailyMax)),
        ])),
      .init(
        "trust",
        .object([
          .init("additional_roots_sha256", texts(trust.additionalRoots.map(\.hex))),
          .init(
            "transaction_intermediates_sha256",
            texts(
              trust.transactionIntermediates.map { der in
                der.withUnsafeBytes { SHA256.hash($0) }.hex
              })),
          .init("local_testing_signers_sha256", texts(trust.localTestingSigners.map(\.hex))),
        ])),
      .init("trusted_proxies", texts(trustedProxies)),
      .init(
        "notifications",
        .object([
          .init("path", .string(notifications.path)),
          .init("in_progress_max", number(notifications.inProgressMax)),
          .init("sandbox_per_second", number(notifications.sandboxPerSecond)),
        ])),
      .init(
        "shared_secrets",
        .object(
          sharedSecrets.keys.sorted().map { JSONValue.Member($0, .string(Self.mask)) })),
      .init(
        "apps",
        .object(
          apps.sorted { $0.key < $1.key }.map { id, app in
            var members: [JSONValue.Member] = [
              .init("accept_sandbox", .boolean(app.acceptsSandbox))
            ]
            if let key = app.serverAPI { members.append(.init("server_api", key.masked)) }
            if let webhook = app.webhook { members.append(.init("webhook", webhook.masked)) }
            return JSONValue.Member(id, .object(members))
          })),
      .init(
        "webhooks",
        .object([
          .init("private_networks", texts(webhooks.privateNetworks)),
          .init("disable_after_days", number(webhooks.disableAfterDays)),
        ])),
      .init("retention", retention.json),
      .init("erasures", .object([.init("daily_at", .string(erasures.dailyAt.text))])),
      .init(
        "tokens",
        .array(
          tokens.map { token in
            .object(token.members(showsDefaults: true).filter { $0.key != "sha256" })
          })),
    ]
    // Without one there is no copy.
    if let replication {
      members.insert(.init("replication", replication.json), at: members.count - 1)
    }
    return .object(members)
  }
}

// MARK: - What is wrong with config.json: each problem with its path inside the file, never with a value

/// Why a configuration cannot be used. Holds no token, no shared secret, and no value that might be one.
package struct ConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
  /// One thing that is wrong.
  package struct Problem: Equatable, Sendable, CustomStringConvertible {
    /// Where: `app_store.timeout_ms`, `tokens[2].sha256`; empty for the file as a whole.
    package let path: String
    package let cause: String

    package init(_ path: String, _ cause: String) {
      self.path = path
      self.cause = cause
    }

    package var description: String { path.isEmpty ? cause : "\(path): \(cause)" }
  }

  /// What was attempted, as a verb phrase: "read", "write".
  package let operation: String
  /// The file's path.
  package let object: String
  /// At least one; the first of them, and in place of the others how many they are.
  package let problems: [Problem]
  private static let problemCountMax = 100

  package init(_ operation: String, _ object: String, _ problems: [Problem]) {
    self.operation = operation
    self.object = object
    let furtherCount = problems.count - Self.problemCountMax
    self.problems =
      furtherCount > 0
      ? problems.prefix(Self.problemCountMax) + [Problem("", "\(furtherCount) more problems")]
      : problems
  }

  package var description: String {
    "\(operation) \(object): \(problems.map(\.description).joined(separator: "; "))"
  }
}

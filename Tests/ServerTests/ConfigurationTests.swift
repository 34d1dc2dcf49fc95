// config.json: what is accepted, what is refused with which message, and changes of the file.
import AppStore
import Base
import Erasure
import Foundation
import Glibc
import HTTPClient
import Ledger
import Server
import TestSupport
import Testing

/// A ledger whose config.json a test writes.
final class ConfiguredLedger {
  private let temporary: TemporaryDirectory
  let directory: LedgerDirectory
  let file: ConfigurationFile

  init() throws {
    temporary = try TemporaryDirectory()
    directory = try LedgerDirectory.create(
      path: temporary.path("ledger"), origin: "receipts.example/test")
    file = ConfigurationFile(directory)
  }

  func write(_ text: String, _ name: String = "config.json", permissions: Int = 0o600) throws {
    // Atomic, since a watcher may read the file at any time.
    let path = directory.fullPath(name)
    let temporary = path + ".test"
    try Data(text.utf8).write(to: URL(fileURLWithPath: temporary))
    try FileManager.default.setAttributes(
      [.posixPermissions: permissions], ofItemAtPath: temporary)
    try #require(rename(temporary, path) == 0)
  }

  var text: String {
    get throws { try String(contentsOfFile: file.path, encoding: .utf8) }
  }

  /// The problems found in a text, a line each.
  func problems(_ text: String, permissions: Int = 0o600) throws -> [String] {
    try write(text, permissions: permissions)
    do {
      _ = try file.read()
      return []
    } catch {
      return error.problems.map(\.description)
    }
  }
}

enum ConfigurationSample {
  static let family = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"
  static let digest = String(repeating: "ab", count: 32)
  static let linkCause =
    "it is a symbolic link, which is not followed inside a ledger: replace it with the file itself"
  /// An intermediate whose purpose allows it to sign receipt signers, and one without a purpose.
  static let intermediate =
    "MIIBgjCCASegAwIBAgIUF63gxB5gjvmPmK3ceXU+c6kgPFgwCgYIKoZIzj0EAwIwDDEKMAgGA1UEAwwBVDAgFw0yNjExMjEwNzE2NDBaGA8yMTI2MTAyODA3MTY0MFowDDEKMAgGA1UEAwwBVDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABAEpyuliSkFBj3vvnNq5eRXWd8vu2OT7JO7QDZQi9cLic7Qju5Ev9ABfOyOAZ4PYu1P95SamQRg/52/QqQkYumKjZTBjMB0GA1UdDgQWBBRy/xILQZx+PokQEjppI1SMLnGzhzAfBgNVHSMEGDAWgBRy/xILQZx+PokQEjppI1SMLnGzhzAPBgNVHRMBAf8EBTADAQH/MBAGCiqGSIb3Y2QGAgEEAgUAMAoGCCqGSM49BAMCA0kAMEYCIQCegK76+BjGyBHz8aM1QMwTH+IR/Gg+d+8sZJAShiR0ZQIhAOOBjRW4HDKPaPbj6LtVKJMfS8bXkn76ntab7j7swL4U"
  static let plainCertificate =
    "MIIBbjCCARWgAwIBAgIUWXQr0mgVNHSZd59jV5/iQJIxe18wCgYIKoZIzj0EAwIwDDEKMAgGA1UEAwwBVDAgFw0yNjExMjEwNzE2NDBaGA8yMTI2MTAyODA3MTY0MFowDDEKMAgGA1UEAwwBVDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABAEpyuliSkFBj3vvnNq5eRXWd8vu2OT7JO7QDZQi9cLic7Qju5Ev9ABfOyOAZ4PYu1P95SamQRg/52/QqQkYumKjUzBRMB0GA1UdDgQWBBRy/xILQZx+PokQEjppI1SMLnGzhzAfBgNVHSMEGDAWgBRy/xILQZx+PokQEjppI1SMLnGzhzAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIE2BRIU+R7MbYlSsQsDL1sfoX6rirBQ/TfSxRSXYfiToAiAXymbWOXxSzH0It5HHAzet5bcOLIcVBtTD/V9DshLCkg=="
  static let plainFingerprint =
    "9D:E4:F0:23:AE:F9:65:D9:33:4E:62:A5:24:DC:83:D0:33:54:69:0A:10:7D:AB:EC:3E:3F:05:E2:7C:FC:46:D1"

  static func token(_ members: String) -> String { #"{"tokens":[{\#(members)}]}"# }
  static let webhookSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
  static let otherWebhookSecret = "whsec_FxYVFBMSERAPDg0MCwoJCAcGBQQDAgEA"
  /// A configuration with one key.
  static func serverAPI(_ members: String) -> String {
    #"{"apps":{"\#(family)":{"server_api":\#(members)}}}"#
  }
  static let goodToken =
    #""id":"tk-1","app_family_id":"\#(family)","created_at":"2026-01-02T03:04:05Z","sha256":"\#(digest)""#

  /// Texts that are refused, each with the problem that comes first.
  static let bad: [(text: String, problem: String)] = {
    let lines = refused.split(separator: "\n")
    return stride(from: 0, to: lines.count, by: 2).map {
      (String(lines[$0]), String(lines[$0 + 1].dropFirst(2)))
    }
  }()
  private static let refused = #"""
    []
      must be an object
    {"tokens":[],"tokens":[]}
      line 1, column 15: is not JSON: duplicate key
    {"app_stor":{}}
      app_stor: there is no such setting; did you mean app_store?
    {"app_store":{"timeout":5}}
      app_store.timeout: there is no such setting; did you mean timeout_ms?
    {"app_store":[]}
      app_store: must be an object
    {"verification":{"forged_bytes_daily_max":1099511627777}}
      verification.forged_bytes_daily_max: must be an integer from 0 to 1099511627776
    {"app_store":{"timeout_ms":-1}}
      app_store.timeout_ms: must be an integer from 1 to 600000
    {"app_store":{"timeout_ms":"5"}}
      app_store.timeout_ms: must be an integer from 1 to 600000
    {"app_store":{"timeout_ms":1.5}}
      app_store.timeout_ms: must be an integer from 1 to 600000
    {"app_store":{"timeout_ms":null}}
      app_store.timeout_ms: must be an integer from 1 to 600000
    {"app_store":{"calls_max":99999999999999999999}}
      app_store.calls_max: must be an integer from 1 to 1024
    {"verification":{"retry_first_ms":5000,"retry_ceiling_ms":1000}}
      verification.retry_ceiling_ms: is less than retry_first_ms, 5000
    {"apps":[]}
      apps: must be an object of app family ids and settings
    {"apps":{"game":{}}}
      apps: key number 1 is not an app family id
    {"apps":{"\#(family)":{"accept_sandbox":"no"}}}
      apps.\#(family).accept_sandbox: must be true or false
    {"apps":{"\#(family)":{"accepts_sandbox":false}}}
      apps.\#(family).accepts_sandbox: there is no such setting; did you mean accept_sandbox?
    {"apps":{"\#(family)":{"webhook":"https://example.com"}}}
      apps.\#(family).webhook: must be an object
    {"apps":{"\#(family)":{"webhook":{"secret":"\#(webhookSecret)"}}}}
      apps.\#(family).webhook.url: is missing
    {"apps":{"\#(family)":{"webhook":{"url":"https://example.com/hook"}}}}
      apps.\#(family).webhook.secret: is missing
    {"apps":{"\#(family)":{"webhook":{"url":"https://example.com/hook","secret":"s3cret"}}}}
      apps.\#(family).webhook.secret: must be whsec_ and the base64 of 24 to 64 bytes
    {"apps":{"\#(family)":{"webhook":{"url":"https://example.com/","secret":"\#(webhookSecret)","previous_secret":"s3cret"}}}}
      apps.\#(family).webhook.previous_secret: must be whsec_ and the base64 of 24 to 64 bytes
    {"apps":{"\#(family)":{"webhook":{"url":"https://example.com/","secret":"\#(webhookSecret)","previous_secret":"\#(otherWebhookSecret)"}}}}
      apps.\#(family).webhook.previous_secret_until: is missing
    {"apps":{"\#(family)":{"webhook":{"url":"https://example.com/","secret":"\#(webhookSecret)","previous_secret_until":"2026-02-02T03:04:05.678Z"}}}}
      apps.\#(family).webhook.previous_secret: is missing
    {"apps":{"\#(family)":{"webhook":{"url":"https://example.com/","secret":"\#(webhookSecret)","previous_secret_until":"tomorrow"}}}}
      apps.\#(family).webhook.previous_secret_until: is not a time such as 2026-01-02T03:04:05.678Z
    {"apps":{"\#(family)":{"webhook":{"url":"http://example.com/","secret":"\#(webhookSecret)"}}}}
      apps.\#(family).webhook.url: must be an https URL, or an http URL to a loopback address
    {"app_store":{"server_api_calls_per_second":0}}
      app_store.server_api_calls_per_second: must be an integer from 1 to 10000
    {"app_store":{"server_api_sandbox_url":"http://example.com"}}
      app_store.server_api_sandbox_url: must be an https URL, or an http URL to a loopback address
    {"app_store":{"server_api_production_url":"https://example.com?a"}}
      app_store.server_api_production_url: must not contain a query
    {"app_store":{"daily_sync":1}}
      app_store.daily_sync: must be true or false
    {"apps":{"\#(family)":{"server_api":{"issuer_id":"i","key_id":"K"}}}}
      apps.\#(family).server_api.private_key_file: is missing
    {"apps":{"\#(family)":{"server_api":{"issuer_id":"a b"}}}}
      apps.\#(family).server_api.issuer_id: must be 1 to 64 letters, digits and hyphens, as App Store Connect shows it
    {"apps":{"\#(family)":{"server_api":{"issuer_id":"i","key_id":"K","private_key_file":"no.p8"}}}}
      apps.\#(family).server_api.private_key_file: the file cannot be read: no such file or directory
    {"webhooks":{"disable_after_days":0}}
      webhooks.disable_after_days: must be an integer from 1 to 30
    {"webhooks":{"private_networks":["10.0.0.0/8","0.0.0.0/0"]}}
      webhooks.private_networks[1]: must not cover all addresses
    {"webhooks":{"private_networks":["2000::/4","3000::/4"]}}
      webhooks.private_networks: must not cover all addresses
    {"webhooks":{"private_networks":["intranet"]}}
      webhooks.private_networks[0]: must be an address or a network such as 10.0.0.0/8 or ::1
    {"notifications":[]}
      notifications: must be an object
    {"notifications":{"path":7}}
      notifications.path: must be a string
    {"notifications":{"in_progress_max":0}}
      notifications.in_progress_max: must be an integer from 1 to 65536
    {"notifications":{"sandbox_per_second":100001}}
      notifications.sandbox_per_second: must be an integer from 1 to 100000
    {"notifications":{"sandbox":1}}
      notifications.sandbox: there is no such setting; did you mean sandbox_per_second?
    {"retention":{"ip_adress":"90d"}}
      retention.ip_adress: there is no such setting; did you mean ip_address?
    {"retention":{"metadata":90}}
      retention.metadata: must be a string
    {"retention":{"metadata":null}}
      retention.metadata: must be a string
    {"retention":{"metadata":"90 d"}}
      retention.metadata: must be a whole number and d, w, m (30 days) or y (365 days), such as 90d: at most 100 years
    {"erasures":{"daily_at":3}}
      erasures.daily_at: must be a string
    {"erasures":{"daily_at":"off"}}
      erasures.daily_at: must be a time of the day in UTC, such as 03:00
    {"trusted_proxies":"::1"}
      trusted_proxies: must be a list
    {"trusted_proxies":["10.0.0.0"," 10.0.0.1"]}
      trusted_proxies[1]: must be an address or a network such as 10.0.0.0/8 or ::1
    {"trusted_proxies":["10.0.0.0/33"]}
      trusted_proxies[0]: has a prefix that is not from 0 to 32
    {"trusted_proxies":["10.0.0.0/8","0.0.0.0/0"]}
      trusted_proxies[1]: must not cover all addresses: every client would be trusted
    {"trusted_proxies":["::/0"]}
      trusted_proxies[0]: must not cover all addresses: every client would be trusted
    {"trusted_proxies":["::ffff:0:0/96"]}
      trusted_proxies[0]: must not cover all addresses: every client would be trusted
    {"trusted_proxies":["0.0.0.0/1","128.0.0.0/1"]}
      trusted_proxies: must not cover all addresses: every client would be trusted
    {"trusted_proxies":["10.0.0.1/8"]}
      trusted_proxies[0]: has bits set after its prefix of 8
    {"trusted_proxies":["::1/"]}
      trusted_proxies[0]: has a prefix that is not from 0 to 128
    {"trust":{"additional_roots_sha256":["ab"]}}
      trust.additional_roots_sha256[0]: must be a SHA-256 fingerprint: 64 hexadecimal digits
    {"trust":{"transaction_intermediates":[{"file":"missing.pem"}]}}
      trust.transaction_intermediates[0]: the file cannot be read: no such file or directory
    {"trust":{"transaction_intermediates":[{"path":"missing.pem"}]}}
      trust.transaction_intermediates[0]: must be a string or {"file": PATH}
    {"trust":{"transaction_intermediates":["-----BEGIN CERTIFICATE-----\nAAAA\n"]}}
      trust.transaction_intermediates[0]: is not a certificate in PEM or DER (in a string: base64)
    {"trust":{"transaction_intermediates":["AAAA"]}}
      trust.transaction_intermediates[0]: is a certificate that cannot be read
    {"trust":{"transaction_intermediates":["\#(plainCertificate)"]}}
      trust.transaction_intermediates[0]: is neither a pinned root nor an intermediate that signs receipt signers
    {"tokens":[{"id":7}]}
      tokens[0].id: must be a string
    {"tokens":[{"id":"a","sha256":"x","created_at":"x"}]}
      tokens[0].app_family_id: is missing
    {"tokens":[{\#(goodToken),"scope":"write"}]}
      tokens[0].scope: must be upload, read or erase
    {"tokens":[{\#(goodToken),"revoked_at":"yesterday"}]}
      tokens[0].revoked_at: is not a time such as 2026-01-02T03:04:05.678Z
    {"tokens":[{\#(goodToken)},{\#(goodToken)}]}
      tokens[1].id: is already used by another token
    """#
}

@Suite struct ConfigurationTests {
  @Test func endlessProblemsAreCountedAndNamesThatLookLikeSecretsAreNotShown() throws {
    let ledger = try ConfiguredLedger()
    let settings = (0..<300).map { "\"none\($0)\":1" }.joined(separator: ",")
    let problems = try ledger.problems("{\(settings)}")
    expectEqual(problems.count, 101)
    expectEqual(problems.last, "200 more problems")
    let token = TokenText.make()
    try expectEqual(
      ledger.problems("{\"\(token)\":1}"),
      [
        "[47 characters, not shown]: there is no such setting"
      ])
  }

  typealias Sample = ConfigurationSample

  @Test func aLedgerWithoutConfigurationHasTheDefaults() throws {
    try expectEqual(ConfiguredLedger().file.read(), Configuration())
  }

  @Test func everySettingIsTaken() throws {
    let ledger = try ConfiguredLedger()
    try ledger.write(
      "-----BEGIN CERTIFICATE-----\n\(Sample.intermediate.prefix(64))\n"
        + "\(Sample.intermediate.dropFirst(64))\n-----END CERTIFICATE-----\n", "keys.pem")
    try ledger.write(
      """
      {"app_store":{"production_url":"http://127.0.0.1:8081/verifyReceipt",
        "sandbox_url":"https://sandbox.example/x?y=1","connect_timeout_ms":100,"timeout_ms":200,
        "answer_bytes_max":4096,"calls_max":3},
       "verification":{"retry_first_ms":200,"retry_ceiling_ms":300,"reuse_reply_ms":0,
        "forged_bytes_daily_max":5},
       "trust":{"transaction_intermediates":[{"file":"keys.pem"},"\(Sample.plainCertificate)"],
        "additional_roots_sha256":["\(Sample.plainFingerprint)"],
        "local_testing_signers_sha256":["\(Sample.digest)"]},
       "trusted_proxies":["10.0.0.0/8","::1","192.168.1.7"],
       "notifications":{"path":"/hooks/Apple-1","in_progress_max":7,"sandbox_per_second":1},
       "shared_secrets":{"\(Sample.family.uppercased())":"s3cret"},
       "apps":{"\(Sample.family.uppercased())":{"accept_sandbox":false,
        "webhook":{"url":"https://example.com/hook","secret":"\(Sample.webhookSecret)",
         "previous_secret":"\(Sample.otherWebhookSecret)",
         "previous_secret_until":"2026-02-02T03:04:05.678Z"}}},
       "webhooks":{"private_networks":["10.0.0.0/8"],"disable_after_days":2},
       "retention":{"ip_address":"90d","identifier_for_vendor":"2w","metadata":"7y"},
       "erasures":{"daily_at":"23:59"},
       "tokens":[{\(Sample.goodToken),"scope":"read","revoked_at":"2026-02-02T03:04:05.678Z"}]}
      """)
    let read = try ledger.file.read()
    var expected = Configuration()
    expected.appStore.clientOptions.productionURL = "http://127.0.0.1:8081/verifyReceipt"
    expected.appStore.clientOptions.sandboxURL = "https://sandbox.example/x?y=1"
    expected.appStore.clientOptions.connectTimeoutMs = 100
    expected.appStore.clientOptions.timeoutMs = 200
    expected.appStore.clientOptions.answerBytesMax = 4096
    expected.appStore.clientOptions.callsMax = 3
    expected.verification.retryFirstMs = 200
    expected.verification.retryCeilingMs = 300
    expected.verification.reuseReplyMs = 0
    expected.verification.forgedBytesDailyMax = 5
    let hex = Sample.plainFingerprint.lowercased().filter { $0 != ":" }
    let root = try #require(Array(hex.utf8).withUnsafeBytes { SHA256Digest(hex: $0) })
    let signer = try #require(Array(Sample.digest.utf8).withUnsafeBytes { SHA256Digest(hex: $0) })
    expected.trust.additionalRoots = [root]
    expected.trust.transactionIntermediates = try [Sample.intermediate, Sample.plainCertificate]
      .map { try Base64.decode(Array($0.utf8)) }
    expected.trust.localTestingSigners = [signer]
    expected.trustedProxies = ["10.0.0.0/8", "::1", "192.168.1.7"]
    expected.notifications.path = "/hooks/Apple-1"
    expected.notifications.inProgressMax = 7
    expected.notifications.sandboxPerSecond = 1
    expected.sharedSecrets = [Sample.family: Array("s3cret".utf8)]
    var app = Configuration.App()
    app.acceptsSandbox = false
    app.webhook = Configuration.Webhook(
      url: "https://example.com/hook", secret: try #require(WebhookSecret(Sample.webhookSecret)),
      previous: .init(
        secret: try #require(WebhookSecret(Sample.otherWebhookSecret)),
        untilMs: ms("2026-02-02T03:04:05.678Z")))
    expected.webhooks.privateNetworks = ["10.0.0.0/8"]
    expected.webhooks.disableAfterDays = 2
    expected.retention.ipAddress = RetentionPeriod("90d")
    expected.retention.identifierForVendor = RetentionPeriod("2w")
    expected.retention.metadata = RetentionPeriod("7y")
    expected.erasures.dailyAt = TimeOfDay(hour: 23, minute: 59)
    expected.apps = [Sample.family: app]
    expected.tokens = [
      Configuration.Token(
        id: "tk-1", sha256: signer, appFamilyID: Sample.family, scope: .read,
        createdAtMs: 1_767_323_045_000, revokedAtMs: 1_770_001_445_678)
    ]
    expectEqual(read, expected)
    expectEqual(read.trust.verifierConfiguration.pinnedRoots, [.appleRoot, root])
  }

  @Test(
    arguments: [
      ("", "line 1, column 1: is not JSON: unexpected end"),
      ("{\n  \"apps\": {}\n  \"tokens\": []\n}", "line 3, column 3: is not JSON: unexpected byte"),
      ("{\"é\": 1,}", "line 1, column 9: is not JSON: unexpected byte"),
      ("{\"apps\": {}}\n}\n", "line 2, column 1: is not JSON: unexpected bytes after the end"),
    ] + ConfigurationSample.bad)
  func badConfigurationIsRefusedWithItsPlace(_ text: String, _ problem: String) throws {
    let problems = try ConfiguredLedger().problems(text)
    #expect(problems.first?.hasPrefix(problem) == true, "\(problems)")
  }

  @Test func thePageDescribesEverySetting() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
      path: "../../docs/configuration.md")
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    let table = lines.drop { $0 != "|---|---|---|---|" }.dropFirst().prefix { $0.hasPrefix("|") }
    let cells = Configuration.settingRows.map {
      let standard = $0.isRequired ? "required" : $0.standard.map { "`\($0)`" } ?? ""
      return "| `\($0.path)` | \($0.values) | \(standard) | "
    }
    expectEqual(table.count, cells.count)
    for (line, cells) in zip(table, cells) {
      #expect(line.hasPrefix(cells) && line.count > cells.count + 2, "\(cells)")
    }
  }

  @Test func everyProblemIsListed() throws {
    let problems = try ConfiguredLedger().problems(
      #"{"a":1,"app_store":{"timeout_ms":0,"calls_max":0},"tokens":[{}]}"#)
    expectEqual(problems.count, 7, "\(problems)")
  }

  @Test(arguments: [
    #"{"shared_secrets":{"hunter2-hunter2":"\#(ConfigurationSample.family)"}}"#,
    #"{"shared_secrets":{"\#(ConfigurationSample.family)":"hunter2 hunter2"}}"#,
    #"{"shared_secrets":{"\#(ConfigurationSample.family)":["hunter2"]}}"#,
    #"{"shared_secrets":["hunter2"]}"#, #"{"shared_secrets":"hunter2"}"#, #""hunter2""#,
    #"{"shared_secrets":{"\#(ConfigurationSample.family)":"hunter2\u0000"}}"#,
    ConfigurationSample.token(#""id":"rlt hunter2""#),
    ConfigurationSample.token(
      #""id":"a","sha256":"hunter2","app_family_id":"hunter2","created_at":"hunter2""#),
    #"{"app_store":{"production_url":"https://user:hunter2@example.com/"}}"#,
    #"{"shared_secrets":{"\#(ConfigurationSample.family)":"hunter2"#,
  ]) func noProblemShowsWhatMayBeASecret(_ text: String) throws {
    let ledger = try ConfiguredLedger()
    let problems = try ledger.problems(text)
    #expect(!problems.isEmpty)
    #expect(!problems.contains { $0.contains("hunter2") }, "\(problems)")
  }

  @Test(arguments: [
    ("https://buy.itunes.apple.com/verifyReceipt", true), ("https://[::2]:8443/", true),
    ("http://localhost:1/", true), ("http://127.5.6.7", true), ("http://[::1]:80/x", true),
    ("http://example.com/", false), ("http://127.0.0.1.example.com/", false),
    ("http://127.0.0.1@example.com/", false), ("https://a:b@example.com/", false),
    ("http://[::2]/", false), ("ftp://localhost/", false), ("https://", false),
    ("https:///path", false), ("https://example.com:0/", false),
    ("https://example.com:65536/", false), ("https://example.com:x/", false),
    ("https://exa mple.com/", false), ("https://example.com/\n", false),
    (#"http://127.0.0.1\@example.com/"#, false), ("https://example.com/#x", false),
    ("HTTP://localhost/", false), ("https://münchen.example/", false), ("", false),
  ]) func receiptsLeaveThisMachineEncrypted(_ url: String, _ isGood: Bool) throws {
    let problems = try ConfiguredLedger().problems(
      #"{"app_store":{"sandbox_url":\#(JSONText(stringLiteral: url).text)}}"#)
    expectEqual(problems.isEmpty, isGood, "\(problems)")
  }

  @Test(arguments: [0o644, 0o640, 0o620, 0o602, 0o700 | 0o001])
  func aFileThatOthersMayUseIsRefused(_ permissions: Int) throws {
    let problems = try ConfiguredLedger().problems("{}", permissions: permissions)
    expectEqual(problems, ["other users can read or write it, and it holds secrets: run chmod 600"])
  }

  @Test(
    "a file that belongs to neither the ledger's user nor root is refused, by root too",
    .enabled(if: geteuid() == 0),
    arguments: [(0, 4711, false), (4712, 4711, false), (4711, 4711, true), (4711, 0, true)])
  func owners(_ ledgerOwner: uid_t, _ fileOwner: uid_t, _ isTaken: Bool) throws {
    let ledger = try ConfiguredLedger()
    try ledger.write("{}")
    try #require(chown(ledger.directory.path, ledgerOwner, .max) == 0)
    try #require(chown(ledger.file.path, fileOwner, .max) == 0)
    if isTaken {
      try expectEqual(ledger.file.read(), Configuration())
    } else {
      let error = #expect(throws: ConfigurationError.self) { try ledger.file.read() }
      expectEqual(error?.problems.map(\.cause), ["it belongs to another user"])
    }
  }

  @Test func aLinkIsRefusedWhereverItLeads() throws {
    let ledger = try ConfiguredLedger()
    try #require(symlink("missing.json", ledger.file.path) == 0)
    for _ in 0..<2 {
      let error = #expect(throws: ConfigurationError.self) { try ledger.file.read() }
      expectEqual(error?.problems.map(\.cause), [ConfigurationSample.linkCause])
      try ledger.write(#"{"app_store":{"calls_max":7}}"#, "missing.json")
    }
  }

  // MARK: Changes

  @Test func aTokenIsKeptAsItsDigest() throws {
    let ledger = try ConfiguredLedger()
    try ledger.write(#"{"app_store":{"calls_max":7, "timeout_ms":4000},"verification":{}}"#)
    let (token, kept) = try ledger.file.addToken(appFamilyID: ConfigurationSample.family, nowMs: 5)
    #expect(token.hasPrefix("rlt_") && token.utf8.count == 47)
    expectEqual(kept.sha256.hex, ConfigurationSample.hex(token))
    try expectEqual(ledger.file.read().tokens, [kept])
    let text = try ledger.text
    #expect(!text.contains(token))
    #expect(
      text.hasPrefix(
        """
        {
          "app_store": {
            "calls_max": 7,
            "timeout_ms": 4000
          },
          "verification": {},
          "tokens": [

        """), "\(text)")
    let attributes = try FileManager.default.attributesOfItem(atPath: ledger.file.path)
    expectEqual(attributes[.posixPermissions] as? Int, 0o600)
  }

  @Test func aRevokedTokenStaysListed() throws {
    let ledger = try ConfiguredLedger()
    let first = try ledger.file.addToken(appFamilyID: ConfigurationSample.family, nowMs: 5).kept
    let second = try ledger.file.addToken(appFamilyID: ConfigurationSample.family, nowMs: 6).kept
    #expect(try ledger.file.revokeToken(id: first.id, nowMs: 9)?.wasRevoked == false)
    #expect(try ledger.file.revokeToken(id: first.id, nowMs: 10)?.wasRevoked == true)
    #expect(try ledger.file.revokeToken(id: "tk-none") == nil)
    let tokens = try ledger.file.read().tokens
    expectEqual(tokens.map(\.id), [first.id, second.id])
    expectEqual(tokens.map(\.revokedAtMs), [9, nil])
  }

  @Test func aTokenThatReadsStaysOneThatReads() throws {
    let ledger = try ConfiguredLedger()
    let reads = try ledger.file.addToken(appFamilyID: ConfigurationSample.family, scope: .read).kept
    let uploads = try ledger.file.addToken(appFamilyID: ConfigurationSample.family).kept
    try expectEqual(ledger.file.read().tokens.map(\.scope), [.read, .upload])
    // Earlier programs read a file without tokens of the other scope.
    try expectEqual(ledger.text.components(separatedBy: "scope").count, 2)
    _ = try ledger.file.revokeToken(id: reads.id)
    _ = try ledger.file.revokeToken(id: uploads.id)
    try expectEqual(ledger.file.read().tokens.map(\.scope), [.read, .upload])
    let shown = String(decoding: try ledger.file.read().masked.indentedBytes, as: UTF8.self)
    #expect(shown.contains(#""scope": "read""#) && shown.contains(#""scope": "upload""#))
  }

  @Test func aSharedSecretIsSetReplacedAndRemoved() throws {
    let ledger = try ConfiguredLedger()
    let family = ConfigurationSample.family
    try ledger.write(#"{"shared_secrets":{"\#(family.uppercased())":"old"}}"#)
    #expect(try ledger.file.setSharedSecret(Array("new".utf8), appFamilyID: family))
    try expectEqual(ledger.file.read().sharedSecrets, [family: Array("new".utf8)])
    #expect(try ledger.file.setSharedSecret(nil, appFamilyID: family))
    #expect(try ledger.file.setSharedSecret(nil, appFamilyID: family) == false)
    #expect(try ledger.file.read().sharedSecrets.isEmpty)
  }

  @Test func whatWouldBeBadIsNotWritten() throws {
    let ledger = try ConfiguredLedger()
    try ledger.write("{}")
    #expect(throws: ConfigurationError.self) {
      try ledger.file.setSharedSecret(Array("a b".utf8), appFamilyID: ConfigurationSample.family)
    }
    try expectEqual(ledger.text, "{}")
    try ledger.write(#"{"unknown":1}"#)
    #expect(throws: ConfigurationError.self) {
      try ledger.file.addToken(appFamilyID: ConfigurationSample.family)
    }
    try expectEqual(ledger.text, #"{"unknown":1}"#)
  }

  @Test func tokensMadeAtOnceAreAllKept() async throws {
    let ledger = try ConfiguredLedger()
    let file = ledger.file
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<12 {
        group.addTask { _ = try file.addToken(appFamilyID: ConfigurationSample.family) }
      }
      try await group.waitForAll()
    }
    expectEqual(Set(try file.read().tokens.map(\.id)).count, 12)
  }

  @Test func whatIsShownHoldsNoSecret() throws {
    let ledger = try ConfiguredLedger()
    let (token, kept) = try ledger.file.addToken(appFamilyID: ConfigurationSample.family)
    _ = try ledger.file.setSharedSecret(
      Array("hunter2".utf8), appFamilyID: ConfigurationSample.family)
    let webhook = try ledger.file.setWebhook(
      url: "https://example.com/hook", appFamilyID: ConfigurationSample.family)
    let secret = try #require(webhook.secret)
    let next = try #require(
      try ledger.file.replaceWebhookSecret(appFamilyID: ConfigurationSample.family).secret)
    let shown = String(decoding: try ledger.file.read().masked.indentedBytes, as: UTF8.self)
    #expect(shown.contains(kept.id))
    #expect(shown.contains("https://example.com/hook"))
    for secret in ["hunter2", token, kept.sha256.hex, secret.text, next.text] {
      #expect(!shown.contains(secret))
    }
  }
}

extension ConfigurationSample {
  static func hex(_ text: String) -> String {
    Array(text.utf8).withUnsafeBytes { SHA256.hash($0) }.hex
  }
}

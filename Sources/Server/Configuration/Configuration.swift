// What an operator configures: every setting of config.json, with its default and the values it takes.
package import AppStore
package import Base
package import Erasure
package import HTTPClient
import Projections

/// The configuration of a ledger's intake. Everything has a default: a ledger without config.json works.
package struct Configuration: Sendable, Equatable, SettingsSection {
  package var appStore = AppStore()
  package var verification = Verification()
  package var trust = Trust()
  /// Addresses and networks (`10.0.0.0/8`, `::1`) whose `X-Forwarded-For` is believed.
  package var trustedProxies: [String] = []
  package var notifications = Notifications()
  /// App Store shared secrets, by the app family's id. No message contains them.
  package var sharedSecrets: [String: [UInt8]] = [:]
  /// Settings of single apps, by the app family's id.
  package var apps: [String: App] = [:]
  package var webhooks = Webhooks()
  package var retention = Retention()
  package var erasures = Erasures()
  /// Nil if there is no copy. Read when a server starts.
  package var replication: Replication?
  package var tokens: [Token] = []

  package init() {}

  static var settings: [Setting<Self>] {
    [
      Setting("app_store", \.appStore, .section),
      Setting("verification", \.verification, .section),
      Setting("trust", \.trust, .section),
      Setting("trusted_proxies", \.trustedProxies, .networks(NetworkText.wholeFault)),
      Setting("notifications", \.notifications, .section),
      Setting("shared_secrets", \.sharedSecrets, .byFamily("shared secrets", .sharedSecret)),
      Setting("apps", \.apps, .byFamily("settings", .section)),
      Setting("webhooks", \.webhooks, .section),
      Setting("retention", \.retention, .section),
      Setting("erasures", \.erasures, .section),
      Setting("replication", optional: \.replication, .section),
      Setting("tokens", \.tokens, .list(.section, faults: Token.repetitions)),
    ]
  }

  /// The configuration in effect, defaults included, as JSON without any secret.
  package var masked: JSONValue { json(isMasked: true) }

  /// Every setting: its path in config.json, the values it takes, and its default as JSON.
  package static var settingRows: [SettingRow] { settings.flatMap(\.rows) }

  /// Where the App Store is asked, and how long it may take.
  package struct AppStore: Sendable, Equatable, SettingsSection {
    /// What `VerifyReceiptClient` is made with.
    package var clientOptions = VerifyReceiptOptions()
    /// The base of the App Store Server API's paths.
    package var serverAPIProductionURL = ServerAPIOptions().productionURL
    package var serverAPISandboxURL = ServerAPIOptions().sandboxURL
    /// In each environment.
    package var serverAPICallsPerSecond = 50
    /// Whether a server synchronizes once a day.
    package var dailySync = true

    package init() {}

    static var settings: [Setting<Self>] {
      [
        Setting("production_url", \.clientOptions.productionURL, .url),
        Setting("sandbox_url", \.clientOptions.sandboxURL, .url),
        Setting("connect_timeout_ms", \.clientOptions.connectTimeoutMs, .integer(1...600_000)),
        Setting("timeout_ms", \.clientOptions.timeoutMs, .integer(1...600_000)),
        // A reply of 16 MiB would fit no event, and so could not be kept as evidence.
        Setting("answer_bytes_max", \.clientOptions.answerBytesMax, .integer(1024...15 << 20)),
        Setting("calls_max", \.clientOptions.callsMax, .integer(1...1024)),
        Setting("server_api_production_url", \.serverAPIProductionURL, .baseURL),
        Setting("server_api_sandbox_url", \.serverAPISandboxURL, .baseURL),
        Setting("server_api_calls_per_second", \.serverAPICallsPerSecond, .integer(1...10_000)),
        Setting("daily_sync", \.dailySync, .flag),
      ]
    }

    /// What `ServerAPIClient` is made with.
    package var serverAPIOptions: ServerAPIOptions {
      var options = ServerAPIOptions()
      options.productionURL = serverAPIProductionURL
      options.sandboxURL = serverAPISandboxURL
      options.connectTimeoutMs = clientOptions.connectTimeoutMs
      // A page of a history takes longer than a receipt.
      options.timeoutMs = max(clientOptions.timeoutMs, options.timeoutMs)
      options.answerBytesMax = clientOptions.answerBytesMax
      return options
    }
  }

  /// How waiting receipts are asked about again, when an answer is used again, and how much of forgeries is kept.
  package struct Verification: Sendable, Equatable, SettingsSection {
    /// The first pause, doubled each time, with jitter, up to the ceiling.
    package var retryFirstMs: Int64 = 10_000
    package var retryCeilingMs: Int64 = 3_600_000
    /// An upload reuses a final reply that is at most this old; 0 disables that.
    package var reuseReplyMs: Int64 = 60_000
    /// How many bytes of frauds an app family's uploads may leave whole in a day of UTC.
    package var forgedBytesDailyMax: Int64 = 64 << 20

    package init() {}

    static var settings: [Setting<Self>] {
      [
        Setting("retry_first_ms", \.retryFirstMs, .integer(100...604_800_000)),
        Setting("retry_ceiling_ms", \.retryCeilingMs, .integer(100...604_800_000)),
        Setting("reuse_reply_ms", \.reuseReplyMs, .integer(0...RecentReplies.usableMs)),
        Setting("forged_bytes_daily_max", \.forgedBytesDailyMax, .integer(0...1 << 40)),
      ]
    }

    var faults: [ConfigurationError.Problem] {
      retryCeilingMs < retryFirstMs
        ? [.init("retry_ceiling_ms", "is less than retry_first_ms, \(retryFirstMs)")] : []
    }
  }

  /// Whom to trust besides Apple's root.
  package struct Trust: Sendable, Equatable, SettingsSection {
    /// SHA-256 fingerprints of roots pinned in addition to Apple's, for a test authority.
    package var additionalRoots: [SHA256Digest] = []
    /// DER certificates for transaction receipts.
    package var transactionIntermediates: [[UInt8]] = []
    /// SHA-256 fingerprints of signers of `Xcode` and `LocalTesting` receipts and signed objects.
    package var localTestingSigners: [SHA256Digest] = []

    package init() {}

    static var settings: [Setting<Self>] {
      [
        // First: whether a certificate is of use depends on the roots.
        Setting("additional_roots_sha256", \.additionalRoots, .list(.fingerprint)),
        Setting(
          key: "transaction_intermediates", shownKey: "transaction_intermediates_sha256",
          values: #"list of PEM, base64 of DER, or `{"file": PATH}`"#,
          read: { reader, trust, value, path in
            let roots = Set(trust.additionalRoots + [.appleRoot])
            let read = reader.list(value, path) { reader, value, path in
              reader.certificates(value, path, pinnedRoots: roots)
            }
            trust.transactionIntermediates = read.flatMap { $0 ?? [] }
          },
          json: { trust, _ in
            let digests = trust.transactionIntermediates.map {
              $0.withUnsafeBytes { SHA256.hash($0) }
            }
            return .array(digests.map { .string($0.hex) })
          }),
        Setting("local_testing_signers_sha256", \.localTestingSigners, .list(.fingerprint)),
      ]
    }

    /// What a verifier of receipts is made of: Apple's root and these.
    package var verifierConfiguration: ReceiptVerifier.Configuration {
      ReceiptVerifier.Configuration(
        pinnedRoots: Set(additionalRoots + [.appleRoot]),
        transactionIntermediates: transactionIntermediates,
        localTestingSigners: Set(localTestingSigners))
    }

    /// The roots of signed objects: Apple's G3, which signs no receipt, and those configured.
    package var signedObjectRoots: Set<SHA256Digest> { Set(additionalRoots + [.appleRootG3]) }

    /// A verifier of signed objects, which trusts Apple's root and these.
    package func signedObjectVerifier() -> SignedObjectVerifier {
      SignedObjectVerifier(
        pinnedRoots: signedObjectRoots, localTestingSigners: Set(localTestingSigners))
    }
  }

  /// The path that takes the App Store's notifications, and how many it takes.
  package struct Notifications: Sendable, Equatable, SettingsSection {
    package var path = "/app_store/notifications"
    /// Notifications that are accepted and not yet answered. Uploads have a limit of their own.
    package var inProgressMax = 1024
    /// How many notifications of the Sandbox each registered bundle may add in a second.
    package var sandboxPerSecond = 50

    package init() {}

    static var settings: [Setting<Self>] {
      [
        Setting("path", \.path, .notificationsPath),
        Setting("in_progress_max", \.inProgressMax, .integer(1...65_536)),
        Setting("sandbox_per_second", \.sandboxPerSecond, .integer(1...100_000)),
      ]
    }
  }

  /// What holds for one app family alone.
  package struct App: Sendable, Equatable, SettingsSection {
    /// Whether the client API takes receipts of the Sandbox.
    package var acceptsSandbox = true
    /// The key of the app's team for the App Store Server API; nil for none.
    package var serverAPI: ServerAPI?
    /// Where the app's back end receives sales and refunds; nil if it receives none.
    package var webhook: Webhook?

    package init() {}

    static var settings: [Setting<Self>] {
      [
        Setting("accept_sandbox", \.acceptsSandbox, .flag),
        Setting("server_api", optional: \.serverAPI, .section),
        Setting("webhook", optional: \.webhook, .section),
      ]
    }
  }

  /// A key of the App Store Server API.
  package struct ServerAPI: Sendable, Equatable, SettingsSection {
    package private(set) var issuerID = ""
    package private(set) var keyID = ""
    /// Nil only while it is being read.
    package private(set) var privateKey: NamedFile<ServerAPIKey>?

    static var settings: [Setting<Self>] {
      [
        Setting("issuer_id", \.issuerID, .serverAPIID, isRequired: true),
        Setting("key_id", \.keyID, .serverAPIID, isRequired: true),
        Setting("private_key_file", optional: \.privateKey, .privateKey, isRequired: true),
      ]
    }

    /// What calls about an app are made as.
    package func account(bundleID: String) -> ServerAPIAccount {
      guard let key = privateKey?.content else { preconditionFailure("a key without its file") }
      return ServerAPIAccount(issuerID: issuerID, keyID: keyID, key: key, bundleID: bundleID)
    }
  }

  /// Where an app's webhooks go, and the secret that signs them.
  package struct Webhook: Sendable, Equatable, SettingsSection {
    package private(set) var url = ""
    /// Random until one is read.
    package private(set) var secret = WebhookSecret.make()
    private var previousSecret: WebhookSecret?
    private var previousUntilMs: Int64?

    /// The secret that this one replaced, and until when it signs too, in epoch milliseconds.
    package struct Previous: Sendable, Equatable {
      package var secret: WebhookSecret
      package var untilMs: Int64

      package init(secret: WebhookSecret, untilMs: Int64) {
        self.secret = secret
        self.untilMs = untilMs
      }
    }

    init() {}

    package init(url: String, secret: WebhookSecret, previous: Previous? = nil) {
      self.url = url
      self.secret = secret
      (previousSecret, previousUntilMs) = (previous?.secret, previous?.untilMs)
    }

    /// Nil if no secret was replaced.
    package var previous: Previous? {
      guard let previousSecret, let previousUntilMs else { return nil }
      return Previous(secret: previousSecret, untilMs: previousUntilMs)
    }

    static var settings: [Setting<Self>] {
      [
        Setting("url", \.url, .url, isRequired: true),
        Setting("secret", \.secret, .webhookSecret, isRequired: true),
        Setting("previous_secret", optional: \.previousSecret, .webhookSecret),
        Setting("previous_secret_until", optional: \.previousUntilMs, .time),
      ]
    }

    var faults: [ConfigurationError.Problem] {
      switch (previousSecret, previousUntilMs) {
      case (nil, _?): [.init("previous_secret", "is missing")]
      case (_?, nil): [.init("previous_secret_until", "is missing")]
      default: []
      }
    }

    /// What is wrong with a URL; nil where it may be used.
    package static func fault(ofURL text: String) -> String? { EndpointText.fault(text) }
  }

  /// What holds for all webhooks.
  package struct Webhooks: Sendable, Equatable, SettingsSection {
    /// Networks that are not public and that webhooks may be sent to all the same.
    package var privateNetworks: [String] = []
    /// How many days without a success disable a webhook.
    package var disableAfterDays = 5

    package init() {}

    static var settings: [Setting<Self>] {
      [
        Setting("private_networks", \.privateNetworks, .networks("must not cover all addresses")),
        Setting("disable_after_days", \.disableAfterDays, .integer(1...30)),
      ]
    }
  }

  /// How long fields of uploads are kept; nil for ever.
  package struct Retention: Sendable, Equatable, SettingsSection {
    package var ipAddress: RetentionPeriod?
    package var identifierForVendor: RetentionPeriod?
    package var metadata: RetentionPeriod?

    package init() {}

    static var settings: [Setting<Self>] {
      [
        Setting("ip_address", optional: \.ipAddress, .retention),
        Setting("identifier_for_vendor", optional: \.identifierForVendor, .retention),
        Setting("metadata", optional: \.metadata, .retention),
      ]
    }

    /// What an erasure is told of it; nil if everything is kept for ever.
    package var rules: RetentionRules? {
      guard self != Retention() else { return nil }
      var rules = RetentionRules()
      rules.ipAddressMs = ipAddress?.milliseconds
      rules.identifierForVendorMs = identifierForVendor?.milliseconds
      rules.metadataMs = metadata?.milliseconds
      return rules
    }
  }

  /// When a server carries out requests to erase that are not urgent, and retention.
  package struct Erasures: Sendable, Equatable, SettingsSection {
    /// In UTC.
    package var dailyAt = TimeOfDay(hour: 3, minute: 0)

    package init() {}

    static var settings: [Setting<Self>] { [Setting("daily_at", \.dailyAt, .timeOfDay)] }
  }

  /// Where a copy of the ledger is kept.
  package struct Replication: Sendable, Equatable, SettingsSection {
    package enum Mode: String, CaseIterable, Sendable {
      /// Answers do not wait for the copy.
      case async
      /// What is acknowledged is in the copy.
      case sync
    }

    /// `s3://bucket/prefix`, or `file:///path`.
    package internal(set) var target = ""
    /// The URL of a server that speaks S3; nil for Amazon's of the region.
    var endpoint: String?
    var region: String?
    /// Nil for those of the environment.
    var credentials: NamedFile<[UInt8]>?
    package internal(set) var mode = Mode.async
    /// How long an answer waits for the copy.
    package internal(set) var syncLimitMs: Int64 = 10_000
    static let credentialsBytesMax = 16 << 10

    static var settings: [Setting<Self>] {
      [
        Setting("target", \.target, .text("`s3://bucket/prefix`, `file:///path`")),
        Setting("endpoint", optional: \.endpoint, .baseURL),
        Setting("region", optional: \.region, .text("text")),
        Setting("credentials_file", optional: \.credentials, .secretFile(credentialsBytesMax)),
        Setting("mode", \.mode, .choice),
        Setting("sync_limit_ms", \.syncLimitMs, .integer(100...600_000)),
      ]
    }
  }

  /// One token, as stored.
  package struct Token: Sendable, Equatable, SettingsSection {
    /// Which requests a token may make. No token has two of them: one that uploads learns nothing of a user's other
    /// purchases, one that reads cannot add evidence, and only one that erases can take any away.
    package enum Scope: String, CaseIterable, Sendable {
      /// Uploads, and the receipts they gave: `/client/…`.
      case upload
      /// What a user bought and owns: `/v1/purchases`, `/v1/entitlements`.
      case read
      /// Requests to erase a user, and what came of them: `/v1/erasures`.
      case erase
    }

    /// The public name by which it is listed and revoked.
    package private(set) var id = ""
    /// The app family that it is bound to, as the UUID's text.
    package private(set) var appFamilyID = ""
    package private(set) var scope = Scope.upload
    /// Epoch milliseconds.
    package private(set) var createdAtMs: Int64 = 0
    /// Epoch milliseconds; nil while it is good.
    package internal(set) var revokedAtMs: Int64?
    /// SHA-256 of the token's text. A token is 32 random bytes: no slow hash is needed.
    package private(set) var sha256 = SHA256Digest(0, 0, 0, 0)

    init() {}

    package init(
      id: String, sha256: SHA256Digest, appFamilyID: String, scope: Scope = .upload,
      createdAtMs: Int64, revokedAtMs: Int64? = nil
    ) {
      (self.id, self.sha256, self.appFamilyID) = (id, sha256, appFamilyID)
      (self.scope, self.createdAtMs, self.revokedAtMs) = (scope, createdAtMs, revokedAtMs)
    }

    static var settings: [Setting<Self>] {
      [
        Setting("id", \.id, .tokenID, isRequired: true),
        Setting("app_family_id", \.appFamilyID, .familyID, isRequired: true),
        Setting("scope", \.scope, .choice),
        Setting("created_at", \.createdAtMs, .time, isRequired: true),
        Setting("revoked_at", optional: \.revokedAtMs, .time),
        Setting("sha256", \.sha256, .fingerprint, isRequired: true, isShown: false),
      ]
    }

    /// Tokens that have the id or the digest of one before.
    fileprivate static func repetitions(_ tokens: [Self?]) -> [ConfigurationError.Problem] {
      var ids = Set<String>()
      var digests = Set<SHA256Digest>()
      return tokens.enumerated().flatMap { index, token -> [ConfigurationError.Problem] in
        guard let token else { return [] }
        let repeated =
          (ids.insert(token.id).inserted ? [] : ["id"])
          + (digests.insert(token.sha256).inserted ? [] : ["sha256"])
        return repeated.map { .init("[\(index)].\($0)", "is already used by another token") }
      }
    }
  }
}

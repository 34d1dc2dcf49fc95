// What an operator configures: the content of config.json.
package import AppStore
package import AppStoreClient
package import Base
package import Erasure

/// The configuration of a ledger's intake. Everything has a default: a ledger without config.json works.
package struct Configuration: Sendable, Equatable {
  /// Where the App Store is asked, and how long it may take.
  package struct AppStore: Sendable, Equatable {
    private static let standard = VerifyReceiptOptions()

    /// https; http on loopback alone, for a stand-in.
    package var productionURL = standard.productionURL
    package var sandboxURL = standard.sandboxURL
    package var connectTimeoutMs = standard.connectTimeoutMs
    /// Of a whole call, connecting included.
    package var timeoutMs = standard.timeoutMs
    /// Below what an event holds, so that every answer can be recorded.
    package var answerBytesMax = standard.answerBytesMax
    /// Calls at once.
    package var callsMax = standard.callsMax
    private static let standardServerAPI = ServerAPIOptions()
    /// The base of the App Store Server API's paths.
    package var serverAPIProductionURL = standardServerAPI.productionURL
    package var serverAPISandboxURL = standardServerAPI.sandboxURL
    /// In each environment.
    package var serverAPICallsPerSecond = 50
    /// Whether a server synchronizes once a day.
    package var dailySync = true

    package init() {}
  }

  /// How waiting receipts are asked about again, when an answer is used again, and how much of forgeries is kept.
  package struct Verification: Sendable, Equatable {
    /// The first pause, doubled each time, with jitter, up to the ceiling.
    package var retryFirstMs: Int64 = 10_000
    package var retryCeilingMs: Int64 = 3_600_000
    /// An upload reuses a final reply that is at most this old; 0 disables that.
    package var reuseReplyMs: Int64 = 60_000
    /// How many bytes of frauds an app family's uploads may leave whole in a day of UTC.
    package var forgedBytesDailyMax: Int64 = 64 << 20

    package init() {}
  }

  /// Whom to trust besides Apple's root.
  package struct Trust: Sendable, Equatable {
    /// SHA-256 fingerprints of roots pinned in addition to Apple's, for a test authority.
    package var additionalRoots: [SHA256Digest] = []
    /// DER certificates for transaction receipts.
    package var transactionIntermediates: [[UInt8]] = []
    /// SHA-256 fingerprints of signers of `Xcode` and `LocalTesting` receipts and signed objects.
    package var localTestingSigners: [SHA256Digest] = []

    package init() {}

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

  /// One token, as stored.
  package struct Token: Sendable, Equatable {
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
    package var id: String
    /// SHA-256 of the token's text. A token is 32 random bytes: no slow hash is needed.
    package var sha256: SHA256Digest
    /// The app family that it is bound to, as the UUID's text.
    package var appFamilyID: String
    package var scope: Scope
    /// Epoch milliseconds.
    package var createdAtMs: Int64
    /// Epoch milliseconds; nil while it is good.
    package var revokedAtMs: Int64?

    package init(
      id: String, sha256: SHA256Digest, appFamilyID: String, scope: Scope = .upload,
      createdAtMs: Int64, revokedAtMs: Int64? = nil
    ) {
      self.id = id
      self.sha256 = sha256
      self.appFamilyID = appFamilyID
      self.scope = scope
      self.createdAtMs = createdAtMs
      self.revokedAtMs = revokedAtMs
    }
  }

  /// What holds for one app family alone.
  package struct App: Sendable, Equatable {
    /// Whether the client API takes receipts of the Sandbox.
    package var acceptsSandbox = true
    /// Where the app's back end is told of sales and refunds; nil for nowhere.
    package var webhook: Webhook?
    /// The key of the app's team for the App Store Server API; nil for none.
    package var serverAPI: ServerAPI?

    package init() {}
  }

  /// A key of the App Store Server API.
  package struct ServerAPI: Sendable, Equatable {
    package var issuerID: String
    package var keyID: String
    /// As config.json names it.
    package var privateKeyFile: String
    /// No message shows it.
    package var privateKey: ServerAPIKey

    package init(
      issuerID: String, keyID: String, privateKeyFile: String, privateKey: ServerAPIKey
    ) {
      self.issuerID = issuerID
      self.keyID = keyID
      self.privateKeyFile = privateKeyFile
      self.privateKey = privateKey
    }

    /// What calls about an app are made as.
    package func account(bundleID: String) -> ServerAPIAccount {
      ServerAPIAccount(issuerID: issuerID, keyID: keyID, key: privateKey, bundleID: bundleID)
    }
  }

  /// Where an app's webhooks go, and the secret that signs them.
  package struct Webhook: Sendable, Equatable {
    /// https; http on loopback alone.
    package var url: String
    package var secret: WebhookSecret
    /// The secret that this one replaced, and until when it signs too, in epoch milliseconds.
    package var previous: Previous?

    package struct Previous: Sendable, Equatable {
      package var secret: WebhookSecret
      package var untilMs: Int64

      package init(secret: WebhookSecret, untilMs: Int64) {
        self.secret = secret
        self.untilMs = untilMs
      }
    }

    package init(url: String, secret: WebhookSecret, previous: Previous? = nil) {
      self.url = url
      self.secret = secret
      self.previous = previous
    }

    /// What is wrong with a URL; nil where it may be used.
    package static func fault(ofURL text: String) -> String? { EndpointText.fault(text) }
  }

  /// What holds for all webhooks.
  package struct Webhooks: Sendable, Equatable {
    /// Networks that are not public and that webhooks may be sent to all the same.
    package var privateNetworks: [String] = []
    /// How many days without a success disable a webhook.
    package var disableAfterDays = 5

    package init() {}
  }

  /// The path that takes the App Store's notifications, and how many it takes.
  package struct Notifications: Sendable, Equatable {
    package var path = "/app_store/notifications"
    /// Notifications that are accepted and not yet answered. Uploads have a limit of their own.
    package var inProgressMax = 1024
    /// How many notifications of the Sandbox each registered bundle may add in a second.
    package var sandboxPerSecond = 50

    package init() {}
  }

  /// How long fields of uploads are kept; nil for ever.
  package struct Retention: Sendable, Equatable {
    package var ipAddress: RetentionPeriod?
    package var identifierForVendor: RetentionPeriod?
    package var metadata: RetentionPeriod?

    package init() {}

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
  package struct Erasures: Sendable, Equatable {
    /// In UTC.
    package var dailyAt = TimeOfDay(hour: 3, minute: 0)

    package init() {}
  }

  /// Where a copy of the ledger is kept.
  package struct Replication: Sendable, Equatable {
    package enum Mode: String, CaseIterable, Sendable {
      /// Answers do not wait for the copy.
      case async
      /// What is acknowledged is in the copy.
      case sync
    }

    /// `s3://bucket/prefix`, or `file:///path`.
    package var target: String
    /// The URL of a server that speaks S3; nil for Amazon's of the region.
    package var endpoint: String?
    package var region: String?
    /// As config.json names it.
    package var credentialsFile: String?
    /// The file's content; no message shows it.
    package var credentials: [UInt8]?
    package var mode = Mode.async
    /// How long an answer waits for the copy.
    package var syncLimitMs: Int64 = 10_000

    package init(target: String) { self.target = target }
  }

  package var appStore = AppStore()
  package var verification = Verification()
  package var trust = Trust()
  package var tokens: [Token] = []
  /// App Store shared secrets, by the app family's id. No message contains them.
  package var sharedSecrets: [String: [UInt8]] = [:]
  /// Settings of single apps, by the app family's id.
  package var apps: [String: App] = [:]
  package var webhooks = Webhooks()
  /// Addresses and networks (`10.0.0.0/8`, `::1`) whose `X-Forwarded-For` is believed.
  package var trustedProxies: [String] = []
  package var notifications = Notifications()
  package var retention = Retention()
  package var erasures = Erasures()
  /// Nil if there is no copy.
  package var replication: Replication?

  package init() {}
}

extension Configuration.AppStore {
  /// What `VerifyReceiptClient` is made with.
  package var clientOptions: VerifyReceiptOptions {
    var options = VerifyReceiptOptions()
    options.productionURL = productionURL
    options.sandboxURL = sandboxURL
    options.connectTimeoutMs = connectTimeoutMs
    options.timeoutMs = timeoutMs
    options.answerBytesMax = answerBytesMax
    options.callsMax = callsMax
    return options
  }

  /// What `ServerAPIClient` is made with.
  package var serverAPIOptions: ServerAPIOptions {
    var options = ServerAPIOptions()
    options.productionURL = serverAPIProductionURL
    options.sandboxURL = serverAPISandboxURL
    options.connectTimeoutMs = connectTimeoutMs
    // A page of a history takes longer than a receipt.
    options.timeoutMs = max(timeoutMs, options.timeoutMs)
    options.answerBytesMax = answerBytesMax
    return options
  }
}

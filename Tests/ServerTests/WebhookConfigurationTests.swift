// Webhooks in config.json: set, replaced, removed, refused; their secrets.
import Base
import Foundation
import Server
import TestSupport
import Testing

@Suite struct WebhookConfigurationTests {
  private static let family = ConfigurationSample.family

  @Test func aWebhookIsSetBesideOtherSettingsReplacedAndRemoved() throws {
    let ledger = try ConfiguredLedger()
    try ledger.write(#"{"apps":{"\#(Self.family.uppercased())":{"accept_sandbox":false}}}"#)
    let first = try ledger.file.setWebhook(url: "https://example.com/1", appFamilyID: Self.family)
    #expect(first.before == nil)
    let second = try ledger.file.setWebhook(url: "https://example.com/2", appFamilyID: Self.family)
    #expect(second.before?.secret == first.secret && second.secret != first.secret)
    let app = try #require(try ledger.file.read().apps[Self.family])
    #expect(app.webhook?.url == "https://example.com/2" && app.webhook?.secret == second.secret)
    #expect(app.webhook?.previous == nil)
    #expect(!app.acceptsSandbox)
    let removed = try ledger.file.setWebhook(url: nil, appFamilyID: Self.family)
    #expect(removed.before != nil && removed.secret == nil)
    #expect(try ledger.file.read().apps[Self.family]?.webhook == nil)
    try expectEqual(ledger.file.setWebhook(url: nil, appFamilyID: Self.family), .init())
  }

  @Test func theSameURLKeepsItsSecret() throws {
    let ledger = try ConfiguredLedger()
    let url = "https://example.com/1"
    _ = try ledger.file.setWebhook(url: url, appFamilyID: Self.family)
    let before = try ledger.file.read()
    let again = try ledger.file.setWebhook(url: url, appFamilyID: Self.family)
    expectEqual(again, .init(before: before.apps[Self.family]?.webhook))
    try expectEqual(ledger.file.read(), before)
  }

  @Test func aSecretThatIsReplacedSignsForADayMore() throws {
    let ledger = try ConfiguredLedger()
    try expectEqual(ledger.file.replaceWebhookSecret(appFamilyID: Self.family), .init())
    let url = "https://example.com/1"
    var secrets = [try ledger.file.setWebhook(url: url, appFamilyID: Self.family).secret]
    for hour: Int64 in 1...2 {
      let nowMs = hour * 3_600_000
      secrets.append(
        try ledger.file.replaceWebhookSecret(appFamilyID: Self.family, nowMs: nowMs).secret)
      let webhook = try #require(try ledger.file.read().apps[Self.family]?.webhook)
      #expect(webhook.url == url && webhook.secret == secrets.last)
      expectEqual(webhook.previous?.secret, secrets.dropLast().last)
      expectEqual(webhook.previous?.untilMs, nowMs + 86_400_000)
    }
    expectEqual(Set(secrets.map { $0?.text }).count, 3)
  }

  @Test func aURLThatMayNotBeUsedIsNotWritten() throws {
    let ledger = try ConfiguredLedger()
    #expect(throws: ConfigurationError.self) {
      try ledger.file.setWebhook(url: "http://example.com", appFamilyID: Self.family)
    }
    try expectEqual(ledger.file.read(), Configuration())
  }
}

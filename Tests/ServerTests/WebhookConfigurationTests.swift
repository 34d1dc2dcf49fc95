// Webhooks in config.json: set, replaced, removed, refused.
import Foundation
import JSON
import Server
import Testing

@Suite struct WebhookConfigurationTests {
  @Test func aWebhookIsSetBesideOtherSettingsReplacedAndRemoved() throws {
    let ledger = try ConfiguredLedger()
    let family = ConfigurationSample.family
    try ledger.write(#"{"apps":{"\#(family.uppercased())":{"accept_sandbox":false}}}"#)
    let first = try ledger.file.setWebhook(url: "https://example.com/1", appFamilyID: family)
    #expect(!first.hadWebhook)
    let second = try ledger.file.setWebhook(url: "https://example.com/2", appFamilyID: family)
    #expect(second.hadWebhook && second.secret != first.secret)
    let app = try #require(try ledger.file.read().apps[family])
    #expect(app.webhook?.url == "https://example.com/2" && app.webhook?.secret == second.secret)
    #expect(!app.acceptsSandbox)
    let removed = try ledger.file.setWebhook(url: nil, appFamilyID: family)
    #expect(removed.hadWebhook && removed.secret == nil)
    #expect(try ledger.file.read().apps[family]?.webhook == nil)
    #expect(try !ledger.file.setWebhook(url: nil, appFamilyID: family).hadWebhook)
  }

  @Test func aURLThatMayNotBeUsedIsNotWritten() throws {
    let ledger = try ConfiguredLedger()
    #expect(throws: ConfigurationError.self) {
      try ledger.file.setWebhook(
        url: "http://example.com", appFamilyID: ConfigurationSample.family)
    }
    #expect(try ledger.file.read() == Configuration())
  }
}

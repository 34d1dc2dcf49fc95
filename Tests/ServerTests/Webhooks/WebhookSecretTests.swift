// Secrets of webhooks, and signatures against independently computed vectors.
import Server
import TestSupport
import Testing

@Suite struct WebhookSecretTests {
  /// Computed by Python: `hmac.new(key, b"abc-7-0.1767323045." + body, hashlib.sha256)`.
  @Test(arguments: [
    ("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", "8WH9qQs5XUoFIoDa+FOvBcPd7jC6W/1sYiSn4DQVELU="),
    (
      "whsec_qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqg==",
      "l61XLTZQW4QnBHke9dd/t9hBNKlboLpLuCCVbpT7YF0="
    ),
  ])
  func aSignatureIsThatOfStandardWebhooks(text: String, digest: String) throws {
    let secret = try #require(WebhookSecret(text))
    let body = Array(#"{"type":"refund","data":{"amount":"9.99"}}"#.utf8)
    expectEqual(
      secret.signature(id: "abc-7-0", timestampSeconds: 1_767_323_045, body: body), "v1,\(digest)")
  }

  @Test func aNewSecretIsReadAgainAndNoTwoAreAlike() throws {
    let secret = WebhookSecret.make()
    expectEqual(WebhookSecret(secret.text), secret)
    expectEqual(secret.text.utf8.count, 38)
    #expect(WebhookSecret.make() != secret)
  }

  @Test(arguments: [
    "", "whsec_", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRY=",
    "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRY", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFR-_",
  ])
  func whatIsNoSecretIsRefused(text: String) { #expect(WebhookSecret(text) == nil) }
}

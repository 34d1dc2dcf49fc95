// Unsigned receipts: their content has a limit wherever it is stored.
import AppStore
import TestSupport
import Testing

import Intake

@Suite("Hostile receipts") struct HostileReceiptTests {
  @Test(
    "an environment name too long to be real is left out",
    arguments: [(0, true), (10, true), (64, true), (65, false), (3_000_000, false)])
  func environment(_ length: Int, _ isKept: Bool) {
    let name = String(repeating: "\u{1}", count: length)
    for local in [LocalVerification.valid, .signatureInvalid, .bundleIDMismatch] {
      let receipt = Receipt(style: .unified, environment: name, bundleID: "app", purchases: [])
      let data = local.data(of: receipt, occurredAtMs: 0)
      #expect(data.count < 1024)
      let text = String(decoding: data, as: UTF8.self)
      expectEqual(text.contains("\"environment\":"), isKept)
    }
  }
}

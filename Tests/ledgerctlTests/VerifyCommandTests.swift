// `verify` with real receipts, and with a scripted App Store.
import Foundation
import TestSupport
import Testing

@Suite(.bounded) struct VerifyCommandTests {
  /// The shared fixtures next to the repository; nil if there are none.
  static let fixtures: String? = {
    let package = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let path = package.appendingPathComponent("../shared/fixtures").standardizedFileURL.path
    return FileManager.default.fileExists(atPath: path) ? path : nil
  }()

  struct Case: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var isConfigured = true
    let exitCode: Int32
    let verdict: String
    var fault = "null"
    let purchaseCount: Int
  }

  static let cases: [Case] = [
    .init(
      testDescription: "unified-sha1-sandbox", exitCode: 0, verdict: "valid", purchaseCount: 5),
    .init(
      testDescription: "unified-sha256-g5-sandbox", exitCode: 0, verdict: "valid",
      purchaseCount: 2),
    .init(
      testDescription: "unified-with-35-purchases", isConfigured: false, exitCode: 0,
      verdict: "valid", purchaseCount: 7),
    .init(
      testDescription: "unified-xcode-must-be-refused", exitCode: 3, verdict: "invalid",
      fault: "local_testing_environment", purchaseCount: 1),
    .init(
      testDescription: "transaction-v2-sandbox", exitCode: 0, verdict: "valid", purchaseCount: 1),
    .init(
      testDescription: "transaction-v2-sandbox", isConfigured: false, exitCode: 0,
      verdict: "valid", purchaseCount: 1),
  ]

  @Test(.enabled(if: fixtures != nil, "no ../shared/fixtures here"), arguments: cases)
  func realReceiptIsJudgedAsItsNameSays(_ given: Case) throws {
    let fixtures = try #require(Self.fixtures)
    let sandbox = try Self.sandboxWithLedger()
    let certificates = given.isConfigured ? #"{"file":"itunes.cer"},{"file":"root.cer"}"# : ""
    try FileManager.default.copyItem(
      atPath: fixtures + "/certificates/itunes-store-ca.cer",
      toPath: sandbox.path + "/shop/itunes.cer")
    try FileManager.default.copyItem(
      atPath: fixtures + "/certificates/apple-root-ca.cer", toPath: sandbox.path + "/shop/root.cer")
    try Self.configure(sandbox, #"{"trust":{"transaction_intermediates":[\#(certificates)]}}"#)
    let outcome = try sandbox.run(
      """
      ledgerctl verify \(fixtures)/receipts/\(given.testDescription).b64 --ledger shop --json > out
      code=$?
      jq -c '[.is_good, .signature.verdict, .signature.fault, (.purchases | length)]' out
      exit $code
      """)
    let fault = given.fault == "null" ? "null" : "\"\(given.fault)\""
    expectEqual(
      outcome.output,
      "[\(given.exitCode == 0),\"\(given.verdict)\",\(fault),\(given.purchaseCount)]\n")
    expectEqual(outcome.diagnostics, "")
    expectEqual(outcome.exitCode, given.exitCode)
  }

  // MARK: Signed objects

  struct SignedCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// `trust` of config.json.
    var trust = ""
    let exitCode: Int32
    let printed: String
  }

  private static let testRoot = "48aa70550eab2cd71d51dced44e88f9143b6bc0e1a6f430c19ba9a7cf36654e6"

  static let signedCases: [SignedCase] = [
    .init(
      testDescription: "mock_signed_data/renewalInfo",
      trust: #""additional_roots_sha256":["\#(testRoot)"]"#, exitCode: 0,
      printed: #"[true,"unknown","Sandbox","valid",null,"\#(testRoot)"]"#),
    .init(
      testDescription: "mock_signed_data/renewalInfo", exitCode: 3,
      printed: #"[false,"unknown","Sandbox","invalid","untrusted_root",null]"#),
    .init(
      testDescription: "mock_signed_data/testNotification", exitCode: 3,
      printed: #"[false,"notification","Sandbox","invalid","untrusted_root",null]"#),
    .init(
      testDescription: "xcode/xcode-signed-transaction", exitCode: 3,
      printed: #"[false,"transaction","Xcode","invalid","local_testing_environment",null]"#),
    .init(
      testDescription: "xcode/xcode-signed-app-transaction", exitCode: 3,
      printed: #"[false,"app_transaction","Xcode","invalid","local_testing_environment",null]"#),
    .init(
      testDescription: "xcode/xcode-signed-renewal-info", exitCode: 3,
      printed: #"[false,"renewal_info","Xcode","invalid","local_testing_environment",null]"#),
  ]

  @Test(.enabled(if: fixtures != nil, "no ../shared/fixtures here"), arguments: signedCases)
  func signedObjectIsJudgedByWhoIsTrusted(_ given: SignedCase) throws {
    let fixtures = try #require(Self.fixtures)
    let sandbox = try Self.sandboxWithLedger()
    try Self.configure(sandbox, #"{"trust":{\#(given.trust)}}"#)
    let outcome = try sandbox.run(
      """
      ledgerctl verify \(fixtures)/storekit2/\(given.testDescription) --ledger shop --json > out
      code=$?
      jq -c '[.is_good, .kind, .environment, .signature.verdict, .signature.fault, .signature.root_sha256]' out
      exit $code
      """)
    expectEqual(outcome.output, given.printed + "\n")
    expectEqual(outcome.diagnostics, "")
    expectEqual(outcome.exitCode, given.exitCode)
  }

  // MARK: The App Store

  struct Answer: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var production = #"{"status":21007}"#
    var sandbox = #"{"status":0}"#
    let outcome: String
    let status: String
    let line: String
  }

  static let answers: [Answer] = [
    .init(
      testDescription: "valid in the sandbox",
      sandbox:
        #"{"status":0,"environment":"Sandbox","receipt":{"bundle_id":"com.example.shop","in_app":[]}}"#,
      outcome: "valid", status: "0", line: "status 0: the receipt is valid"),
    .init(
      testDescription: "not authentic", production: #"{"status":21003}"#, outcome: "invalid",
      status: "21003", line: "status 21003: the receipt could not be authenticated"),
    .init(
      testDescription: "wrong secret", production: #"{"status":21004}"#, outcome: "unreachable",
      status: "21004", line: "status 21004: the shared secret does not match the app's account"),
    .init(
      testDescription: "internal, for good",
      production: #"{"status":21104,"is_retryable":"false"}"#, outcome: "invalid",
      status: "21104", line: "status 21104: the service had an internal error"),
    .init(
      testDescription: "undocumented", production: #"{"status":-7}"#, outcome: "unreachable",
      status: "-7", line: "status -7: not a documented status"),
    .init(
      testDescription: "no status", production: "[]", outcome: "unreachable", status: "null",
      line: "no reply: the JSON has no status"),
    .init(
      testDescription: "no JSON", production: "<html>", outcome: "unreachable", status: "null",
      line: "no reply: the response is not JSON"),
  ]

  @Test(arguments: answers) func appStoreIsAskedAsConfigured(_ given: Answer) throws {
    let server = try ScriptedServer {
      .json($0.path == "/production" ? given.production : given.sandbox)
    }
    let sandbox = try Self.sandboxWithLedger()
    try Self.configure(sandbox, Self.endpoints(server))
    let outcome = try sandbox.run(
      """
      . "$SHOP"
      receipt com.example.shop 1 > receipt.b64
      export http_proxy=http://127.0.0.1:1 ALL_PROXY=http://127.0.0.1:1
      ledgerctl verify receipt.b64 --ledger shop --app-store --json > out
      echo $?
      jq -c '.app_store | [.outcome, .status, .explanation]' out
      """)
    // The signature of this receipt is bad, whatever the App Store says.
    expectEqual(outcome.output, "3\n[\"\(given.outcome)\",\(given.status),\"\(given.line)\"]\n")
    expectEqual(outcome.diagnostics, "")
    expectEqual(server.requests.count, (given.production.contains("21007") ? 2 : 1))
  }

  @Test func secretOfTheFamilyIsSentAndNeverShown() throws {
    let server = try ScriptedServer { _ in .json(#"{"status":21004}"#) }
    let sandbox = try Self.sandboxWithLedger()
    let family = try sandbox.run(
      """
      ledgerctl app add --name Shop --bundle-id com.example.shop --ledger shop
      """
    ).output.trimmingCharacters(in: .whitespacesAndNewlines)
    try Self.configure(
      sandbox,
      String(Self.endpoints(server).dropLast())
        + #","shared_secrets":{"\#(family)":"5ec3e7-5ec3e7"}}"#)
    let outcome = try sandbox.run(
      """
      . "$SHOP"
      receipt com.example.shop 1 | ledgerctl verify - --ledger shop --app-store
      receipt com.example.other 1 | ledgerctl verify - --ledger shop --app-store --json
      """)
    let bodies = server.requests.map { String(decoding: $0.body, as: UTF8.self) }
    try #require(bodies.count == 2, "\(outcome.diagnostics)")
    #expect(bodies[0].contains(#""password":"5ec3e7-5ec3e7""#))
    #expect(!bodies[1].contains("password"))
    #expect(outcome.output.contains("status 21004"))
    #expect(!outcome.output.contains("5ec3e7"))
    #expect(!outcome.diagnostics.contains("5ec3e7"))
  }

  @Test(.enabled(if: fixtures != nil, "no ../shared/fixtures here"))
  func replyDecidesIfTheSignatureCannotBeJudged() throws {
    let fixtures = try #require(Self.fixtures)
    let reply = try String(
      contentsOfFile: fixtures + "/replies/transaction-21006.json", encoding: .utf8)
    let server = try ScriptedServer { _ in .json(reply) }
    let sandbox = try Self.sandboxWithLedger()
    try Self.configure(sandbox, Self.endpoints(server))
    let outcome = try sandbox.run(
      """
      . "$SHOP"
      unknown=$(printf '\\005%0200d' 0 | base64 -w 0)
      purchase=$(printf '{"bid"="com.mbaasy.ios.demo";}' | base64 -w 0)
      printf '{"signature"="%s";"purchase-info"="%s";}' "$unknown" "$purchase" > receipt
      ledgerctl verify receipt --app-store --ledger shop
      """)
    expectEqual(outcome.exitCode, 0)
    #expect(
      outcome.output.contains(
        "cannot be judged: the version of its signature is unknown"))
    #expect(
      outcome.output.contains(
        "status 21006: the receipt is valid, and its subscription has expired"))
    #expect(outcome.output.contains("Purchases in the App Store's reply"))
  }

  @Test func signalEndsTheWaitForTheAppStore() throws {
    let sandbox = try Self.sandboxWithLedger()
    let asked = sandbox.path + "/asked"
    let server = try ScriptedServer { _ in
      _ = FileManager.default.createFile(atPath: asked, contents: nil)
      return .hang
    }
    try Self.configure(
      sandbox,
      Self.endpoints(server).replacingOccurrences(of: "{\"p", with: "{\"timeout_ms\":600000,\"p"))
    let outcome = try sandbox.run(
      """
      . "$SHOP"
      receipt com.example.shop 1 > receipt.b64
      ledgerctl verify receipt.b64 --ledger shop --app-store & program=$!
      for try in $(seq 3000); do [ -e asked ] && break; kill -0 $program || break; sleep 0.1; done
      kill -TERM $program; wait $program
      """)
    expectEqual(outcome.exitCode, 130)
    expectEqual(outcome.diagnostics, "ledgerctl: verify: interrupted\n")
    expectEqual(server.requests.count, 1)
  }

  // MARK: A ledger

  private static func sandboxWithLedger() throws -> Sandbox {
    let sandbox = try Sandbox()
    let outcome = try sandbox.run("ledgerctl init shop --origin example.com/shop")
    try #require(outcome.exitCode == 0)
    return sandbox
  }

  private static func endpoints(_ server: ScriptedServer) -> String {
    let (production, sandbox) = (server.url("production"), server.url("sandbox"))
    return #"{"app_store":{"production_url":"\#(production)","sandbox_url":"\#(sandbox)"}}"#
  }

  private static func configure(_ sandbox: Sandbox, _ text: String) throws {
    let path = sandbox.path + "/shop/config.json"
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
  }
}

// `app-store sync` and `app-store test` against the stand-in.
import Foundation
import TestSupport
import Testing

@Suite(.bounded) struct AppStoreCommandTests {
  private static func number(_ name: String, _ line: Substring) throws -> Int {
    let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    return try #require(object?[name] as? Int)
  }

  @Test func withoutAKeyNothingIsAsked() throws {
    let sandbox = try Sandbox()
    let outcome = try sandbox.run(
      """
      export LEDGER_DIR=shop; ledgerctl init shop --origin example.com/shop >out
      ledgerctl app add --name Game --bundle-id com.example.game >id; ledgerctl app-store sync
      """)
    expectEqual(outcome.exitCode, 1)
    expectEqual(
      outcome.diagnostics,
      "ledgerctl: app-store sync: config.json: no key of the App Store Server API is set; "
        + "docs/configuration.md describes apps.ID.server_api\n")
  }

  @Test func whatIsMissingIsFetchedOnce() throws {
    let sandbox = try Sandbox()
    let outcome = try sandbox.run(
      #"""
      umask 077; export LEDGER_DIR=shop
      app-store-stand-in --authority authority --customers 3 --seed 1 --server-api-key key.p8 >stand-in.json &
      for i in $(seq 300); do [ -s stand-in.json ] && break; sleep 0.1; done
      word() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" stand-in.json; }
      ledgerctl init shop --origin example.com/shop >out
      ledgerctl app add --name Game --bundle-id com.example.game >id
      family=$(grep -oE '[0-9a-f]{8}-[0-9a-f-]{27}' id | head -1); mv key.p8 shop/key.p8
      echo '{"app_store":{"server_api_production_url":"'$(word server_api_production_url)'",
        "server_api_sandbox_url":"'$(word server_api_sandbox_url)'"},
        "trust":{"additional_roots_sha256":["'$(word signed_root_sha256)'"]},
        "apps":{"'$family'":{"server_api":{"issuer_id":"i-1","key_id":"K1","private_key_file":"key.p8"}}}}' >shop/config.json
      ledgerctl app-store sync --json; echo $? >first; ledgerctl app-store sync --json; echo $? >second
      ledgerctl app-store test --app $family --json; echo $? >third
      kill $!; wait; cat first second third
      """#)
    let lines = outcome.output.split(separator: "\n")
    try #require(lines.count >= 5, "\(outcome)")
    #expect(try Self.number("new_notifications", lines[0]) > 0)
    #expect(try Self.number("histories", lines[0]) >= 3)
    try expectEqual(Self.number("failures", lines[0]), 0)
    try expectEqual(Self.number("new_notifications", lines[1]), 0)
    try expectEqual(Self.number("histories", lines[1]), 0)
    #expect(try Self.number("known_histories", lines[1]) >= 3)
    #expect(lines[lines.count - 3] == "0" && lines[lines.count - 2] == "0")
    #expect(
      lines.last == "1"
        && outcome.diagnostics.contains(
          "App Store Connect has no URL for notifications of this environment"),
      "\(outcome)")
  }
}

// Rebuilds that are killed, interrupted or run next to a server, and projections of another version.
import Foundation
import Projections
import TestSupport
import Testing

@Suite(.bounded) struct RebuildCommandTests {
  private func shop() throws -> Sandbox {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      #". "$SHOP"; shop_ledger >out && ledgerctl export journal --format csv >before.csv"#)
    try #require(made.exitCode == 0, "\(made.diagnostics)")
    return sandbox
  }

  @Test(arguments: ["KILL", "INT", "TERM"])
  func interruptedRebuildKeepsTheOldProjectionsAndTheNextCommandCleansUp(_ signal: String) throws {
    let sandbox = try shop()
    let outcome = try sandbox.run(
      """
      export LEDGER_DIR=shop
      for delay in 0 0 1 2 3 4 5 6 8 10 12 15 20 25 30 40 50 60 80; do
        ledgerctl rebuild >out 2>err & sleep 0.0$(printf %02d $delay); kill -\(signal) $! 2>/dev/null
        wait $!; code=$?
        case $code in 0|130|137|143) ;; *) echo "code $code"; cat err;; esac
        ledgerctl export journal --format csv >after.csv || echo failed
        cmp before.csv after.csv
        ls shop/projections | grep -v -e '^lock$' -e '^[0-9]*.sqlite$' -e '^[0-9]*.sqlite-[ws]'
        [ "$(ls shop/projections | grep -c 'sqlite$')" = 1 ] || ls shop/projections
      done
      ledgerctl rebuild --check
      """)
    // The shell's own message about the end of its child.
    let said = outcome.otherDiagnostics.split(separator: "\n").filter {
      !["Killed", "Terminated"].contains($0.trimmingCharacters(in: .whitespaces))
    }
    expectEqual(said, [])
    expectEqual(outcome.output, "The projections equal a rebuild, at 21 events.\n")
  }

  @Test func rebuildNextToAServerLosesNothing() throws {
    let sandbox = try Sandbox()
    let outcome = try sandbox.run(
      """
      export LEDGER_DIR=shop; . "$SHOP"
      shop_history >all.ndjson; head -n 4 all.ndjson >one.ndjson; sed -n 5,7p all.ndjson >two.ndjson
      ledgerctl init shop --origin example.com/shop >out
      ledgerctl app add --name Shop --bundle-id com.example.shop >out
      ledgerctl serve --listen 127.0.0.1:0 2>serve.err & server=$!
      for i in $(seq 200); do grep -q listening serve.err && break; sleep 0.1; done
      ledgerctl import one.ndjson && ledgerctl rebuild && ledgerctl rebuild --check
      ledgerctl import two.ndjson; ledgerctl rebuild --check; ledgerctl rebuild >out
      ledgerctl import all.ndjson; ledgerctl rebuild --compare; ledgerctl projections list --json | jq -c '[.[0].position,.[0].lag]'
      kill $server; wait $server; echo "= $?"; grep -v -e listening -e stopping serve.err
      """)
    expectEqual(outcome.diagnostics, "")
    expectEqual(
      outcome.output,
      """
      Imported 4 uploads from 4 lines, positions 2 to 9
      Rebuilt the projections from 10 events
      The projections equal a rebuild, at 10 events.
      Imported 3 uploads from 3 lines, positions 10 to 15
      The projections equal a rebuild, at 16 events.
      Imported 3 uploads from 10 lines, 7 already known, positions 16 to 21
      The projections equal a rebuild, at 22 events.
      [22,0]
      = 0

      """)
  }

  /// An earlier version gave a Return for a reply that came after a newer one without the cancellation.
  @Test func compareShowsWhatAnEarlierVersionMadeOfALateReply() throws {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      """
      . "$SHOP"; ledgerctl init shop --origin example.com/shop >out; export LEDGER_DIR=shop
      coins=$(row coins 1 1 2019-01-15T08:00:00Z)
      prices=',"metadata":{"prices":[{"transaction_id":"1","price":"4.99","currency":"USD"}]}'
      line 1 2019-04-15T08:00:00Z "$coins" "$prices" >late.ndjson
      cancelled=$(echo "$coins" | sed "s/}$/,\\"cancellation_date_ms\\":\\"$(ms 2019-02-09T16:00:00Z)\\"}/")
      line 1 2019-03-15T08:00:00Z "$cancelled" "" >>late.ndjson
      ledgerctl import --register-apps late.ndjson >out
      ledgerctl export revenue --by period --format csv
      """)
    #expect(made.output.contains("2019-01,USD,1,4.99,0,0.00,0,0.00,4.99,0,0,0"), "\(made)")
    expectEqual(made.output.split(separator: "\n").count, 2, "\(made.output)")
    try Database(
      path: sandbox.path + "/shop/projections.sqlite", mode: .write, followsLinks: true
    ).execute(
      """
      UPDATE projections SET version = 8 WHERE name = 'sales';
      INSERT INTO later_lines VALUES(0, 1, 1, 1549728000000, 4, '', -1, -4990000, 100000, 0, 1, 0, NULL);
      UPDATE sales SET cancellation_state = 1;
      """)
    let outcome = try sandbox.run("ledgerctl rebuild --compare --ledger shop")
    expectEqual(outcome.exitCode, 21)
    let words = outcome.output.split(separator: "\n").map { $0.split(separator: " ") }
    #expect(
      words.contains(["2019-02", "ZZ", "USD", "-1", "0", "-4.99", "0.00", "4.99", "1"]),
      "\(outcome.output)")
  }

  private static let rebuilding =
    "ledgerctl: the projections belong to another version of this program: rebuilding\n"

  @Test(arguments: [
    "export revenue", "export journal", "export sales", "export exceptions", "export receipts",
    "export users", "show 1", "history anna", "replay --user anna",
    "import shop.ndjson",
  ])
  func everyCommandThatReadsNoticesAnotherVersion(_ command: String) throws {
    let sandbox = try shop()
    let before = try sandbox.run("ledgerctl \(command) --ledger shop")
    try #require(before.exitCode == 0, "\(before.diagnostics)")
    try Database(
      path: sandbox.path + "/shop/projections.sqlite", mode: .write, followsLinks: true
    ).execute(
      "UPDATE projections SET version = version + 1 WHERE name = 'sales'; DELETE FROM sales")
    let outcome = try sandbox.run("ledgerctl \(command) --ledger shop")
    expectEqual(outcome.otherDiagnostics, before.otherDiagnostics + Self.rebuilding)
    #expect(outcome.output == before.output && outcome.exitCode == 0)
  }

  @Test(arguments: [
    ("status", "built by another version of this program; they will be rebuilt", 0),
    ("projections list", "They were built by another version of this program", 0),
    ("rebuild --check", "Versions that differ: sales 99 (this program: 9)", 21),
    ("rebuild --compare", "Versions that differ: sales 99 (this program: 9)", 21),
  ])
  func commandsThatFoldNothingReportAnotherVersion(
    _ command: String, _ words: String, _ exitCode: Int32
  ) throws {
    let sandbox = try shop()
    let path = sandbox.path + "/shop/projections.sqlite"
    try Database(path: path, mode: .write, followsLinks: true).execute(
      "UPDATE projections SET version = 99 WHERE name = 'sales'")
    let outcome = try sandbox.run("ledgerctl \(command) --ledger shop")
    #expect(outcome.output.contains(words), "\(outcome.output)")
    #expect(outcome.exitCode == exitCode && outcome.diagnostics == "")
    // The projections stay unchanged.
    let version = try Database(path: path, mode: .read, followsLinks: true).integer(
      "SELECT version FROM projections WHERE name = 'sales'")
    expectEqual(version, 99)
  }

  @Test(arguments: [
    ("status", "built by another version of this program; they will be rebuilt", 0),
    ("status", "sales 9 (other definition)", 0),
    ("projections list", "They were built by another version of this program", 0),
    ("rebuild --check", "Versions that differ: sales 9 (other definition)", 21),
  ])
  func commandsThatFoldNothingReportAnotherDefinition(
    _ command: String, _ words: String, _ exitCode: Int32
  ) throws {
    let sandbox = try shop()
    let path = sandbox.path + "/shop/projections.sqlite"
    try Database(path: path, mode: .write, followsLinks: true).execute(
      "UPDATE projections SET definition = 'other' WHERE name = 'sales'")
    let outcome = try sandbox.run("ledgerctl \(command) --ledger shop")
    #expect(outcome.output.contains(words), "\(outcome.output)")
    #expect(outcome.exitCode == exitCode && outcome.diagnostics == "")
  }
}

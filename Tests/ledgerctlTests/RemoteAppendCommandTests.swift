// Commands while a server holds the ledger: they append through it.
import Foundation
import Ledger
import Server
import TestSupport
import Testing

@Suite(.bounded) struct RemoteAppendCommandTests {
  /// A ledger in a sandbox, held by this process.
  private final class Held {
    let sandbox: Sandbox
    let writer: LedgerWriter
    let server: RemoteAppendServer?

    init(isListening: Bool = true) throws {
      sandbox = try Sandbox()
      let made = try sandbox.run("ledgerctl init shop --origin example.com/shop")
      try #require(made.exitCode == 0)
      let directory = try LedgerDirectory.open(path: sandbox.path + "/shop")
      writer = try LedgerWriter.open(directory)
      server = isListening ? try RemoteAppendServer(writer: writer) : nil
    }

    deinit {
      server?.stop()
      try? writer.close()
    }
  }

  @Test func appsDeclarationsAndImportsGoThroughTheServer() throws {
    let held = try Held()
    let outcome = try held.sandbox.run(
      """
      export LEDGER_DIR=shop; . "$SHOP"; shop_history >shop.ndjson
      printf 'date,base,quote,rate\\n2026-01-02,EUR,USD,1.1\\n' >rates.csv
      ledgerctl app add --name Shop --bundle-id com.example.shop >id && ledgerctl rates import rates.csv &&
      ledgerctl rates import rates.csv && ledgerctl import shop.ndjson && ledgerctl import shop.ndjson
      """)
    expectEqual(outcome.diagnostics, "")
    expectEqual(
      outcome.output,
      """
      Declared 1 rate at position 1
      Nothing declared: the same file was declared at position 1 (--again declares it again)
      Imported 10 uploads from 10 lines, positions 2 to 21
      Imported 0 uploads from 10 lines, 10 already known

      """)
    expectEqual(held.writer.nextPosition, 22)
  }

  @Test func concurrentImportsAppendEachLineOnce() throws {
    let held = try Held()
    let outcome = try held.sandbox.run(
      """
      export LEDGER_DIR=shop; . "$SHOP"; shop_history >shop.ndjson
      ledgerctl app add --name Shop --bundle-id com.example.shop >id
      ledgerctl import shop.ndjson >one & ledgerctl import shop.ndjson >two & wait
      ledgerctl replay --type receipt.uploaded | wc -l; cat one two | sort
      """)
    expectEqual(outcome.diagnostics, "")
    expectEqual(
      outcome.output,
      """
      10
      Imported 0 uploads from 10 lines, 10 already known
      Imported 10 uploads from 10 lines, positions 1 to 20

      """)
  }

  @Test func lockHolderThatDoesNotListenIsNamed() throws {
    let held = try Held(isListening: false)
    let outcome = try held.sandbox.run("ledgerctl app add --name A --bundle-id a --ledger shop")
    expectEqual(outcome.exitCode, 11)
    expectEqual(
      outcome.diagnostics, "ledgerctl: open for writing: shop: locked by process \(getpid())\n")
  }

  @Test func serverIsFreeAfterAnImportIsKilled() throws {
    let held = try Held()
    let outcome = try held.sandbox.run(
      """
      export LEDGER_DIR=shop; . "$SHOP"; shop_history >shop.ndjson; mkfifo pipe
      ledgerctl app add --name Shop --bundle-id com.example.shop >id
      ledgerctl import - <pipe & exec 3>pipe; cat shop.ndjson >&3
      for try in $(seq 600); do ls -l /proc/$!/fd | grep -q socket && break; sleep 0.1; done; kill -9 $!; wait $!
      exec 3>&-; ledgerctl import shop.ndjson >out; ledgerctl replay --type receipt.uploaded | wc -l
      """)
    expectEqual(outcome.output, "10\n", "\(outcome.diagnostics)")
  }

  @Test func aCommandThatWaitsForAnErasureEndsIfTheServerDoes() throws {
    let held = try Held()
    let made = try held.sandbox.run(
      """
      export LEDGER_DIR=shop; . "$SHOP"; shop_history >shop.ndjson
      ledgerctl app add --name Shop --bundle-id com.example.shop >id && ledgerctl import shop.ndjson >out
      """)
    expectEqual(made.diagnostics, "")
    // The server carries out nothing, and ends once the request is there.
    let (requests, server) = (held.sandbox.path + "/shop/erasures", held.server)
    Thread.detachNewThread {
      #expect(
        eventually {
          let names = try? FileManager.default.contentsOfDirectory(atPath: requests)
          return names?.contains { $0.hasSuffix(".json") } ?? false
        })
      server?.stop()
    }
    let outcome = try held.sandbox.run(
      "ledgerctl redact --position 1 --reason test --yes --ledger shop")
    expectEqual(outcome.exitCode, 1)
    expectEqual(
      outcome.diagnostics,
      "ledgerctl: redact: shop: the server ended before it was done; the next one goes on with it\n"
    )
  }

  @Test func commandsWorkDespiteAMalformedEvent() throws {
    let held = try Held()
    for type in ["app.registered", "receipt.uploaded", "receipt.verified", "prices.declared"] {
      _ = try held.writer.append([EventDraft(type: type, version: 1, data: Array("{}".utf8))])
    }
    let outcome = try held.sandbox.run(
      """
      export LEDGER_DIR=shop; . "$SHOP"; shop_history >shop.ndjson
      ledgerctl app add --name Shop --bundle-id com.example.shop >id && ledgerctl import shop.ndjson &&
      ledgerctl export exceptions --format csv | grep malformed && ledgerctl rebuild &&
      ledgerctl rebuild --check && ledgerctl snapshot create >made && ledgerctl show 2 >shown &&
      grep malformed shown && ledgerctl replay --pretty >pretty && ledgerctl status >state &&
      ledgerctl replay --type prices.declared | wc -l && ledgerctl replay --app "$(cat id)" >of-app
      """)
    expectEqual(outcome.diagnostics, "")
    expectEqual(outcome.exitCode, 0)
    expectEqual(
      outcome.output,
      """
      Imported 10 uploads from 10 lines, positions 5 to 24
      malformed_event,,,,,,0,app.registered app_family_id,,,
      malformed_event,,,,,,1,receipt.uploaded receipt_id,,,
      malformed_event,,,,,,2,receipt.verified upload,,,
      malformed_event,,,,,,3,prices.declared source,,,
      Rebuilt the projections from 25 events
      The projections equal a rebuild, at 25 events.
      This event is malformed and was skipped.
      malformed_event                                               2  receipt.verified upload
      1

      """)
  }

  @Test(arguments: [("app.removed", 1), ("receipt.verified", 3)])
  func eventOfANewerProgramEndsEveryFoldWithItsExitCode(
    _ type: String, _ version: Int
  ) throws {
    let held = try Held()
    _ = try held.writer.append([
      EventDraft(type: type, version: version, data: Array("{}".utf8))
    ])
    for command in ["export revenue", "rebuild", "snapshot create", "show 0"] {
      let outcome = try held.sandbox.run("ledgerctl --ledger shop \(command)")
      expectEqual(outcome.exitCode, 12, "\(command)")
      #expect(outcome.diagnostics.contains("position 0: "), "\(outcome.diagnostics)")
      #expect(outcome.diagnostics.contains("a later version of this program wrote it"))
    }
    try expectEqual(held.sandbox.run("ledgerctl --ledger shop replay >all").exitCode, 0)
    try expectEqual(held.sandbox.run("ledgerctl --ledger shop audit >all").exitCode, 0)
  }
}

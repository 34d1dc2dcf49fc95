// Commands that find damage in the projections.
import Foundation
import Projections
import TestSupport
import Testing

@Suite(.bounded) struct DamagedProjectionTests {
  /// A shop whose projections were changed by other means than a command.
  private func shop(_ change: (_ path: String) throws -> Void) throws -> Sandbox {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      #". "$SHOP"; shop_ledger >out; ledgerctl export journal --format csv >whole.csv"#)
    try #require(made.exitCode == 0, "\(made.diagnostics)")
    try change(sandbox.path + "/shop/projections.sqlite")
    return sandbox
  }

  /// A shop whose projections have lost the first page of a table.
  private func damagedShop(_ table: String) throws -> Sandbox {
    try shop { try Database.damage(table, in: $0) }
  }

  @Test func reportIsRepeatedAfterARebuild() throws {
    let sandbox = try damagedShop("sales")
    let outcome = try sandbox.run(
      "ledgerctl export journal --format csv --ledger shop >again.csv; "
        + "cmp whole.csv again.csv && ledgerctl export journal --ledger shop >out")
    expectEqual(outcome.exitCode, 0)
    expectEqual(
      outcome.otherDiagnostics, "ledgerctl: export: the projections are damaged; rebuilding them\n")
  }

  /// A shop whose projections lack a table or column of this program's.
  private func changedShop(_ change: String) throws -> Sandbox {
    try shop { path in
      if change.isEmpty {
        // Written through the link.
        try Data().write(to: URL(fileURLWithPath: path).resolvingSymlinksInPath())
      } else {
        try Database(path: path, mode: .write, followsLinks: true).execute(change)
      }
    }
  }

  /// An empty file is a database too.
  @Test(arguments: [
    "", "DROP TABLE sales", "DROP TABLE progress", "ALTER TABLE sales RENAME quantity TO pieces",
    "DROP TABLE later_lines",
  ]) func readersRebuildProjectionsThatLackATableOrColumn(_ change: String) throws {
    let sandbox = try changedShop(change)
    let outcome = try sandbox.run(
      "ledgerctl export journal --format csv --ledger shop >again.csv; echo $?; "
        + "cmp whole.csv again.csv && ledgerctl rebuild --check --ledger shop")
    expectEqual(outcome.output, "0\nThe projections equal a rebuild, at 21 events.\n")
    #expect(outcome.otherDiagnostics.contains("rebuilding"), "\(outcome.diagnostics)")
  }

  @Test(arguments: [
    ("", ["status", "projections list", "rebuild --check", "rebuild --compare"]),
    ("DROP TABLE sales", ["status", "rebuild --compare"]),
    ("DROP TABLE progress", ["status", "projections list", "rebuild --check"]),
  ]) func commandsThatFoldNothingNameTheRemedy(_ change: String, _ commands: [String]) throws {
    let sandbox = try changedShop(change)
    for command in commands {
      let outcome = try sandbox.run("ledgerctl \(command) --ledger shop")
      if command == "status" {
        #expect(outcome.output.contains("; they will be rebuilt\n"), "\(outcome.output)")
        continue
      }
      let operation = command.prefix { $0 != "-" }.trimmingCharacters(in: .whitespaces)
      expectEqual(
        outcome.diagnostics,
        "ledgerctl: \(operation): projections: they are damaged; "
          + "'ledgerctl rebuild' rebuilds them from the log\n", "\(command)")
      #expect(outcome.exitCode == 21 && outcome.output == "")
    }
  }

  @Test func statusAsOfIsRepeatedAfterARebuild() throws {
    let sandbox = try damagedShop("sales")
    let outcome = try sandbox.run("ledgerctl status --as-of 20 --ledger shop | grep '^events'")
    #expect(outcome.output.hasSuffix(" 21\n"))
    expectEqual(
      outcome.diagnostics, "ledgerctl: status: the projections are damaged; rebuilding them\n")
  }

  @Test func snapshotSavesRebuiltProjections() throws {
    let sandbox = try damagedShop("sales")
    let outcome = try sandbox.run(
      """
      export LEDGER_DIR=shop; ledgerctl snapshot create >out && ledgerctl snapshot verify >out
      ledgerctl snapshot restore >out && ledgerctl export journal --format csv | cmp whole.csv -
      """)
    expectEqual(outcome.exitCode, 0)
    expectEqual(
      outcome.otherDiagnostics,
      "ledgerctl: snapshot create: the projections are damaged; rebuilding them\n")
  }

  @Test func showIsRepeatedAfterARebuild() throws {
    let sandbox = try damagedShop("uploads")
    let outcome = try sandbox.run("ledgerctl show 1 --ledger shop | grep -c '^Event 1:'")
    expectEqual(outcome.output, "1\n")
    expectEqual(
      outcome.diagnostics, "ledgerctl: show: the projections are damaged; rebuilding them\n")
  }
}

// Reports that meet damage in the projections.
import Foundation
import Projections
import Testing

@Suite struct DamagedProjectionTests {
  /// A shop whose projections have lost the first page of a table.
  private func damagedShop(_ table: String) throws -> Sandbox {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      #". "$SHOP"; shop_ledger >out; ledgerctl export journal --format csv >whole.csv"#)
    try #require(made.exitCode == 0, "\(made.diagnostics)")
    let path = sandbox.path + "/shop/projections.sqlite"
    let place: (page: Int64, size: Int64)
    do {
      let database = try Database(path: path, mode: .read)
      place = (
        try #require(
          try database.integer("SELECT rootpage FROM sqlite_master WHERE name = '\(table)'")),
        try #require(try database.integer("PRAGMA page_size"))
      )
    }
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try file.seek(toOffset: UInt64((place.page - 1) * place.size))
    try file.write(contentsOf: Data(repeating: 0xFF, count: Int(place.size)))
    try file.close()
    return sandbox
  }

  @Test func aReportIsMadeOnceMoreAfterARebuild() throws {
    let sandbox = try damagedShop("sales")
    let outcome = try sandbox.run(
      "ledgerctl export journal --format csv --ledger shop >again.csv; "
        + "cmp whole.csv again.csv && ledgerctl export journal --ledger shop >out")
    #expect(outcome.exitCode == 0)
    #expect(
      outcome.diagnostics == "ledgerctl: export: the projections are damaged: rebuilding\n")
  }

  /// A shop whose projections lack what this program's have.
  private func changedShop(_ change: String) throws -> Sandbox {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      #". "$SHOP"; shop_ledger >out; ledgerctl export journal --format csv >whole.csv"#)
    try #require(made.exitCode == 0, "\(made.diagnostics)")
    let path = sandbox.path + "/shop/projections.sqlite"
    if change.isEmpty {
      try Data().write(to: URL(fileURLWithPath: sandbox.path + "/shop/projections/1.sqlite"))
    } else {
      try Database(path: path, mode: .write).execute(change)
    }
    return sandbox
  }

  /// An empty file, too, is a database.
  @Test(arguments: [
    "", "DROP TABLE sales", "DROP TABLE progress", "ALTER TABLE sales RENAME quantity TO pieces",
    "DROP TABLE later_lines",
  ]) func whatLacksATableOrAColumnIsBuiltAnewByWhoeverReadsIt(_ change: String) throws {
    let sandbox = try changedShop(change)
    let outcome = try sandbox.run(
      "ledgerctl export journal --format csv --ledger shop >again.csv; echo $?; "
        + "cmp whole.csv again.csv && ledgerctl rebuild --check --ledger shop")
    #expect(
      outcome.output == "0\nThe projections equal those built from nothing, at 21 events.\n")
    #expect(outcome.diagnostics.hasSuffix(": rebuilding\n"), "\(outcome.diagnostics)")
  }

  @Test(arguments: [
    ("", ["status", "projections list", "rebuild --check", "rebuild --compare"]),
    ("DROP TABLE sales", ["status", "rebuild --compare"]),
    ("DROP TABLE progress", ["status", "projections list", "rebuild --check"]),
  ]) func whatOnlyLooksAtItSaysWhatMendsIt(_ change: String, _ commands: [String]) throws {
    let sandbox = try changedShop(change)
    for command in commands {
      let outcome = try sandbox.run("ledgerctl \(command) --ledger shop")
      if command == "status" {
        #expect(outcome.output.contains("; they will be built anew\n"), "\(outcome.output)")
        continue
      }
      let operation = command.prefix { $0 != "-" }.trimmingCharacters(in: .whitespaces)
      #expect(
        outcome.diagnostics == "ledgerctl: \(operation): projections: those in use are damaged; "
          + "'ledgerctl rebuild' makes them anew from the log\n", "\(command)")
      #expect(outcome.exitCode == 21 && outcome.output == "")
    }
  }

  @Test func anEarlierStandingIsLookedUpOnceMore() throws {
    let sandbox = try damagedShop("sales")
    let outcome = try sandbox.run("ledgerctl status --as-of 20 --ledger shop | grep '^events'")
    #expect(outcome.output.hasSuffix(" 21\n"))
    #expect(outcome.diagnostics == "ledgerctl: status: the projections are damaged: rebuilding\n")
  }

  @Test func aSnapshotIsSavedOfProjectionsThatWereBuiltAgain() throws {
    let sandbox = try damagedShop("sales")
    let outcome = try sandbox.run(
      """
      export LEDGER_DIR=shop; ledgerctl snapshot create >out && ledgerctl snapshot verify >out
      ledgerctl snapshot restore >out && ledgerctl export journal --format csv | cmp whole.csv -
      """)
    #expect(outcome.exitCode == 0)
    #expect(
      outcome.diagnostics == "ledgerctl: snapshot create: the projections are damaged: rebuilding\n"
    )
  }

  @Test func whatIsShownOfAReceiptIsLookedUpOnceMore() throws {
    let sandbox = try damagedShop("uploads")
    let outcome = try sandbox.run("ledgerctl show 1 --ledger shop | grep -c '^Event 1:'")
    #expect(outcome.output == "1\n")
    #expect(outcome.diagnostics == "ledgerctl: show: the projections are damaged: rebuilding\n")
  }
}

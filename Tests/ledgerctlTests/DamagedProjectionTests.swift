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

  @Test func whatIsShownOfAReceiptIsLookedUpOnceMore() throws {
    let sandbox = try damagedShop("uploads")
    let outcome = try sandbox.run("ledgerctl show 1 --ledger shop | grep -c '^Event 1:'")
    #expect(outcome.output == "1\n")
    #expect(outcome.diagnostics == "ledgerctl: show: the projections are damaged: rebuilding\n")
  }
}

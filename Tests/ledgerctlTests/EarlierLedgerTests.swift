// Ledgers that earlier versions of the program wrote: they open, audit and give the figures that they gave then.
import Foundation
import TestSupport
import Testing

/// `EarlierLedgers` holds, by the commit of the program that made it, each ledger and the reports of that program.
/// The uploads are invented (`Tests/Oracle/generate_cases.py`).
@Suite(.bounded) struct EarlierLedgerTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("EarlierLedgers").path

  private static let reports = [
    "revenue": "revenue --environment all --by period,app,product,country,environment,basis",
    "revenue-in-euros": "revenue --by period --in EUR",
    "journal": "journal --environment all", "sales": "sales --environment all",
    "receipts": "receipts", "users": "users",
  ]

  /// What later amendments of the rules change in a report, as `diff` shows it, or as an audit names it.
  private static let amended = [
    // R12: all units are refunded where Advanced Commerce refunds all of the amount, which is 0 for a trial.
    "2b78d65/journal": """
    13c13
    < 2025-12-03T11:06:46.192Z,Return,Sandbox,com.example.three,2100006,2100006,coins,DE,,trial,0,,,0,,'=7,15
    ---
    > 2025-12-03T11:06:46.192Z,Return,Sandbox,com.example.three,2100006,2100006,coins,DE,,trial,-2,,,0,,'=7,15

    """,
    // R12: statements are ordered by their time, so that an upgrade counts although it came too late before.
    "0faa198/exceptions": """
    ledgerctl: audit report: exceptions.csv: line 11 does not follow from the log

    """,
  ]

  static func versions() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
  }

  /// A copy with the permissions that git does not keep.
  func ledger(of version: String) throws -> Sandbox {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      "cp -R '\(Self.folder)/\(version)/ledger' . && chmod -R go= . && chmod -R u+w .")
    try #require(made.exitCode == 0, "\(made.diagnostics)")
    return sandbox
  }

  @Test(arguments: try versions())
  func ledgerOfAnEarlierVersionGivesTheSameReports(_ version: String) throws {
    let sandbox = try ledger(of: version)
    for (file, report) in Self.reports.sorted(by: { $0.key < $1.key }) {
      let outcome = try sandbox.run(
        """
        old='\(Self.folder)/\(version)/\(file).csv'
        ledgerctl --ledger ledger export \(report) --columns "$(head -n 1 "$old")" \
          --format csv 2>err >new.csv || cat err
        diff "$old" new.csv
        """)
      let changed = Self.amended["\(version)/\(file)"] ?? ""
      expectEqual(
        outcome, Outcome(output: changed, diagnostics: "", exitCode: changed.isEmpty ? 0 : 1),
        "\(file)")
    }
  }

  /// The manifests are of version 5, whose columns end with `detail`.
  @Test(arguments: try versions())
  func exceptionsOfAnEarlierVersionFollowFromTheLog(_ version: String) throws {
    let sandbox = try ledger(of: version)
    let outcome = try sandbox.run(
      """
      export LEDGER_DIR=ledger
      cp '\(Self.folder)/\(version)'/exceptions.csv* .
      ledgerctl audit report exceptions.csv.manifest.json >out 2>err
      grep -v 'made by another version of the program: report version 5' err
      ledgerctl export exceptions --environment all --format csv 2>err | head -n 1
      ledgerctl export exceptions --environment all -o new.csv --manifest 2>err || cat err
      ledgerctl audit report new.csv.manifest.json >out || cat out
      """)
    let header =
      "exception,environment,bundle_id,sale_key,product_id,transaction_id,position,detail,date,"
      + "country_code,user_identifier\n"
    let changed = Self.amended["\(version)/exceptions"] ?? ""
    expectEqual(outcome, Outcome(output: changed + header, diagnostics: "", exitCode: 0))
  }

  @Test(arguments: try versions())
  func ledgerOfAnEarlierVersionAuditsAndIsAppendedTo(_ version: String) throws {
    let sandbox = try ledger(of: version)
    let outcome = try sandbox.run(
      """
      export LEDGER_DIR=ledger
      ledgerctl audit >audit.txt || cat audit.txt
      ledgerctl audit --projections >audit.txt || cat audit.txt
      ledgerctl app add --name New --bundle-id com.example.new >out || echo "= $?"
      ledgerctl rebuild --check >out || cat out
      ledgerctl audit >audit.txt || cat audit.txt
      """)
    expectEqual(outcome, Outcome(output: "", diagnostics: "", exitCode: 0))
  }
}

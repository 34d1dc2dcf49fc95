// Wrong usage: each mistake gives one line and exit code 2, and touches nothing.
import Foundation
import Ledger
import TestSupport
import Testing

/// A wrong command line and its message.
struct Mistake: Sendable, CustomTestStringConvertible {
  let line: String
  let message: String
  var testDescription: String { line }

  init(_ line: String, _ message: String) {
    self.line = line
    self.message = message
  }
}

@Suite(.bounded) struct UsageErrorTests {
  /// `a, b or c`.
  private static let eventTypes: String = {
    let names = EventType.allCases.map(\.rawValue)
    return names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")
  }()

  private static let mistakes = [
    // Commands.
    Mistake("exprot", "exprot: unknown command; did you mean export?"),
    Mistake("frobnicate", "frobnicate: unknown command"),
    Mistake(
      "prices",
      "prices: incomplete command; available: prices import, prices list, prices withdraw"),
    Mistake("prices imprt", "prices: imprt: unknown command; did you mean prices import?"),
    Mistake("help exprot", "help: exprot: unknown command; did you mean export?"),
    Mistake("--json status", "--json: must come after the command"),
    Mistake("\"$(printf 'a\\033[2Jb')\"", "a\\u{1B}[2Jb: unknown command"),
    // Options.
    Mistake("status --jsn", "status: --jsn: unknown option; did you mean --json?"),
    Mistake("status --json --json", "status: --json: given twice"),
    Mistake("--ledger a status --ledger b", "status: --ledger: given twice"),
    Mistake("status --json=yes", "status: --json: takes no value"),
    Mistake("status --ledger", "status: --ledger: requires a value: DIR"),
    Mistake("status --ledger=", "status: --ledger: DIR is empty"),
    Mistake(
      "status --ledger --json",
      "status: --ledger: requires a value: DIR; if it begins with a hyphen, write --ledger=DIR"),
    Mistake("init a --origin b --ledger c", "init: --ledger: this command does not use a ledger"),
    Mistake("init a", "init: --origin: is missing"),
    Mistake("app add --name a", "app add: --bundle-id: is missing"),
    Mistake("app add", "app add: --name, --bundle-id: are missing"),
    Mistake("init", "init: DIR, --origin: are missing"),
    Mistake("status -x", "status: -x: unknown option"),
    Mistake("export users --json", "export: --json: unknown option; use --format json"),
    Mistake(
      "replay --json", "replay: --json: unknown option; replay always prints JSON"),
    Mistake(
      "config check --json", "config check: --json: unknown option; config check always prints JSON"
    ),
    // Arguments.
    Mistake("init --origin a", "init: DIR: is missing"),
    Mistake("init a b --origin c", "init: one argument too many after DIR"),
    Mistake("status a b", "status: 2 arguments too many"),
    Mistake("import", "import: FILE: is missing"),
    Mistake("import ''", "import: FILE: is empty"),
    Mistake("import - -", "import: -: standard input can be read only once"),
    Mistake("show 1.5", "show: POSITION|RECEIPT-ID: must be a number from 0 or a UUID"),
    Mistake(
      "show 99999999999999999999", "show: POSITION|RECEIPT-ID: must be a number from 0 or a UUID"),
    // Values.
    Mistake(
      "init a --origin 'b c'",
      "init: --origin b c: must be 1 to 255 bytes without white space, control characters, `+`, `\"` and `\\`"
    ),
    Mistake("app add --name a --bundle-id 'b c'", "app add: --bundle-id b c: is not a bundle id"),
    Mistake(
      "app add --name a --bundle-id b --bundle-id b", "app add: --bundle-id b: given twice"),
    Mistake(
      "app add --name a --bundle-id b --product c", "app add: --product c: must be ID=TYPE"),
    Mistake(
      "app add --name a --bundle-id b --product =consumable",
      "app add: --product =consumable: must be ID=TYPE"),
    Mistake(
      "app add --name a --bundle-id b --product c=consumeable",
      "app add: --product c=consumeable: TYPE must be consumable, non_consumable, auto_renewable"
        + " or non_renewing; did you mean consumable?"),
    Mistake(
      "app add --name a --bundle-id b --product c=consumable --product c=non_renewing",
      "app add: --product c: given twice"),
    Mistake(
      "replay --from soon", "replay: --from soon: is not a position, a day or an RFC 3339 time"),
    Mistake("report", "report: --output: is missing"),
    Mistake(
      "report -o a --month 2026-13", "report: --month 2026-13: is not a month, as in 2026-06"),
    Mistake(
      "report -o a --month 2026-06 --from 2026-06-01 --to 2026-06-02",
      "report: --month: conflicts with --from and --to"),
    Mistake("report -o a --from 2026-06-01", "report: --from: requires --to"),
    Mistake("report -o a --to 2026-06-01", "report: --to: requires --from"),
    Mistake(
      "report -o a --from 2026-06-02 --to 2026-06-01",
      "report: --to 2026-06-01: comes before --from 2026-06-02"),
    Mistake(
      "report -o a --from 1926-06-02 --to 2026-06-03",
      "report: --to 2026-06-03: is more than 36525 days after --from 1926-06-02"),
    Mistake("report -o a --in EURO", "report: --in EURO: is not a currency code of three letters"),
    Mistake(
      "report -o a --since 5 --environment all", "report: --since: requires one environment"),
    Mistake("replay --from 5 --until 4", "replay: --until 4: comes before --from"),
    Mistake(
      "replay --from 2026-03-02 --until 2026-03-01",
      "replay: --until 2026-03-01: comes before --from"),
    Mistake(
      "app-store sync --since soon",
      "app-store sync: --since soon: is not a day or an RFC 3339 time"),
    Mistake("replay --receipt 1", "replay: --receipt 1: is not a UUID"),
    Mistake(
      "replay --type receipt.uploaded,receipt",
      "replay: --type receipt: must be \(Self.eventTypes); did you mean receipt.uploaded?"),
    // Reports.
    Mistake(
      "export revenu",
      "export: revenu: REPORT must be revenue, journal, sales, exceptions, receipts, users, "
        + "subscriptions, reconcile, proceeds, payout or entries; did you mean revenue?"
    ),
    Mistake(
      "export receipts --month 2026-06",
      "export: --month: can be used with revenue, journal, sales, exceptions, reconcile, "
        + "proceeds or payout, not with receipts"
    ),
    Mistake(
      "export journal --month 2026-13", "export: --month 2026-13: is not a month, as in 2026-06"),
    Mistake(
      "export sales --month 2026-06 --to 2026-06-30",
      "export: --month: conflicts with --from and --to"),
    Mistake(
      "diff --since 5 --month 2026-06 --from-day 2026-06-01",
      "diff: --month: conflicts with --from-day and --to-day"),
    Mistake(
      "export revenue --by contry",
      "export: --by contry: must be period, app, product, country, environment, basis, "
        + "trust, month or seller; did you mean country?"
    ),
    Mistake("export revenue --by app,app", "export: --by app: given twice"),
    Mistake(
      "export revenue --by app,",
      "export: --by : must be period, app, product, country, environment, basis, trust, month or seller"
    ),
    Mistake(
      "export sales --by app",
      "export: --by: can be used with revenue, subscriptions or payout, not with sales"),
    Mistake(
      "export receipts --in EUR",
      "export: --in: can be used with revenue, journal, exceptions, users or subscriptions, "
        + "not with receipts"),
    Mistake(
      "export users --country DE",
      "export: --country: can be used with revenue, journal, sales, exceptions, reconcile or "
        + "proceeds, not with users"
    ),
    Mistake(
      "export revenue --app a,,b",
      "export: --app a,,b: is not a list of names, separated by commas"),
    Mistake(
      "report --month 2026-06 -o june.pdf",
      "report: --output june.pdf: a page is HTML; the name must end in .html"),
    Mistake(
      "export revenue --country DE,Germany",
      "export: --country DE,Germany: is not a list of two-letter country codes"),
    Mistake("export revenue --top 0", "export: --top 0: is not a number from 1"),
    Mistake(
      "export revenue --sort net:up",
      "export: --sort net:up: is not a column, COLUMN:asc or COLUMN:desc"),
    Mistake(
      "export sales --sort units",
      "export: --sort units: is not a column of this report: environment, bundle_id, sale_key, "
        + "product_id, kind, quantity, sale_date, original_transaction_id, transaction_ids, "
        + "first_position, country_code, country_position, user_identifier, user_position, "
        + "user_basis, currency, unit_price, price_basis, price_position, is_upgraded, cancelled, "
        + "cancellation_positions, reversal_positions or pending"),
    Mistake(
      "export revenue --by app --sort bundle_idd --top 3",
      "export: --sort bundle_idd: is not a column of this report: bundle_id, currency, units, gross, "
        + "returned_units, returns, reversed_units, reversals, net, unpriced_units, trials or "
        + "family_shared; did you mean bundle_id?"),
    Mistake(
      "export users --columns user_identifier,nett",
      "export: --columns nett: is not a column of this report: user_identifier, receipts, uploads, "
        + "sales, returns, trials, countries, net, first_seen_at or last_seen_at; did you mean net?"
    ),
    Mistake(
      "export revenue --columns net,net", "export: --columns net,net: names a column twice"),
    Mistake(
      "export revenue --csv-decimal , -o a.csv",
      "export: --csv-decimal: must differ from --csv-delimiter"),
    Mistake(
      "export revenue --csv-delimiter tab",
      "export: --csv-delimiter: can be used with CSV, not with table"),
    Mistake(
      "export revenue --total -o a.json",
      "export: --total: can be used with csv, table and xlsx; a JSON report has a member with its totals"
    ),
    Mistake(
      "export revenue --period hour",
      "export: --period hour: must be year, quarter, month, fiscal-month, week or day"),
    Mistake(
      "rebuild --check --accept-history",
      "rebuild: --accept-history: cannot be used with --compare or --check, which change nothing"),
    Mistake("rebuild --rows 5", "rebuild: --rows: requires --compare or --check"),
    Mistake(
      "diff --from 1",
      "diff: --from: is --since for a point in time, --from-day for the first day of the lines"),
    Mistake(
      "diff --since 1 --to=2",
      "diff: --to: is --until for a point in time, --to-day for the last day of the lines"),
    Mistake("diff --since 1 --as-of 2", "diff: --as-of: is --until"),
    Mistake("diff --until 1", "diff: --since: is missing"),
    Mistake(
      "diff --since yesterday",
      "diff: --since yesterday: is not a position, a day, an RFC 3339 time or the file of a "
        + "manifest"),
    Mistake(
      "diff --since 1 --from-day 10",
      "diff: --from-day 10: is not a date, as in 2026-03-14; a point in time is for --since or "
        + "--until"),
    Mistake(
      "diff --since 1 --from-day 2026-03-02 --to-day 2026-03-01",
      "diff: --to-day 2026-03-01: comes before --from-day 2026-03-02"),
    Mistake(
      "diff --since 1 --timezone Europe/Nowhere",
      "diff: --timezone Europe/Nowhere: reading time zone \"Europe/Nowhere\": no such zone in the "
        + "system's tz database (package tzdata)"),
    Mistake("diff --since 1 --in XYZ", "diff: --in XYZ: is not an ISO 4217 currency"),
    Mistake(
      "diff --since 1 --in EUR --rates-max-age -1",
      "diff: --rates-max-age: requires a value: DAYS; if it begins with a hyphen, write "
        + "--rates-max-age=DAYS"),
    Mistake(
      "diff --since 1 --environment all",
      "diff: --environment: must be one environment"),
    Mistake(
      "diff --since 1 -o difference.ndjson",
      "diff: --output difference.ndjson: the name does not imply a format; give --format"),
    Mistake(
      "export revenue --from 2026-02-29",
      "export: --from 2026-02-29: is not a date, as in 2026-03-14"),
    Mistake(
      "export revenue --from 10",
      "export: --from 10: is not a date, as in 2026-03-14; a point in time is for --as-of"),
    Mistake(
      "export revenue --to 2026-03-01T00:00:00Z",
      "export: --to 2026-03-01T00:00:00Z: is not a date, as in 2026-03-14; a point in time is for "
        + "--as-of"),
    Mistake(
      "export revenue --since june.csv.manifest.json",
      "export: --since: is --as-of for a point in time, --from for the first day; 'diff' compares "
        + "two points"),
    Mistake("export revenue --from-day 2026-03-01", "export: --from-day: is --from"),
    Mistake(
      "export revenue --to 1.3.2026",
      "export: --to 1.3.2026: is not a date, as in 2026-03-14"),
    Mistake(
      "export revenue --from 2026-03-02 --to 2026-03-01",
      "export: --to 2026-03-01: comes before --from 2026-03-02"),
    Mistake(
      "export revenue --timezone /etc/passwd",
      "export: --timezone /etc/passwd: is not the name of a time zone"),
    Mistake(
      "export revenue --timezone ../UTC",
      "export: --timezone ../UTC: is not the name of a time zone"),
    Mistake(
      "export revenue --in EURO", "export: --in EURO: is not a currency code of three letters"),
    Mistake(
      "export revenue --environment all,Sandbox",
      "export: --environment all,Sandbox: is not a list of environments"),
    Mistake(
      "export revenue --environment sandbox,Sandbox",
      "export: --environment sandbox,Sandbox: is not a list of environments"),
    Mistake(
      "export revenue --format xls",
      "export: --format xls: must be csv, json, ndjson, table, xlsx, hledger or beancount; did you mean xlsx?"
    ),
    Mistake(
      "export revenue -o report",
      "export: --output report: the name does not imply a format; give --format"
    ),
    Mistake("export revenue -o a.csv --output b.csv", "export: --output: given twice"),
    Mistake(
      "help --markdown export", "help: --markdown: is about all commands and takes no arguments"),
  ]

  @Test(arguments: mistakes) func mistakeGivesItsMessageAndTouchesNothing(_ mistake: Mistake) throws
  {
    let sandbox = try Sandbox()
    let outcome = try sandbox.run("ledgerctl \(mistake.line)")
    let lines = outcome.diagnostics.split(separator: "\n").map(String.init)
    expectEqual(lines.count, 2)
    expectEqual(lines.first, "ledgerctl: \(mistake.message)")
    #expect(lines.last?.hasPrefix("See 'ledgerctl help") == true)
    #expect(outcome.output.isEmpty)
    expectEqual(outcome.exitCode, 2)
    #expect(try FileManager.default.contentsOfDirectory(atPath: sandbox.path).isEmpty)
  }

  /// Words in places where a user identifier, a receipt or a token may be given.
  @Test(arguments: [
    "history a SECRET", "history --usr=SECRET a", "show SECRET", "replay --user=a --user=SECRET",
    "replay --user SECRET --from x", "status SECRET", "status -xSECRET", "replay --user=SECRET x y",
    "replay --usr=SECRET",
  ]) func mistakeShowsNoSecret(_ line: String) throws {
    let outcome = try Sandbox().run("ledgerctl \(line)")
    expectEqual(outcome.exitCode, 2)
    #expect(!(outcome.output + outcome.diagnostics).contains("SECRET"))
  }

  @Test func longArgumentGivesAShortMessage() throws {
    // The system accepts single arguments of up to 128 KiB.
    let outcome = try Sandbox().run("ledgerctl $(printf '%0120000d' 0)")
    expectEqual(outcome.exitCode, 2)
    #expect(outcome.diagnostics.utf8.count < 200)
  }
}

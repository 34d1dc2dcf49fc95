// The JSON report: its heading, exact amounts, totals, counts of exceptions and the words of rule R11.
import Base
import Projections
import TestSupport
import Testing

@Suite struct JSONReportTests {
  private static let steps: [TestEvent] = [
    .upload(
      reply(row("1", ["quantity": 3]), row("2"), row("3"), row("4", ["is_trial_period": true])),
      country: "FR",
      metadata: prices(
        entry(transaction: "1", "2.50"), entry(transaction: "2", "100", "JPY"))),
    .rates(source: "bank of \"x\"", ["2026-01-01 EUR JPY 160"]),
  ]

  private static func report(_ line: String) throws -> (text: String, value: JSONValue) {
    let fixture = try LedgerFixture()
    try fixture.append(steps)
    let text = try fixture.json(try ReportWords(line).request, from: fixture.current())
    return (text, try JSONValue(Array(text.utf8)))
  }

  private static func text(_ value: JSONValue?) -> String {
    String(decoding: value?.bytes ?? [], as: UTF8.self)
  }

  @Test func revenueBearsWhatItRestsOn() throws {
    let (_, value) = try Self.report("revenue --to 2026-12-31 --timezone Europe/Berlin")
    expectEqual(value["report"], .string("revenue"))
    expectEqual(value["ledger"]?["origin"], .string("receipts.example/test"))
    expectEqual(value["head"]?["size"], .number("3"))
    expectEqual(value["head"]?["root"]?.stringValue?.count, 44)
    expectEqual(
      Self.text(value["filters"]),
      #"{"by":["country"],"period":"month","refunds":"event-date","timezone":"Europe/Berlin","#
        + #""from":null,"to":"2026-12-31","environment":["Production"],"include_pending":false}"#)
    expectEqual(
      value["note"],
      .string(
        "Operational gross at customer prices as clients reported them, not settlement."))
  }

  @Test func amountsAreStringsAndMissingOnesNull() throws {
    let (_, value) = try Self.report("revenue")
    expectEqual(
      value["rows"]?.arrayValue?.map { Self.text($0) },
      [
        #"{"country_code":"FR","currency":null,"units":1,"gross":null,"returned_units":0,"#
          + #""returns":null,"reversed_units":0,"reversals":null,"net":null,"unpriced_units":1,"#
          + #""trials":1,"family_shared":0}"#,
        #"{"country_code":"FR","currency":"EUR","units":3,"gross":"7.50","returned_units":0,"#
          + #""returns":"0.00","reversed_units":0,"reversals":"0.00","net":"7.50","#
          + #""unpriced_units":0,"trials":0,"family_shared":0}"#,
        #"{"country_code":"FR","currency":"JPY","units":1,"gross":"100","returned_units":0,"#
          + #""returns":"0","reversed_units":0,"reversals":"0","net":"100","#
          + #""unpriced_units":0,"trials":0,"family_shared":0}"#,
      ])
    expectEqual(Self.text(value["exceptions"]), #"{"unpriced":1}"#)
    let totals = value["totals"]?.arrayValue ?? []
    expectEqual(totals.map { Self.text($0["currency"]) }, ["null", #""EUR""#, #""JPY""#])
    expectEqual(totals.map { Self.text($0["gross"]) }, ["null", #""7.50""#, #""100""#])
    #expect(value["rate_sources"] == nil)
  }

  @Test func aReportingCurrencyNamesItsSources() throws {
    let (_, value) = try Self.report("revenue --by app --in JPY")
    expectEqual(value["filters"]?["in"], .string("JPY"))
    expectEqual(Self.text(value["rate_sources"]), #"[{"source":"bank of \"x\"","positions":[2]}]"#)
    expectEqual(Self.text(value["filters"]?["rates_max_age"]), "35")
    expectEqual(
      Self.text(value["oldest_rate"]), #"{"base":"EUR","quote":"JPY","date":"2026-01-01"}"#)
    let rows = value["rows"]?.arrayValue ?? []
    expectEqual(rows.map { Self.text($0["gross"]) }, ["null", #""1300""#])
  }

  /// The request of a manifest from before `--rates-max-age`: the report has not one byte more.
  @Test func aReportWithoutALimitToTheRatesAgeIsWhatItWas() throws {
    let fixture = try LedgerFixture()
    try fixture.append(
      [Self.steps[0], .rates(source: "bank", ["2010-01-01 EUR JPY 160"])])
    let asked = try JSONValue(
      Array(
        (#"{"by":["app"],"period":"month","refunds":"event-date","timezone":"UTC","from":null,"#
          + #""to":null,"environment":["Production"],"include_pending":false,"in":"JPY"}"#).utf8))
    let request = try ReportRequest(.revenue, filters: asked)
    #expect(request.ratesAgeMaxDays == nil)
    let text = try fixture.json(request, from: fixture.current())
    let value = try JSONValue(Array(text.utf8))
    expectEqual(value["filters"], asked)
    #expect(value["oldest_rate"] == nil)
    expectEqual(Self.text(value["exceptions"]), #"{"unpriced":1}"#)
    expectEqual(value["rows"]?.arrayValue?.map { Self.text($0["gross"]) }, ["null", #""1300""#])
  }

  @Test(arguments: ["-1", "1.5", "10000000", "null", #""35""#])
  func aLimitThatIsNoNumberOfDaysIsRefused(_ days: String) throws {
    let asked = try JSONValue(
      Array(
        (#"{"refunds":"event-date","timezone":"UTC","from":null,"to":null,"environment":"all","#
          + #""include_pending":false,"in":"JPY","rates_max_age":\#(days)}"#).utf8))
    #expect(throws: ProjectionError.self) { try ReportRequest(.journal, filters: asked) }
  }

  @Test func aReportWithoutRowsIsJSON() throws {
    let (_, value) = try Self.report("journal --from 2030-01-01")
    expectEqual(value["rows"], .array([]))
    expectEqual(value["totals"], .array([]))
  }

  @Test func aLineForEachRowHoldsTheSameRows() throws {
    let fixture = try LedgerFixture()
    try fixture.append(Self.steps)
    let request = try ReportWords("journal").request
    let lines = try fixture.ndjson(request, from: fixture.current()).split(separator: "\n")
    let whole = try JSONValue(Array(try fixture.json(request, from: fixture.current()).utf8))
    expectEqual(lines.count, 4)
    try expectEqual(lines.map { try JSONValue(Array($0.utf8)) }, whole["rows"]?.arrayValue)
  }

  @Test func aCSVHoldsRowsAlone() throws {
    let fixture = try LedgerFixture()
    try fixture.append(Self.steps)
    let csv = try fixture.csv(try ReportWords("revenue").request, from: fixture.current())
    expectEqual(
      csv,
      """
      country_code,currency,units,gross,returned_units,returns,reversed_units,reversals,net,\
      unpriced_units,trials,family_shared
      FR,,1,,0,,0,,,1,1,0
      FR,EUR,3,7.50,0,0.00,0,0.00,7.50,0,0,0
      FR,JPY,1,100,0,0,0,0,100,0,0,0

      """)
  }

  /// The header lines of rule R9.
  @Test(arguments: [
    (
      "journal",
      "date,line,environment,bundle_id,sale_key,transaction_id,product_id,country_code,"
        + "user_identifier,kind,quantity,currency,unit_price,amount,price_basis,reason,position"
    ),
    (
      "sales",
      "environment,bundle_id,sale_key,product_id,kind,quantity,sale_date,"
        + "original_transaction_id,transaction_ids,first_position,country_code,"
        + "country_position,user_identifier,user_position,user_basis,currency,unit_price,price_basis,"
        + "price_position,is_upgraded,cancelled,cancellation_positions,reversal_positions,pending"
    ),
    (
      "receipts",
      "receipt_id,app_family_id,bundle_id,style,environment,state,is_fraud,fraud_reason,"
        + "country_code,user_identifier,uploads,purchases,first_position,last_position,"
        + "created_at,updated_at"
    ),
    (
      "users",
      "user_identifier,receipts,uploads,sales,returns,trials,countries,net,first_seen_at,"
        + "last_seen_at"
    ),
    (
      "exceptions",
      "exception,environment,bundle_id,sale_key,product_id,transaction_id,position,detail,date,"
        + "country_code,user_identifier"
    ),
  ])
  func aReportHasTheColumnsOfTheRules(_ report: String, _ header: String) throws {
    let fixture = try LedgerFixture()
    let csv = try fixture.csv(try ReportWords(report).request, from: fixture.current())
    expectEqual(csv, header + "\n")
  }
}

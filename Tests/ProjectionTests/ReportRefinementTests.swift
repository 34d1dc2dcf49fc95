// Filters, order, rounding and layout of a report in its manifest.
import Base
import Projections
import Revenue
import TestSupport
import Testing

@Suite struct ReportRefinementTests {
  private static func text(_ request: ReportRequest) -> String {
    var writer = JSONWriter()
    request.write(to: &writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  @Test func `Without refinements no member is written, so that earlier reports stay the same`() {
    expectEqual(
      Self.text(ReportRequest(.journal)),
      """
      {"refunds":"event-date","timezone":"UTC","from":null,"to":null,"environment":["Production"],\
      "include_pending":false}
      """)
  }

  @Test func `What was written is read back`() throws {
    var request = ReportRequest(.revenue)
    request.filter.apps = ["com.example.game"]
    request.filter.products = [.init("coins.*"), .init("pro")]
    request.filter.countries = ["DE", "ZZ"]
    request.filter.user = "u,1"
    request.filter.kinds = [.regular, .familyShared]
    request.sort = ReportSort("net:asc")
    request.top = 20
    request.amounts = .minor
    request.layout.columns = ["net", "currency"]
    request.layout.hasTotal = true
    request.layout.csv.delimiter = 0x3B
    request.layout.csv.decimal = 0x2C
    request.layout.csv.dates = .spreadsheet
    let filters = try JSONValue(Array(Self.text(request).utf8))
    let read = try ReportRequest(.revenue, filters: filters)
    expectEqual(read.filter, request.filter)
    expectEqual(read.sort, request.sort)
    expectEqual(read.top, 20)
    expectEqual(read.amounts, .minor)
    expectEqual(read.layout, request.layout)
    expectEqual(Self.text(read), Self.text(request))
  }

  @Test func `The zone of a report without days is kept, because its times are shown in it`() throws
  {
    var request = ReportRequest(.users)
    #expect(!Self.text(request).contains("timezone"))
    request.zone = try TimeZoneTable("Europe/Berlin")
    let filters = try JSONValue(Array(Self.text(request).utf8))
    try expectEqual(ReportRequest(.users, filters: filters).zone.name, "Europe/Berlin")
  }

  @Test(arguments: [
    ("app", "[]"), ("product", #""a""#), ("country", "[1]"), ("user", #""""#),
    ("kind", #"["gift"]"#), ("sort", #""net:up""#), ("top", "0"), ("amounts", #""round""#),
    ("columns", #"[null]"#), ("total", "1"), ("csv_delimiter", #""::""#), ("csv_decimal", #"",""#),
    ("csv_dates", #""german""#),
  ])
  func `A forged member is refused, by name`(member: String, value: String) throws {
    let text = Self.text(ReportRequest(.revenue)).dropLast() + ",\"\(member)\":\(value)}"
    let filters = try JSONValue(Array(text.utf8))
    let error = #expect(throws: ProjectionError.self) {
      _ = try ReportRequest(.revenue, filters: filters)
    }
    #expect("\(try #require(error))".contains(member))
  }
}

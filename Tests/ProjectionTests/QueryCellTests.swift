// Cells and columns that only queries have: binary numbers, and column names from the statement.
import Projections
import TestSupport
import Testing

@Suite struct QueryCellTests {
  private static func text(_ write: (any ReportWriter) throws -> Void, isJSON: Bool) throws
    -> String
  {
    var bytes: [UInt8] = []
    let sink: (UnsafeRawBufferPointer) -> Void = { bytes += $0 }
    let writer: any ReportWriter =
      isJSON ? JSONReportWriter(heading: nil, sink) : CSVReportWriter(sink)
    try write(writer)
    try writer.end(ReportSummary())
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test(
    arguments: [
      (0.1, "0.1", "0.1"), (-2.5, "-2.5", "-2.5"), (1e300, "1e+300", "1e+300"), (3.0, "3.0", "3.0"),
      (-.infinity, "-Infinity", "\"-Infinity\""),
    ] as [(Double, String, String)])
  func aBinaryNumberIsWrittenShortAndAsANumber(value: Double, csv: String, json: String) throws {
    for isJSON in [false, true] {
      let text = try Self.text(
        { writer in
          try writer.begin([ReportColumn("x", .integer)])
          try writer.write(.real(value))
          try writer.endRow()
        }, isJSON: isJSON)
      expectEqual(text, (isJSON ? "{\"x\":\(json)}\n" : "x\n\(csv)\n"))
    }
  }

  @Test func aColumnsNameIsQuotedAndRunsInNoSpreadsheet() throws {
    let text = try Self.text(
      { try $0.begin([ReportColumn("a,b"), ReportColumn("=1+1"), ReportColumn("-x\"")]) },
      isJSON: false)
    expectEqual(text, "\"a,b\",'=1+1,\"'-x\"\"\"\n")
  }
}

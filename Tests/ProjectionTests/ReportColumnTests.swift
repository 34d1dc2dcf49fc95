// The descriptions of reports' columns.
import Foundation
import Projections
import Testing

@Suite struct ReportColumnTests {
  private static let requests: [ReportRequest] = {
    var requests = ReportKind.allCases.map { ReportRequest($0) }
    var revenue = ReportRequest(.revenue)
    revenue.dimensions = ReportDimension.allCases
    var months = ReportRequest(.subscriptions)
    months.isByMonth = true
    requests += [revenue, months]
    return requests
  }()

  @Test func everyColumnHasAMeaning() {
    for request in Self.requests {
      for column in request.columns {
        #expect(
          Report.meaning(of: column.name, in: request.kind) != nil,
          "\(request.kind) \(column.name)")
      }
    }
  }

  /// The table of docs/reports.md has the same texts as manifests.
  @Test func theDocumentListsTheMeaningsOfTheJournal() throws {
    let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("docs/reports.md")
    let text = try String(contentsOf: page, encoding: .utf8)
    #expect(text.contains(Self.table), "the table must be:\n\(Self.table)")
  }

  private static var table: String {
    let lines = ReportRequest(.journal).columns.map { column in
      "| `\(column.name)` | \(Report.meaning(of: column.name, in: .journal) ?? "") |"
    }
    return (["| column | meaning |", "|---|---|"] + lines).joined(separator: "\n") + "\n"
  }
}

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
    var check = ReportRequest(.entries)
    check.isCheck = true
    requests += [revenue, months, check]
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

  /// Tables of docs/ have the same texts as manifests.
  @Test(arguments: [
    (ReportKind.journal, "reports.md"), (.reconcile, "settlement.md"), (.entries, "settlement.md"),
  ])
  func theDocumentListsTheMeanings(_ kind: ReportKind, _ name: String) throws {
    let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("docs/\(name)")
    let text = try String(contentsOf: page, encoding: .utf8)
    let table = Self.table(kind)
    #expect(text.contains(table), "the table must be:\n\(table)")
  }

  private static func table(_ kind: ReportKind) -> String {
    let lines = ReportRequest(kind).columns.map { column in
      "| `\(column.name)` | \(Report.meaning(of: column.name, in: kind) ?? "") |"
    }
    return (["| column | meaning |", "|---|---|"] + lines).joined(separator: "\n") + "\n"
  }
}

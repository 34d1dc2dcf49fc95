// Files of Apple's become events: identity, parts, and nothing of a file lost (settlement rule S5).
import Base
import Intake
import Ledger
import Revenue
import TestSupport
import Testing

@Suite struct SettlementImportTests {
  private let report = AppleReportText(
    region: "EU", days: ("09/28/2025", "11/01/2025"),
    (1...40).map { "product.\($0) S 1 1.00 EUR DE 2.00 EUR" })

  private func checked(
    _ text: String, _ name: String = "85_1025_EU.txt",
    partByteCountMax: Int = CheckedSettlementFile.partByteCountMax
  ) throws -> CheckedSettlementFile {
    try CheckedSettlementFile(
      SettlementText(bytes: Array(text.utf8), name: name), path: name,
      CheckedSettlementFile.Options(), partByteCountMax: partByteCountMax)
  }

  private func events(_ file: CheckedSettlementFile) throws -> [SettlementDeclared] {
    try (1...file.partCount).map { part in
      try withText(file.draft(part: part).data) { try SettlementDeclared(data: $0) }
    }
  }

  @Test("a small file is one event with its lines as they stood, without blank ones")
  func whole() throws {
    let text = report.text.replacing("\nproduct.7\t", with: "\n\t \t\nproduct.7\t")
    let events = try events(try checked(text))
    try #require(events.count == 1)
    expectEqual(events[0].region, "EU")
    expectEqual(events[0].month, "FY2026-P01")
    let lines = events[0].lines
    expectEqual(
      String(decoding: lines.head + lines.rows + lines.totals, as: UTF8.self),
      report.text.replacing("\n09/28/2025\t11/01/2025\t\n", with: "\n"))
  }

  @Test("a large file is several events below the limit, which together are the file")
  func parts() throws {
    let file = try checked(report.text, partByteCountMax: 5_000)
    let events = try events(file)
    #expect(events.count > 3)
    expectEqual(events.map(\.part), Array(1...events.count))
    #expect((1...file.partCount).allSatisfy { file.draft(part: $0).data.count < 5_000 })
    #expect(
      events.allSatisfy { $0.partCount == events.count && $0.sourceSHA256Hex == file.sha256Hex })
    let bytes = events.flatMap { $0.lines.head + $0.lines.rows + $0.lines.totals }
    expectEqual(String(decoding: bytes, as: UTF8.self), report.text)
    // The same file always gives the same parts: an interrupted import appends the rest.
    let again = try checked(report.text, partByteCountMax: 5_000)
    #expect(
      (1...file.partCount).allSatisfy { again.draft(part: $0).data == file.draft(part: $0).data })
  }

  @Test("a line that no event can hold is refused by its number")
  func longLine() throws {
    let long = AppleReportText(
      region: "EU", days: report.days,
      [String(repeating: "p", count: 6_000) + " S 1 1.00 EUR DE 2.00 EUR"])
    let error = #expect(throws: DeclarationError.self) {
      try checked(long.text, partByteCountMax: 5_000)
    }
    #expect(error?.description.contains("line 2: is too long to be kept") == true)
  }
}

// settlement.declared: what is written is read again; what the catalogue does not allow is refused with its member.
import Base
import Ledger
import TestSupport
import Testing

@Suite struct SettlementDeclaredTests {
  private let report = AppleReportText(
    region: "EU", days: ("09/28/2025", "11/01/2025"), ["pro S 1 1.00 EUR DE 2.00 EUR"])

  @Test("lines with tabs, quotes, backslashes and other letters are read as they were written")
  func written() throws {
    var event = SettlementDeclared.of(report, "FY2026-P01", digit: "a")
    event.lines.rows += Array("\"\\\t\u{1}é\u{2028}\n\n".utf8)
    let read = try event.data.withUnsafeBytes { try SettlementDeclared(data: $0) }
    expectEqual(read, event)
  }

  @Test(arguments: [
    ("\"kind\":\"financial\"", "\"kind\":\"tax\"", "kind"),
    ("\"region\":\"EU\",", "", "region"),
    ("\"kind\":\"financial\"", "\"kind\":\"overview\"", "region"),
    ("\"part\":1", "\"part\":2", "part"),
    ("\"part\":1", "\"part\":0", "part"),
    ("\"parts\":1", "\"parts\":\"1\"", "parts"),
    ("\"source_sha256\":\"aa", "\"source_sha256\":\"aZ", "source_sha256"),
    ("\"month\":", "\"months\":", "month"),
    ("IAY", "IAY\\nmore", "rows"),
  ])
  func refused(_ old: String, _ new: String, _ field: String) throws {
    let event = SettlementDeclared.of(report, "FY2026-P01", digit: "a")
    let text = String(decoding: event.data, as: UTF8.self)
    let changed = text.replacing(old, with: new)
    #expect(changed != text)
    let error = #expect(throws: EventError.self) {
      try Array(changed.utf8).withUnsafeBytes { _ = try SettlementDeclared(data: $0) }
    }
    expectEqual(error?.malformation, "settlement.declared \(field)")
  }
}

// The library that writes Excel files, as manifests name it.
import ReportDocuments
import Testing

@Suite struct SpreadsheetLibraryTests {
  @Test func `The library is named with its version`() {
    #expect(SpreadsheetLibrary.name.hasPrefix("libxlsxwriter "))
    #expect(SpreadsheetLibrary.name.contains("."))
  }
}

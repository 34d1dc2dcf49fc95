// The figures of this process, and how those of /proc are read.
import Foundation
import Server
import TestSupport
import Testing

@Suite("figures of the process") struct ProcessMetricTests {
  @Test("are all there and plausible")
  func current() throws {
    let figures = ProcessMetric.current()
    expectEqual(Set(figures.map(\.metric)), Set(ProcessMetric.allCases))
    func value(_ metric: ProcessMetric) throws -> Double {
      try #require(figures.first { $0.metric == metric }).value
    }
    let page = Double(sysconf(Int32(_SC_PAGESIZE)))
    try #require(value(.residentBytes) > page)
    #expect(try value(.residentBytes).truncatingRemainder(dividingBy: page) == 0)
    #expect(try value(.cpuSeconds) > 0)
    let ageSeconds = Date().timeIntervalSince1970 - (try value(.startSeconds))
    // Clocks in ticks may be a moment apart.
    #expect(ageSeconds > -1 && ageSeconds < 86_400)
    #expect(try value(.openFiles) >= 3)
    #expect(try value(.openFilesMax) >= value(.openFiles))
  }

  @Test("a descriptor that is opened counts")
  func openFiles() throws {
    func count() throws -> Double {
      try #require(ProcessMetric.current().first { $0.metric == .openFiles }).value
    }
    // Other tests open files at the same time: far more than they do.
    let before = try count()
    let opened = (0..<200).map { _ in open("/dev/null", O_RDONLY) }
    defer { for descriptor in opened { close(descriptor) } }
    #expect(try count() - before > 100)
  }

  @Test(
    "are read from proc, whatever the program's name",
    arguments: ["ledgerctl", "a) R 1 (b", "with\nline", ""])
  func status(name: String) {
    let text =
      "42 (\(name)) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 987654 73400320 1234 "
      + "18446744073709551615 1 1 0 0\n"
    let status = ProcessStatus(Array(text.utf8))
    expectEqual(status?.cpuTicks, 300)
    expectEqual(status?.startTicks, 987_654)
    expectEqual(status?.residentPages, 1234)
  }

  @Test(
    "what is no status is none",
    arguments: ["", "42", "42 (a) S 1 2", "42 (a) S " + String(repeating: "x ", count: 40)])
  func malformed(text: String) { #expect(ProcessStatus(Array(text.utf8)) == nil) }
}

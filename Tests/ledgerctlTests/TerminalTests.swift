// Text output: escaped text, aligned tables.
import Base
import Commands
import Foundation
import Intake
import Ledger
import TestSupport
import Testing

@Suite struct TerminalTests {
  @Test(arguments: [
    ("plain text, é 😀 日本", "plain text, é 😀 日本"), ("a\nb\rc\td", "a\\nb\\rc\\td"),
    ("\u{1B}[2J", "\\u{1B}[2J"), ("\u{0}\u{7F}\u{9B}1m", "\\u{0}\\u{7F}\\u{9B}1m"),
    ("a\u{202E}b\u{2066}c", "a\\u{202E}b\\u{2066}c"), ("\u{2028}\u{FEFF}", "\\u{2028}\\u{FEFF}"),
    ("👩\u{200D}👩", "👩\u{200D}👩"), ("e\u{301}", "e\u{301}"),
  ]) func hostileTextIsShownEscaped(_ text: String, _ expected: String) {
    #expect(visible(text).unicodeScalars.elementsEqual(expected.unicodeScalars))
  }

  @Test func longTextIsCut() {
    expectEqual(visible("abcdef", limit: 3), "abc…")
    expectEqual(visible("abc", limit: 3), "abc")
  }

  @Test(arguments: [
    ("abc", 3), ("日本", 4), ("e\u{301}", 1), ("😀", 2), ("", 0), ("é", 1), ("ｱ", 1),
  ])
  func widthCountsColumns(_ text: String, _ expected: Int) {
    expectEqual(widthColumns(text), expected)
  }

  @Test(arguments: [
    ("abcdef", 6, "abcdef"), ("abcdef", 5, "abcd…"), ("日本語", 5, "日本…"), ("日本語", 4, "日…"),
    ("abc", 1, "…"), ("abc", 0, ""), ("", 3, ""),
  ]) func truncatedTextFits(_ text: String, _ limit: Int, _ expected: String) {
    expectEqual(truncated(text, toColumns: limit), expected)
    #expect(widthColumns(truncated(text, toColumns: limit)) <= limit)
  }

  @Test(
    arguments: [
      (50, 100, 1000, "import [############............] 50%  50 events  50 events/s  1 s left"),
      (0, 100, 0, "import [........................] 0%  0 events  0 events/s"),
      (100, 100, 2000, "import [########################] 100%  100 events  50 events/s"),
      (200, 100, 1000, "import [########################] 100%  200 events  200 events/s"),
      (10, nil, 1000, "import  10 events  10 events/s"),
      (
        1, 7322, 1000,
        "import [........................] 0%  1 events  1 events/s  2 h 2 min left"
      ),
      (1, 62, 1000, "import [........................] 1%  1 events  1 events/s  1 min 1 s left"),
      (1, Int.max, 1000, "import [........................] 0%  1 events  1 events/s  days left"),
    ] as [(Int, Int?, Int64, String)]) func progressLineShowsPartRateAndTimeLeft(
      _ done: Int, _ total: Int?, _ elapsedMs: Int64, _ expected: String
    )
  {
    let line = Commands.Progress.line(
      label: "import", unit: .count("events"), done: done, total: total, elapsedMs: elapsedMs,
      columns: .max)
    expectEqual(line, expected)
  }

  @Test(
    "on a narrow terminal the bar gives way before the time left does",
    arguments: [
      (200, "[##########..............] "), (82, "[##########..............] "),
      (79, "[########.............] "), (63, "[##...] "), (62, ""), (20, ""), (0, ""),
    ]) func narrowTerminalShortensTheBar(_ columns: Int, _ bar: String)
  {
    let line = Commands.Progress.line(
      label: "Projecting", unit: .count("events"), done: 123_456, total: 290_000,
      elapsedMs: 1500, columns: columns)
    expectEqual(line, "Projecting \(bar)42%  123456 events  82304 events/s  3 s left")
    #expect(bar.isEmpty || widthColumns(line) <= columns)
  }

  @Test func progressOfBytesUsesBinaryUnitsUpToTheLargestValue() {
    func line(_ done: Int) -> String {
      Commands.Progress.line(
        label: "", unit: .bytes, done: done, total: nil, elapsedMs: 1000, columns: 79)
    }
    expectEqual(line(1023), "  1023 B  1023 B/s")
    expectEqual(line(1536), "  1.5 KiB  1.5 KiB/s")
    expectEqual(line(5 << 30), "  5.0 GiB  5.0 GiB/s")
    #expect(!line(.max).isEmpty)
  }

  @Test(arguments: [
    ("exprot", "export"), ("expo", "export"), ("xport", "export"), ("improt", "import"),
    ("hepl", "help"),
    ("EXPORT", "export"), ("zzz", nil), ("", nil), ("e", nil),
  ]) func nearestNameIsSuggested(_ text: String, _ expected: String?) {
    expectEqual(suggestion(for: text, among: ["import", "export", "help", "status"]), expected)
  }

  @Test func everyExitCodeHasItsMeaning() {
    let codes = ExitCode.allCases.map(\.rawValue)
    expectEqual(codes, [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 130])
    for code in ExitCode.allCases { #expect(!code.meaning.isEmpty) }
  }

  /// An error unknown to this program: its text might contain a secret.
  private struct Stranger: Error, CustomStringConvertible {
    var description: String { "SECRET" }
  }

  @Test func errorsBecomeLinesAndExitCodes() {
    let cases: [(any Error, ExitCode, [String])] = [
      (OutputError.closedPipe, .done, []),
      (
        OutputError.writeFailed(object: "a.csv", code: ENOSPC), .failed,
        ["ledgerctl: write: a.csv: no space left on device"]
      ),
      (Interrupted(), .interrupted, ["ledgerctl: import: interrupted"]),
      (
        UsageError("--by", "given twice", command: "export"), .usage,
        ["ledgerctl: export: --by: given twice", "See 'ledgerctl help export'."]
      ),
      (
        Failure(.mismatch, operation: "check", object: "a\u{1B}b", cause: "differs"), .mismatch,
        ["ledgerctl: check: a\\u{1B}b: differs"]
      ),
      (
        LedgerError(.noLedger, operation: "open ledger", object: "a", cause: "none"), .noLedger,
        ["ledgerctl: open ledger: a: none"]
      ),
      (
        LedgerError(.locked, operation: "o", object: "a", cause: "c"), .locked,
        ["ledgerctl: o: a: c"]
      ),
      (
        LedgerError(.newerFormat, operation: "o", object: "a", cause: "c"), .newerFormat,
        ["ledgerctl: o: a: c"]
      ),
      (
        LedgerError(
          .init(verdict: .corrupt, file: "log/x", position: 7), operation: "read", cause: "crc"),
        .corrupted, ["ledgerctl: read: log/x, position 7: corrupt: crc"]
      ),
      (Stranger(), .failed, ["ledgerctl: import: failed: Stranger"]),
    ]
    for (error, exitCode, lines) in cases {
      let report = ErrorReport(error, command: "import")
      expectEqual(report.exitCode, exitCode)
      expectEqual(report.lines, lines)
    }
  }

  @Test(
    "control characters are escaped on their way to a terminal; all else stays",
    arguments: [
      ("plain, \t tab\n", "plain, \t tab\n"),
      ("\u{1B}[31mred\u{1B}]0;title\u{07}", "\\u001b[31mred\\u001b]0;title\\u0007"),
      ("\u{1B}[1mbold\u{1B}[0m", "\u{1B}[1mbold\u{1B}[0m"),
      ("a\rb\u{0}c\u{7F}", "a\\u000db\\u0000c\\u007f"),
      ("\u{85}\u{9B}2J", "\\u0085\\u009b2J"),
      ("\u{202E}abc\u{2069}", "\\u202eabc\\u2069"),
      ("é\u{A0}\u{200D}‐😀", "é\u{A0}\u{200D}‐😀"),
      ("\u{1B}", "\\u001b"),
    ])
  func harmless(_ text: String, _ expected: String) {
    let bytes = Array(text.utf8).withUnsafeBytes { harmlessBytes($0) }
    expectEqual(String(decoding: bytes, as: UTF8.self), expected)
  }
}

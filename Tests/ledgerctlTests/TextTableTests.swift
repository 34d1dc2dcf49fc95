// Text tables: alignment, and their layout on a terminal that is too narrow.
import Foundation
import TestSupport
import Testing

import Commands

@Suite struct TextTableTests {
  /// The lines that a table writes.
  private func lines(
    _ table: TextTable, limit: Int? = nil, isCut: Bool = true
  ) throws -> [String] {
    let pipe = Pipe()
    let output = Output(descriptor: pipe.fileHandleForWriting.fileDescriptor, name: "pipe")
    try table.write(to: output, limit: limit, isCut: isCut)
    try output.flush()
    try pipe.fileHandleForWriting.close()
    let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
    return Array(String(decoding: data, as: UTF8.self).components(separatedBy: "\n").dropLast())
  }

  private func notes(_ rows: [[String]]) -> TextTable {
    var table = TextTable(["name", .number("units"), "note"])
    for row in rows { table.append(row) }
    return table
  }

  @Test func columnsAreAlignedWithNumbersToTheRight() throws {
    let table = notes([["a", "1", ""], ["日本", "1000", "x\u{1B}y"], ["e\u{301}e", "-20"]])
    try expectEqual(
      lines(table),
      [
        "name  units  note", "a         1", "日本   1000  x\\u{1B}y", "e\u{301}e      -20",
      ])
  }

  @Test func hugeCellIsPrintedInFullAndPadsNoOtherRow() throws {
    let huge = String(repeating: "h", count: 5000)
    let printed = try lines(notes([[huge, "1", "x"], ["a", "2", "y"]]))
    expectEqual(printed[1], huge + "      1  x")
    expectEqual(printed[2].count, 1000 + 2 + 5 + 2 + 1)
  }

  @Test func emptyTableHasItsHeadings() throws {
    try expectEqual(lines(notes([])), ["name  units  note"])
  }

  // MARK: Narrow terminals

  private static let sold: TextTable = {
    var table = TextTable([
      .init("product_id", isKey: true), "note", .number("returned_units"),
      .number("net"),
    ])
    table.append(["com.example.coins", "a long remark about coins", "3", "1234.50"])
    table.append(["pro", "short", "0", "-7.00"])
    return table
  }()

  @Test(
    "headings are wrapped before texts are cut, keys and numbers never are; in the end, cells are stacked",
    arguments: [
      (
        nil,
        """
        product_id         note                       returned_units      net
        com.example.coins  a long remark about coins               3  1234.50
        pro                short                                   0    -7.00
        """
      ),
      (
        69,
        """
        product_id         note                       returned_units      net
        com.example.coins  a long remark about coins               3  1234.50
        pro                short                                   0    -7.00
        """
      ),
      (
        68,
        """
                                                      returned_
        product_id         note                           units      net
        com.example.coins  a long remark about coins          3  1234.50
        pro                short                              0    -7.00
        """
      ),
      (
        50,
        """
                                        returned_
        product_id         note             units      net
        com.example.coins  a long rem…          3  1234.50
        pro                short                0    -7.00
        """
      ),
      (
        45,
        """
                                   returned_
        product_id         note        units      net
        com.example.coins  a lon…          3  1234.50
        pro                short           0    -7.00
        """
      ),
      (
        44,
        """
        product_id      com.example.coins
        note            a long remark about coins
        returned_units  3
        net             1234.50

        product_id      pro
        note            short
        returned_units  0
        net             -7.00
        """
      ),
    ] as [(Int?, String)])
  func narrowTerminal(_ limit: Int?, _ expected: String) throws {
    let printed = try lines(Self.sold, limit: limit)
    expectEqual(printed, expected.components(separatedBy: "\n"))
    if let limit, limit >= 45 { #expect(printed.allSatisfy { widthColumns($0) <= limit }) }
  }

  @Test func tableToBeCopiedIsNeverCut() throws {
    let printed = try lines(Self.sold, limit: 63, isCut: false)
    expectEqual(printed.first, "product_id      com.example.coins")
    try expectEqual(lines(Self.sold, limit: 64, isCut: false).count, 4)
  }

  @Test func columnThatMayNotBeCutIsNot() throws {
    var table = Self.sold
    table.neverCut(1)
    try expectEqual(lines(table, limit: 64).count, 4)
    try expectEqual(lines(table, limit: 63).first, "product_id      com.example.coins")
  }

  @Test func emptyCellsOfARecordAreLeftOutButForKeys() throws {
    var table = TextTable([.init("key", isKey: true), "note", .number("units")])
    table.append(["", "", "1"])
    table.append(["a", "b"])
    try expectEqual(lines(table, limit: 3), ["key", "units  1", "", "key    a", "note   b"])
  }

  @Test(arguments: [
    ("returned_units", 20, ["returned_units"]), ("returned_units", 13, ["returned_", "units"]),
    ("returned_units", 1, ["returned_", "units"]), ("rows after", 9, ["rows", "after"]),
    ("current_period_start_at", 15, ["current_period_", "start_at"]),
    ("current_period_start_at", 14, ["current_", "period_start_", "at"]), ("", 5, [""]),
  ]) func headingBreaksAfterUnderscoresAndAtSpaces(
    _ heading: String, _ limit: Int, _ expected: [String]
  ) {
    expectEqual(TableLayout.wrapped(heading, toColumns: limit), expected)
  }

  @Test(
    "columns are left out, the least important first, before texts are cut short; else all stay",
    arguments: [
      (69, []), (51, []), (50, ["returned_units"]), (40, ["returned_units"]),
      // Without the note there is room again for the number that went before it.
      (39, ["note"]), (37, ["note"]), (36, ["returned_units", "note"]),
      (26, ["returned_units", "note"]), (25, []),
    ] as [(Int, [String])])
  func columnsLeftOut(_ limit: Int, _ expected: [String]) throws {
    var table = Self.sold
    let left = table.leaveOut(["returned_units", "unknown", "note"], toFit: limit)
    expectEqual(left.sorted(), expected.sorted())
    let printed = try lines(table, limit: limit)
    #expect(limit < 26 || printed.allSatisfy { widthColumns($0) <= limit })
    for heading in left { #expect(!printed[0].contains(heading)) }
  }

  // MARK: Columns without content

  @Test func columnsThatAreEmptyOrZeroThroughoutAreLeftOutAndNamed() throws {
    var table = TextTable([
      .init("key", isKey: true), "text", "none", .number("units"), .number("zero"),
      .number("zeros"),
    ])
    table.append(["", "a", "", "0", "0", "0.00"])
    table.append(["", "0", "", "1", "", "0.000"])
    expectEqual(table.leaveOutUnused(), ["none", "zero", "zeros"])
    try expectEqual(lines(table), ["key  text  units", "     a         0", "     0         1"])
  }

  @Test func nothingIsLeftOutOfATableWithoutRowsOrWithoutContent() throws {
    var empty = notes([])
    #expect(empty.leaveOutUnused().isEmpty)
    try expectEqual(lines(empty), ["name  units  note"])
    var blank = notes([["", "0", ""]])
    #expect(blank.leaveOutUnused().isEmpty)
    try expectEqual(lines(blank), ["name  units  note", "          0"])
  }
}

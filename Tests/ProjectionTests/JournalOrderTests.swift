// The journal's order: lines completed in batches come as if all sales had been sorted in memory.
import Ledger
import Revenue
import TestSupport
import Testing

import Projections

@Suite struct JournalOrderTests {
  /// Identifies a line and its sale.
  private static func text(_ line: ReportLine, key: Text, user: Text?) -> String {
    let words = [line.reason, key, user ?? Text(start: nil, count: 0)].map {
      String(decoding: $0, as: UTF8.self)
    }
    return
      "\(line.dateMs) \(line.environment) \(line.bundle) \(line.type) \(line.position) "
      + "\(line.sale) \(line.quantity) \(line.amountMicros ?? -1) \(line.product) "
      + "\(line.country) \(line.kind) \(line.basis) \(line.trust) \(words)"
  }

  /// The lines in order, with all sales in memory.
  private static func expected(_ source: ReportSource) throws -> [String] {
    let list = try SaleList(source)
    let users = try source.userIdentifiers()
    var lines: [ReportLine] = []
    try source.forEachLine { line throws(ProjectionError) in
      var kept = line
      kept.reason = source.arena.keep(line.reason)
      lines.append(kept)
    }
    let symbols = source.symbols
    lines.sort { left, right in
      if left.dateMs != right.dateMs { return left.dateMs < right.dateMs }
      if left.environment != right.environment {
        return symbols.text(left.environment).precedes(symbols.text(right.environment))
      }
      if left.bundle != right.bundle {
        return symbols.text(left.bundle).precedes(symbols.text(right.bundle))
      }
      let (one, other) = (list.sale(left.sale), list.sale(right.sale))
      let keys = one.key.order(other.key)
      if keys != 0 { return keys < 0 }
      if left.position != right.position { return left.position < right.position }
      if left.type != right.type { return left.type.rawValue < right.type.rawValue }
      return one.keyKind.rawValue < other.keyKind.rawValue
    }
    return lines.map { line in
      let sale = list.sale(line.sale)
      return text(line, key: sale.key, user: users[sale.user])
    }
  }

  private static func found(_ source: ReportSource, batchLineCount: Int) throws -> [String] {
    var texts: [String] = []
    try JournalOrder(source, batchLineCount: batchLineCount).forEach { line, sale in
      texts.append(text(line, key: sale.key, user: sale.user))
    }
    return texts
  }

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func linesOfAnyBatchSizeComeInTheOrderOfAll(seed: UInt64) throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: seed)
    try fixture.append(generator.steps(160))
    let database = try fixture.current()
    if seed.isMultiple(of: 2) {
      // Few dates, so that only keys and positions order many lines.
      let other = try Database(path: database.path, mode: .write)
      try other.execute("UPDATE later_lines SET date_ms = sale % 2")
    }
    var request = ReportRequest(.journal)
    request.environments = nil
    request.includesPending = true
    let source = try ReportSource(database, request)
    try source.loadPending()
    let expected = try Self.expected(source)
    #expect(!expected.isEmpty, "seed \(seed)")
    for count in [1, 2, 7, 1 << 16] {
      try expectEqual(
        Self.found(source, batchLineCount: count), expected, "seed \(seed), \(count) lines")
    }
  }

  @Test func aMissingSaleIsAnErrorAndNotAGap() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 3)
    try fixture.append(generator.steps(60))
    let database = try fixture.current()
    let other = try Database(path: database.path, mode: .write)
    try other.execute("DELETE FROM sales WHERE id = 0")
    var request = ReportRequest(.journal)
    request.environments = nil
    let source = try ReportSource(database, request)
    try source.loadPending()
    #expect(throws: ProjectionError.self) { try Self.found(source, batchLineCount: 8) }
  }
}

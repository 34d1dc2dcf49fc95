// Which exceptions and sales fall within the days that a report covers (rule R9).
import Revenue

/// Selects the exceptions within a report's days, so that a month shows the ones that affect its own figures.
final class ExceptionDays {
  /// Whether the report covers all days.
  let isAll: Bool
  private let source: ReportSource
  private let laterLines: Statement

  init(_ source: ReportSource) throws(DatabaseError) {
    self.source = source
    isAll = source.request.from == nil && source.request.to == nil
    laterLines = try source.database.prepare("SELECT date_ms FROM later_lines WHERE sale = ?")
  }

  /// Whether an exception of a sale counts: one of the sale's lines must be within the days.
  func hold(sale: Int, saleDateMs: Int64) throws(DatabaseError) -> Bool {
    if source.isWithinDays(saleDateMs) { return true }
    if source.decidesBySaleDate { return false }
    laterLines.bind(1, sale)
    defer { laterLines.reset() }
    while try laterLines.step() {
      if source.isWithinDays(laterLines.integer(0)) { return true }
    }
    return false
  }

  /// Whether an exception without a sale counts: the event that caused it must have occurred within the days. An
  /// exception without a time always counts.
  func hold(occurredAtMs: Int64?) -> Bool { occurredAtMs.map(source.isWithinDays) ?? true }

  /// The pending sales that have a line within the days.
  func pendingSales() -> [Sale] {
    guard let pending = source.pending else { return [] }
    if isAll { return pending.sales }
    var numbers: Set<Int> = []
    for line in pending.lines where source.isWithinDays(source.decidingDateMs(line)) {
      numbers.insert(line.sale)
    }
    return pending.sales.filter { numbers.contains($0.id) }
  }
}

/// The confirmed sales that have a line within the days that a report covers, collected line by line.
struct ShownSales {
  private var areShown: [Bool] = []
  /// How many of these sales have no price.
  private(set) var unpricedCount = 0
  private var trusts = InlineArray<5, Int>(repeating: 0)

  /// Records a confirmed line within the days.
  @inline(__always)
  mutating func note(_ line: ReportLine) {
    while areShown.count <= line.sale { areShown.append(false) }
    if areShown[line.sale] { return }
    areShown[line.sale] = true
    trusts[Int(line.trust.rawValue)] += 1
    if line.basis == .none { unpricedCount += 1 }
  }

  /// How many of these sales come from replies of each source, in the order of the sources. Sources without sales are
  /// omitted.
  var trustCounts: [(word: String, count: Int)] {
    ReplyTrust.allCases.compactMap { trust in
      let count = trusts[Int(trust.rawValue)]
      return count == 0 ? nil : ("\(trust.word)", count)
    }
  }

  func holds(_ sale: Int) -> Bool { areShown.indices.contains(sale) && areShown[sale] }
}

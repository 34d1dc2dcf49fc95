// Which exceptions concern the days that a report asks for (rule R9).
import Revenue

/// Tells exceptions of a report's days from others, so that a month shows what bears on its own figures.
final class ExceptionDays {
  /// Whether the report asks for all days.
  let isAll: Bool
  private let source: ReportSource
  private let laterLines: Statement

  init(_ source: ReportSource) throws(DatabaseError) {
    self.source = source
    isAll = source.request.from == nil && source.request.to == nil
    laterLines = try source.database.prepare("SELECT date_ms FROM later_lines WHERE sale = ?")
  }

  /// An exception of a sale: one of its lines is in those days.
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

  /// An exception without a sale: the verification that met it took place in those days. One without a time is
  /// never left out.
  func hold(verifiedAtMs: Int64?) -> Bool { verifiedAtMs.map(source.isWithinDays) ?? true }

  /// The pending sales with a line in those days.
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

/// Which confirmed sales have a line in the days that a report asks for; noted line by line.
struct ShownSales {
  private var areShown: [Bool] = []
  /// How many of them have no price.
  private(set) var unpricedCount = 0
  private var trusts = InlineArray<5, Int>(repeating: 0)

  /// Notes a confirmed line of those days.
  @inline(__always)
  mutating func note(_ line: ReportLine) {
    while areShown.count <= line.sale { areShown.append(false) }
    if areShown[line.sale] { return }
    areShown[line.sale] = true
    trusts[Int(line.trust.rawValue)] += 1
    if line.basis == .none { unpricedCount += 1 }
  }

  /// How many of them rest on replies of each source, in the order of the sources; without those of none.
  var trustCounts: [(word: String, count: Int)] {
    ReplyTrust.allCases.compactMap { trust in
      let count = trusts[Int(trust.rawValue)]
      return count == 0 ? nil : ("\(trust.word)", count)
    }
  }

  func holds(_ sale: Int) -> Bool { areShown.indices.contains(sale) && areShown[sale] }
}

// `rates import`: exchange rates in CSV become `rates.declared` events.
import Base
import Ledger
import Revenue

/// Exchange rates in one of two layouts: the columns date, base, quote and rate, or the wide layout of the
/// European Central Bank's history (`eurofxref-hist.csv`: a date, then one column per currency, base EUR).
package enum RateListFile {
  static let columns = ["date", "base", "quote", "rate"]

  /// Reads rates from a path; `-` is standard input. One wrong line refuses the whole file.
  package static func read(
    path: String, stop: StopFlag
  ) throws(DeclarationError) -> Declaration {
    try read(DeclarationFile(path: path, stop: stop))
  }

  /// Reads rates from memory; `source` is the name that the events cite.
  package static func read(
    _ bytes: [UInt8], source: String
  ) throws(DeclarationError) -> Declaration {
    try read(DeclarationFile(source: source, bytes: bytes))
  }

  private static func read(_ file: DeclarationFile) throws(DeclarationError) -> Declaration {
    var collector = RateCollector()
    var reader = CSVReader(file.bytes)
    var layout: RateLayout?
    while true {
      do throws(CSVError) {
        guard let record = try reader.next() else { break }
        if let layout {
          layout.read(record, &collector)
        } else {
          layout = RateLayout(header: record, &collector)
          // Without its columns, no line can be checked.
          if layout == nil { break }
        }
      } catch {
        collector.problems.add(line: error.line, error.description)
        if layout == nil { break }
      }
    }
    try collector.problems.check(source: file.source)
    if collector.days.isEmpty {
      collector.problems.add(line: 0, "the file declares no rate")
      try collector.problems.check(source: file.source)
    }
    let parts = runs(of: collector.days) { day in
      day.rates.reduce(64) { $0 + $1.rate.utf8.count + 10 }
    }
    let drafts = parts.map { part in
      EventDraft(
        .ratesDeclared,
        RatesDeclared(
          source: file.source, sourceSHA256Hex: file.sha256Hex, days: Array(part)
        ).data)
    }
    return Declaration(
      drafts: drafts, sourceSHA256Hex: file.sha256Hex, entryCount: collector.rateCount,
      base: layout?.impliedBase?.description,
      warnings: collector.warnings.listed)
  }
}

/// Collects rates by day and base, and detects those that contradict each other.
private struct RateCollector {
  struct Pair: Hashable {
    var dayIndex: Int
    var quote: Currency
  }

  struct DayKey: Hashable {
    var date: CivilDate
    var base: Currency
  }

  var problems = ProblemList()
  var warnings = ProblemList()
  private(set) var days: [RatesDeclared.Day] = []
  private(set) var rateCount = 0
  private var dayIndexes: [DayKey: Int] = [:]
  private var seen: [Pair: (line: Int, rate: Decimal18)] = [:]

  /// Adds a rate; returns the problem, if there is one.
  mutating func add(
    _ date: CivilDate, _ base: Currency, _ quote: Currency, _ text: String, line: Int
  ) -> String? {
    let rate: Decimal18
    do throws(DecimalError) { rate = try Decimal18(parsing: text) } catch {
      return "the rate of \(quote) is \(error)"
    }
    let key = DayKey(date: date, base: base)
    let index = dayIndexes[key] ?? days.count
    if index == days.count {
      dayIndexes[key] = index
      days.append(RatesDeclared.Day(date: date.description, base: base.description, rates: []))
    }
    let pair = Pair(dayIndex: index, quote: quote)
    if let earlier = seen[pair] {
      return earlier.rate == rate
        ? nil
        : "conflicts with line \(earlier.line): another rate of \(base) to \(quote) for the same day"
    }
    seen[pair] = (line, rate)
    days[index].rates.append(RatesDeclared.Rate(quote: quote.description, rate: text))
    rateCount += 1
    return nil
  }
}

/// The layout of a file's lines, from its header.
private enum RateLayout {
  case plain(ColumnMap)
  /// The currency of each column after the date; nil for a column that is skipped.
  case wide([Currency?], base: Currency)

  /// The base of every rate, if no column names it.
  var impliedBase: Currency? {
    if case .wide(_, let base) = self { return base }
    return nil
  }

  init?(header: CSVRecord, _ collector: inout RateCollector) {
    let names = header.cells.map { trimmed($0).lowercased() }
    let isWide = names.first == "date" && Set(names).isDisjoint(with: ["base", "quote", "rate"])
    if isWide, names.count > 1 {
      guard let columns = Self.wideColumns(header, &collector), let base = Currency.parse("EUR")
      else { return nil }
      self = .wide(columns, base: base)
    } else {
      guard
        let map = ColumnMap(
          header, names: RateListFile.columns, problems: &collector.problems)
      else { return nil }
      self = .plain(map)
    }
  }

  /// The history goes back to 1999 and contains currencies that today's table may not have.
  private static func wideColumns(
    _ header: CSVRecord, _ collector: inout RateCollector
  ) -> [Currency?]? {
    var columns: [Currency?] = []
    var names = header.cells.dropFirst().map(trimmed)
    // Each line of the history ends with a comma.
    if names.last?.isEmpty == true { names.removeLast() }
    let problemCount = collector.problems.count
    for name in names {
      let shown = PrintableText.shortened(name, to: 16)
      guard name.utf8.count == 3, name.utf8.allSatisfy({ (0x41...0x5A).contains($0) }) else {
        collector.problems.add(
          line: header.line,
          "column \"\(shown)\" is not date, base, quote, rate or a currency")
        continue
      }
      let currency = Currency.parse(name)
      if currency == nil {
        collector.warnings.add(
          line: header.line, "\(shown) is not a known ISO 4217 code; its rates were ignored")
      } else if columns.contains(currency) || name == "EUR" {
        collector.problems.add(
          line: header.line,
          name == "EUR" ? "column EUR is the base currency" : "column \(shown) appears twice")
      }
      columns.append(currency)
    }
    return collector.problems.count == problemCount ? columns : nil
  }

  func read(_ record: CSVRecord, _ collector: inout RateCollector) {
    switch self {
    case .plain(let map):
      if let cells = map.cells(of: record, problems: &collector.problems) {
        readPlain(cells, record.line, &collector)
      }
    case .wide(let columns, let base): readWide(record, columns, base, &collector)
    }
  }

  private func readPlain(_ cells: [String], _ line: Int, _ collector: inout RateCollector) {
    var reasons: [String] = []
    let date = try? CivilDate(parsing: cells[0])
    let (base, quote) = (Currency.parse(cells[1]), Currency.parse(cells[2]))
    if date == nil { reasons.append("date is not a date of the form YYYY-MM-DD") }
    if base == nil { reasons.append("base is not a known ISO 4217 code") }
    if quote == nil { reasons.append("quote is not a known ISO 4217 code") }
    if let base, base == quote { reasons.append("base and quote are the same currency") }
    if reasons.isEmpty, let date, let base, let quote {
      if let reason = collector.add(date, base, quote, cells[3], line: line) {
        reasons.append(reason)
      }
    } else {
      do throws(DecimalError) { _ = try Decimal18(parsing: cells[3]) } catch {
        reasons.append("rate is \(error)")
      }
    }
    if !reasons.isEmpty {
      collector.problems.add(line: line, reasons.joined(separator: "; "))
    }
  }

  private func readWide(
    _ record: CSVRecord, _ columns: [Currency?], _ base: Currency,
    _ collector: inout RateCollector
  ) {
    let cells = record.cells.map(trimmed)
    let isEnded = cells.count == columns.count + 2 && cells[columns.count + 1].isEmpty
    guard cells.count == columns.count + 1 || isEnded else {
      collector.problems.add(
        line: record.line,
        "\(cells.count - 1) cells after the date, but the header has \(columns.count)")
      return
    }
    guard let date = try? CivilDate(parsing: cells[0]) else {
      collector.problems.add(line: record.line, "Date is not a date of the form YYYY-MM-DD")
      return
    }
    var reasons: [String] = []
    for (column, text) in zip(columns, cells.dropFirst()) {
      guard let column, !text.isEmpty, text != "N/A" else { continue }
      if let reason = collector.add(date, base, column, text, line: record.line) {
        reasons.append(reason)
      }
    }
    if !reasons.isEmpty {
      collector.problems.add(line: record.line, reasons.joined(separator: "; "))
    }
  }
}

// `prices import` and `rates import`: price lists and exchange rates in CSV become events.
import Base
import Ledger
import Revenue

/// Price lists with the columns product_id, country_code, currency, price and effective_from.
package enum PriceListFile {
  static let columns = ["product_id", "country_code", "currency", "price", "effective_from"]

  /// Reads a price list from a path; `-` is standard input. One wrong line rejects the whole file.
  package static func read(
    path: String, stop: StopFlag
  ) throws(DeclarationError) -> Declaration {
    try read(DeclarationFile(path: path, stop: stop))
  }

  /// Reads a price list from memory; `source` is the name that the events cite.
  package static func read(
    _ bytes: [UInt8], source: String
  ) throws(DeclarationError) -> Declaration {
    try read(DeclarationFile(source: source, bytes: bytes))
  }

  private struct Key: Hashable {
    var productID: String
    var countryCode: String?
    var effectiveFrom: String
  }

  private struct Value {
    var line: Int
    var micros: Int64
    var currency: String
  }

  private static func read(_ file: DeclarationFile) throws(DeclarationError) -> Declaration {
    var problems = ProblemList()
    var entries: [PricesDeclared.Entry] = []
    var seen: [Key: Value] = [:]
    var zeroPrices: Declaration.ZeroPrices?
    var reader = CSVReader(file.bytes)
    var columnMap: ColumnMap?
    var isHeaderSeen = false
    while true {
      do throws(CSVError) {
        guard let record = try reader.next() else { break }
        if !isHeaderSeen {
          isHeaderSeen = true
          columnMap = ColumnMap(record, names: columns, problems: &problems)
          // Without its columns, no line can be checked.
          if columnMap == nil { break }
        } else if let cells = columnMap?.cells(of: record, problems: &problems) {
          guard let (entry, micros) = entry(cells, record.line, &problems) else { continue }
          let key = Key(
            productID: entry.productID, countryCode: entry.countryCode,
            effectiveFrom: entry.effectiveFrom)
          if let earlier = seen[key] {
            if earlier.micros != micros || earlier.currency != entry.currency {
              problems.add(
                line: record.line,
                "conflicts with line \(earlier.line): another price for the same product, country and day"
              )
            }
          } else {
            seen[key] = Value(line: record.line, micros: micros, currency: entry.currency)
            entries.append(entry)
            if micros == 0 {
              zeroPrices = .init(
                count: (zeroPrices?.count ?? 0) + 1, firstLine: zeroPrices?.firstLine ?? record.line
              )
            }
          }
        }
      } catch {
        problems.add(line: error.line, error.description)
        if !isHeaderSeen { break }
      }
    }
    try problems.check(source: file.source)
    if entries.isEmpty {
      problems.add(line: 0, "the file declares no price")
      try problems.check(source: file.source)
    }
    var declaration = declaration(file, entries)
    declaration.zeroPrices = zeroPrices
    return declaration
  }

  private static func entry(
    _ cells: [String], _ line: Int, _ problems: inout ProblemList
  ) -> (PricesDeclared.Entry, micros: Int64)? {
    let (productID, country, currency, price, day) =
      (cells[0], cells[1], cells[2], cells[3], cells[4])
    var reasons: [String] = []
    if productID.isEmpty { reasons.append("product_id is empty") }
    if productID.unicodeScalars.count > DeclarationLimits.textCharacters {
      reasons.append("product_id is longer than \(DeclarationLimits.textCharacters) characters")
    }
    let knownCountry = Country.parse(country)
    if !country.isEmpty, knownCountry == nil {
      reasons.append("country_code is neither an ISO 3166-1 alpha-2 code nor XK")
    }
    let knownCurrency = Currency.parse(currency)
    if knownCurrency == nil { reasons.append("currency is not a known ISO 4217 code") }
    let micros = price.utf8.withContiguousBytes { PriceForms.micros(decimal: $0) }
    if micros == nil {
      reasons.append("price is not a decimal number such as 9.99")
    }
    if (try? CivilDate(parsing: day)) == nil {
      reasons.append("effective_from is not a date of the form YYYY-MM-DD")
    }
    guard reasons.isEmpty, let knownCurrency, let micros else {
      problems.add(line: line, reasons.joined(separator: "; "))
      return nil
    }
    let entry = PricesDeclared.Entry(
      productID: productID, countryCode: knownCountry?.description,
      currency: knownCurrency.description, price: price, effectiveFrom: day)
    return (entry, micros)
  }

  private static func declaration(
    _ file: DeclarationFile, _ entries: [PricesDeclared.Entry]
  ) -> Declaration {
    let parts = runs(of: entries) { entry in
      entry.productID.utf8.count * 2 + entry.price.utf8.count + 128
    }
    let drafts = parts.map { part in
      EventDraft(
        .pricesDeclared,
        PricesDeclared(
          source: file.source, sourceSHA256Hex: file.sha256Hex, entries: Array(part)
        ).data)
    }
    return Declaration(
      drafts: drafts, sourceSHA256Hex: file.sha256Hex, entryCount: entries.count,
      warnings: [])
  }
}

extension String.UTF8View {
  /// Passes the bytes to a closure. Copies them only if they are not contiguous.
  func withContiguousBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    withContiguousStorageIfAvailable { body(UnsafeRawBufferPointer($0)) }
      ?? Array(self).withUnsafeBytes(body)
  }
}

// MARK: - Exchange rates

/// Exchange rates in one of two layouts: the columns date, base, quote and rate, or the wide layout of the
/// European Central Bank's history (`eurofxref-hist.csv`: a date, then one column per currency, base EUR).
package enum RateListFile {
  static let columns = ["date", "base", "quote", "rate"]

  /// Reads rates from a path; `-` is standard input. One wrong line rejects the whole file.
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

/// Collects rates by day and base, and detects contradictions.
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

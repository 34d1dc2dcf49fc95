// What Apple's current files say: the rows that count, which months are complete, and exceptions (rules S3 to S6).
import Base
package import Ledger
package import Revenue

/// Apple's files at one position.
package struct SettlementBooks {
  /// A current file, read.
  struct OpenFile {
    let file: SettlementFile
    let report: AppleReport
    let month: FiscalMonth
    /// Whether its rows count. Overviews have none.
    var counts = false
  }

  /// An exception, with the position from which the file that shows it counts.
  struct Finding {
    /// The name of its type.
    let type: String
    let detail: String
    let position: Int
  }

  /// A sum by country, or of all countries, and share currency.
  private struct ShareKey: Hashable {
    let country: Symbol
    let currency: Symbol
  }

  package let files: SettlementFiles
  private(set) var open: [OpenFile] = []
  private(set) var findings: [Finding] = []
  package private(set) var months = SettlementMonths()
  /// The months whose current overview agrees with the rows that count.
  private var tied: Set<String> = []
  /// The currencies of overviews that do, by month.
  private var tiedCurrencies: [String: Set<Symbol>] = [:]
  /// The product of each vendor identifier that is mapped.
  private let products: [Symbol: Symbol]
  /// Codes with their months, of which each is one exception.
  private var unknownCurrencies: Set<String> = []
  private let symbols: StringInterner

  package init(_ database: Database, _ symbols: StringInterner) throws(ProjectionError) {
    self.symbols = symbols
    files = try SettlementFiles(database)
    products = try Self.products(database, symbols)
    for file in files.files where file.isCurrent {
      guard let report = try files.report(file, symbols),
        let month = FiscalMonth(parsing: file.identity.month)
      else {
        findings.append(
          Finding(
            type: ExceptionType.malformedEvent.word,
            detail: "\(EventType.settlementDeclared.rawValue) rows",
            position: file.lastPosition))
        continue
      }
      open.append(OpenFile(file: file, report: report, month: month))
    }
    open.sort { $0.file.lastPosition < $1.file.lastPosition }
    chooseCounting()
    for file in open { note(file) }
    for indexes in Dictionary(grouping: open.indices, by: { open[$0].month.ordinal }).values {
      compare(indexes.map { open[$0] })
    }
  }

  /// S5: of a month those of `Z1` count, else of `ZZ`, else all others.
  private mutating func chooseCounting() {
    var best: [Int: Int] = [:]
    for file in open where file.file.kind != .overview {
      let rank = Self.rank(file.file)
      best[file.month.ordinal] = min(best[file.month.ordinal] ?? rank, rank)
    }
    for index in open.indices where open[index].file.kind != .overview {
      let month = open[index].month.ordinal
      open[index].counts = best[month] == Self.rank(open[index].file)
      months.reported.insert(FiscalMonthOrdinal(month))
      if (best[month] ?? 2) < 2 { months.complete.insert(FiscalMonthOrdinal(month)) }
    }
  }

  private static func rank(_ file: SettlementFile) -> Int {
    switch file.identity.region {
    case "Z1": 0
    case "ZZ": 1
    default: 2
    }
  }

  /// S3, S4, S6: the exceptions within a file.
  private mutating func note(_ file: OpenFile) {
    let (name, position) = (file.file.name, file.file.lastPosition)
    let month = file.file.identity.month
    for finding in file.report.exceptions {
      let detail =
        switch finding {
        case .signDisagrees(let row), .shareDisagrees(let row), .settledOutside(let row):
          "\(name):\(row)"
        case .totalsUnread: name
        case .currencyUnknown(let code): "\(symbols.string(code)) \(month)"
        case .owedDisagrees(let currency, let micros):
          "\(month) \(symbols.string(currency)) \(text(Int128(micros), currency))"
        }
      if case .currencyUnknown = finding, !unknownCurrencies.insert(detail).inserted { continue }
      findings.append(Finding(type: finding.name, detail: detail, position: position))
    }
  }

  /// S5, S6: compares a month's files with the rows that count.
  private mutating func compare(_ files: [OpenFile]) {
    var byCountry: [ShareKey: SettlementSum] = [:]
    var byCurrency: [ShareKey: SettlementSum] = [:]
    for file in files where file.counts {
      Self.add(file.report, to: &byCountry, hasCountry: true)
      Self.add(file.report, to: &byCurrency, hasCountry: false)
    }
    for file in files where !file.counts {
      if file.file.kind == .overview {
        tie(file, byCurrency)
      } else {
        compare(file, with: byCountry)
      }
    }
  }

  private static func add(
    _ report: AppleReport, to sums: inout [ShareKey: SettlementSum], hasCountry: Bool
  ) {
    for row in report.rows {
      let key = ShareKey(country: hasCountry ? row.country : .none, currency: row.shareCurrency)
      sums[key, default: SettlementSum()].add(Int128(row.units), Int128(row.shareMicros))
    }
  }

  private mutating func compare(_ file: OpenFile, with counting: [ShareKey: SettlementSum]) {
    var own: [ShareKey: SettlementSum] = [:]
    Self.add(file.report, to: &own, hasCountry: true)
    for (key, sum) in own {
      let other = counting[key] ?? SettlementSum()
      if sum == other { continue }
      let detail =
        "\(file.file.identity.month) \(file.file.identity.region ?? "") \(symbols.string(key.country)) "
        + "\(symbols.string(key.currency)) units \(sum.units) \(other.units) share "
        + "\(text(sum.micros, key.currency)) \(text(other.micros, key.currency))"
      findings.append(
        Finding(type: "reports_disagree", detail: detail, position: file.file.lastPosition))
    }
  }

  private mutating func tie(_ overview: OpenFile, _ shares: [ShareKey: SettlementSum]) {
    var earned: [ShareKey: Int128] = shares.mapValues { _ in 0 }
    for row in overview.report.lists.flatMap(\.rows) {
      earned[ShareKey(country: .none, currency: row.currency), default: 0] += Int128(row.earned)
    }
    var isTied = true
    for (key, micros) in earned {
      let share = shares[key]?.micros ?? 0
      if micros == share {
        tiedCurrencies[overview.file.identity.month, default: []].insert(key.currency)
        continue
      }
      isTied = false
      let detail =
        "\(overview.file.identity.month) \(symbols.string(key.currency)) "
        + "\(text(micros, key.currency)) \(text(share, key.currency))"
      findings.append(
        Finding(type: "earned_disagrees", detail: detail, position: overview.file.lastPosition))
    }
    if isTied {
      tied.insert(overview.file.identity.month)
      months.complete.insert(FiscalMonthOrdinal(overview.month.ordinal))
    }
  }

  /// The number of exceptions of each type, by name.
  var exceptionCounts: [(type: String, count: Int)] {
    Dictionary(grouping: findings, by: \.type).map { ($0.key, $0.value.count) }
      .sorted { $0.0 < $1.0 }
  }

  private func text(_ micros: Int128, _ currency: Symbol) -> String {
    Amount.text(micros: micros, currency: .statedBy(symbols.text(currency)))
  }
}

extension Currency {
  /// S3: the currency with a code; if the code is unknown, a currency that has 2 minor digits, as amounts then have.
  static func statedBy(_ code: Text) -> Currency? {
    if code.isEmpty { return nil }
    return parse(UnsafeRawBufferPointer(code)) ?? parse("EUR")
  }
}

// MARK: - What counting rows and overviews say

extension SettlementBooks {
  /// A row of an overview.
  struct Payment {
    let row: AppleReport.PaymentRow
    /// Whether its list has a payment and it has proceeds.
    let isPaid: Bool

    /// The rate that follows from the proceeds; nil if it was not paid, or nothing was owed.
    var effectiveRate: String? {
      guard isPaid, let proceeds = row.proceeds, row.owed != 0 else { return nil }
      return PaymentAllocation.effectiveRate(proceeds: proceeds, owed: row.owed)
    }
  }

  /// A current overview.
  struct Overview {
    let month: FiscalMonth
    let payments: [Payment]
    /// Those in which it agrees with the reports that count.
    let tiedCurrencies: Set<Symbol>
  }

  /// The current overviews, by month.
  var overviews: [Overview] {
    open.filter { $0.file.kind == .overview }.sorted { $0.month.ordinal < $1.month.ordinal }
      .map { file in
        let payments = file.report.lists.flatMap { list in
          list.rows.map { Payment(row: $0, isPaid: list.payment != nil && $0.proceeds != nil) }
        }
        return Overview(
          month: file.month, payments: payments,
          tiedCurrencies: tiedCurrencies[file.file.identity.month] ?? [])
      }
  }

  /// Calls `body` with each row that counts, of one month or of all.
  func forEachCountingRow(
    of month: FiscalMonth? = nil, _ body: (AppleReport.Row, OpenFile) -> Void
  ) {
    for file in open where file.counts && (month == nil || file.month == month) {
      for row in file.report.rows { body(row, file) }
    }
  }

  /// S16: the product of a row: its vendor identifier, or what that is mapped to.
  func product(of row: AppleReport.Row) -> Symbol { products[row.product] ?? row.product }

  /// S17: who sold a row's units; nil if that is not known.
  func seller(of row: AppleReport.Row, in file: OpenFile) -> Seller? {
    let country = symbols.text(row.country)
    return row.transactionDay == AppleReport.Row.noDay
      ? Seller(country: country, month: file.month, region: file.file.identity.region)
      : Seller(country: country, month: file.month, day: Int(row.transactionDay))
  }

  /// The latest mapping of each vendor identifier.
  fileprivate static func products(
    _ database: Database, _ symbols: StringInterner
  ) throws(ProjectionError) -> [Symbol: Symbol] {
    var result: [Symbol: Symbol] = [:]
    for mapping in try mappings(database) {
      result[symbols.symbol(mapping.sku)] = mapping.productID.map { symbols.symbol($0) }
    }
    return result
  }

  /// The latest mapping of each vendor identifier, by identifier; those that were withdrawn have no product.
  package static func mappings(
    _ database: Database
  ) throws(ProjectionError) -> [(sku: String, productID: String?, position: Position)] {
    var latest: [String: (String?, Position)] = [:]
    do throws(DatabaseError) {
      let rows = try database.prepare(
        "SELECT sku, product_id, position FROM settlement_maps ORDER BY position")
      while try rows.step() {
        latest[rows.text(0)] = (rows.optionalText(1), try rows.ordinal(2))
      }
    } catch { throw .database(error) }
    return latest.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      .map { ($0.key, $0.value.0, $0.value.1) }
  }
}

// MARK: - What `settlement list` shows

extension SettlementBooks {
  /// A declared file, as it stands.
  package struct Listing {
    package enum State: String { case counts, compared, superseded, unfinished, malformed }

    package let file: SettlementFile
    package let state: State
    /// Nil unless it is current.
    package let rowCount: Int?
    /// Whether the month's current overview agrees with the rows that count; nil without an overview.
    package let isTied: Bool?
    package let isComplete: Bool
  }

  /// All files, by month, kind and region, the newest of each last.
  package var listings: [Listing] {
    let overviews = Set(open.filter { $0.file.kind == .overview }.map(\.file.identity.month))
    let complete = Set(
      open.filter { months.complete.contains(FiscalMonthOrdinal($0.month.ordinal)) }
        .map(\.file.identity.month))
    let listings = files.files.map { file in
      let opened = open.first { $0.file.lastPosition == file.lastPosition }
      let month = file.identity.month
      return Listing(
        file: file, state: state(file, opened),
        rowCount: opened.map { opened in
          file.kind == .overview
            ? opened.report.lists.map(\.rows.count).reduce(0, +) : opened.report.rows.count
        },
        isTied: overviews.contains(month) ? tied.contains(month) : nil,
        isComplete: complete.contains(month))
    }
    func order(_ listing: Listing) -> (String, Int, String, Position) {
      let file = listing.file
      return (
        file.identity.month, file.kind == .overview ? 1 : 0, file.identity.region ?? "",
        file.lastPosition
      )
    }
    return listings.sorted { order($0) < order($1) }
  }

  private func state(_ file: SettlementFile, _ opened: OpenFile?) -> Listing.State {
    if !file.isWhole { return .unfinished }
    guard file.isCurrent else { return .superseded }
    guard let opened else { return .malformed }
    return opened.counts || file.kind == .overview ? .counts : .compared
  }
}

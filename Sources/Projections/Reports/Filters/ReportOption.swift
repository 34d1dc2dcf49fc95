// The options of reports: which reports have them, and their values as JSON, in manifests and from command lines.
import AppStore
package import Base
import Revenue

/// An option of reports. Raw values are the members of JSON reports and manifests, cases are in their order.
package enum ReportOption: String, CaseIterable, Sendable {
  case by, period, refunds, at, timezone, from, to, environment
  case includePending = "include_pending"
  case reportingCurrency = "in"
  case ratesMaxAge = "rates_max_age"
  case app, product, country, user, kind, month
  case settlementClass = "class"
  case basis
  case paidOn = "paid_on"
  case accounts, check
  case sort, top, amounts, columns, total
  case withSettlement = "with_settlement"
  case csvDelimiter = "csv_delimiter"
  case csvDecimal = "csv_decimal"
  case csvDates = "csv_dates"

  /// Its name on command lines.
  package var name: String { String(rawValue.map { $0 == "_" ? "-" : $0 }) }

  /// The reports on which it has an effect.
  package var reports: Set<ReportKind> {
    switch self {
    case .by: [.revenue, .subscriptions, .payout]
    case .at: [.subscriptions]
    case .period: [.revenue]
    case .refunds: [.revenue, .journal, .exceptions]
    case .from, .to, .app, .user, .kind: [.revenue, .journal, .sales, .exceptions]
    case .product, .country:
      [.revenue, .journal, .sales, .exceptions, .reconcile, .proceeds]
    case .month: [.reconcile, .proceeds, .payout]
    case .settlementClass: [.reconcile]
    case .basis, .paidOn, .accounts, .check: [.entries]
    case .includePending, .sort, .top: [.revenue, .journal, .sales, .exceptions, .users]
    case .reportingCurrency, .ratesMaxAge:
      [.revenue, .journal, .exceptions, .users, .subscriptions]
    case .amounts: [.revenue, .journal, .sales, .users, .subscriptions]
    case .total: [.revenue, .journal]
    case .withSettlement: [.journal, .sales]
    case .timezone:
      Set(ReportKind.allCases.filter { !$0.isOfSettlement || $0 == .entries })
    case .environment: Set(ReportKind.allCases.filter { !$0.isOfSettlement })
    case .columns, .csvDelimiter, .csvDecimal, .csvDates: Set(ReportKind.allCases)
    }
  }

  /// Whether it needs all rows of a report at once, or changes how they look.
  package var isOfWholeReports: Bool {
    switch self {
    case .sort, .top, .amounts, .columns, .total, .withSettlement, .csvDelimiter, .csvDecimal,
      .csvDates:
      true
    default: false
    }
  }

  /// The value that a text on a command line stands for; nil if the text is not valid.
  package func value(of text: String, for kind: ReportKind) -> JSONValue? {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    switch self {
    case .includePending, .total, .withSettlement, .check: return .boolean(true)
    case .ratesMaxAge, .top:
      let isNumber = !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
      return isNumber ? .number(text) : nil
    case .environment:
      if text == "all" { return .string(text) }
      if parts.contains(where: { ["", "all"].contains($0.lowercased()) }) { return nil }
      let names = parts.map(EnvironmentName.meant)
      return Set(names).count == names.count ? .texts(names) : nil
    case .by where kind.hasMoment: return .string(text)
    case .by, .app, .product, .kind, .settlementClass, .paidOn, .accounts, .columns:
      return .texts(parts)
    case .country, .month: return .texts(parts.map { $0.uppercased() })
    case .csvDelimiter where text == "tab": return .string("\t")
    default: return .string(text)
    }
  }

  /// The text on a command line that stands for a value.
  package func text(of value: JSONValue) -> String {
    switch value {
    case .array(let values): values.map { text(of: $0) }.joined(separator: ",")
    case .string("\t") where self == .csvDelimiter: "tab"
    case .string(let text), .number(let text): text
    default: ""
    }
  }

  /// Whether reports of a kind read it.
  fileprivate func isRead(by kind: ReportKind) -> Bool {
    switch self {
    case .by, .period, .refunds, .at, .from, .to, .timezone, .environment, .month, .settlementClass,
      .basis, .paidOn, .accounts, .check:
      reports.contains(kind)
    case .includePending: !kind.isOfSettlement
    default: true
    }
  }

  fileprivate var fault: ProjectionError {
    .usage("the filter '\(rawValue)' is missing or invalid")
  }
}

extension ReportRequest {
  /// What `--by` splits subscriptions by.
  package static let byMonth = "month"

  /// The options that affect this report, with their values. Those that came later are left out where they have their
  /// defaults, so that earlier reports stay byte for byte the same.
  package var options: [(option: ReportOption, value: JSONValue)] {
    var order = ReportOption.allCases
    if !kind.hasDays, !kind.hasMoment {
      // Such reports were later to have a zone.
      order.removeAll { $0 == .timezone }
      order.insert(.timezone, at: order.firstIndex(of: .app) ?? order.endIndex)
    }
    return order.compactMap { option in value(of: option).map { (option, $0) } }
  }

  /// Writes the options as JSON.
  package func write(to writer: inout JSONWriter) {
    writer.beginObject()
    for (option, value) in options {
      writer.key(option.rawValue)
      value.write(to: &writer)
    }
    writer.endObject()
  }

  private func value(of option: ReportOption) -> JSONValue? {
    guard option.isRead(by: kind) else { return nil }
    let (csv, standard) = (layout.csv, ReportLayout.CSV())
    switch option {
    case .by where kind.hasMoment: return isByMonth ? .string(Self.byMonth) : .null
    case .by where kind == .payout: return .refinement(payoutGroups.map(\.rawValue))
    case .by: return .texts(dimensions.map(\.rawValue))
    case .period: return .string(granularity.rawValue)
    case .refunds: return .string(refunds.rawValue)
    case .at: return momentMs.map { .string(Timestamp.text(ms: $0)) } ?? .null
    case .timezone:
      return kind.hasDays || kind.hasMoment || zone.name != "UTC" ? .string(zone.name) : nil
    case .from: return from.map { .string($0.description) } ?? .null
    case .to: return to.map { .string($0.description) } ?? .null
    case .environment: return environments.map(JSONValue.texts) ?? .string("all")
    case .includePending: return .boolean(includesPending)
    case .reportingCurrency: return reportingCurrency.map { .string($0.description) }
    case .ratesMaxAge:
      return reportingCurrency == nil ? nil : ratesAgeMaxDays.map { .number("\($0)") }
    case .app: return .refinement(filter.apps)
    case .product: return .refinement(filter.products?.map(\.pattern))
    case .country: return .refinement(filter.countries)
    case .user: return filter.user.map(JSONValue.string)
    case .kind: return .refinement(filter.kinds?.map { "\($0.word)" })
    case .month: return .refinement(filter.months)
    case .settlementClass: return .refinement(filter.classes?.map { "\($0.word)" })
    case .basis: return .string(basis.rawValue)
    case .paidOn:
      return .refinement(paidOn.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" })
    case .accounts: return .refinement(accounts.texts)
    case .check: return isCheck ? .boolean(true) : nil
    case .sort: return sort.map { .string($0.text) }
    case .top: return top.map { .number("\($0)") }
    case .amounts: return amounts == .exact ? nil : .string(amounts.rawValue)
    case .columns: return .refinement(layout.columns)
    case .total: return layout.hasTotal ? .boolean(true) : nil
    case .withSettlement: return hasSettlement ? .boolean(true) : nil
    case .csvDelimiter: return csv.delimiter == standard.delimiter ? nil : .sign(csv.delimiter)
    case .csvDecimal: return csv.decimal == standard.decimal ? nil : .sign(csv.decimal)
    case .csvDates: return csv.dates == standard.dates ? nil : .string(csv.dates.rawValue)
    }
  }

  /// Reads the options that `write(to:)` has written for this kind of report.
  ///
  /// Throws `usage` if a member is missing or invalid, or if the system does not know the time zone.
  package init(_ kind: ReportKind, filters: JSONValue) throws(ProjectionError) {
    self.init(kind)
    let standard = self
    // Manifests from before the limit existed lack it.
    ratesAgeMaxDays = nil
    // Version 1 of the exceptions report had no day filters.
    let isOfAllDays = kind == .exceptions && filters["timezone"] == nil
    for option in ReportOption.allCases where option.isRead(by: kind) {
      if isOfAllDays, [.refunds, .timezone, .from, .to].contains(option) { continue }
      if let value = filters[option.rawValue] {
        try set(option, to: value)
      } else if standard.value(of: option) != nil {
        throw option.fault
      }
    }
    guard layout.csv.delimiter != layout.csv.decimal else { throw ReportOption.csvDecimal.fault }
  }

  /// Sets an option; throws `usage` if the value is invalid.
  package mutating func set(
    _ option: ReportOption, to value: JSONValue
  ) throws(ProjectionError) {
    let value = OptionValue(option: option, json: value)
    switch option {
    case .by where kind.hasMoment:
      isByMonth = try value.orNull { $0 == Self.byMonth ? true : nil } ?? false
    case .by where kind == .payout:
      payoutGroups = try value.names(PayoutGroup.init)
      guard Set(payoutGroups).count == payoutGroups.count else { throw option.fault }
    case .by:
      dimensions = try value.list(ReportDimension.init)
      guard Set(dimensions).count == dimensions.count else { throw option.fault }
    case .period: granularity = try value.read(Revenue.Period.Granularity.init)
    case .refunds: refunds = try value.read(RefundDate.init)
    case .at: momentMs = try value.orNull { try? Timestamp.parse($0) }
    case .timezone:
      let name = try value.read { $0 }
      do throws(TimeZoneError) { zone = try TimeZoneTable(name) } catch { throw .usage("\(error)") }
    case .from: from = try value.orNull { try? CivilDate(parsing: $0) }
    case .to: to = try value.orNull { try? CivilDate(parsing: $0) }
    case .environment:
      environments = value.json == .string("all") ? nil : try value.list { $0 }
    case .includePending: includesPending = try value.flag()
    case .reportingCurrency: reportingCurrency = try value.read(Currency.parse)
    case .ratesMaxAge: ratesAgeMaxDays = try value.number(in: 0...Self.ratesAgeMaxDaysLimit)
    case .app: filter.apps = try value.names { $0 }
    case .product: filter.products = try value.names(ReportFilter.ProductPattern.init)
    case .country: filter.countries = try value.names { $0 }
    case .user: filter.user = try value.read { $0 }
    case .kind: filter.kinds = try value.names(SaleKind.init(word:))
    case .month:
      filter.months = try value.names { FiscalMonth(parsing: $0).map(\.name) }
    case .settlementClass: filter.classes = try value.names(SettlementClass.init(word:))
    case .basis: basis = try value.read(EntryBasis.init)
    case .paidOn:
      let days = try value.names(Self.paymentDay)
      paidOn = Dictionary(days, uniquingKeysWith: { first, _ in first })
      guard paidOn.count == days.count else { throw option.fault }
    case .accounts:
      accounts = EntryAccounts()
      for text in try value.names({ $0 }) {
        do throws(EntryAccountsError) { try accounts.replace(text) } catch { throw option.fault }
      }
    case .check: isCheck = try value.flag()
    case .sort: sort = try value.read(ReportSort.init)
    case .top: top = try value.number(in: 1...Int.max)
    case .amounts: amounts = try value.read(ReportAmounts.init)
    case .columns: layout.columns = try value.names { $0 }
    case .total: layout.hasTotal = try value.flag()
    case .withSettlement: hasSettlement = try value.flag()
    case .csvDelimiter: layout.csv.delimiter = try value.sign(ReportLayout.CSV.delimiters)
    case .csvDecimal: layout.csv.decimal = try value.sign(ReportLayout.CSV.decimals)
    case .csvDates: layout.csv.dates = try value.read(ReportLayout.CSV.Dates.init)
    }
  }
}

extension ReportRequest {
  /// Reads `FY2026-P01=2025-12-04`.
  private static func paymentDay(_ text: String) -> (month: String, day: CivilDate)? {
    let parts = text.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, let month = FiscalMonth(parsing: parts[0]),
      let day = try? CivilDate(parsing: parts[1])
    else { return nil }
    return (month.name, day)
  }
}

extension JSONValue {
  fileprivate static func texts(_ texts: [String]) -> JSONValue { .array(texts.map(Self.string)) }

  /// Nil if nothing is chosen.
  fileprivate static func refinement(_ texts: [String]?) -> JSONValue? {
    texts.flatMap { $0.isEmpty ? nil : .texts($0) }
  }

  fileprivate static func sign(_ byte: UInt8) -> JSONValue { .string(String(UnicodeScalar(byte))) }
}

/// The value of an option, read as what the option needs.
private struct OptionValue {
  let option: ReportOption
  let json: JSONValue

  /// A text that is not empty.
  func read<Value>(_ read: (String) -> Value?) throws(ProjectionError) -> Value {
    guard let text = json.stringValue, !text.isEmpty, let value = read(text)
    else { throw option.fault }
    return value
  }

  func orNull<Value>(_ read: (String) -> Value?) throws(ProjectionError) -> Value? {
    json == .null ? nil : try self.read(read)
  }

  func list<Value>(_ read: (String) -> Value?) throws(ProjectionError) -> [Value] {
    guard let values = json.arrayValue else { throw option.fault }
    return try values.map { value throws(ProjectionError) in
      guard let text = value.stringValue, let value = read(text) else { throw option.fault }
      return value
    }
  }

  /// A list that is not empty.
  func names<Value>(_ read: (String) -> Value?) throws(ProjectionError) -> [Value] {
    let values = try list(read)
    guard !values.isEmpty else { throw option.fault }
    return values
  }

  func number(in range: ClosedRange<Int>) throws(ProjectionError) -> Int {
    guard let number = json.integerValue.map(Int.init), range.contains(number)
    else { throw option.fault }
    return number
  }

  func flag() throws(ProjectionError) -> Bool {
    guard case .boolean(let flag) = json else { throw option.fault }
    return flag
  }

  /// One ASCII character of those that are allowed.
  func sign(_ allowed: [UInt8]) throws(ProjectionError) -> UInt8 {
    try read { text in
      text.utf8.count == 1 ? text.utf8.first.flatMap { allowed.contains($0) ? $0 : nil } : nil
    }
  }
}

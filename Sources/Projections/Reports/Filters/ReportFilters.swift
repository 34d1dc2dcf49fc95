// A report's filters as JSON: written to reports and manifests, read from manifests.
import Base
package import JSON
import Revenue

extension ReportRequest {
  /// What `--by` splits subscriptions by.
  package static let byMonth = "month"

  /// Writes the filters that affect this kind of report.
  package func write(to writer: inout JSONWriter) {
    writer.beginObject()
    if kind == .revenue {
      writer.key("by")
      writer.beginArray()
      for dimension in dimensions { writer.string(dimension.rawValue) }
      writer.endArray()
      writer.key("period")
      writer.string(granularity.rawValue)
    }
    if kind.hasRefundDate {
      writer.key("refunds")
      writer.string(refunds.rawValue)
    }
    if kind.hasDays {
      writer.key("timezone")
      writer.string(zone.name)
      for (key, day) in [("from", from), ("to", to)] {
        writer.key(key)
        if let day { writer.string(day.description) } else { writer.null() }
      }
    }
    if kind.hasMoment {
      writer.key("by")
      if isByMonth { writer.string(Self.byMonth) } else { writer.null() }
      writer.key("at")
      if let momentMs { writer.string(Timestamp.text(ms: momentMs)) } else { writer.null() }
      writer.key("timezone")
      writer.string(zone.name)
    }
    writer.key("environment")
    if let environments {
      writer.beginArray()
      for name in environments { writer.string(name) }
      writer.endArray()
    } else {
      writer.string("all")
    }
    writer.key("include_pending")
    writer.boolean(includesPending)
    if let reportingCurrency {
      writer.key("in")
      writer.string(reportingCurrency.description)
      if let ratesAgeMaxDays {
        writer.key("rates_max_age")
        writer.integer(ratesAgeMaxDays)
      }
    }
    writeRefinements(to: &writer)
    writer.endObject()
  }
}

extension ReportRequest {
  /// Reads the filters that `write(to:)` has written for this kind of report.
  ///
  /// Throws `usage` if a member is missing or invalid, or if the system does not know the time zone.
  package init(_ kind: ReportKind, filters: JSONValue) throws(ProjectionError) {
    self.init(kind)
    func fault(_ name: String) -> ProjectionError {
      .usage("the filter '\(name)' is missing or invalid")
    }
    func word<Value: RawRepresentable<String>>(
      _ name: String, _ type: Value.Type
    ) throws(ProjectionError) -> Value {
      guard let value = filters[name]?.stringValue.flatMap(Value.init(rawValue:))
      else { throw fault(name) }
      return value
    }
    if kind == .revenue {
      guard let names = filters["by"]?.arrayValue else { throw fault("by") }
      dimensions = names.compactMap { $0.stringValue.flatMap(ReportDimension.init(rawValue:)) }
      guard dimensions.count == names.count, Set(dimensions).count == names.count
      else { throw fault("by") }
      granularity = try word("period", Period.Granularity.self)
    }
    // Version 1 of the exceptions report had no day filters.
    let isOfAllDays = kind == .exceptions && filters["timezone"] == nil
    if kind.hasRefundDate, !isOfAllDays { refunds = try word("refunds", RefundDate.self) }
    if kind.hasDays, !isOfAllDays {
      zone = try Self.zone(filters["timezone"], fault("timezone"))
      from = try Self.day(filters["from"], fault("from"))
      to = try Self.day(filters["to"], fault("to"))
    }
    if kind.hasMoment { try readMoment(filters, fault) }
    switch filters["environment"] {
    case .string("all"): environments = nil
    case .array(let names):
      environments = names.compactMap(\.stringValue)
      if environments?.count != names.count { throw fault("environment") }
    default: throw fault("environment")
    }
    guard case .boolean(let pending) = filters["include_pending"]
    else { throw fault("include_pending") }
    includesPending = pending
    if let code = filters["in"] {
      guard let currency = code.stringValue.flatMap(Currency.parse) else { throw fault("in") }
      reportingCurrency = currency
    }
    ratesAgeMaxDays = try Self.ageMaxDays(filters["rates_max_age"], fault("rates_max_age"))
    try readRefinements(filters, fault)
  }

  private mutating func readMoment(
    _ filters: JSONValue, _ fault: (String) -> ProjectionError
  ) throws(ProjectionError) {
    switch filters["by"] {
    case .null: isByMonth = false
    case .string(Self.byMonth): isByMonth = true
    default: throw fault("by")
    }
    switch filters["at"] {
    case .null: momentMs = nil
    case .string(let text):
      guard let moment = try? Timestamp.parse(text) else { throw fault("at") }
      momentMs = moment
    default: throw fault("at")
    }
    zone = try Self.zone(filters["timezone"], fault("timezone"))
  }

  static func zone(
    _ value: JSONValue?, _ fault: ProjectionError
  ) throws(ProjectionError) -> TimeZoneTable {
    guard let name = value?.stringValue else { throw fault }
    do throws(TimeZoneError) { return try TimeZoneTable(name) } catch { throw .usage("\(error)") }
  }

  /// Reads the age limit for rates. Manifests from before the limit existed lack this member.
  private static func ageMaxDays(
    _ value: JSONValue?, _ fault: ProjectionError
  ) throws(ProjectionError) -> Int? {
    guard let value else { return nil }
    guard let days = value.integerValue.map(Int.init), (0...ratesAgeMaxDaysLimit).contains(days)
    else { throw fault }
    return days
  }

  private static func day(
    _ value: JSONValue?, _ fault: ProjectionError
  ) throws(ProjectionError) -> CivilDate? {
    switch value {
    case .null: return nil
    case .string(let text):
      guard let day = try? CivilDate(parsing: text) else { throw fault }
      return day
    default: throw fault
    }
  }
}

// What a report is asked for (rule R9).
import AppStore
package import Base
package import Revenue

/// The reports.
package enum ReportKind: String, CaseIterable, Sendable {
  case revenue, journal, sales, exceptions, receipts, users

  /// Raised when the same events and filters would give other bytes.
  package var version: Int {
    switch self {
    case .revenue, .journal, .exceptions: 4
    case .sales, .receipts: 3
    case .users: 2
    }
  }

  /// Whether it can be asked for certain days.
  package var hasDays: Bool { self != .receipts && self != .users }

  /// Whether it can be asked for which date Returns and Reversals count by.
  package var hasRefundDate: Bool { self == .revenue || self == .journal || self == .exceptions }
}

/// What revenue may be split by.
package enum ReportDimension: String, CaseIterable, Sendable {
  case period, app, product, country, environment, basis, trust

  /// The column that bears it.
  var column: StaticString {
    switch self {
    case .period: "period"
    case .app: "bundle_id"
    case .product: "product_id"
    case .country: "country_code"
    case .environment: "environment"
    case .basis: "price_basis"
    case .trust: "trust"
    }
  }
}

/// The date on which a Return or Reversal counts.
package enum RefundDate: String, CaseIterable, Sendable {
  /// Its own: a closed period never changes by it.
  case eventDate = "event-date"
  /// The sale's: it restates the sale's period.
  case saleDate = "sale-date"
}

/// A report and how it is wanted.
package struct ReportRequest: Sendable {
  package var kind: ReportKind
  /// What revenue is split by, in this order.
  package var dimensions: [ReportDimension] = [.country]
  package var granularity: Period.Granularity = .month
  package var zone: TimeZoneTable = .utc
  package var refunds: RefundDate = .eventDate
  /// The first and the last day in the zone, both inclusive, on the date that decides the period.
  package var from: CivilDate?
  package var to: CivilDate?
  /// Names of environments; nil is all.
  package var environments: [String]? = [EnvironmentName.production.description]
  /// Whether sales are shown that the App Store has not confirmed.
  package var includesPending = false
  /// Rule R10.
  package var reportingCurrency: Currency?
  /// R10: by how many days a rate may be older than the line that it converts; nil, in manifests of the time before
  /// there was a limit, sets none.
  package var ratesAgeMaxDays: Int? = Self.ratesAgeMaxDaysStandard
  /// The standard fits rates that are declared once a month.
  package static let ratesAgeMaxDaysStandard = 35
  /// More than all the days that dates can have.
  package static let ratesAgeMaxDaysLimit = 9_999_999

  package init(_ kind: ReportKind) { self.kind = kind }
}

/// What a figure is not (rule R11). Every report that has room for this text shows it.
package let reportNote =
  "Operational gross at customer prices as clients reported them, not settlement."

// Rule R13 by month: active, new and ended subscriptions, and the monthly revenue.
import Base

/// A period of a subscription: one sale with a period end. Times are epoch milliseconds.
package struct SubscriptionPeriod {
  package var startMs: Int64
  /// When the period ends, or its Return if the sale is cancelled, whichever is earlier.
  package var endMs: Int64
  /// From the start to the period end, regardless of returns.
  package var lengthMs: Int64
  package var kind: SaleKind
  /// Whether the App Store signed it as a renewal.
  package var isRenewal: Bool
  /// The amount of the Sale line; nil if the sale has no price.
  package var price: (micros: Int64, currency: Currency)?
  /// The same in the currency in which months are summed.
  package var charged: (micros: Int64, currency: Currency)?

  /// - Parameter charged: nil is the price.
  package init(
    startMs: Int64, endMs: Int64, lengthMs: Int64, kind: SaleKind, isRenewal: Bool = false,
    price: (micros: Int64, currency: Currency)?,
    charged: (micros: Int64, currency: Currency)? = nil
  ) {
    (self.startMs, self.endMs, self.lengthMs) = (startMs, endMs, lengthMs)
    (self.kind, self.isRenewal, self.price) = (kind, isRenewal, price)
    self.charged = charged ?? price
  }

  /// The amount of a month in micros, rounded half to even: for a period of 27 days or more the amount ÷ its months,
  /// for a shorter one the amount × 30.4375 ÷ its days. Nil if nothing was to be paid or there is no price.
  package var monthly: (micros: Int128, currency: Currency)? {
    guard let price, kind.isPaid else { return nil }
    let days = max(1, floorDivide(lengthMs + Self.dayMs / 2, Self.dayMs))
    if days >= Self.monthDaysMin {
      // 30.4375 is 487 ÷ 16.
      let months = max(1, floorDivide(32 * days + 487, 974))
      return (Self.rounded(Int128(price.micros), over: Int128(months)), price.currency)
    }
    return (Self.rounded(Int128(price.micros) * 487, over: Int128(16 * days)), price.currency)
  }

  private static let dayMs: Int64 = 86_400_000
  /// The least length, in days, of a period that consists of whole months.
  private static let monthDaysMin: Int64 = 27

  /// The quotient of an amount that is not negative, rounded half to even.
  private static func rounded(_ amount: Int128, over divisor: Int128) -> Int128 {
    var (quotient, rest) = amount.quotientAndRemainder(dividingBy: divisor)
    if 2 * rest > divisor || (2 * rest == divisor && quotient % 2 == 1) { quotient += 1 }
    return quotient
  }
}

/// What happened to one app's subscriptions in one month.
package struct SubscriptionMonth: Equatable {
  package var active = 0
  package var new = 0
  package var renewed = 0
  package var converted = 0
  package var recovered = 0
  package var churned = 0
  /// Micros by currency.
  package var gross: [Currency: Int128] = [:]
  package var monthly: [Currency: Int128] = [:]
}

/// Counts the subscriptions of one app, month by month.
package struct SubscriptionMonths {
  /// The first instants of the months, ascending; the last month is that of the report's moment.
  private let startsMs: [Int64]
  /// What happens at or after this moment has not happened yet.
  private let momentMs: Int64
  package private(set) var months: [SubscriptionMonth]
  /// The month of the first period; nil if none has begun.
  package private(set) var first: Int?

  /// - Parameters:
  ///   - startsMs: the first instants of months without gaps, of which the first period's is one.
  ///   - momentMs: in the last of these months.
  package init(startsMs: [Int64], momentMs: Int64) {
    (self.startsMs, self.momentMs) = (startsMs, momentMs)
    months = Array(repeating: SubscriptionMonth(), count: startsMs.count)
  }

  /// Adds the periods of one subscription, in the order of their sales.
  package mutating func add(_ periods: [SubscriptionPeriod]) {
    var coveredMs = Int64.min
    var segmentStartMs = Int64.min
    for (index, period) in periods.enumerated() {
      if period.startMs < momentMs {
        let month = month(of: period.startMs)
        first = min(first ?? month, month)
        if index == 0, !period.isRenewal {
          months[month].new += 1
        } else if index == 0 || period.startMs > coveredMs {
          months[month].recovered += 1
        } else if periods[index - 1].kind == .trial, period.kind != .trial {
          months[month].converted += 1
        } else {
          months[month].renewed += 1
        }
        if let charged = period.charged {
          months[month].gross[charged.currency, default: 0] += Int128(charged.micros)
        }
      }
      if index == 0 || period.startMs > coveredMs { segmentStartMs = period.startMs }
      coveredMs = max(coveredMs, Self.endMs(of: index, periods))
      let isContinued = index + 1 < periods.count && periods[index + 1].startMs <= coveredMs
      if isContinued { continue }
      if coveredMs < momentMs { months[month(of: coveredMs)].churned += 1 }
      countActive(from: segmentStartMs, to: coveredMs, periods, through: index)
    }
  }

  /// The end of a period's coverage: a later start of the next one cuts it. It never ends before it starts.
  private static func endMs(of index: Int, _ periods: [SubscriptionPeriod]) -> Int64 {
    let period = periods[index]
    var endMs = period.endMs
    if index + 1 < periods.count, periods[index + 1].startMs > period.startMs {
      endMs = min(endMs, periods[index + 1].startMs)
    }
    return max(endMs, period.startMs)
  }

  /// Counts a subscription in each month at whose last instant it is covered, from a start to the end that no later
  /// period continues.
  private mutating func countActive(
    from startMs: Int64, to endMs: Int64, _ periods: [SubscriptionPeriod],
    through lastIndex: Int
  ) {
    guard startMs < momentMs, startMs < endMs else { return }
    var index = lastIndex
    let last = endMs < momentMs ? month(of: endMs) : months.count - 1
    for month in (month(of: startMs)...last).reversed() {
      let instantMs = instantMs(of: month)
      guard startMs <= instantMs, instantMs < endMs else { continue }
      months[month].active += 1
      // The latest period that has begun covers it; of several with one start, a later one may have ended.
      while periods[index].startMs > instantMs { index -= 1 }
      var covering = index
      while covering > 0, Self.endMs(of: covering, periods) <= instantMs { covering -= 1 }
      if let monthly = periods[covering].monthly {
        months[month].monthly[monthly.currency, default: 0] += monthly.micros
      }
    }
  }

  /// The last instant of a month that is not in the future.
  private func instantMs(of month: Int) -> Int64 {
    month + 1 < startsMs.count ? startsMs[month + 1] - 1 : momentMs - 1
  }

  /// The index of the month that contains an instant before the report's moment.
  private func month(of instantMs: Int64) -> Int {
    var (low, high) = (0, startsMs.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if startsMs[middle] <= instantMs { low = middle } else { high = middle }
    }
    return low
  }

  /// Whether the active subscriptions follow from the new and ended ones.
  package var isBalanced: Bool {
    var active = 0
    return months.allSatisfy { month in
      active += month.new + month.recovered - month.churned
      return month.active == active
    }
  }
}

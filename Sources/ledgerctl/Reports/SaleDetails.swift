// A sale and its journal lines as JSON, as a table row, and with the positions of its events.
import Base
import Ledger
import Projections
import Revenue

extension LineDetail {
  func amountText(_ currency: Currency?) -> String? {
    amountMicros.map { Amount.text(micros: $0, currency: currency) }
  }
}

extension SaleDetail {
  var unitPriceText: String? {
    unitPriceMicros.map { Amount.text(micros: $0, currency: currency) }
  }

  var record: Record {
    [
      "environment": environment, "bundle_id": bundleID, "sale_key": saleKey,
      "product_id": productID, "kind": kind, "quantity": quantity,
      "sale_date": timeText(saleDateMs), "original_transaction_id": originalTransactionID,
      "transaction_ids": transactionIDs, "first_position": firstPosition,
      "country_code": countryCode, "country_position": countryPosition,
      "user_identifier": userIdentifier, "user_position": userPosition,
      "user_basis": userBasis.isEmpty ? String?.none : userBasis,
      "currency": currency?.description, "unit_price": unitPriceText,
      "price_basis": priceBasis.isEmpty ? String?.none : priceBasis,
      "price_position": pricePosition, "price_problem": priceProblem,
      "is_upgraded": isUpgraded, "cancelled": isCancelled, "pending": isPending,
      "lines": lines.map(record),
    ]
  }

  private func record(_ line: LineDetail) -> Record {
    [
      "line": line.line, "date": timeText(line.dateMs), "quantity": line.quantity,
      "amount": line.amountText(currency), "reason": line.reason, "position": line.position,
    ]
  }

  /// `2 × 9.99 EUR`, `10.00 EUR for 3` if Apple signed a price that units cannot share, or the reason why there is no
  /// price.
  var priceText: String {
    guard let unitPriceText, let unitPriceMicros, let amountMicros, let currency else {
      return priceProblem.map { "unpriced: \($0)" } ?? kind
    }
    if unitPriceMicros.multipliedReportingOverflow(by: quantity) != (amountMicros, false) {
      return "\(Amount.text(micros: amountMicros, currency: currency)) \(currency) for \(quantity)"
    }
    return quantity == 1
      ? "\(unitPriceText) \(currency)" : "\(quantity) × \(unitPriceText) \(currency)"
  }

  /// Whether something of its amount is left or, where it has none, of its units.
  private var isPartlyReturned: Bool {
    if let amountMicros, amountMicros != 0 {
      return lines.reduce(0) { $0 + Int128($1.amountMicros ?? 0) } > 0
    }
    return lines.reduce(0) { $0 + $1.quantity } > 0
  }

  /// The state of the sale in a word or two.
  var stateText: String {
    [
      isPending ? "pending" : nil,
      isCancelled ? isPartlyReturned ? "partly returned" : "returned" : nil,
      isUpgraded ? "upgraded" : nil,
    ].compactMap { $0 }.joined(separator: ", ")
  }

  static func table(_ sales: [SaleDetail]) -> TextTable {
    var table = TextTable([
      "sale_key", "product_id", "kind", "sale_date", "country", .number("price"), "price_basis",
      .number("first"), .number("country_at"), .number("user_at"), .number("price_at"), "state",
    ])
    func text(_ position: Position?) -> String { position.map { "\($0)" } ?? "" }
    for sale in sales {
      table.append([
        sale.saleKey, sale.productID, sale.kind, timeText(sale.saleDateMs),
        sale.countryCode, sale.priceText, sale.priceBasis, text(sale.firstPosition),
        text(sale.countryPosition), text(sale.userPosition), text(sale.pricePosition),
        sale.stateText,
      ])
    }
    return table
  }

  /// The fields of the sale, each with the position of the event that gave it.
  var fields: Fields {
    func at(_ position: Position?) -> String { position.map { "  (position \($0))" } ?? "" }
    return [
      ("sale", "\(saleKey)\(isPending ? ", pending" : "")\(at(firstPosition))"),
      ("environment", environment), ("bundle id", bundleID), ("product", productID),
      ("kind", kind), ("quantity", "\(quantity)"), ("date", timeText(saleDateMs)),
      ("transactions", transactionIDs.joined(separator: " ")),
      ("country", countryPosition == nil ? "unknown" : "\(countryCode)\(at(countryPosition))"),
      ("user", userIdentifier.map { "\($0), \(userBasis)\(at(userPosition))" } ?? "unknown"),
      (
        "unit price",
        unitPriceText.map {
          "\($0) \(currency?.description ?? ""), \(priceBasis)\(at(pricePosition))"
        } ?? priceProblem.map { "none: \($0)" } ?? "none: \(kind)"
      ),
      ("upgraded", isUpgraded ? "yes" : "no"),
    ]
  }

  /// The journal lines of the sale.
  var lineTable: TextTable {
    TextTable(
      [
        "date", "line", .number("quantity"), "currency", .number("amount"), "reason",
        .number("position"),
      ], lines.map { record($0) + ["currency": currency?.description] })
  }
}

// MARK: - The conversion of a sale's lines to another currency

/// What a sale's lines are converted to.
struct SaleConversion {
  /// A line and its conversion; nil if it has no price, or no rate converts it.
  struct Line {
    let line: LineDetail
    let currency: Currency?
    let target: Currency
    let conversion: LineConversion?
  }

  let target: Currency
  let ratesAgeMaxDays: Int

  func lines(of sale: SaleDetail, _ queries: LedgerQueries) throws -> [Line] {
    let conversions = try queries.conversions(
      of: sale, to: target, ageMaxDays: ratesAgeMaxDays)
    return zip(sale.lines, conversions).map {
      Line(line: $0, currency: sale.currency, target: target, conversion: $1)
    }
  }
}

extension SaleConversion.Line {
  private var days: [String] {
    conversion?.use.days.map { CivilDate(dayNumber: $0).description } ?? []
  }

  private var convertedText: String? {
    conversion.map { Amount.text(micros: Int128($0.amountMicros), currency: target) }
  }

  var record: Record {
    [
      "line": line.line, "date": timeText(line.dateMs),
      "original_amount": line.amountText(currency), "original_currency": currency?.description,
      "rate": conversion?.use.rate, "rate_date": days,
      "rate_position": conversion?.use.positions.map { Int($0) } ?? [],
      "amount": convertedText, "currency": conversion.map { _ in target.description },
    ]
  }

  /// `Sale of 2026-06-01: 9.99 USD × 0.92 = 9.1908 EUR, the rate of 2026-06-01 (position 12)`
  func text(_ asked: SaleConversion) -> String {
    let name = "\(line.line) of \(timeText(line.dateMs).prefix(10))"
    guard let currency, let amount = line.amountText(currency) else {
      return "\(name): without a price"
    }
    if currency == target { return "\(name): \(amount) \(currency), not converted" }
    guard let conversion, let convertedText else {
      return "\(name): \(amount) \(currency), without a rate of the day or of the "
        + "\(counted(asked.ratesAgeMaxDays, "day")) before"
    }
    let rates = zip(days, conversion.use.positions).map { "\($0) (position \($1))" }
    return "\(name): \(amount) \(currency) × \(conversion.use.rate) = \(convertedText) \(target), "
      + "the \(rates.count == 1 ? "rate" : "rates") of \(rates.joined(separator: " and "))"
  }
}

// MARK: - What notifications say of a sale, as records and as a table

/// `50.000 % refunded`
/// - Parameter percentage: 100,000 is all; nil if only the refund is known.
func refundedText(_ percentage: Int64?) -> String {
  guard let percentage else { return "all refunded" }
  return "\(percentage / 1000).\("\(1000 + percentage % 1000)".dropFirst()) % refunded"
}

extension SaleNotification {
  var record: Record {
    [
      "signed_at": notification.signedAtMs.map(timeText),
      "occurred_at": timeText(notification.occurredAtMs), "position": notification.position,
      "notification_uuid": notification.notificationUUID, "type": notification.type,
      "subtype": notification.subtype, "consumption_request_reason": consumptionRequestReason,
      "revoked_at": revokedAtMs.map(instantText), "revocation_type": revocationType,
      "revocation_reason": revocationReason, "revocation_percentage": revocationPercentage,
    ]
  }

  /// What it says besides its type.
  private var says: String {
    var says: [String] = []
    if let consumptionRequestReason { says.append("asked for: \(consumptionRequestReason)") }
    if let revokedAtMs {
      says.append("\(refundedText(revocationPercentage)) at \(instantText(revokedAtMs))")
      if let revocationReason { says.append("reason \(revocationReason)") }
    }
    if let revocationType { says.append(revocationType) }
    return says.joined(separator: ", ")
  }

  static func table(_ notifications: [SaleNotification]) -> TextTable {
    var table = TextTable(["at", "type", "subtype", .number("position"), "says"])
    for one in notifications {
      table.append([
        timeText(one.notification.atMs), one.notification.type,
        one.notification.subtype ?? "", "\(one.notification.position)", one.says,
      ])
    }
    return table
  }
}

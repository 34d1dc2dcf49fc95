// Rules R8 and R12: Returns and Reversals, from what replies and signed statements show about refunds.
import AppStore

extension RevenueFold {
  // MARK: Statements

  /// R8: applies what a verification's rows show about the sale's cancellation; returns whether the sale
  /// changed.
  func cancel(
    _ place: Int, _ group: ArraySlice<Shown>, _ rows: [ReplyRow], _ verification: Verification
  ) throws -> Bool {
    let isUpgraded = group.contains { rows[$0.row].isUpgraded }
    let cancelled = group.first { rows[$0.row].cancellationDateMs != nil }.map { rows[$0.row] }
    let isChanged = isUpgraded && noteUpgrade(of: place)
    // R12: a reply without any time precedes all others, and can change nothing.
    guard let timeMs = verification.requestDateMs ?? cancelled?.cancellationDateMs else {
      return isChanged
    }
    if cancelled == nil, !isUpgraded, !store.sales[place].hasRefundStatements {
      store.update(place) { sale in
        if timeMs <= sale.newestReplyMs { return }
        (sale.newestReplyMs, sale.newestReplyEventMs) = (timeMs, verification.occurredAtMs)
        sale.isTimeChanged = true
      }
      return isChanged
    }
    var statement = RefundStatement(.reply, timeMs: timeMs, reversalMs: verification.occurredAtMs)
    statement.isTimed = verification.requestDateMs != nil
    statement.isUpgraded = isUpgraded
    statement.dateMs = cancelled?.cancellationDateMs
    if let reason = cancelled?.cancellationReason { statement.reason = store.arena.keep(reason) }
    return try refund(place, [statement], verification) || isChanged
  }

  /// R12: records what a signed statement shows about refunds, to be applied after the whole event; returns whether the
  /// sale has already changed.
  func noteRefund(
    _ place: Int, _ transaction: SignedTransaction, _ verification: Verification
  ) throws -> Bool {
    let isUpgraded = transaction.row.isUpgraded
    let isChanged = isUpgraded && noteUpgrade(of: place)
    guard let timeMs = transaction.signedDateMs else { return isChanged }
    let isAdvanced = transaction.isAdvancedCommerce
    if !isAdvanced, !isUpgraded, transaction.revocationDateMs == nil,
      !store.sales[place].hasRefundStatements
    {
      store.update(place) { sale in
        if timeMs <= sale.newestSignedMs { return }
        sale.newestSignedMs = timeMs
        sale.isTimeChanged = true
      }
      return isChanged
    }
    var statement = RefundStatement(
      isAdvanced ? .advanced : .signed, timeMs: timeMs, reversalMs: timeMs)
    statement.isUpgraded = isUpgraded
    if let reason = transaction.revocationReason { statement.reason = store.arena.keep(reason) }
    if isAdvanced {
      statement.sums = try sums(of: transaction, place, verification)
    } else {
      statement.dateMs = transaction.revocationDateMs
      statement.percentage = transaction.revocationPercentage.map { Int32($0) }
    }
    // Later statements of the event about the sale also belong to its history.
    store.update(place) { _ = $0.flags.insert(.hasRefundStatements) }
    if let known = refundsOfEvent.firstIndex(where: { $0.place == place }) {
      refundsOfEvent[known].statements.append(statement)
    } else {
      refundsOfEvent.append((place, [statement]))
    }
    return isChanged
  }

  /// R12: applies what the signed statements of an event show about refunds.
  func applyRefunds(_ verification: Verification) throws {
    for (place, statements) in refundsOfEvent
    where try refund(place, statements, verification) {
      touch(place, verification)
      try settleUser(place)
    }
    refundsOfEvent.removeAll(keepingCapacity: true)
  }

  /// R12: what Advanced Commerce refunds on each date, 0 if no amount is known. Reports refunds without an amount or a
  /// date.
  private func sums(
    of transaction: SignedTransaction, _ place: Int, _ verification: Verification
  ) throws -> [RefundSum] {
    var sums: [Int64: Int64] = [:]
    for refund in transaction.advancedRefunds {
      if refund.dateMs == nil || refund.amountMilliunits == nil {
        try report(.refundAmountUnknown, place, verification)
      }
      guard let dateMs = refund.dateMs else { continue }
      sums[dateMs] = (sums[dateMs] ?? 0).addingCapped((refund.amountMilliunits ?? 0) * 1000)
    }
    return sums.map { RefundSum(dateMs: $0.key, micros: $0.value) }
      .sorted { $0.dateMs < $1.dateMs }
  }

  private func report(
    _ type: ExceptionType, _ place: Int, _ verification: Verification
  ) throws {
    try exceptions.add(
      type, sale: store.sales[place], detail: Text(start: nil, count: 0),
      position: verification.position)
  }

  // MARK: Known statements

  /// R8: an upgrade, once seen, remains; returns whether it is new.
  private func noteUpgrade(of place: Int) -> Bool {
    store.update(place) { sale in
      defer { sale.isUpgraded = true }
      return !sale.isUpgraded
    }
  }

  /// R12: adds an event's statements to those of the sale, and books what they change; returns whether the sale
  /// changed.
  private func refund(
    _ place: Int, _ statements: [RefundStatement], _ verification: Verification
  ) throws -> Bool {
    let sale = store.sales[place]
    var history =
      store.refunds(of: place)
      ?? RefundHistory(newestTimesOf: sale)
    let before = history.outcome(ofQuantity: sale.quantity).total
    for statement in statements { history.insert(statement) }
    defer { store.setRefunds(of: place, history) }
    // Readers do not see this change, but it must be saved.
    store.update(place) { $0.isChanged = true }
    let after = history.outcome(ofQuantity: sale.quantity)
    if after.hasUnknownCredit { try report(.upgradeCreditUnknown, place, verification) }
    let corrected = correct(
      place, statements, from: before, to: after, sumsBeforeLine: history.sumsBeforeAssumed)
    guard corrected != nil || !before.isSame(as: after.total, ofQuantity: sale.quantity),
      let changer = after.changer ?? statements.last
    else { return false }
    let booked = corrected ?? before
    if after.isAssumed { history.sumsBeforeAssumed = booked.sums }
    book(place, booked, to: after, changer, verification.position)
    store.update(place) {
      $0.cancellationState = after.total.isRefunded ? .returned : .reversed
    }
    return true
  }

  // MARK: Lines

  /// R12: corrects the sale's last line by what signed statements contain about its refund, if a reply was taken for a
  /// full one; returns what is then booked, or nil if no line changed.
  /// - Parameter sumsBeforeLine: what Advanced Commerce had refunded when that line was booked.
  private func correct(
    _ place: Int, _ statements: [RefundStatement], from before: RefundTotal,
    to after: RefundOutcome, sumsBeforeLine: [RefundSum]
  ) -> RefundTotal? {
    let quantity = store.sales[place].quantity
    guard let last = store.lastLine(of: store.sales[place]), last.isAssumed,
      after.signedShares[RefundStatement.second(last.dateMs)] != nil,
      statements.contains(where: \.isSigned)
    else { return nil }
    let total = after.total
    store.updateLastLine(of: place) { $0.isAssumed = false }
    // What was booked before the line, which only booked a share. Sums that arrived since, next to a full share, made
    // no line.
    var booked = RefundTotal(share: store.shareBeforeLastLine(of: place), sums: sumsBeforeLine)
    if total.share.isGreater(than: booked.share, ofQuantity: quantity) {
      booked.share = total.share
    }
    for sum in total.sums
    where RefundStatement.second(sum.dateMs) == RefundStatement.second(last.dateMs)
      && sum.micros > booked.micros(on: sum.dateMs)
    {
      booked.sums.removeAll { $0.dateMs == sum.dateMs }
      booked.sums.append(sum)
    }
    booked.sums.sort { $0.dateMs < $1.dateMs }
    // A full share stays. The line still takes its sums, since these may exceed the sale's amount.
    if before.isSame(as: total, ofQuantity: quantity), booked.micros == last.advancedMicros {
      return nil
    }
    store.updateLastLine(of: place) {
      $0.share = booked.share
      $0.advancedMicros = booked.micros
    }
    return booked
  }

  /// R12: adds the lines from what is booked to what is refunded: first a decrease, as one Reversal; then the increase
  /// of what Advanced Commerce refunds on each date, or of a share.
  /// - Parameter changer: the last statement, in the order of time, that changed the total.
  private func book(
    _ place: Int, _ booked: RefundTotal, to after: RefundOutcome, _ changer: RefundStatement,
    _ position: Int
  ) {
    let (total, quantity) = (after.total, store.sales[place].quantity)
    let isLess = booked.share.isGreater(than: total.share, ofQuantity: quantity)
    var line = SaleLine(
      type: .reversal, dateMs: changer.reversalMs, position: position,
      statementMs: changer.isTimed ? changer.timeMs : .min, reason: Text(start: nil, count: 0),
      share: isLess ? total.share : booked.share, advancedMicros: 0)
    var sums = booked.sums
    let isAll = total.share == .all
    for index in sums.indices where !isAll {
      sums[index].micros = min(sums[index].micros, total.micros(on: sums[index].dateMs))
    }
    line.advancedMicros = RefundTotal(sums: sums).micros
    if isLess || sums != booked.sums { store.addLine(place, line) }
    (line.type, line.reason) = (.return, changer.reason)
    for sum in total.sums where !isAll {
      let more = sum.micros - (sums.first { $0.dateMs == sum.dateMs }?.micros ?? 0)
      if more <= 0 { continue }
      line.dateMs = sum.dateMs
      line.advancedMicros = line.advancedMicros.addingCapped(more)
      store.addLine(place, line)
    }
    if total.share.isGreater(than: line.share, ofQuantity: quantity) {
      line.dateMs = changer.dateMs ?? changer.reversalMs
      line.share = total.share
      line.advancedMicros = total.micros
      line.isAssumed = after.isAssumed
      store.addLine(place, line)
    }
  }
}

// MARK: - Shares and lines

/// R12: the refunded share of a sale, as it was stated. `fraction(ofQuantity:)` gives what it is of a quantity.
public struct RefundShare: Equatable, BitwiseCopyable, Sendable {
  /// What a share is of a quantity.
  public enum Kind: BitwiseCopyable, Sendable { case none, units, percentage, all }

  /// In thousandths of a percent, from 0 to 100,000.
  package let thousandths: Int32

  package static let none = RefundShare(percentage: 0)
  package static let all = RefundShare(percentage: 100_000)

  /// - Parameter percentage: in thousandths of a percent, from 0 to 100,000.
  package init(percentage: Int32) {
    precondition((0...100_000).contains(percentage), "a percentage of \(percentage)")
    thousandths = percentage
  }

  /// R12: the share's part of a quantity. Within 0.0005 % of `k ÷ quantity` it is exactly that.
  package func fraction(
    ofQuantity quantity: Int64
  ) -> (kind: Kind, numerator: Int64, denominator: Int64) {
    if self == .none { return (.none, 0, 1) }
    if self == .all { return (.all, 1, 1) }
    let product = Int64(thousandths) * quantity
    var (units, rest) = product.quotientAndRemainder(dividingBy: 100_000)
    if rest > 50_000 || (rest == 50_000 && units % 2 == 1) { units += 1 }
    rest = abs(product - units * 100_000)
    if rest * 2 > quantity { return (.percentage, Int64(thousandths), 100_000) }
    return (.units, units, quantity)
  }

  /// Whether this share is greater than another one of the same quantity, compared exactly.
  package func isGreater(than other: RefundShare, ofQuantity quantity: Int64) -> Bool {
    if self == other { return false }
    let (one, two) = (fraction(ofQuantity: quantity), other.fraction(ofQuantity: quantity))
    return one.numerator * two.denominator > two.numerator * one.denominator
  }

  /// R12: the refunded part of an amount, rounded half to even to the currency's minor unit. A full share gives the
  /// amount itself; no part exceeds it.
  package func total(ofMicros amount: Int64, quantity: Int64, minorDigits: Int) -> Int64 {
    let fraction = fraction(ofQuantity: quantity)
    if fraction.kind == .none { return 0 }
    if fraction.kind == .all { return amount }
    var unit: Int128 = 1
    for _ in minorDigits..<PriceForms.microsDecimals { unit *= 10 }
    let divisor = Int128(fraction.denominator) * unit
    var (units, rest) = (Int128(amount) * Int128(fraction.numerator))
      .quotientAndRemainder(dividingBy: divisor)
    if rest * 2 > divisor || (rest * 2 == divisor && units % 2 == 1) { units += 1 }
    return Int64(min(units * unit, Int128(amount)))
  }
}

/// Visits the Returns and Reversals of a sale in order, and computes the change of each (rules R8 and R12).
package struct RefundWalk {
  private let sale: Sale
  private let amount: Int64?
  private let minorDigits: Int
  private var refundedUnits: Int64 = 0
  private var refundedMicros: Int64 = 0
  /// Whether the refunds of Advanced Commerce exceeded the sale's amount at a line.
  package private(set) var exceedsAmount = false

  package init(_ sale: Sale) {
    self.sale = sale
    amount = sale.amountMicros
    minorDigits = sale.price?.currency.minorDigits ?? 0
  }

  /// The signed quantity and amount of the next line; the amount is nil for an unpriced sale. A Return never increases
  /// revenue, and a Reversal never reduces it.
  package mutating func next(_ line: SaleLine) -> (quantity: Int64, amountMicros: Int64?) {
    let isReturn = line.type == .return
    let before = (units: refundedUnits, micros: refundedMicros)
    if let amount {
      let share = line.share.total(
        ofMicros: amount, quantity: sale.quantity, minorDigits: minorDigits)
      let total = min(share.addingCapped(line.advancedMicros), amount)
      refundedMicros = isReturn ? max(before.micros, total) : min(before.micros, total)
      exceedsAmount = sale.kind.isPaid && line.advancedMicros > amount
    }
    let units = units(after: line)
    refundedUnits = isReturn ? max(before.units, units) : min(before.units, units)
    return (before.units - refundedUnits, amount.map { _ in before.micros - refundedMicros })
  }

  /// R12: the refunded units after a line, by its share or its sum. A share or sum that is not a number of units
  /// refunds no further units, and a Reversal that ends at one restores all.
  private func units(after line: SaleLine) -> Int64 {
    let fraction = line.share.fraction(ofQuantity: sale.quantity)
    if fraction.kind == .all { return sale.quantity }
    if line.advancedMicros > 0 {
      if refundedMicros == amount { return sale.quantity }
    } else if fraction.kind != .percentage {
      return fraction.kind == .none ? 0 : fraction.numerator
    }
    return line.type == .reversal ? 0 : refundedUnits
  }
}

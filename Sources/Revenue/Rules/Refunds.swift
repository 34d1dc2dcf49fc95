// Rule R12: Returns and Reversals of sales that a signed statement has shown.
import AppStore

extension RevenueFold {
  // MARK: Signed statements

  /// R12: applies what a signed statement shows about refunds; returns whether the sale changed.
  func refund(
    _ place: Int, _ transaction: SignedTransaction, _ verification: Verification
  ) throws -> Bool {
    var isChanged = false
    if transaction.row.isUpgraded, !store.sales[place].isUpgraded {
      store.update(place) { $0.isUpgraded = true }
      isChanged = true
    }
    guard let signedAtMs = transaction.signedDateMs, isCurrent(place, atMs: signedAtMs) else {
      return isChanged
    }
    noteTime(place, signedAtMs)
    if transaction.isAdvancedCommerce {
      return try refundAdvanced(place, transaction, signedAtMs, verification) || isChanged
    }
    if store.sales[place].isUpgraded, transaction.revocationPercentage == nil {
      try reportUnknownCredit(of: place, verification)
      if transaction.revocationDateMs != nil { noteCancellation(of: place, atMs: signedAtMs) }
      return isChanged
    }
    if store.sales[place].flags.contains(.isAdvancedCommerce) { return isChanged }
    return refundShare(place, transaction, signedAtMs, verification) || isChanged
  }

  /// R12: compares the share that a signed statement shows with the share refunded so far.
  private func refundShare(
    _ place: Int, _ transaction: SignedTransaction, _ signedAtMs: Int64,
    _ verification: Verification
  ) -> Bool {
    let sale = store.sales[place]
    let share = share(of: transaction, quantity: sale.quantity)
    if let dateMs = transaction.revocationDateMs {
      remember(place, SignedRefund(dateMs: dateMs, share: share, advancedMicros: 0))
      if let last = assumedLine(of: sale, atMs: dateMs) {
        store.updateLastLine(of: place) {
          $0.share = share
          $0.isAssumed = false
        }
        let isRefunded = share != .none
        store.update(place) { $0.cancellationState = isRefunded ? .returned : .none }
        if isRefunded { noteCancellation(of: place, atMs: signedAtMs) }
        return last.share != share
      }
    }
    let before = store.lastLine(of: sale)?.share ?? .none
    if share.isGreater(than: before, ofQuantity: sale.quantity),
      let dateMs = transaction.revocationDateMs
    {
      addReturn(
        place, dateMs, statementMs: signedAtMs, transaction.revocationReason, share,
        advancedMicros: 0, isAssumed: false, verification)
      noteCancellation(of: place, atMs: signedAtMs)
      return true
    }
    if before.isGreater(than: share, ofQuantity: sale.quantity) {
      addReversal(
        place, dateMs: signedAtMs, statementMs: signedAtMs, share, advancedMicros: 0, verification)
      if share != .none { noteCancellation(of: place, atMs: signedAtMs) }
      return true
    }
    if share != .none { noteCancellation(of: place, atMs: signedAtMs) }
    return false
  }

  /// R12: the share of a sale that a signed statement says is refunded.
  private func share(of transaction: SignedTransaction, quantity: Int64) -> RefundShare {
    guard transaction.revocationDateMs != nil else { return .none }
    guard let percentage = transaction.revocationPercentage else { return .all }
    return RefundShare(percentage: percentage, quantity: quantity)
  }

  // MARK: Advanced Commerce

  /// R12: compares the refunds of an Advanced Commerce statement with the earlier ones, date by date.
  private func refundAdvanced(
    _ place: Int, _ transaction: SignedTransaction, _ signedAtMs: Int64,
    _ verification: Verification
  ) throws -> Bool {
    store.update(place) {
      $0.flags.insert(.isAdvancedCommerce)
      $0.isChanged = true
    }
    let totals = try advancedTotals(place, transaction, verification)
    var isChanged = false
    let assumed = totals.first { assumedLine(of: store.sales[place], atMs: $0.dateMs) != nil }
    if let assumed {
      // The line stays; only how much it returns is known better.
      let before = store.sortedSignedRefunds(of: store.sales[place])
        .reduce(Int64(0)) { $0.addingCapped($1.advancedMicros) }
      setAdvanced(place, assumed.dateMs, assumed.micros)
      store.updateLastLine(of: place) {
        $0.share = .none
        $0.advancedMicros = before.addingCapped(assumed.micros)
        $0.isAssumed = false
      }
      isChanged = true
    }
    let known = store.sortedSignedRefunds(of: store.sales[place])
    var refunded = known.reduce(Int64(0)) { $0.addingCapped($1.advancedMicros) }
    for total in totals {
      let before = known.first { $0.dateMs == total.dateMs }?.advancedMicros ?? 0
      setAdvanced(place, total.dateMs, total.micros)
      if total.micros <= before { continue }
      refunded = refunded.addingCapped(total.micros - before)
      let share = store.lastLine(of: store.sales[place])?.share ?? .none
      addReturn(
        place, total.dateMs, statementMs: signedAtMs, transaction.revocationReason, share,
        advancedMicros: refunded, isAssumed: false, verification)
      isChanged = true
    }
    store.updateSignedRefunds(of: place) { refund in
      if !totals.contains(where: { $0.dateMs == refund.dateMs }) { refund.advancedMicros = 0 }
    }
    let target = totals.reduce(Int64(0)) { $0.addingCapped($1.micros) }
    let share = store.lastLine(of: store.sales[place])?.share ?? .none
    if target < refunded || share != .none {
      addReversal(
        place, dateMs: signedAtMs, statementMs: signedAtMs, .none, advancedMicros: target,
        verification)
      isChanged = true
    }
    let isRefunded = target > 0
    store.update(place) { sale in
      if !isRefunded, sale.cancellationState == .returned { sale.cancellationState = .none }
    }
    if isRefunded { noteCancellation(of: place, atMs: signedAtMs) }
    return isChanged
  }

  /// R12: the refunded micros of each date, by date. Reports refunds without an amount or a date.
  private func advancedTotals(
    _ place: Int, _ transaction: SignedTransaction, _ verification: Verification
  ) throws -> [(dateMs: Int64, micros: Int64)] {
    var totals: [Int64: Int64] = [:]
    for refund in transaction.advancedRefunds {
      guard let dateMs = refund.dateMs, let milliunits = refund.amountMilliunits else {
        try exceptions.add(
          .refundAmountUnknown, sale: store.sales[place], detail: Text(start: nil, count: 0),
          position: verification.position)
        continue
      }
      totals[dateMs, default: 0] = totals[dateMs, default: 0].addingCapped(milliunits * 1000)
    }
    return totals.map { ($0.key, $0.value) }.sorted { $0.dateMs < $1.dateMs }
  }

  /// R12: records what Advanced Commerce refunds on a date. Shares of that date are not read any more.
  private func setAdvanced(_ place: Int, _ dateMs: Int64, _ micros: Int64) {
    let second = SignedRefund.second(dateMs)
    var isKnown = false
    store.updateSignedRefunds(of: place) { refund in
      if SignedRefund.second(refund.dateMs) == second { refund.share = .none }
      guard refund.dateMs == dateMs else { return }
      refund.advancedMicros = micros
      isKnown = true
    }
    if !isKnown {
      store.addSignedRefund(
        place, SignedRefund(dateMs: dateMs, share: .none, advancedMicros: micros))
    }
  }

  // MARK: Replies beside signed statements

  /// R12: applies what a reply shows about the cancellation of a sale that a signed statement has shown; returns
  /// whether the sale changed.
  func refund(
    _ place: Int, cancelledAtMs dateMs: Int64?, reason: Text?, _ verification: Verification
  ) throws -> Bool {
    let sale = store.sales[place]
    guard let requestMs = verification.requestDateMs, isCurrent(place, atMs: requestMs) else {
      return false
    }
    noteTime(place, requestMs)
    guard let dateMs else { return reverseByReply(place, requestMs, verification) }
    if sale.isUpgraded {
      try reportUnknownCredit(of: place, verification)
      noteCancellation(of: place, atMs: requestMs)
      return false
    }
    let known = knownShare(of: sale, atMs: dateMs)
    if sale.cancellationState == .returned {
      defer { noteCancellation(of: place, atMs: requestMs) }
      if known != nil || hasReturn(sale, atMs: dateMs) || requestMs <= sale.newestStatementMs
        || store.lastLine(of: sale)?.share == .all
      {
        return false
      }
      addReturn(
        place, dateMs, statementMs: requestMs, reason, .all,
        advancedMicros: advancedMicros(of: sale), isAssumed: true, verification)
      return true
    }
    if sale.cancellationState == .reversed, requestMs <= sale.reversalRequestMs { return false }
    let share = known ?? .all
    if share == .none { return false }
    addReturn(
      place, dateMs, statementMs: requestMs, reason, share, advancedMicros: 0,
      isAssumed: known == nil, verification)
    noteCancellation(of: place, atMs: requestMs)
    return true
  }

  /// R12: reverses what is refunded, if a newer reply shows the sale without its cancellation.
  private func reverseByReply(
    _ place: Int, _ requestMs: Int64, _ verification: Verification
  ) -> Bool {
    let sale = store.sales[place]
    guard sale.cancellationState == .returned, sale.newestCancellationRequestMs != .min,
      requestMs > sale.newestCancellationRequestMs
    else { return false }
    store.updateSignedRefunds(of: place) { $0.advancedMicros = 0 }
    addReversal(
      place, dateMs: verification.occurredAtMs, statementMs: requestMs, .none, advancedMicros: 0,
      verification)
    return true
  }

  // MARK: What is known of the sale

  /// R12: whether a statement of this time is not older than the newest one.
  private func isCurrent(_ place: Int, atMs epochMs: Int64) -> Bool {
    epochMs >= store.sales[place].newestStatementMs
  }

  /// R12: records the time of a statement, if it is the newest.
  func noteTime(_ place: Int, _ epochMs: Int64) {
    guard epochMs > store.sales[place].newestStatementMs else { return }
    store.update(place) {
      $0.newestStatementMs = epochMs
      $0.isTimeChanged = true
    }
  }

  /// R12: records the time of a statement that showed the cancellation, while something is refunded.
  private func noteCancellation(of place: Int, atMs epochMs: Int64) {
    guard store.sales[place].cancellationState == .returned,
      epochMs > store.sales[place].newestCancellationRequestMs
    else { return }
    store.update(place) {
      $0.newestCancellationRequestMs = epochMs
      // Readers do not see this change, but it must be saved.
      $0.isChanged = true
    }
  }

  private func reportUnknownCredit(of place: Int, _ verification: Verification) throws {
    try exceptions.add(
      .upgradeCreditUnknown, sale: store.sales[place], detail: Text(start: nil, count: 0),
      position: verification.position)
  }

  /// R12: remembers the signed share of a revocation date.
  private func remember(_ place: Int, _ refund: SignedRefund) {
    let second = SignedRefund.second(refund.dateMs)
    var isKnown = false
    var isChanged = false
    store.updateSignedRefunds(of: place) { known in
      guard SignedRefund.second(known.dateMs) == second else { return }
      isKnown = true
      if known.share != refund.share {
        known.share = refund.share
        isChanged = true
      }
    }
    if !isKnown { store.addSignedRefund(place, refund) }
    if isChanged || !isKnown { store.update(place) { $0.isChanged = true } }
  }

  /// R12: the signed share that is known for a revocation date, to the second.
  private func knownShare(of sale: Sale, atMs dateMs: Int64) -> RefundShare? {
    let second = SignedRefund.second(dateMs)
    return store.sortedSignedRefunds(of: sale)
      .first { SignedRefund.second($0.dateMs) == second }?.share
  }

  /// What Advanced Commerce has refunded by now.
  private func advancedMicros(of sale: Sale) -> Int64 {
    store.lastLine(of: sale)?.advancedMicros ?? 0
  }

  /// R12: whether a Return of the sale has a date, to the second.
  private func hasReturn(_ sale: Sale, atMs dateMs: Int64) -> Bool {
    let second = SignedRefund.second(dateMs)
    var isFound = false
    store.forEachLine(of: sale) { line in
      if line.type == .return, SignedRefund.second(line.dateMs) == second { isFound = true }
    }
    return isFound
  }

  /// R12: the sale's last line, if it is an assumed Return of a date, to the second.
  private func assumedLine(of sale: Sale, atMs dateMs: Int64) -> SaleLine? {
    guard let last = store.lastLine(of: sale), last.type == .return, last.isAssumed,
      SignedRefund.second(last.dateMs) == SignedRefund.second(dateMs)
    else { return nil }
    return last
  }

  // MARK: Lines

  private func addReturn(
    _ place: Int, _ dateMs: Int64, statementMs: Int64, _ reason: Text?, _ share: RefundShare,
    advancedMicros: Int64, isAssumed: Bool, _ verification: Verification
  ) {
    let kept = reason.map(store.arena.keep) ?? Text(start: nil, count: 0)
    store.addLine(
      place,
      SaleLine(
        type: .return, dateMs: dateMs, position: verification.position, statementMs: statementMs,
        reason: kept, share: share, advancedMicros: advancedMicros, isAssumed: isAssumed))
    store.update(place) { $0.cancellationState = .returned }
  }

  private func addReversal(
    _ place: Int, dateMs: Int64, statementMs: Int64, _ share: RefundShare, advancedMicros: Int64,
    _ verification: Verification
  ) {
    store.addLine(
      place,
      SaleLine(
        type: .reversal, dateMs: dateMs, position: verification.position, statementMs: statementMs,
        reason: Text(start: nil, count: 0), share: share, advancedMicros: advancedMicros))
    let isRefunded = share != .none || advancedMicros > 0
    store.update(place) {
      $0.cancellationState = isRefunded ? .returned : .reversed
      $0.reversalRequestMs = statementMs
    }
  }
}

extension Int64 {
  /// The sum, or the greatest value where it would exceed that. Refunds are capped at an amount in any case.
  fileprivate func addingCapped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}

// Rule R8: Returns and Reversals, from the cancellations that replies show. Sales that a signed statement has shown
// follow Refunds.swift.
import AppStore

extension RevenueFold {
  /// R8: applies what a verification's rows show about the sale's cancellation; returns whether the sale
  /// changed.
  func cancel(
    _ place: Int, _ group: ArraySlice<Shown>, _ rows: [ReplyRow], _ verification: Verification
  ) throws -> Bool {
    var isChanged = false
    if !store.sales[place].isUpgraded, group.contains(where: { rows[$0.row].isUpgraded }) {
      store.update(place) { $0.isUpgraded = true }
      isChanged = true
    }
    let cancelled = group.first { rows[$0.row].cancellationDateMs != nil }.map { rows[$0.row] }
    if store.sales[place].flags.contains(.hasSignedStatement) {
      return try refund(
        place, cancelledAtMs: cancelled?.cancellationDateMs, reason: cancelled?.cancellationReason,
        verification) || isChanged
    }
    if let request = verification.requestDateMs { noteTime(place, request) }
    guard let cancelled, let dateMs = cancelled.cancellationDateMs else {
      return reverse(place, verification) || isChanged
    }
    if store.sales[place].isUpgraded {
      try exceptions.add(
        .upgradeCreditUnknown, sale: store.sales[place], detail: Text(start: nil, count: 0),
        position: verification.position)
      return note(cancellationOf: place, verification) || isChanged
    }
    return giveBack(place, dateMs, cancelled.cancellationReason, verification) || isChanged
  }

  /// R8: adds a Return, if the reply allows one.
  private func giveBack(
    _ place: Int, _ dateMs: Int64, _ reason: Text?, _ verification: Verification
  ) -> Bool {
    let sale = store.sales[place]
    if sale.cancellationState == .returned { return note(cancellationOf: place, verification) }
    if sale.cancellationState == .reversed {
      // A new Return needs a reply newer than the one that reversed the last.
      guard let request = verification.requestDateMs, request > sale.reversalRequestMs else {
        return false
      }
    }
    let kept = reason.map(store.arena.keep) ?? Text(start: nil, count: 0)
    store.addLine(
      place,
      SaleLine(
        type: .return, dateMs: dateMs, position: verification.position,
        statementMs: verification.requestDateMs ?? .min, reason: kept, share: .all,
        isAssumed: true))
    store.update(place) { $0.cancellationState = .returned }
    _ = note(cancellationOf: place, verification)
    return true
  }

  /// R8: records the request date of the newest reply that showed the cancellation.
  private func note(cancellationOf place: Int, _ verification: Verification) -> Bool {
    guard store.sales[place].cancellationState == .returned,
      let request = verification.requestDateMs,
      request > store.sales[place].newestCancellationRequestMs
    else { return false }
    store.update(place) {
      $0.newestCancellationRequestMs = request
      // Readers do not see this change, but it must be saved.
      $0.isChanged = true
    }
    return false
  }

  /// R8: adds a Reversal, if a newer reply shows the sale without its cancellation.
  private func reverse(_ place: Int, _ verification: Verification) -> Bool {
    let sale = store.sales[place]
    // If no reply that showed the cancellation has a date, no reply is known to be newer.
    guard sale.cancellationState == .returned, let request = verification.requestDateMs,
      sale.newestCancellationRequestMs != .min, request > sale.newestCancellationRequestMs
    else { return false }
    store.addLine(
      place,
      SaleLine(
        type: .reversal, dateMs: verification.occurredAtMs, position: verification.position,
        statementMs: request, reason: Text(start: nil, count: 0), share: .none))
    store.update(place) {
      $0.cancellationState = .reversed
      $0.reversalRequestMs = request
    }
    return true
  }
}

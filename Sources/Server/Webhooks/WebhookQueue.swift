// One app's deliveries: which may be sent, when the next attempt is due, when to give up. A plain value: no clock.
package import Projections

/// How a delivery ended.
package enum WebhookOutcome: Sendable, Equatable {
  case delivered
  /// The receiver wants no more: HTTP status 410.
  case gone
  /// Why, without a secret.
  case failed(String)
}

/// The deliveries that were read from the log and have not succeeded, in order, at most `windowMax`.
package struct WebhookQueue: Sendable {
  package static let windowMax = 1000
  package static let inFlightMax = 16
  /// The pause after each failed attempt, in milliseconds; the last one again and again.
  package static let pausesMs: [Int64] = [
    5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000,
  ]
  /// So many failures in a row are the receiver's and not those of single deliveries: after them, the first success
  /// makes all that wait due, though not too often.
  private static let outageFailures = 5
  private static let outageRetryPauseMs: Int64 = 300_000
  /// A full queue learns of nothing new that could be sent, so it tries one of its own so often.
  private static let probePauseMs: Int64 = 60_000

  private struct Entry: Sendable {
    let delivery: WebhookDelivery
    var attempts = 0
    var dueMs: Int64 = 0
    var isInFlight = false
  }

  private var entries: [Entry] = []
  private var next: ChangePoint
  private(set) package var failingSinceMs: Int64?
  private(set) package var disabled: WebhookState.Disabled?
  private var lastFailure: String?
  private var lastSuccessMs: Int64?
  private var failuresInARow = 0
  private var outageRetriedAtMs = Int64.min
  private var attemptedAtMs = Int64.min
  package private(set) var inFlightCount = 0

  /// - Parameters:
  ///   - state: what was kept.
  ///   - deliveries: those that wait, as the log has them now; one that is missing is no longer owed.
  package init(_ state: WebhookState, _ deliveries: [ChangePoint: WebhookDelivery], nowMs: Int64) {
    next = state.next
    failingSinceMs = state.failingSinceMs
    disabled = state.disabled
    lastFailure = state.lastFailure
    lastSuccessMs = state.lastSuccessMs
    for waiting in state.waiting {
      guard let delivery = deliveries[waiting.point] else { continue }
      // A clock that was set back must not make a pause longer.
      let dueMs = min(waiting.dueMs, nowMs + Self.pauseMs(after: waiting.attempts))
      entries.append(Entry(delivery: delivery, attempts: waiting.attempts, dueMs: dueMs))
      // How many of them came after the last success is not kept.
      if failingSinceMs != nil { failuresInARow += min(waiting.attempts, Self.outageFailures) }
    }
  }

  /// What is kept of it.
  package var state: WebhookState {
    var state = WebhookState(next: next)
    state.waiting = entries.map {
      WebhookState.Waiting(point: $0.delivery.point, attempts: $0.attempts, dueMs: $0.dueMs)
    }
    state.failingSinceMs = failingSinceMs
    state.lastFailure = lastFailure
    state.lastSuccessMs = lastSuccessMs
    state.disabled = disabled
    return state
  }

  /// How many deliveries may be added.
  package var room: Int { disabled == nil ? Self.windowMax - entries.count : 0 }
  package var waitingCount: Int { entries.count }
  /// Where reading goes on.
  package var readTo: ChangePoint { next }
  /// Everything before was delivered.
  package var cursor: ChangePoint { entries.first?.delivery.point ?? next }

  private static func pauseMs(after attempts: Int) -> Int64 {
    attempts == 0 ? 0 : pausesMs[min(attempts, pausesMs.count) - 1]
  }

  /// Adds what was read from `readTo` on.
  /// - Parameter next: where reading goes on.
  package mutating func add(_ deliveries: [WebhookDelivery], next: ChangePoint) {
    precondition(deliveries.count <= room, "the window is full")
    precondition(next >= self.next, "reading goes forward")
    entries += deliveries.map { Entry(delivery: $0) }
    self.next = next
  }

  /// Takes the deliveries to send now: the first of each line, if it is due. Of a full queue in which none is, now and
  /// then the next one of these, to see whether the receiver is back.
  package mutating func dequeueDue(nowMs: Int64) -> [WebhookDelivery] {
    guard disabled == nil, inFlightCount < Self.inFlightMax else { return [] }
    var lines: Set<String> = []
    var due: [WebhookDelivery] = []
    var next: Int?
    for index in entries.indices {
      let entry = entries[index]
      let isFirst = lines.insert(entry.delivery.line).inserted
      guard isFirst, !entry.isInFlight else { continue }
      if entry.dueMs > nowMs {
        if next.map({ entry.dueMs < entries[$0].dueMs }) ?? true { next = index }
        continue
      }
      due.append(beginAttempt(index, nowMs))
      if inFlightCount == Self.inFlightMax { break }
    }
    if let next, room == 0, inFlightCount == 0, !wasAttempted(nowMs) {
      due.append(beginAttempt(next, nowMs))
    }
    return due
  }

  private mutating func beginAttempt(_ index: Int, _ nowMs: Int64) -> WebhookDelivery {
    entries[index].isInFlight = true
    inFlightCount += 1
    attemptedAtMs = nowMs
    return entries[index].delivery
  }

  /// Whether an attempt began within the pause between two probes. A clock may have been set back since.
  private func wasAttempted(_ nowMs: Int64) -> Bool {
    attemptedAtMs <= nowMs && attemptedAtMs > nowMs - Self.probePauseMs
  }

  /// Records how an attempt ended. One that is not under way changes nothing.
  /// - Parameters:
  ///   - webhookSHA256Hex: which webhook is disabled if it comes to that.
  ///   - disableAfterMs: how long there may be no success.
  package mutating func end(
    _ point: ChangePoint, _ outcome: WebhookOutcome, nowMs: Int64, webhookSHA256Hex: String,
    disableAfterMs: Int64
  ) {
    guard let index = entries.firstIndex(where: { $0.delivery.point == point }),
      entries[index].isInFlight
    else { return }
    entries[index].isInFlight = false
    inFlightCount -= 1
    switch outcome {
    case .delivered:
      entries.remove(at: index)
      succeed(nowMs)
    case .gone:
      disabled = .init(atMs: nowMs, cause: .gone, webhookSHA256Hex: webhookSHA256Hex)
    case .failed(let cause):
      entries[index].attempts += 1
      entries[index].dueMs = nowMs + Self.pauseMs(after: entries[index].attempts)
      failuresInARow += 1
      lastFailure = cause
      let sinceMs = failingSinceMs ?? nowMs
      failingSinceMs = sinceMs
      if nowMs - sinceMs >= disableAfterMs {
        disabled = .init(atMs: nowMs, cause: .failures, webhookSHA256Hex: webhookSHA256Hex)
      }
    }
  }

  private mutating func succeed(_ nowMs: Int64) {
    let wasOutage = failuresInARow >= Self.outageFailures
    (failuresInARow, failingSinceMs, lastSuccessMs) = (0, nil, nowMs)
    guard wasOutage, outageRetriedAtMs <= nowMs - Self.outageRetryPauseMs else { return }
    outageRetriedAtMs = nowMs
    for index in entries.indices { entries[index].dueMs = min(entries[index].dueMs, nowMs) }
  }

  /// Takes back an attempt that was given up.
  package mutating func release(_ point: ChangePoint) {
    guard let index = entries.firstIndex(where: { $0.delivery.point == point }),
      entries[index].isInFlight
    else { return }
    entries[index].isInFlight = false
    inFlightCount -= 1
  }

  /// Goes on where it stopped, at once.
  package mutating func enable() {
    (disabled, failingSinceMs, failuresInARow) = (nil, nil, 0)
    for index in entries.indices {
      entries[index].attempts = 0
      entries[index].dueMs = 0
    }
  }
}

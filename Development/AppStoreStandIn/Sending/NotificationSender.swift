// Sends the notifications of invented customers as the App Store does, or worse.
private import AppStoreAuthority
private import Base
private import Glibc

/// What is to be sent, and how.
package struct SendPlan: Sendable {
  package var address: PostAddress
  package var customerCount: Int
  /// New notifications a second.
  package var rate: Int
  /// For so long; nil for as long as there are any.
  package var durationMs: Int64?
  /// The App Store's hours times this.
  package var retryScale = 1.0
  package var connections = 16
  package var timeoutMs: Int64 = 30_000
  package var faults: FaultPlan
  /// Only this type.
  package var type: String?

  package init(address: PostAddress, customerCount: Int, rate: Int, faults: FaultPlan) {
    self.address = address
    self.customerCount = customerCount
    self.rate = rate
    self.faults = faults
  }
}

/// What became of the notifications.
package struct SendCounts: Sendable, Equatable {
  /// Notifications, whether sent or lost on purpose.
  package var notifications = 0
  package var attempts = 0
  /// Attempts by HTTP status.
  package var answered: [Int: Int] = [:]
  /// Attempts without an answer.
  package var unanswered = 0
  /// Messages that were accepted, and that nobody sends again.
  package var delivered = 0
  package var givenUp = 0
  /// Messages that wait for an attempt when the sender ends.
  package var pending = 0
  package var faults: [SendFault: Int] = [:]

  package var json: [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    json.member("notifications", notifications)
    json.member("attempts", attempts)
    json.key("answered")
    json.beginObject()
    for (status, count) in answered.sorted(by: { $0.key < $1.key }) {
      json.key(String(status))
      json.integer(count)
    }
    json.endObject()
    json.member("unanswered", unanswered)
    json.member("delivered", delivered)
    json.member("given_up", givenUp)
    json.member("pending", pending)
    json.key("misbehaved")
    json.beginObject()
    for fault in SendFault.allCases {
      guard let count = faults[fault] else { continue }
      json.key(fault.rawValue)
      json.integer(count)
    }
    json.endObject()
    json.endObject()
    return json.bytes
  }
}

/// One attempt, as the log has it.
package struct SentNotification: Sendable {
  package let uuid: String
  package let type: String
  package let subtype: String?
  package let transactionID: String?
  package let attempt: Int
  package let faults: Set<SendFault>
  package let result: PostResult

  package var json: [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    json.member("uuid", uuid)
    json.member("type", type)
    json.member("subtype", ifPresent: subtype)
    json.member("transaction_id", ifPresent: transactionID)
    json.member("attempt", attempt)
    if case .status(let status) = result {
      json.member("status", status)
    } else {
      json.member("status", 0)
      json.member("failure", result.name)
    }
    json.member("faults", faults.map(\.rawValue).sorted())
    json.endObject()
    return json.bytes
  }
}

/// Sends at a rate over keep-alive connections. A notification is made when its turn comes; what waits is numbers.
package final class NotificationSender: Sendable {
  private let plan: SendPlan
  private let composer: NotificationComposer
  private let outbox: Outbox<PlannedNotification>
  private let counts = Monitor(SendCounts())
  private let isStopped = Monitor(false, conditionCount: 1)
  private let record: @Sendable (SentNotification) -> Void

  /// - Parameter record: is called after each attempt, on the thread that made it.
  package init(
    _ plan: SendPlan, _ composer: NotificationComposer,
    record: @escaping @Sendable (SentNotification) -> Void = { _ in }
  ) {
    self.plan = plan
    self.composer = composer
    self.record = record
    outbox = Outbox()
  }

  /// Ends `run` before its time.
  package func stop() {
    isStopped.withLock { $0 = true }
    isStopped.broadcast(0)
  }

  /// Sends everything, and again what failed, until nothing is left.
  package func run() throws -> SendCounts {
    try outbox.start(threads: plan.connections) { [self] in
      let connection = HTTPPost(plan.address, timeoutMs: plan.timeoutMs)
      return { self.send($0, over: connection) }
    }
    emit()
    while !outbox.drain(limitMs: 200), !isStopped.withLock({ $0 }) {}
    let pending = outbox.close()
    return counts.withLock { counts in
      counts.pending = pending
      return counts
    }
  }

  /// Puts each notification into the outbox when its turn comes.
  private func emit() {
    let startMs = MonotonicClock.nowMs()
    var number = 0
    for customer in 0..<plan.customerCount {
      for (ordinal, told) in composer.sales.notifications(customer: customer).enumerated() {
        if let type = plan.type, type != told.payload.type { continue }
        let offsetMs = Int64(number) * 1000 / Int64(plan.rate)
        if let durationMs = plan.durationMs, offsetMs >= durationMs { return }
        guard wait(untilMs: startMs + offsetMs) else { return }
        put(
          PlannedNotification(
            customer: customer, ordinal: ordinal, faults: plan.faults.faults(of: number)),
          number: number, dueMs: startMs + offsetMs)
        number += 1
      }
    }
  }

  private func put(_ message: PlannedNotification, number: Int, dueMs: Int64) {
    counts.withLock { counts in
      counts.notifications += 1
      for fault in message.faults { counts.faults[fault, default: 0] += 1 }
    }
    if message.faults.contains(.loss) { return }
    var dueMs = dueMs
    if message.faults.contains(.disorder) {
      dueMs += plan.faults.shift(of: number) * 1000 / Int64(plan.rate) + 1
    }
    if message.faults.contains(.delay) { dueMs += Int64(Double(hourMs) * plan.retryScale) }
    outbox.put(message, dueMs: dueMs)
    if message.faults.contains(.duplicate) { outbox.put(message, dueMs: dueMs) }
  }

  /// False once it is stopped.
  private func wait(untilMs: Int64) -> Bool {
    let restMs = untilMs - MonotonicClock.nowMs()
    guard restMs > 0 else { return !isStopped.withLock { $0 } }
    return isStopped.wait(on: 0, limitMs: restMs) { $0 ? true : nil } == nil
  }

  private func send(_ entry: Outbox<PlannedNotification>.Try, over connection: HTTPPost) -> Int64? {
    let told = composer.notification(entry.message)
    // Nothing is sent that cannot be signed; that it happened shows in the counts.
    let result = (try? composer.body(told, entry.message.faults)).map(connection.post) ?? .refused
    let againMs = SendSchedule.againMs(
      after: result, attempt: entry.attempt, isSandbox: told.payload.environment == "Sandbox",
      scale: plan.retryScale)
    counts.withLock { counts in
      counts.attempts += 1
      if case .status(let status) = result {
        counts.answered[status, default: 0] += 1
      } else {
        counts.unanswered += 1
      }
      if result.isSuccess { counts.delivered += 1 } else if againMs == nil { counts.givenUp += 1 }
    }
    record(
      SentNotification(
        uuid: told.payload.uuid, type: told.payload.type, subtype: told.payload.subtype,
        transactionID: told.transaction?.transactionID, attempt: entry.attempt,
        faults: entry.message.faults, result: result))
    return againMs
  }
}

// The webhooks' thread: reads what events changed, sends it, and keeps how far it came.
import Base
import HTTPClient
package import Ledger
package import Projections

/// What webhooks read. Any thread may ask.
package protocol WebhookSource: AnyObject, Sendable {
  /// How many events are folded.
  var position: Position { get }
  /// What the events from a point on changed; at most `limit` changes.
  func changes(from point: ChangePoint, limit: Int) throws -> LedgerChangePage
}

extension LiveProjections: WebhookSource {}

/// What other threads tell the loop.
struct WebhookOrders: Sendable {
  var configuration: Configuration?
  /// Opened once what waits was forgotten, to be read again.
  var forgetting: [Latch] = []
  var isStopping = false
}

/// The work of the webhooks' thread. Other threads call only `init`.
final class WebhookLoop {
  private struct Tag {
    let family: String
    let point: ChangePoint
  }

  private struct Target {
    var webhook: Configuration.Webhook
    var sha256Hex: String
    var queue: WebhookQueue
    /// Whether the file holds an earlier state.
    var isChanged = true
    /// Monotonic clock; nil before the first time.
    var storedAtMs: Int64?
    /// The earliest time of the next reading, on the monotonic clock.
    var readAgainAtMs = Int64.min
  }

  /// The pause between two looks at the projections while nothing is under way, in milliseconds.
  private static let idleMs: Int32 = 100
  private static let storePauseMs: Int64 = 1_000
  private static let pagesOfTurn = 4
  private static let dayMs: Int64 = 86_400_000

  private let orders: Monitor<WebhookOrders>
  private let source: any WebhookSource
  private let files: WebhookFiles
  private let ledger: LedgerIdentity
  private let clock: WorkflowClock
  private let metrics: Metrics
  private let notes: OperatorNotes
  private let requests: RequestLoop<Tag>
  private var settings = Configuration.Webhooks()
  private var rules = AddressRules()
  private var wanted: [String: Configuration.Webhook] = [:]
  private var targets: [String: Target] = [:]
  /// How far queues had come whose deliveries are to be read again.
  private var forgotten: [String: WebhookState] = [:]
  /// The app families of which nothing says how far their webhooks came.
  private var withoutCursor: Set<String> = []
  /// Monotonic clock; nil before the first look.
  private var lookedAtMs: Int64?

  init(
    _ orders: Monitor<WebhookOrders>, _ transfers: HTTPTransfers, _ source: any WebhookSource,
    _ directory: LedgerDirectory, _ clock: WorkflowClock, _ metrics: Metrics,
    _ notes: OperatorNotes
  ) {
    self.orders = orders
    self.source = source
    files = WebhookFiles(directory)
    ledger = directory.identity
    self.clock = clock
    self.metrics = metrics
    self.notes = notes
    requests = RequestLoop(WebhookRequests.options, transfers)
  }

  /// Runs until it is told to stop.
  func run() {
    while true {
      let (configuration, forgetting, isStopping) = orders.withLock { orders in
        defer { orders.forgetting = [] }
        return (orders.configuration.take(), orders.forgetting, orders.isStopping)
      }
      if let configuration { adopt(configuration) }
      if !forgetting.isEmpty {
        discardWaiting()
        for latch in forgetting { latch.open() }
      }
      if isStopping { break }
      let nowMs = clock.nowMs()
      if lookedAtMs.map({ clock.monotonicMs() - $0 >= 1_000 }) ?? true { checkTargets(nowMs) }
      var hasMore = false
      for family in targets.keys {
        if read(family) { hasMore = true }
        send(family, nowMs)
      }
      let ended = requests.perform()
      for (tag, outcome) in ended { end(tag, WebhookOutcome(outcome)) }
      store(after: Self.storePauseMs)
      if !hasMore, ended.isEmpty { requests.wait(limitMs: Self.idleMs) }
    }
    cancelAll()
    store(after: 0)
  }

  // MARK: Configuration

  private func adopt(_ configuration: Configuration) {
    if configuration.webhooks.privateNetworks != settings.privateNetworks {
      // What is under way may go where nothing may go any more.
      cancelAll()
      rules = AddressRules(privateNetworks: configuration.webhooks.privateNetworks)
    }
    settings = configuration.webhooks
    wanted = configuration.apps.compactMapValues(\.webhook)
    for family in targets.keys where wanted[family] == nil {
      store(family)
      targets[family] = nil
    }
    forgotten = forgotten.filter { wanted[$0.key] != nil }
    withoutCursor.formIntersection(wanted.keys)
    for (family, webhook) in wanted { adopt(webhook, family) }
    // What could not be opened is tried again with the next check.
    lookedAtMs = nil
  }

  private func adopt(_ webhook: Configuration.Webhook, _ family: String) {
    guard var target = targets[family], target.webhook != webhook else { return }
    target.webhook = webhook
    target.sha256Hex = webhook.sha256Hex
    target.isChanged = true
    if target.queue.disabled != nil { target.queue.enable() }
    targets[family] = target
  }

  /// Gives up the deliveries under way; they wait again.
  private func cancelAll() {
    for tag in requests.cancelAll() { targets[tag.family]?.queue.release(tag.point) }
  }

  /// Forgets the deliveries that wait or are under way, as what they tell of may have been redacted. They are read
  /// again with the next check, and sent as the projections show them now.
  private func discardWaiting() {
    cancelAll()
    for (family, target) in targets {
      store(family)
      forgotten[family] = target.queue.state
    }
    targets = [:]
    lookedAtMs = nil
  }

  /// Once a second: opens what is not open, and follows requests of operators.
  private func checkTargets(_ nowMs: Int64) {
    lookedAtMs = clock.monotonicMs()
    for (family, webhook) in wanted {
      do {
        let request = try files.request(of: family)
        if case .begin(let position) = request {
          try begin(family, webhook, from: position, nowMs)
        } else if targets[family] == nil {
          try open(family, webhook, nowMs)
        }
        if request == .enable { enable(family) }
        if request != nil { try files.removeRequest(of: family) }
      } catch { notes.fault("open the webhook of app family \(family)", error) }
    }
    setGauges()
  }

  private func open(_ family: String, _ webhook: Configuration.Webhook, _ nowMs: Int64) throws {
    // Where to begin can't be guessed: at the head, what waited would be dropped.
    guard
      let state = try forgotten[family] ?? files.state(of: family)?.bounded(by: source.position)
    else {
      if withoutCursor.insert(family).inserted {
        notes.alarm(.webhookCursorMissing, appFamily: family)
      }
      return
    }
    withoutCursor.remove(family)
    var deliveries: [ChangePoint: WebhookDelivery] = [:]
    for waiting in state.waiting {
      let page = try source.changes(from: waiting.point, limit: 1)
      guard let change = page.changes.first, change.point == waiting.point,
        change.appFamilyID == family
      else { continue }
      deliveries[waiting.point] = WebhookDelivery(change)
    }
    var queue = WebhookQueue(state, deliveries, nowMs: nowMs)
    let sha256Hex = webhook.sha256Hex
    if let disabled = queue.disabled, disabled.webhookSHA256Hex != sha256Hex { queue.enable() }
    targets[family] = Target(webhook: webhook, sha256Hex: sha256Hex, queue: queue)
    forgotten[family] = nil
    store(family)
  }

  /// Begins again at a position, whatever was delivered.
  private func begin(
    _ family: String, _ webhook: Configuration.Webhook, from position: Position, _ nowMs: Int64
  ) throws {
    try files.store(
      WebhookState(next: ChangePoint(min(position, source.position))), of: family)
    targets[family] = nil
    forgotten[family] = nil
    try open(family, webhook, nowMs)
  }

  private func enable(_ family: String) {
    targets[family]?.queue.enable()
    targets[family]?.isChanged = true
    store(family)
  }

  // MARK: Reading and sending

  /// Fills a window; returns whether there is more to read.
  private func read(_ family: String) -> Bool {
    guard var target = targets[family], clock.monotonicMs() >= target.readAgainAtMs else {
      return false
    }
    var pages = 0
    while target.queue.room > 0, target.queue.readTo.position < source.position,
      pages < Self.pagesOfTurn
    {
      pages += 1
      do {
        let page = try source.changes(from: target.queue.readTo, limit: target.queue.room)
        let deliveries = page.changes.filter { $0.appFamilyID == family }
          .compactMap { WebhookDelivery($0) }
        if page.next == target.queue.readTo {
          // A generation that is being replaced may be behind; looking again at once would only spin.
          target.readAgainAtMs = clock.monotonicMs() + Int64(Self.idleMs)
          break
        }
        target.queue.add(deliveries, next: page.next)
        target.isChanged = true
      } catch {
        notes.fault("read the changes for the webhook of app family \(family)", error)
        target.readAgainAtMs = clock.monotonicMs() + 1_000
        break
      }
    }
    targets[family] = target
    return target.queue.room > 0 && target.queue.readTo.position < source.position
      && clock.monotonicMs() >= target.readAgainAtMs
  }

  private func send(_ family: String, _ nowMs: Int64) {
    guard let due = targets[family]?.queue.dequeueDue(nowMs: nowMs), let target = targets[family]
    else { return }
    for delivery in due {
      let request = WebhookRequests.request(
        target.webhook, delivery, id: delivery.id(in: ledger), nowMs: nowMs, rules)
      let tag = Tag(family: family, point: delivery.point)
      if !requests.start(request, tag) { end(tag, WebhookOutcome(HTTPOutcome(.outOfMemory))) }
    }
  }

  private func end(_ tag: Tag, _ outcome: WebhookOutcome) {
    guard var target = targets[tag.family] else { return }
    let wasDisabled = target.queue.disabled != nil
    target.queue.end(
      tag.point, outcome, nowMs: clock.nowMs(), webhookSHA256Hex: target.sha256Hex,
      disableAfterMs: Int64(settings.disableAfterDays) * Self.dayMs)
    target.isChanged = true
    targets[tag.family] = target
    switch outcome {
    case .delivered: metrics.count(.webhookDeliveries, label: "delivered")
    case .gone: metrics.count(.webhookDeliveries, label: "gone")
    case .failed(let cause):
      metrics.count(.webhookDeliveries, label: "failed")
      notes.fault("deliver to the webhook of app family \(tag.family)", WebhookFault(cause))
    }
    if !wasDisabled, target.queue.disabled != nil {
      notes.alarm(.webhookDisabled, appFamily: tag.family)
      store(tag.family)
    }
  }

  // MARK: Files

  private func store(after pauseMs: Int64) {
    let nowMs = clock.monotonicMs()
    for (family, target) in targets where target.isChanged {
      if let storedAtMs = target.storedAtMs, nowMs - storedAtMs < pauseMs { continue }
      store(family)
    }
  }

  private func store(_ family: String) {
    guard let target = targets[family], target.isChanged else { return }
    // One that fails is tried again after the pause.
    targets[family]?.storedAtMs = clock.monotonicMs()
    do {
      try files.store(target.queue.state, of: family)
      targets[family]?.isChanged = false
    } catch { notes.fault("store the state of the webhook of app family \(family)", error) }
  }

  private func setGauges() {
    let queues = targets.values.map(\.queue)
    metrics.set(.webhookWaiting, Double(queues.reduce(0) { $0 + $1.waitingCount }))
    metrics.set(
      .webhooksDisabled, Double(queues.count { $0.disabled != nil } + withoutCursor.count))
    let head = source.position
    let cursor = queues.map(\.cursor.position).min() ?? head
    metrics.set(.webhookLag, Double(max(0, head - cursor)))
  }
}

/// Why a delivery failed, for operators.
struct WebhookFault: Error, CustomStringConvertible {
  let description: String

  init(_ cause: String) { description = cause }
}

extension Configuration.Webhook {
  /// Tells one URL and secret from another, without showing them.
  package var sha256Hex: String {
    Array("\(url)\n\(secret.text)".utf8).withUnsafeBytes { SHA256.hash($0) }.hex
  }
}

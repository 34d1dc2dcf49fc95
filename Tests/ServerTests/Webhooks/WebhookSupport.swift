// Webhooks for tests: made-up changes, a receiver on loopback, a service that can be restarted.
import AppStore
import Base
import Foundation
import HTTPClient
import Ledger
import Projections
import Server
import TestSupport
import Testing

/// What webhooks read, as set by a test.
final class ScriptedChanges: WebhookSource {
  private let state = Monitor(
    (position: 0, changes: [LedgerChange](), unreadable: Position?.none))

  var position: Position { state.withLock { $0.position } }

  func changes(from point: ChangePoint, limit: Int) throws -> LedgerChangePage {
    try state.withLock { state in
      if point.position == state.unreadable { throw Unreadable() }
      let later = state.changes.filter { $0.point >= point }
      let page = Array(later.prefix(limit))
      let next =
        later.count > limit ? later[limit].point : max(point, ChangePoint(state.position))
      return LedgerChangePage(changes: page, next: next)
    }
  }

  private struct Unreadable: Error {}

  /// Makes every read from a position on fail.
  func failReading(from position: Position?) { state.withLock { $0.unreadable = position } }

  /// Adds one event for each sale; `line` names its subscription.
  func add(_ originals: String..., family: String = WebhookFixture.family) {
    for original in originals { addSale(original, family: family) }
  }

  func addSale(_ original: String, family: String = WebhookFixture.family, user: String? = nil) {
    state.withLock { state in
      let point = ChangePoint(state.position)
      state.changes.append(
        LedgerChange(
          point: point, identity: ["\(point.position)"], appFamilyID: family,
          content: .sale(Self.sale(original, point.position, user: user), isRenewal: false)))
      state.position += 1
    }
  }

  /// Changes whose sale the event at a position is.
  func replaceUser(at position: Position, by user: String) {
    state.withLock { state in
      for place in state.changes.indices where state.changes[place].point.position == position {
        guard let family = state.changes[place].appFamilyID,
          case .sale(let sale, _) = state.changes[place].content
        else { continue }
        state.changes[place] = LedgerChange(
          point: state.changes[place].point, identity: state.changes[place].identity,
          appFamilyID: family,
          content: .sale(
            Self.sale(sale.originalTransactionID, position, user: user), isRenewal: false))
      }
    }
  }

  static func sale(_ original: String, _ position: Position, user: String? = nil) -> SaleDetail {
    SaleDetail(
      environment: "Production", bundleID: "app", saleKey: "\(position)", productID: "coins",
      kind: "regular", quantity: 1, saleDateMs: ms("2026-01-05"), transactionID: "\(position)",
      originalTransactionID: original, transactionIDs: ["\(position)"], firstPosition: position,
      countryCode: "DE", countryPosition: position, userIdentifier: user,
      userBasis: user == nil ? "" : "upload", priceBasis: "", isUpgraded: false, isCancelled: false,
      isPending: false,
      lines: [
        LineDetail(line: "Sale", dateMs: ms("2026-01-05"), quantity: 1, position: position)
      ])
  }
}

/// What a receiver got.
struct ReceivedDelivery: Equatable {
  let id: String
  let body: JSONValue
  /// `original position`
  let sale: String

  init(_ request: ScriptedServer.Request) throws {
    id = try #require(request.values("webhook-id").first)
    body = try JSONValue(request.body)
    let data = body["data"]
    sale =
      "\(data?["original_transaction_id"]?.stringValue ?? "") \(data?["position"]?.integerValue ?? -1)"
  }
}

/// One ledger with the webhooks of one app.
final class WebhookFixture {
  static let family = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"

  private let temporary: TemporaryDirectory
  let directory: LedgerDirectory
  let source = ScriptedChanges()
  let clock = MovableClock()
  let metrics = Metrics()
  let notes = WorkflowNotes()
  var configuration = Configuration()
  /// Whether the webhook gets its first cursor before the service starts.
  var writesCursor = true
  private var service: WebhookService?

  init() throws {
    temporary = try TemporaryDirectory()
    directory = try LedgerDirectory.create(
      path: temporary.path("ledger"), origin: "receipts.example/test")
  }

  deinit { stop() }

  var files: WebhookFiles { WebhookFiles(directory) }
  var state: WebhookState? { get throws { try files.state(of: Self.family) } }

  /// Starts the service, or reconfigures it. The secret is new each time, unless one is given.
  func start(
    _ url: String, secret: WebhookSecret = .make(),
    previous: Configuration.Webhook.Previous? = nil
  ) {
    var app = Configuration.App()
    app.webhook = Configuration.Webhook(url: url, secret: secret, previous: previous)
    configuration.apps[Self.family] = app
    if service == nil {
      // As `app edit` does.
      if writesCursor,
        !FileManager.default.fileExists(
          atPath: directory.fullPath("webhooks/\(Self.family).json"))
      {
        try? files.store(WebhookState(next: ChangePoint(source.position)), of: Self.family)
      }
      service = WebhookService(
        directory, source, metrics: metrics, clock: clock.clock,
        log: { [notes] in notes.say($1) })
    }
    service?.apply(configuration)
  }

  func forgetRedacted() { service?.forgetRedacted() }

  func stop() {
    service?.stop()
    service = nil
  }

  func count(_ result: String) -> Int {
    let text = String(decoding: metrics.exposition(), as: UTF8.self)
    let name = "receipt_ledger_webhook_deliveries_total{result=\"\(result)\"} "
    return text.split(separator: "\n").first { $0.hasPrefix(name) }
      .flatMap { Int($0.dropFirst(name.count)) } ?? 0
  }
}

extension ScriptedServer {
  /// The deliveries, in order.
  var deliveries: [ReceivedDelivery] { get throws { try requests.map(ReceivedDelivery.init) } }

  /// A receiver that answers every delivery with this status.
  static func answering(_ status: Int) throws -> ScriptedServer {
    try ScriptedServer { _ in .respond(status, []) }
  }
}

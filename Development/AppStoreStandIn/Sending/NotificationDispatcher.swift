// What a running stand-in notifies of: tests that were asked for, and what control requests made happen.
import AppStore
import AppStoreAuthority
import Base

/// Where notifications go, and how long the App Store's hours are.
package struct NotificationTarget: Sendable, Equatable {
  package var address: PostAddress
  package var retryScale: Double

  package init(address: PostAddress, retryScale: Double = 1) {
    self.address = address
    self.retryScale = retryScale
  }
}

final class NotificationDispatcher: Sendable {
  private enum Message: Sendable {
    case told(StoreMemory.Told, CustomerIndex.Owner)
    case test(token: String)
  }

  typealias Attempt = (atMs: Int64, result: PostResult)

  /// A test notification, and what became of it.
  struct Test: Sendable {
    let payload: [UInt8]
    let isSandbox: Bool
    var attempts: [Attempt] = []
  }

  private let desk: ServerAPIDesk
  /// Nil while there is nobody to notify.
  private let target: Monitor<NotificationTarget?>
  private let moment: @Sendable () -> ServerAPIDesk.Moment
  private let outbox = Outbox<Message>()
  /// By token.
  private let tests = Monitor<[String: Test]>([:])
  /// What became of the others, by UUID; no more than `StoreMemory` keeps.
  private let attempts = Monitor<[String: [Attempt]]>([:])

  private static let testsMax = 1_000
  private static let timeoutMs: Int64 = 30_000

  init(
    _ desk: ServerAPIDesk, _ target: NotificationTarget?,
    moment: @escaping @Sendable () -> ServerAPIDesk.Moment
  ) {
    self.desk = desk
    self.target = Monitor(target)
    self.moment = moment
  }

  /// Starts the thread that sends: one alone, so that what happens is told in order.
  func start() throws(SystemError) {
    try outbox.start(threads: 1) { [unowned self] in
      var held: (target: NotificationTarget, connection: HTTPPost)?
      return { [unowned self] entry in
        guard let target = target.withLock({ $0 }) else { return nil }
        if held?.target != target {
          held = (target, HTTPPost(target.address, timeoutMs: Self.timeoutMs))
        }
        return held.flatMap { send(entry, over: $0.connection, scale: target.retryScale) }
      }
    }
  }

  /// Notifies another address from now on.
  func redirect(to address: PostAddress) {
    target.withLock { target in
      target = NotificationTarget(address: address, retryScale: target?.retryScale ?? 1)
    }
  }

  func close() { outbox.close() }

  /// Sends a notification of what was asked for; nothing of purchases that no customer made.
  func tell(_ told: StoreMemory.Told) {
    guard target.withLock({ $0 }) != nil,
      let owner = UInt64(told.transaction).flatMap(desk.index.owner)
    else { return }
    outbox.put(.told(told, owner), dueMs: MonotonicClock.nowMs())
  }

  /// Sends a test notification.
  /// - Returns: the token to ask about it with.
  func sendTest(
    _ environment: AppStoreEndpoint, _ moment: ServerAPIDesk.Moment
  ) throws -> String {
    guard target.withLock({ $0 }) != nil else { throw ServerAPIError.noNotificationURL }
    let uuid = UUID16.random().description
    let token = "\(uuid)_\(moment.signedMs)"
    let payload = try desk.signed(desk.test(environment, uuid: uuid, atMs: moment.signedMs))
    try tests.withLock { tests in
      guard tests.count < Self.testsMax else { throw ServerAPIError.rate }
      tests[token] = Test(payload: payload, isSandbox: environment == .sandbox)
    }
    outbox.put(.test(token: token), dueMs: MonotonicClock.nowMs())
    return token
  }

  func test(_ token: String) -> Test? { tests.withLock { $0[token] } }

  /// What became of a notification; nil if it was not sent yet, or not by this process.
  func attempts(of uuid: String) -> [Attempt]? { attempts.withLock { $0[uuid] } }

  private func send(
    _ entry: Outbox<Message>.Try, over connection: HTTPPost, scale: Double
  ) -> Int64? {
    let (result, isSandbox): (PostResult, Bool)
    switch entry.message {
    case .told(let told, let owner):
      // What was taken back meanwhile, or cannot be signed, is not told.
      guard let notification = desk.notification(told, of: owner.customer, moment()),
        let object = try? desk.signed(notification)
      else { return nil }
      (result, isSandbox) = (connection.post(NotificationComposer.body(object)), owner.isSandbox)
      attempts.withLock { $0[told.uuid, default: []].append((moment().signedMs, result)) }
    case .test(let token):
      guard let test = test(token) else { return nil }
      (result, isSandbox) = (
        connection.post(NotificationComposer.body(test.payload)), test.isSandbox
      )
      tests.withLock { $0[token]?.attempts.append((moment().signedMs, result)) }
    }
    return SendSchedule.againMs(
      after: result, attempt: entry.attempt, isSandbox: isSandbox, scale: scale)
  }
}

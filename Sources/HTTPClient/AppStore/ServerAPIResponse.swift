// What the App Store Server API answers.
private import Base

/// One page.
package struct ServerAPIPage: Sendable, Equatable {
  /// As the page says; nil where it says nothing, as of one transaction.
  package var bundleID: String?
  package var environment: String?
  /// The `revision` or `paginationToken` that the next page is asked with.
  package var revision: String?
  package var hasMore = false
  /// Signed transactions in compact serialization, in their order.
  package var transactions: [[UInt8]] = []
  package var renewals: [[UInt8]] = []
  /// Signed notifications; of a notification history.
  package var notifications: [[UInt8]] = []

  package init() {}
}

/// What became of a TEST notification.
package struct TestNotificationResult: Sendable, Equatable {
  package struct Attempt: Sendable, Equatable {
    /// Epoch milliseconds.
    package var atMs: Int64?
    /// `SUCCESS`, or why not.
    package var result: String

    package init(atMs: Int64?, result: String) {
      self.atMs = atMs
      self.result = result
    }
  }

  /// The notification, in compact serialization.
  package var payload: [UInt8]
  package var attempts: [Attempt]

  package init(payload: [UInt8], attempts: [Attempt]) {
    self.payload = payload
    self.attempts = attempts
  }
}

/// Why a call has no answer. Its text holds no identifier and no secret.
package enum ServerAPIFailure: Error, Sendable, Equatable, CustomStringConvertible {
  case transport(AppStoreFailure)
  case status(Int, errorCode: Int64?)
  /// The answer is not as Apple documents it.
  case malformedAnswer
  case cannotSign

  /// Errors that Apple calls retryable.
  private static let retryableCodes: Set<Int64> = [4_040_002, 4_040_004, 4_040_006, 5_000_001]

  /// Whether the same call may succeed later.
  package var isRetryable: Bool {
    switch self {
    case .transport(.cancelled), .cannotSign: false
    case .transport, .malformedAnswer: true
    case .status(let status, let code):
      status >= 500 || status == 408 || code.map(Self.retryableCodes.contains) ?? false
    }
  }

  package var description: String {
    switch self {
    case .transport(let failure): failure.meaning
    case .status(let status, let code?): "HTTP status \(status), error \(code)"
    case .status(let status, nil): "HTTP status \(status)"
    case .malformedAnswer: "the reply is not as documented"
    case .cannotSign: "the call's token cannot be signed"
    }
  }
}

/// The result of one call.
package enum ServerAPIResponse: Sendable, Equatable {
  case page(ServerAPIPage)
  case testToken(String)
  case testResult(TestNotificationResult)
  /// An error that settles the question: there is no such transaction or customer, or it is no transaction id.
  case settled(errorCode: Int64)
  /// Too many calls; nothing may be asked for this time.
  case rateLimited(pauseMs: Int64)
  /// The App Store does not accept the key, or not for this app.
  case unauthorized
  case failure(ServerAPIFailure)

  /// Errors about the transaction alone: no transaction, no such customer, not a transaction id.
  static let settlingCodes: Set<Int64> = [
    4_040_010, 4_040_005, 4_040_001, 4_000_006, 4_000_008,
  ]
  /// What is waited for where the answer does not say.
  static let standardPauseMs: Int64 = 60_000
  static let longestPauseMs: Int64 = 3_600_000

  /// - Parameter nowMs: epoch milliseconds, which `Retry-After` may be given in.
  init(_ call: ServerAPICall, _ outcome: HTTPOutcome, nowMs: Int64) {
    if let failure = outcome.failure {
      self = .failure(.transport(AppStoreFailure(failure)))
      return
    }
    let value = try? JSONValue(outcome.body)
    switch outcome.status {
    case 200: self = value.flatMap { Self.read(call, $0) } ?? .failure(.malformedAnswer)
    case 401: self = .unauthorized
    case 429:
      let retryAfter = outcome.headers[AppStoreSession.retryAfter]
      self = .rateLimited(pauseMs: Self.pauseMs(retryAfter, nowMs: nowMs))
    default:
      let code = value?["errorCode"]?.integerValue
      if let code, Self.settlingCodes.contains(code) {
        self = .settled(errorCode: code)
      } else {
        self = .failure(.status(outcome.status ?? 0, errorCode: code))
      }
    }
  }

  /// Apple gives the time of the next call in epoch milliseconds; the HTTP standard, seconds to wait.
  static func pauseMs(_ retryAfter: String?, nowMs: Int64) -> Int64 {
    guard let number = retryAfter.flatMap({ Int64($0) }), number >= 0 else {
      return standardPauseMs
    }
    let pauseMs = number > 1_000_000_000 ? number - max(nowMs, 0) : number * 1000
    return min(max(pauseMs, 1000), longestPauseMs)
  }

  private static func read(_ call: ServerAPICall, _ value: JSONValue) -> ServerAPIResponse? {
    switch call {
    case .history, .refundLookup:
      page(value, revision: "revision").flatMap { page in
        guard let list = texts(value["signedTransactions"]) else { return nil }
        var page = page
        page.transactions = list
        return .page(page)
      }
    case .transaction:
      value["signedTransactionInfo"]?.stringValue.map { text in
        var page = ServerAPIPage()
        page.transactions = [Array(text.utf8)]
        return .page(page)
      }
    case .statuses: statuses(value).map { .page($0) }
    case .notificationHistory:
      page(value, revision: "paginationToken").flatMap { page in
        guard let entries = value["notificationHistory"]?.arrayValue else { return nil }
        let payloads = entries.compactMap { $0["signedPayload"]?.stringValue }
        guard payloads.count == entries.count else { return nil }
        var page = page
        page.notifications = payloads.map { Array($0.utf8) }
        return .page(page)
      }
    case .requestTestNotification:
      value["testNotificationToken"]?.stringValue.map { .testToken($0) }
    case .testNotification: testResult(value).map { .testResult($0) }
    }
  }

  /// It is kept with each page, and goes into a URL. Apple's have some 50 bytes.
  private static let revisionBytesMax = 4_096

  /// The members that pages have in common. A page with a next one must say how to ask for it.
  private static func page(_ value: JSONValue, revision name: String) -> ServerAPIPage? {
    guard case .object = value else { return nil }
    var page = ServerAPIPage()
    page.bundleID = value["bundleId"]?.stringValue
    page.environment = value["environment"]?.stringValue
    page.revision = value[name]?.stringValue.flatMap { $0.isEmpty ? nil : $0 }
    if let revision = page.revision, revision.utf8.count > revisionBytesMax { return nil }
    if case .boolean(let hasMore)? = value["hasMore"] { page.hasMore = hasMore }
    return page.hasMore && page.revision == nil ? nil : page
  }

  private static func texts(_ value: JSONValue?) -> [[UInt8]]? {
    guard let list = value?.arrayValue else { return nil }
    let texts = list.compactMap { $0.stringValue.map { Array($0.utf8) } }
    return texts.count == list.count ? texts : nil
  }

  private static func statuses(_ value: JSONValue) -> ServerAPIPage? {
    guard let groups = value["data"]?.arrayValue else { return nil }
    var page = ServerAPIPage()
    page.bundleID = value["bundleId"]?.stringValue
    page.environment = value["environment"]?.stringValue
    for group in groups {
      for item in group["lastTransactions"]?.arrayValue ?? [] {
        if let text = item["signedTransactionInfo"]?.stringValue {
          page.transactions.append(Array(text.utf8))
        }
        if let text = item["signedRenewalInfo"]?.stringValue {
          page.renewals.append(Array(text.utf8))
        }
      }
    }
    return page
  }

  private static func testResult(_ value: JSONValue) -> TestNotificationResult? {
    guard let payload = value["signedPayload"]?.stringValue else { return nil }
    let attempts = (value["sendAttempts"]?.arrayValue ?? []).map { attempt in
      TestNotificationResult.Attempt(
        atMs: attempt["attemptDate"]?.integerValue,
        result: attempt["sendAttemptResult"]?.stringValue ?? "")
    }
    return TestNotificationResult(payload: Array(payload.utf8), attempts: attempts)
  }
}

// A client of the App Store's verifyReceipt: which endpoint is asked, and which replies count as answers.
package import AppStore
import Base

/// Asks the App Store: production first and, on status 21007 or 21008, once the other endpoint. Connections
/// are kept and reused. Each call starts at once; the caller limits how many run.
package final class VerifyReceiptClient: VerifyReceiptService {
  private let http: AppStoreSession
  /// How much of an answer that is not JSON is recorded.
  private static let otherBytesMax = 64 << 10

  /// Starts the client's thread. Throws unless `options.check()` passes.
  package init(_ options: VerifyReceiptOptions = .init()) throws(VerifyReceiptOptionsError) {
    try options.check()
    http = try AppStoreSession(
      production: try options.target(of: .production), sandbox: try options.target(of: .sandbox),
      connectTimeoutMs: options.connectTimeoutMs, timeoutMs: options.timeoutMs,
      answerBytesMax: options.answerBytesMax, callsMax: options.callsMax)
  }

  // Calls under way keep the client of HTTP alive, and must end nevertheless.
  deinit { http.close() }

  /// Implements the protocol. After `shutDown()`, the completion is called at once, on the caller's thread.
  package func verify(
    _ request: VerifyReceiptRequest,
    completion: @escaping @Sendable (VerifyReceiptResponse) -> Void
  ) {
    Call(
      http: http, body: Self.body(request), completion: completion,
      askedAtMs: MonotonicClock.nowMs()
    ).ask(.production, isSecond: false)
  }

  /// Ends all running and waiting calls with `.cancelled`, and waits until their completions have returned.
  /// When called from a completion, it does not wait. A second call does nothing.
  package func shutDown() { http.shutDown() }

  /// One call, as requested.
  private struct Call: Sendable {
    let http: AppStoreSession
    let body: [UInt8]
    let completion: @Sendable (VerifyReceiptResponse) -> Void
    /// Monotonic clock.
    let askedAtMs: Int64

    func ask(_ endpoint: AppStoreEndpoint, isSecond: Bool) {
      http.send(.post, to: endpoint, body: body) { outcome in
        let content = VerifyReceiptClient.content(outcome)
        if !isSecond, VerifyReceiptClient.pointsElsewhere(content) {
          return ask(endpoint.other, isSecond: true)
        }
        completion(
          VerifyReceiptResponse(
            content: content, endpoint: endpoint,
            host: outcome.wasStarted ? http.url(of: endpoint).host : nil,
            httpStatus: outcome.status, durationMs: MonotonicClock.nowMs() - askedAtMs))
      }
    }
  }

  // MARK: Bytes

  private static func body(_ request: VerifyReceiptRequest) -> [UInt8] {
    var writer = JSONWriter()
    writer.reserve(request.receiptText.count + 256)
    writer.beginObject()
    writer.key("receipt-data")
    request.receiptText.withUnsafeBytes { writer.string($0) }
    if let secret = request.sharedSecret {
      writer.key("password")
      secret.withUnsafeBytes { writer.string($0) }
    }
    writer.key("exclude-old-transactions")
    writer.boolean(false)
    writer.endObject()
    return writer.bytes
  }

  private static func content(_ outcome: HTTPOutcome) -> VerifyReceiptResponse.Content {
    if let failure = outcome.failure { return .none(AppStoreFailure(failure)) }
    return outcome.status == 200 ? content(outcome.body) : .none(.httpStatus)
  }

  private static func content(_ answer: [UInt8]) -> VerifyReceiptResponse.Content {
    var compact: [UInt8] = []
    compact.reserveCapacity(answer.count)
    let isJSON = answer.withUnsafeBytes { bytes in
      do throws(JSONError) { try JSONValidator.compact(bytes, to: &compact) } catch { return false }
      return true
    }
    return isJSON ? .json(compact) : .other(Array(answer.prefix(otherBytesMax)))
  }

  /// Whether the status says to use the other endpoint.
  private static func pointsElsewhere(_ content: VerifyReceiptResponse.Content) -> Bool {
    guard case .json(let bytes) = content else { return false }
    return bytes.withUnsafeBytes { bytes in
      let keeper = TextKeeper()
      let status = try? Reply(bytes, keeper).status
      return status == ReplyStatus.isFromSandbox || status == ReplyStatus.isFromProduction
    }
  }
}

// MARK: - The interface for asking the App Store about a receipt: request, result, protocol

/// One receipt to ask about.
package struct VerifyReceiptRequest: Sendable {
  /// Single-line standard base64.
  package let receiptText: [UInt8]
  /// The app's shared secret; nil for apps without subscriptions.
  package let sharedSecret: [UInt8]?

  package init(receiptText: [UInt8], sharedSecret: [UInt8]?) {
    self.receiptText = receiptText
    self.sharedSecret = sharedSecret
  }
}

/// The result of one call, after the switch of endpoints if there was one.
package struct VerifyReceiptResponse: Sendable {
  package enum Content: Sendable {
    /// One valid JSON value, without white space between tokens; tokens and order as sent.
    case json([UInt8])
    /// An answer that is not JSON: its first 64 KiB.
    case other([UInt8])
    /// There was no answer to record.
    case none(AppStoreFailure)
  }

  package let content: Content
  /// The endpoint that was called last.
  package let endpoint: AppStoreEndpoint
  /// That endpoint's host, as `VerifyReceiptOptions.host(of:)` returns it; nil if none was called.
  package let host: String?
  /// The HTTP status of the last answer; nil if there was none.
  package let httpStatus: Int?
  /// The total time in milliseconds.
  package let durationMs: Int64

  package init(
    content: Content, endpoint: AppStoreEndpoint, host: String?, httpStatus: Int?,
    durationMs: Int64
  ) {
    self.content = content
    self.endpoint = endpoint
    self.host = host
    self.httpStatus = httpStatus
    self.durationMs = durationMs
  }
}

/// A service that can ask the App Store.
package protocol VerifyReceiptService: AnyObject, Sendable {
  /// Sends the request and calls `completion` exactly once, on a thread of the service. Never blocks.
  func verify(
    _ request: VerifyReceiptRequest, completion: @escaping @Sendable (VerifyReceiptResponse) -> Void
  )
}

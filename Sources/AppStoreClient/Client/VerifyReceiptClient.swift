// A client of the App Store's verifyReceipt: which endpoint is asked, and which replies count as answers.
private import AppStore
private import Base
private import JSON

/// Asks the App Store: production first and, on status 21007 or 21008, once the other endpoint. Connections
/// are kept and reused. Each call starts at once; the caller limits how many run.
package final class VerifyReceiptClient: VerifyReceiptService {
  private let http: HTTPClient
  private let targets: Targets

  /// The endpoints' addresses.
  private struct Targets: Sendable {
    let production: EndpointTarget
    let sandbox: EndpointTarget

    subscript(_ endpoint: AppStoreEndpoint) -> EndpointTarget {
      endpoint == .production ? production : sandbox
    }
  }

  /// How much of an answer that is not JSON is recorded.
  private static let otherBytesMax = 64 << 10

  /// Starts the client's thread. Throws unless `options.check()` passes.
  package init(_ options: VerifyReceiptOptions = .init()) throws(VerifyReceiptOptionsError) {
    try options.check()
    targets = Targets(
      production: try options.target(of: .production), sandbox: try options.target(of: .sandbox))
    let httpOptions = HTTPClientOptions(
      connectTimeoutMs: options.connectTimeoutMs, timeoutMs: options.timeoutMs,
      answerBytesMax: options.answerBytesMax, callsMax: options.callsMax)
    do throws(HTTPClientError) { http = try HTTPClient(httpOptions) } catch {
      throw .noResources(error.cause)
    }
  }

  // Calls under way keep the client of HTTP alive, and must end nevertheless.
  deinit { http.close() }

  /// Implements the protocol. After `shutDown()`, the completion is called at once, on the caller's thread.
  package func verify(
    _ request: VerifyReceiptRequest,
    completion: @escaping @Sendable (VerifyReceiptAnswer) -> Void
  ) {
    Call(
      http: http, targets: targets, body: Self.body(request), completion: completion,
      askedAtMs: MonotonicClock.nowMs()
    ).ask(.production, isSecond: false)
  }

  /// Ends all running and waiting calls with `.cancelled`, and waits until their completions have returned.
  /// When called from a completion, it does not wait. A second call does nothing.
  package func shutDown() { http.shutDown() }

  /// One call, as requested.
  private struct Call: Sendable {
    let http: HTTPClient
    let targets: Targets
    let body: [UInt8]
    let completion: @Sendable (VerifyReceiptAnswer) -> Void
    /// Monotonic clock.
    let askedAtMs: Int64

    func ask(_ endpoint: AppStoreEndpoint, isSecond: Bool) {
      http.send(HTTPRequest(targets[endpoint], .post, body: body)) { outcome in
        let content = VerifyReceiptClient.content(outcome)
        if !isSecond, VerifyReceiptClient.pointsElsewhere(content) {
          return ask(endpoint.other, isSecond: true)
        }
        completion(
          VerifyReceiptAnswer(
            content: content, endpoint: endpoint,
            host: outcome.wasStarted ? targets[endpoint].host : nil, httpStatus: outcome.status,
            durationMs: MonotonicClock.nowMs() - askedAtMs))
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

  private static func content(_ outcome: HTTPOutcome) -> VerifyReceiptAnswer.Content {
    switch outcome.content {
    case .failure(let failure):
      .none(VerifyReceiptFailure(rawValue: failure.rawValue) ?? .connectionFailed)
    case .answer(let bytes): outcome.status == 200 ? content(bytes) : .none(.httpStatus)
    }
  }

  private static func content(_ answer: [UInt8]) -> VerifyReceiptAnswer.Content {
    var compact: [UInt8] = []
    compact.reserveCapacity(answer.count)
    let isJSON = answer.withUnsafeBytes { bytes in
      do throws(JSONError) { try JSONValidator.compact(bytes, to: &compact) } catch { return false }
      return true
    }
    return isJSON ? .json(compact) : .other(Array(answer.prefix(otherBytesMax)))
  }

  /// Whether the status says to use the other endpoint.
  private static func pointsElsewhere(_ content: VerifyReceiptAnswer.Content) -> Bool {
    guard case .json(let bytes) = content else { return false }
    return bytes.withUnsafeBytes { bytes in
      let keeper = TextKeeper()
      let status = try? Reply(bytes, keeper).status
      return status == ReplyStatus.isFromSandbox || status == ReplyStatus.isFromProduction
    }
  }
}

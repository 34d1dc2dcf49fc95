// What is sent for one call, once behaviour and receipt have been weighed.
import AppStore
import Base

/// An answer, or the lack of one.
enum ResponsePlan: Sendable {
  enum Pace: Sendable, Equatable {
    case atOnce
    /// Ends in the middle.
    case cut
    /// Spread over so long.
    case slow(ms: Int64)
  }

  case answer(
    httpStatus: Int, contentType: String, body: [UInt8], pace: Pace, retryAfter: String? = nil)
  /// A JSON object of so many bytes.
  case padding(bytes: Int64)
  /// The connection is closed.
  case none

  static let jsonType = "application/json;charset=utf-8"

  static func json(_ text: String) -> ResponsePlan {
    .answer(httpStatus: 200, contentType: jsonType, body: Array(text.utf8), pace: .atOnce)
  }
}

/// How long to wait before an answer, and whether it hangs.
struct Pause: Sendable {
  var ms: Int64 = 0
  /// Ends with the connection's end.
  var isHang = false
}

extension CallPlan {
  var pause: Pause {
    var pause = Pause()
    for behaviour in behaviours {
      switch behaviour {
      case .delay(let ms): pause.ms += ms
      case .hang(let ms):
        pause.ms += ms
        pause.isHang = true
      default: break
      }
    }
    return pause
  }

  private var isTyped: Bool { behaviours.contains(.typed) }

  private var pace: ResponsePlan.Pace {
    for behaviour in behaviours {
      switch behaviour {
      case .cutBody: return .cut
      case .slowBody(let ms): return .slow(ms: ms)
      default: continue
      }
    }
    return .atOnce
  }

  /// The answer to a call of the App Store Server API, with its HTTP status. A behaviour comes before everything else;
  /// then the token is looked at, then the rate.
  /// - Parameter freeAtMs: nil where there is a call left in this second, else when there is one.
  func answer(
    to request: ServerAPIRequest, by desk: ServerAPIDesk, freeAtMs: Int64?
  ) -> (plan: ResponsePlan, status: Int?) {
    for behaviour in behaviours where !behaviour.isModifier {
      guard let replaced = replacement(behaviour) else { continue }
      if case .answer(let httpStatus, _, _, _, _) = replaced.plan {
        return (replaced.plan, httpStatus)
      }
      return (replaced.plan, nil)
    }
    let nowMs = Timestamp.now()
    guard desk.token.isGood(request.authorization, nowSeconds: nowMs / 1000) else {
      let plan = ResponsePlan.answer(
        httpStatus: 401, contentType: "text/plain", body: Array("Unauthenticated\n".utf8),
        pace: pace)
      return (plan, 401)
    }
    if let freeAtMs { return refusal(.rate, retryAfter: String(freeAtMs)) }
    do {
      let moment = ServerAPIDesk.Moment(memory: memory, nowMs: self.nowMs, signedMs: nowMs)
      let body = try desk.answer(request, moment)
      return (
        .answer(httpStatus: 200, contentType: "application/json", body: body, pace: pace), 200
      )
    } catch { return refusal(error as? ServerAPIError ?? .unknown) }
  }

  private func refusal(
    _ error: ServerAPIError, retryAfter: String? = nil
  ) -> (plan: ResponsePlan, status: Int?) {
    let plan = ResponsePlan.answer(
      httpStatus: error.httpStatus, contentType: "application/json", body: error.body, pace: pace,
      retryAfter: retryAfter)
    return (plan, error.httpStatus)
  }

  /// The answer to a posted body, with the status of verifyReceipt that it bears.
  func answer(
    to body: [UInt8], at endpoint: AppStoreEndpoint, by desk: FakeVerifyReceipt
  ) -> (plan: ResponsePlan, status: Int?) {
    for behaviour in behaviours where !behaviour.isModifier {
      if let replaced = replacement(behaviour) { return replaced }
    }
    let answer = desk.answer(body, at: endpoint, memory: memory, nowMs: nowMs, isTyped: isTyped)
    return (
      .answer(
        httpStatus: 200, contentType: ResponsePlan.jsonType, body: answer.body, pace: pace),
      answer.status
    )
  }

  private func replacement(_ behaviour: Behaviour) -> (plan: ResponsePlan, status: Int?)? {
    switch behaviour {
    case .hang, .cut: return (.none, nil)
    case .httpStatus(let status):
      let page = "<html><body><h1>\(status)</h1></body></html>"
      return (
        .answer(
          httpStatus: status, contentType: "text/html", body: Array(page.utf8), pace: pace), nil
      )
    case .status(let status, let members):
      let object = JSONValue.object([JSONValue.Member("status", .number(String(status)))] + members)
      return (
        .answer(
          httpStatus: 200, contentType: ResponsePlan.jsonType, body: object.bytes, pace: pace),
        status
      )
    case .apiError(let code, let retryAfter):
      return refusal(ServerAPIError(code: code), retryAfter: retryAfter)
    case .notJSON:
      return (
        .answer(
          httpStatus: 200, contentType: "text/html",
          body: Array("<html><body>The App Store will be back soon.</body></html>".utf8),
          pace: pace), nil
      )
    case .empty:
      return (
        .answer(httpStatus: 200, contentType: ResponsePlan.jsonType, body: [], pace: pace), nil
      )
    case .wrongTypes:
      return (
        .json(
          #"{"status":{"code":0},"environment":7,"receipt":["in_app"],"#
            + #""latest_receipt_info":"none","pending_renewal_info":{"0":null}}"#), nil
      )
    case .huge(let bytes): return (.padding(bytes: bytes), 0)
    case .delay, .typed, .cutBody, .slowBody: return nil
    }
  }
}

// The reply of the App Store about one receipt, for `verify --app-store`.
import AppStore
import AppStoreClient
import Base
import Glibc
import Intake
import Ledger

/// A parsed reply, or the reason why there is none.
struct AppStoreFinding {
  let answer: VerifyReceiptAnswer
  private(set) var outcome = Outcome.unreachable
  private(set) var status: Int64?
  private(set) var environment: String?
  private(set) var bundleID: String?
  private(set) var purchases: [PurchaseLine] = []

  init(_ answer: VerifyReceiptAnswer) throws {
    self.answer = answer
    guard case .json(let bytes) = answer.content else { return }
    try bytes.withUnsafeBytes { bytes in
      let keeper = TextKeeper()
      let reply = try Reply(bytes, keeper)
      outcome = reply.outcome
      status = reply.status
      environment = reply.environment.map { String(decoding: $0, as: UTF8.self) }
      bundleID = reply.bundleID.map { String(decoding: $0, as: UTF8.self) }
      purchases = reply.rows.map { PurchaseLine($0) }
    }
  }

  /// Asks the App Store, and waits for the reply or a signal.
  static func ask(
    _ request: VerifyReceiptRequest, _ options: VerifyReceiptOptions, _ context: Context
  ) throws -> AppStoreFinding {
    let client = try VerifyReceiptClient(options)
    defer { client.shutDown() }
    let arrived = Arrival()
    client.verify(request) { arrived.set($0) }
    while true {
      try context.interruption.check()
      if let answer = arrived.answer { return try AppStoreFinding(answer) }
      poll(nil, 0, 10)
    }
  }

  /// The client's thread stores the reply here.
  private final class Arrival: Sendable {
    private let kept = Monitor<VerifyReceiptAnswer?>(nil)

    var answer: VerifyReceiptAnswer? { kept.withLock { $0 } }
    func set(_ answer: VerifyReceiptAnswer) { kept.withLock { $0 = answer } }
  }

  /// The result in a few words.
  var verdict: String {
    switch answer.content {
    case .none(.httpStatus):
      return "no reply: HTTP status \(answer.httpStatus.map { "\($0)" } ?? "none")"
    case .none(let failure): return "no reply: \(failure.meaning)"
    case .other: return "no reply: the response is not JSON"
    case .json: break
    }
    guard let status else { return "no reply: the JSON has no status" }
    return "status \(status): \(ReplyStatus.meaning(status) ?? "not a documented status")"
  }

  var fields: Fields {
    var fields = [("App Store", verdict), ("endpoint", answer.endpoint.rawValue)]
    if let environment { fields.append(("environment", environment)) }
    if let bundleID { fields.append(("bundle id", bundleID)) }
    return fields
  }

  var record: Record {
    var failure: String?
    if case .none(let cause) = answer.content { failure = cause.rawValue }
    var reply: RawJSON?
    if case .json(let bytes) = answer.content { reply = RawJSON(bytes: bytes) }
    return [
      "outcome": outcome.rawValue, "status": status, "explanation": verdict,
      "endpoint": answer.endpoint.rawValue, "http_status": answer.httpStatus,
      "duration_ms": answer.durationMs, "failure": failure, "environment": environment,
      "bundle_id": bundleID, "purchases": purchases.map(\.record), "reply": reply,
    ]
  }
}

// What is kept of a webhook over restarts: how far the log was read, and what waits.
import Base
import Glibc
package import Ledger
package import Projections

/// The content of `webhooks/ID.json`.
package struct WebhookState: Equatable, Sendable {
  /// A delivery that was read and has not succeeded.
  package struct Waiting: Equatable, Sendable {
    package var point: ChangePoint
    /// How many attempts have failed.
    package var attempts: Int
    /// Epoch milliseconds.
    package var dueMs: Int64

    package init(point: ChangePoint, attempts: Int, dueMs: Int64) {
      self.point = point
      self.attempts = attempts
      self.dueMs = dueMs
    }
  }

  /// Why nothing is sent until an operator acts.
  package enum DisabledCause: String, Sendable {
    case gone = "the receiver answered 410"
    case failures = "no delivery has succeeded for days"
  }

  package struct Disabled: Equatable, Sendable {
    package var atMs: Int64
    package var cause: DisabledCause
    /// Of the URL and secret that it holds for: others are enabled.
    package var webhookSHA256Hex: String

    package init(atMs: Int64, cause: DisabledCause, webhookSHA256Hex: String) {
      (self.atMs, self.cause, self.webhookSHA256Hex) = (atMs, cause, webhookSHA256Hex)
    }
  }

  /// Where reading goes on; everything before was delivered, or waits.
  package var next: ChangePoint
  /// In order.
  package var waiting: [Waiting] = []
  /// When the first attempt failed after the last success; nil while all is well.
  package var failingSinceMs: Int64?
  package var lastFailure: String?
  package var lastSuccessMs: Int64?
  package var disabled: Disabled?

  package init(next: ChangePoint) { self.next = next }

  /// Everything before was delivered.
  package var cursor: ChangePoint { waiting.first?.point ?? next }

  /// The same for a log that has so many events: what it may have told beyond was lost with them.
  package func bounded(by size: Position) -> WebhookState {
    var state = self
    state.next = min(next, ChangePoint(size))
    state.waiting.removeAll { $0.point >= state.next }
    return state
  }

  // MARK: JSON

  package var bytes: [UInt8] {
    func time(_ ms: Int64?) -> JSONValue { ms.map { .string(Timestamp.text(ms: $0)) } ?? .null }
    func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
    return JSONValue.object([
      .init("next", .string(next.description)),
      .init(
        "waiting",
        .array(
          waiting.map {
            .object([
              .init("at", .string($0.point.description)),
              .init("attempts", .number(String($0.attempts))), .init("due_at", time($0.dueMs)),
            ])
          })),
      .init("failing_since", time(failingSinceMs)), .init("last_failure", text(lastFailure)),
      .init("last_success_at", time(lastSuccessMs)),
      .init(
        "disabled",
        disabled.map {
          .object([
            .init("at", time($0.atMs)), .init("cause", .string($0.cause.rawValue)),
            .init("webhook_sha256", .string($0.webhookSHA256Hex)),
          ])
        } ?? .null),
    ]).bytes
  }

  /// Nil for what no server has written.
  package init?(_ bytes: [UInt8]) {
    guard let root = try? JSONValue(bytes), let next = root["next"]?.stringValue,
      let next = ChangePoint(next), let elements = root["waiting"]?.arrayValue,
      elements.count <= WebhookQueue.windowMax
    else { return nil }
    self.next = next
    for element in elements {
      guard let at = element["at"]?.stringValue, let point = ChangePoint(at), point < next,
        waiting.last.map({ $0.point < point }) ?? true,
        let attempts = element["attempts"]?.integerValue,
        (0...Int64(Int32.max)).contains(attempts),
        let dueMs = Self.time(element["due_at"])
      else { return nil }
      waiting.append(Waiting(point: point, attempts: Int(attempts), dueMs: dueMs))
    }
    failingSinceMs = Self.time(root["failing_since"])
    lastFailure = root["last_failure"]?.stringValue
    lastSuccessMs = Self.time(root["last_success_at"])
    guard let disabled = root["disabled"], disabled != .null else { return }
    guard let atMs = Self.time(disabled["at"]),
      let cause = disabled["cause"]?.stringValue.flatMap(DisabledCause.init),
      let sha256 = disabled["webhook_sha256"]?.stringValue
    else { return nil }
    self.disabled = Disabled(atMs: atMs, cause: cause, webhookSHA256Hex: sha256)
  }

  private static func time(_ value: JSONValue?) -> Int64? {
    value?.stringValue.flatMap { try? Timestamp.parse($0) }
  }
}

/// The files of webhooks in a ledger's directory.
package struct WebhookFiles: Sendable {
  package static let folderName = "webhooks"
  private static let sizeBytesMax = 1 << 20

  private let root: Folder

  /// A file's content for a log that has so many events: a state or a request that is beyond it is set to its end.
  package static func bounded(_ bytes: [UInt8], by size: Position) -> [UInt8] {
    if let state = WebhookState(bytes) { return state.bounded(by: size).bytes }
    guard let from = (try? JSONValue(bytes))?["from"]?.integerValue, from > size else {
      return bytes
    }
    return Request.begin(from: size).bytes
  }

  package init(_ directory: LedgerDirectory) { root = directory.root }

  /// Nil where nothing was kept of the app family's webhook.
  package func state(of family: String) throws(LedgerError) -> WebhookState? {
    guard let bytes = try content(family + ".json") else { return nil }
    guard let state = WebhookState(bytes) else {
      throw LedgerError(
        .invalidInput, operation: "read", object: "\(Self.folderName)/\(family).json",
        cause: "it is not the state of a webhook; 'ledgerctl webhook replay' replaces it")
    }
    return state
  }

  package func store(_ state: WebhookState, of family: String) throws(LedgerError) {
    try folder().replaceFile(family + ".json", with: state.bytes)
  }

  /// What an operator wants of the server, which removes the request once it follows.
  package enum Request: Equatable, Sendable {
    /// The deliveries begin again.
    case begin(from: Position)
    /// A webhook that was disabled goes on where it stopped.
    case enable

    fileprivate var bytes: [UInt8] {
      let member: JSONValue.Member =
        switch self {
        case .begin(let position): .init("from", .number(String(position)))
        case .enable: .init("enable", .boolean(true))
        }
      return JSONValue.object([member]).bytes
    }
  }

  /// Nil where nobody asked for anything.
  package func request(of family: String) throws(LedgerError) -> Request? {
    guard let bytes = try content(family + ".request"), let request = try? JSONValue(bytes) else {
      return nil
    }
    if let from = request["from"]?.integerValue { return .begin(from: Position(max(0, from))) }
    return request["enable"] == .boolean(true) ? .enable : nil
  }

  package func put(_ request: Request, of family: String) throws(LedgerError) {
    // What begins again is enabled.
    if request == .enable, case .begin = try self.request(of: family) { return }
    try folder().replaceFile(family + ".request", with: request.bytes)
  }

  package func removeRequest(of family: String) throws(LedgerError) {
    try folder().unlink(family + ".request")
  }

  private func content(_ name: String) throws(LedgerError) -> [UInt8]? {
    guard let folder = try root.folderIfPresent(Self.folderName) else { return nil }
    do throws(LedgerError) {
      return try folder.openFile(name, .readOnly).readSmall(byteCountMax: Self.sizeBytesMax)
    } catch {
      if error.code == ENOENT { return nil }
      throw error
    }
  }

  /// Root makes it for the ledger's owner.
  private func folder() throws(LedgerError) -> Folder {
    if let folder = try root.folderIfPresent(Self.folderName) { return folder }
    let folder = try root.madeFolder(Self.folderName)
    try root.giveNewFolderToOwner(folder)
    try root.sync()
    return folder
  }
}

// A workflow over a real log and real projections, with a scripted App Store.
import AppStore
import Base
import Foundation
import HTTPClient
import Intake
import Ledger
import Projections
import Server
import Synchronization
import TestSupport
import Testing

/// Answers calls by a script, and holds back those for which the script returns nothing.
final class ScriptedAppStore: VerifyReceiptService {
  typealias Script =
    @Sendable (_ request: VerifyReceiptRequest, _ call: Int)
    -> VerifyReceiptResponse.Content?
  private struct Held {
    var request: VerifyReceiptRequest
    var completion: @Sendable (VerifyReceiptResponse) -> Void
  }
  private struct State {
    var script: Script
    var calls = 0
    var running = 0
    var runningMax = 0
    var held: [Held] = []
    var secrets: [[UInt8]?] = []
  }
  private let state: Monitor<State>

  init(_ script: @escaping Script) { state = Monitor(State(script: script)) }

  /// Gives these contents one after the other, then the last one repeatedly.
  static func saying(_ contents: VerifyReceiptResponse.Content...) -> ScriptedAppStore {
    ScriptedAppStore { _, call in contents[min(call, contents.count - 1)] }
  }

  var calls: Int { state.withLock { $0.calls } }
  var heldCount: Int { state.withLock { $0.held.count } }
  var runningMax: Int { state.withLock { $0.runningMax } }
  var secrets: [[UInt8]?] { state.withLock { $0.secrets } }

  func follow(_ script: @escaping Script) { state.withLock { $0.script = script } }

  func verify(
    _ request: VerifyReceiptRequest, completion: @escaping @Sendable (VerifyReceiptResponse) -> Void
  ) {
    let content = state.withLock { state -> VerifyReceiptResponse.Content? in
      defer { state.calls += 1 }
      state.secrets.append(request.sharedSecret)
      let content = state.script(request, state.calls)
      if content == nil {
        state.held.append(Held(request: request, completion: completion))
        state.running += 1
        state.runningMax = max(state.runningMax, state.running)
      }
      return content
    }
    if let content { completion(Self.answer(content)) }
  }

  /// Answers the calls that were held back.
  func release(_ content: VerifyReceiptResponse.Content) { release { _ in content } }

  /// Answers the calls that were held back with the purchases of each receipt.
  func releaseConfirming() { release { .confirming($0) } }

  private func release(_ content: (VerifyReceiptRequest) -> VerifyReceiptResponse.Content) {
    let held = state.withLock { state in
      defer {
        state.held = []
        state.running = 0
      }
      return state.held
    }
    for call in held { call.completion(Self.answer(content(call.request))) }
  }

  private static func answer(_ content: VerifyReceiptResponse.Content) -> VerifyReceiptResponse {
    VerifyReceiptResponse(
      content: content, endpoint: .production, host: "buy.itunes.apple.com", httpStatus: 200,
      durationMs: 1)
  }
}

extension VerifyReceiptResponse.Content {
  /// A reply with these rows.
  static func reply(_ rows: JSONText...) -> Self {
    .json(TestSupport.reply(rows: rows).bytes)
  }

  /// A reply that shows the purchases of the receipt asked about.
  static func confirming(_ request: VerifyReceiptRequest) -> Self {
    let file = try? ReceiptFile.decode(try Base64.decode(request.receiptText))
    let rows = (file?.purchases ?? []).map { row($0.transactionID ?? "") }
    return .json(TestSupport.reply(rows: rows).bytes)
  }

  static func status(_ status: Int, _ members: String = "") -> Self {
    .json(Array(#"{"status":\#(status)\#(members)}"#.utf8))
  }
}

/// Gives every signature the same verdict.
final class StatedChecker: SignatureChecker, Sendable {
  let verdict: LocalVerification
  private let checks = Atomic<Int>(0)

  init(_ verdict: LocalVerification) { self.verdict = verdict }

  /// How often it was asked.
  var count: Int { checks.load(ordering: .relaxed) }

  func check(_ receiptFile: UnsafeRawBufferPointer, _ receipt: Receipt) -> LocalVerification {
    checks.add(1, ordering: .relaxed)
    return verdict
  }
}

/// A response still to come.
final class AwaitedResponse: Sendable {
  private let value = Monitor<ClientResponse?>(nil)
  private let answers = Atomic<Int>(0)

  func set(_ answer: ClientResponse) {
    value.withLock { $0 = answer }
    answers.add(1, ordering: .releasing)
  }

  /// How often it was given.
  var count: Int { answers.load(ordering: .acquiring) }
  var now: ClientResponse? { value.withLock { $0 } }

  func wait(sourceLocation: SourceLocation = #_sourceLocation) throws -> ClientResponse {
    try waitUntil(sourceLocation: sourceLocation) { now != nil }
    return try #require(now)
  }
}

/// Waits for a condition, with a limit far above what any machine needs.
func waitUntil(
  sourceLocation: SourceLocation = #_sourceLocation, _ condition: () throws -> Bool
) throws {
  guard try !eventually(condition) else { return }
  Issue.record("waited in vain", sourceLocation: sourceLocation)
  throw CancellationError()
}

extension ClientResponse {
  /// The status as HTTP has it.
  var status: Int {
    switch self {
    case .receipt(let status, _): status
    case .ownership, .erasure: 200
    case .erasureAccepted: 202
    case .erasureNotFound: 404
    case .notification(.recorded), .notification(.known): 200
    case .notification(.refused): 422
    case .notification(.forged): 403
    case .notification(.retry): 503
    case .refused: 422
    case .notFound: 404
    case .unavailable, .later: 503
    }
  }

  var body: JSONValue? {
    switch self {
    case .receipt(_, let body), .ownership(let body), .erasure(let body),
      .erasureAccepted(_, let body):
      try? JSONValue(body.bytes)
    default: nil
    }
  }
}

/// What a workflow logged, and how often it gave up.
final class WorkflowNotes: Sendable {
  private let said = Monitor<[(level: LogLevel, text: String)]>([])
  private let fatal = Atomic<Int>(0)

  func say(_ text: String, _ level: LogLevel = .information) {
    said.withLock { $0.append((level, text)) }
  }
  func noteFatal() { fatal.add(1, ordering: .relaxed) }
  var lines: [String] { said.withLock { $0.map(\.text) } }
  /// The levels of the messages that contain a text.
  func levels(_ part: String) -> [LogLevel] {
    said.withLock { $0.filter { $0.text.contains(part) }.map(\.level) }
  }
  var fatalCount: Int { fatal.load(ordering: .relaxed) }
}

/// One ledger with one running workflow, which can be restarted.
final class WorkflowFixture {
  static let familyText = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"

  let temporary: TemporaryDirectory
  let directory: LedgerDirectory
  let appStore: ScriptedAppStore
  let family: UUID16
  let metrics = Metrics()
  let notes = WorkflowNotes()
  var configuration = Configuration()
  let checker: StatedChecker
  private let uploadsMax: Int
  private let questionsMax: Int
  private let clock: WorkflowClock
  /// Makes the next folds fail.
  let foldFault = FoldFault()
  /// The projections of the running workflow, or of the last one.
  private(set) var projections: LiveProjections?
  private var running: (writer: LedgerWriter, workflow: UploadWorkflow)?

  /// - Parameters:
  ///   - products: the products that the app declares.
  ///   - appAppleID: the number that the app declares.
  ///   - set: changes the configuration, in which pauses are short and no reply is reused.
  init(
    _ appStore: ScriptedAppStore, checker: LocalVerification = .valid,
    products: [AppRegistered.Product] = [], appAppleID: Int64? = nil,
    entitlements: [Entitlement] = [], uploadsMax: Int = 1000,
    questionsMax: Int = 1000, clock: WorkflowClock = WorkflowClock(),
    set: (inout Configuration) -> Void = { _ in }
  ) throws {
    temporary = try TemporaryDirectory()
    directory = try LedgerDirectory.create(
      path: temporary.path("ledger"), origin: "receipts.example/test")
    family = try #require(UUID16(Self.familyText))
    self.appStore = appStore
    configuration.verification.retryFirstMs = 1
    configuration.verification.retryCeilingMs = 5
    configuration.verification.reuseReplyMs = 0
    set(&configuration)
    self.checker = StatedChecker(checker)
    self.uploadsMax = uploadsMax
    self.questionsMax = questionsMax
    self.clock = clock
    let writer = try LedgerWriter.open(directory)
    let app = AppRegistered(
      appFamilyID: Self.familyText, name: "App", bundleIDs: ["app"], products: products,
      appAppleID: appAppleID, entitlements: entitlements)
    _ = try writer.append([
      EventDraft(type: EventType.appRegistered.rawValue, version: 1, data: app.data)
    ])
    try writer.close()
    try start()
  }

  deinit { stop() }

  var workflow: UploadWorkflow {
    get throws { try #require(running?.workflow) }
  }

  var writer: LedgerWriter {
    get throws { try #require(running?.writer) }
  }

  func start(isSingleRun: Bool = false) throws {
    let writer = try LedgerWriter.open(directory)
    var options = WorkflowOptions()
    options.workerCount = 2
    options.uploadsMax = uploadsMax
    options.questionsMax = questionsMax
    options.clock = clock
    options.log = { [notes] in notes.say($1, $0) }
    options.onFatal = { [notes] in notes.noteFatal() }
    let live = try LiveProjections(directory)
    projections = live
    let workflow = UploadWorkflow(
      writer: writer,
      projections: FaultyProjections(live, foldFault),
      appStore: appStore,
      configuration: configuration, checker: checker, metrics: metrics, options: options,
      isSingleRun: isSingleRun)
    running = (writer, workflow)
    try workflow.start()
  }

  /// Ends the workflow; calls that are held back are cancelled after the grace.
  func stop(graceMs: Int64 = 0) {
    guard let (writer, workflow) = running else { return }
    running = nil
    workflow.stop(graceMs: graceMs) { [appStore] in appStore.release(.none(.cancelled)) }
    try? writer.close()
  }

  // MARK: Uploads

  /// Sends an upload and does not wait.
  func send(_ file: [UInt8], user: String? = nil) throws -> AwaitedResponse {
    let name = user.map { #","user_identifier":"\#($0)""# } ?? ""
    let request = Array(
      #"{"receipt":"\#(Base64.text(file))","country_code":"DE"\#(name)}"#.utf8)
    let read = try request.withUnsafeBytes { bytes in
      var cursor = JSONCursor(bytes)
      var reader = UploadFieldReader()
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        let isTaken = try reader.read(key, from: &cursor)
        try #require(isTaken)
      }
      return reader.finish()
    }
    let fields = try #require(read)
    let answer = AwaitedResponse()
    try workflow.upload(
      ClientUpload(
        fields: fields, appFamily: family, peerAddress: "192.0.2.7",
        receivedAtMs: Int64(Date().timeIntervalSince1970 * 1000))
    ) { answer.set($0) }
    return answer
  }

  /// Sends an upload of a receipt with one purchase, and waits for the response.
  @discardableResult
  func upload(_ transaction: String, user: String? = nil) throws -> ClientResponse {
    try send(Self.file(transaction), user: user).wait()
  }

  static func file(_ transaction: String) -> [UInt8] {
    ReceiptFileText.unified(.init(transaction)).bytes
  }

  /// Looks a receipt up by the id in a response.
  func look(_ answer: ClientResponse) throws -> ClientResponse {
    let id = try #require(UUID16(answer.body?["id"]?.stringValue ?? ""))
    let found = AwaitedResponse()
    try workflow.receipt(id, of: family) { found.set($0) }
    return try found.wait()
  }

  // MARK: Contents of the log

  struct Recorded {
    var position: Position
    var type: String
    var version: Int64
    var data: JSONValue
  }

  func events() throws -> [Recorded] {
    let reader = try LogReader(directory)
    return try (0..<reader.head.size).map { position in
      let line = try JSONValue(try reader.event(at: position))
      return Recorded(
        position: position, type: line["type"]?.stringValue ?? "",
        version: line["v"]?.integerValue ?? 0,
        data: try #require(line["data"]))
    }
  }

  /// Verifications by the App Store, in order, as `upload outcome reason status`, with `->` and a position for a reused
  /// reply.
  func verdicts() throws -> [String] {
    try events().filter { $0.data["authority"]?.stringValue == "app_store" }.map { event in
      var words = [
        "\(event.data["upload"]?.integerValue ?? -1)", event.data["outcome"]?.stringValue ?? "",
      ]
      if let reason = event.data["reason"]?.stringValue { words.append(reason) }
      if let status = event.data["status"]?.integerValue { words.append("\(status)") }
      if let position = event.data["reply_of"]?.integerValue { words.append("->\(position)") }
      return words.joined(separator: " ")
    }
  }

  /// What waits for the App Store according to projections that were built from nothing.
  func waitingAfterRebuild() throws -> Int {
    try Projector(try LogReader(directory)).rebuild()
    return try LiveProjections(directory).waitingSummary().receipts
  }
}

/// Numbers texts in the order in which they first appear.
final class TextNumbers: Sendable {
  private let numbers = Monitor<[[UInt8]: Int]>([:])

  func number(of text: [UInt8]) -> Int {
    numbers.withLock { numbers in
      if let number = numbers[text] { return number }
      numbers[text] = numbers.count
      return numbers.count - 1
    }
  }
}

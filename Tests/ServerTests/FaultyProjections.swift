// Live projections whose folds fail on demand, and clocks that a test sets.
import Base
import Ledger
import Projections
import Server
import Synchronization

/// Whether folds fail.
final class FoldFault: Sendable {
  private let isSet = Atomic<Bool>(false)

  private let failsLookups = Atomic<Bool>(false)

  /// Folds that wait, while they must.
  private let held = Monitor((isSet: false, count: 0), conditionCount: 1)

  struct Failure: Error {}

  /// Whether looking up notifications fails.
  func setLookups(failing: Bool) { failsLookups.store(failing, ordering: .sequentiallyConsistent) }

  func checkLookup() throws {
    if failsLookups.load(ordering: .sequentiallyConsistent) { throw Failure() }
  }

  func set(_ value: Bool) { isSet.store(value, ordering: .sequentiallyConsistent) }

  /// Makes folds wait.
  func hold() { held.withLock { $0.isSet = true } }

  var heldCount: Int { held.withLock { $0.count } }

  func release() {
    held.withLock { $0.isSet = false }
    held.broadcast(0)
  }

  func check() throws {
    held.withLock { $0.count += 1 }
    held.wait(on: 0) { $0.isSet ? nil : () }
    if isSet.load(ordering: .sequentiallyConsistent) { throw Failure() }
  }
}

/// Asks live projections, unless a fold is set to fail.
final class FaultyProjections: WorkflowProjections {
  private let live: LiveProjections
  private let fault: FoldFault

  init(_ live: LiveProjections, _ fault: FoldFault) { (self.live, self.fault) = (live, fault) }

  func catchUp() throws {
    try fault.check()
    try live.catchUp()
  }

  func closeSealedTails() throws(LedgerError) { try live.closeSealedTails() }

  var position: Position { live.position }

  func appFamily(ofBundle bundleID: String) -> UUID16? { live.appFamily(ofBundle: bundleID) }

  func appFamily(_ id: UUID16) -> AppFamily? { live.appFamily(id) }

  func answers(
    uploads: ArraySlice<FoldedUpload>, byteCountMax: Int
  ) throws -> [Result<ClientReceipt?, any Error>] {
    try live.answers(uploads: uploads, byteCountMax: byteCountMax)
  }

  func answer(receiptID: UUID16, appFamily: UUID16) throws -> ClientReceipt? {
    try live.answer(receiptID: receiptID, appFamily: appFamily)
  }

  func answer(
    _ question: OwnershipQuestion, about user: String, of family: UUID16, atMs: Int64
  ) throws -> OwnershipResponse {
    try live.answer(question, about: user, of: family, atMs: atMs)
  }

  func waiting(afterReceipt: Int64, limit: Int) throws -> [WaitingReceipt] {
    try live.waiting(afterReceipt: afterReceipt, limit: limit)
  }

  func waitingUploads(
    ofReceipt receiptID: UUID16, appFamily: UUID16, _ part: WaitingPart
  ) throws -> [WaitingUpload] {
    try live.waitingUploads(ofReceipt: receiptID, appFamily: appFamily, part)
  }

  func waitingUpload(at position: Position) throws -> WaitingUpload? {
    try live.waitingUpload(at: position)
  }

  func waitingSummary() throws -> (receipts: Int, oldestMs: Int64?) { try live.waitingSummary() }

  func undeclaredProducts() throws -> [UndeclaredProduct] { try live.undeclaredProducts() }

  func containsNotification(uuid: String) throws -> Bool {
    try fault.checkLookup()
    return try live.containsNotification(uuid: uuid)
  }

  func recentReply(
    ofReceipt receiptID: UUID16, appFamily: UUID16, givenInMs times: ClosedRange<Int64>
  ) throws -> RecentReply? {
    try live.recentReply(ofReceipt: receiptID, appFamily: appFamily, givenInMs: times)
  }
}

/// The system's clocks, shifted by a test.
final class MovableClock: Sendable {
  private let aheadMs = Atomic<Int>(0)

  /// How far these clocks are ahead of the system's.
  func set(aheadMs: Int) { self.aheadMs.store(aheadMs, ordering: .sequentiallyConsistent) }

  private var offsetMs: Int64 { Int64(aheadMs.load(ordering: .sequentiallyConsistent)) }

  /// Moves both clocks. In a test, the clock for pauses may go back as well.
  var clock: WorkflowClock {
    let system = WorkflowClock()
    return WorkflowClock(
      nowMs: { self.offsetMs + system.nowMs() },
      monotonicMs: { self.offsetMs + system.monotonicMs() })
  }

  /// A clock for pauses that only the test moves.
  var monotonicOffsetMs: Int64 { offsetMs }

  /// Moves the time of day alone.
  var timeOfDay: WorkflowClock {
    let system = WorkflowClock()
    return WorkflowClock(
      nowMs: { self.offsetMs + system.nowMs() }, monotonicMs: { system.monotonicMs() })
  }
}

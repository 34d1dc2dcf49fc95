// What the workflow asks of the projections.
package import Base
package import Ledger
package import Projections

/// The read side that the workflow works with. Any thread may ask; one thread at a time catches up.
package protocol WorkflowProjections: AnyObject, Sendable {
  /// Folds every durable event.
  func catchUp() throws
  /// Lets go of tails that have become blocks.
  func letGoOfTails() throws(LedgerError)
  /// How many events are folded.
  var position: Position { get }
  /// The app family that has registered a bundle id.
  func appFamily(ofBundle bundleID: String) -> UUID16?
  /// The receipts as the uploads at some positions see them; nil where there is none. The first of them
  /// at least; no more once they take this many bytes in memory.
  func answers(
    uploads: ArraySlice<Position>, byteCountMax: Int
  ) throws -> [Result<ClientReceipt?, any Error>]
  /// The receipt as its newest upload sees it; nil where the app family has none such.
  func answer(receiptID: UUID16, appFamily: UUID16) throws -> ClientReceipt?
  /// Pending receipts, by number.
  func waiting(afterReceipt: Int64, limit: Int) throws -> [WaitingReceipt]
  /// The uploads of a receipt that wait, by position.
  func waitingUploads(
    ofReceipt receiptID: UUID16, appFamily: UUID16, _ part: WaitingPart
  ) throws -> [WaitingUpload]
  /// The upload at a position; nil where none waits there.
  func waitingUpload(at position: Position) throws -> WaitingUpload?
  /// How many receipts wait, and since when, in epoch milliseconds.
  func waitingSummary() throws -> (receipts: Int, oldestMs: Int64?)
  /// Products that sell though their apps, which declare others, do not declare them.
  func undeclaredProducts() throws -> [UndeclaredProduct]
  /// The newest final answer for a receipt, unless it was given at another time (epoch milliseconds).
  func recentReply(
    ofReceipt receiptID: UUID16, appFamily: UUID16, givenInMs times: ClosedRange<Int64>
  ) throws -> RecentReply?
}

extension WorkflowProjections {
  /// Those that have no files open need not do anything.
  package func letGoOfTails() {}
}

extension LiveProjections: WorkflowProjections {}

extension ClientReceipt {
  /// As the client API answers: 402 if and only if it is a fraud, 206 while it is pending.
  var answer: ClientAnswer {
    .receipt(status: isFraud ? 402 : isPending ? 206 : 200, body: body)
  }
}

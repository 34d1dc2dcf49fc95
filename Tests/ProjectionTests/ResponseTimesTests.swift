// Approximate times of replies: never too early, whichever process folded the reply.
import Ledger
import Revenue
import TestSupport
import Testing

import Projections

@Suite struct ResponseTimesTests {
  private static func mayHold(_ times: ResponseTimes, _ id: String, since atMs: Int64) -> Bool {
    withText(id) { times.mayHold($0, since: atMs) }
  }

  @Test func aReceiptsNewestAnswerDecides() {
    let times = ResponseTimes()
    #expect(!Self.mayHold(times, "a", since: 0))
    withText("a") { times.note($0, atMs: 20) }
    withText("a") { times.note($0, atMs: 10) }
    #expect(Self.mayHold(times, "a", since: 20))
    #expect(!Self.mayHold(times, "a", since: 21))
    times.noteAll(atMs: 15)
    #expect(Self.mayHold(times, "a", since: 20))
    #expect(Self.mayHold(times, "b", since: 15))
    #expect(!Self.mayHold(times, "b", since: 16))
  }

  @Test func noAnswerIsTooEarlyAmongManyReceipts() {
    let times = ResponseTimes()
    for number in 0..<100_000 {
      withText("\(number)") { times.note($0, atMs: Int64(number)) }
    }
    for number in 0..<100_000 {
      #expect(Self.mayHold(times, "\(number)", since: Int64(number)))
    }
  }

  @Test func answersThatAnotherProcessFoldedAreFound() throws {
    let fixture = try LedgerFixture()
    let file = ReceiptFileText.unified(.init("1"))
    try fixture.append([.pending(file)])
    let live = try LiveProjections(fixture.directory)
    let receipt = try #require(try live.waiting(limit: 1).first)
    try fixture.append([.verify(0, reply(row("1")), at: "2026-01-12")])
    // Another connection folds it.
    _ = try Projector(try LogReader(fixture.directory)).current()
    try live.catchUp()
    let answered = try live.recentReply(
      ofReceipt: receipt.receiptID, appFamily: receipt.appFamily,
      givenInMs: ms("2026-01-12")...ms("2026-01-13"))
    expectEqual(answered?.position, 2)
    let opened = try LiveProjections(fixture.directory).recentReply(
      ofReceipt: receipt.receiptID, appFamily: receipt.appFamily,
      givenInMs: ms("2026-01-12")...ms("2026-01-13"))
    expectEqual(opened, answered)
  }
}

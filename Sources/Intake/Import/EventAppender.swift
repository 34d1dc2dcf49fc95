// The destination of event drafts: the writer of this process, or another process that holds the writer.
package import Ledger

/// Accepts drafts and makes them durable, in the order in which they were submitted.
package protocol EventAppender {
  associatedtype Ticket

  /// Submits drafts that are appended together. It returns before they are durable, and blocks only while
  /// there is no room.
  func submit(_ drafts: [EventDraft]) throws(LedgerError) -> Ticket
  /// Waits until the submitted drafts are durable, and returns their positions.
  func positions(of ticket: Ticket) throws(LedgerError) -> Range<Position>
  /// Waits until each of these submissions is durable or lost.
  func outcome(of tickets: [Ticket]) -> AppendOutcome
  /// Waits until everything submitted is durable.
  func flush() throws(LedgerError)
}

/// The outcome of a group of submissions.
package struct AppendOutcome {
  /// The positions of each submission, in order; nil if it is not known to be durable. On a full disk, a
  /// submission may be lost and a smaller later one kept.
  package var positions: [Range<Position>?] = []
  /// Why the first of the lost submissions was lost; nil if none was.
  package var failure: LedgerError?

  package init() {}
}

extension EventAppender {
  package func outcome(of tickets: [Ticket]) -> AppendOutcome {
    var outcome = AppendOutcome()
    for ticket in tickets {
      do throws(LedgerError) { outcome.positions.append(try positions(of: ticket)) } catch {
        outcome.positions.append(nil)
        if outcome.failure == nil { outcome.failure = error }
      }
    }
    return outcome
  }
}

extension LedgerWriter: EventAppender {
  package func positions(of ticket: AppendTicket) throws(LedgerError) -> Range<Position> {
    let result = try wait(for: ticket)
    return result.firstPosition..<(result.firstPosition + result.count)
  }
}

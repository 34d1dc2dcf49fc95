// Where drafts of events go: this process's own writer, or another process that holds it.
package import Ledger

/// Takes drafts and makes them durable, in the order in which they were submitted.
package protocol EventAppender {
  associatedtype Ticket

  /// Hands over drafts that are appended together. It returns before they are durable, and waits only
  /// for room.
  func submit(_ drafts: [EventDraft]) throws(LedgerError) -> Ticket
  /// Waits until the submitted drafts are durable, and returns their positions.
  func positions(of ticket: Ticket) throws(LedgerError) -> Range<Position>
  /// Waits until each of these submissions is durable or lost.
  func outcome(of tickets: [Ticket]) -> AppendOutcome
  /// Waits until all that was submitted is durable.
  func flush() throws(LedgerError)
}

/// What became of some submissions.
package struct AppendOutcome {
  /// The position of each, in their order; nil for one that is not known to be durable. On a full disk a submission
  /// may be lost and a smaller one after it kept.
  package var positions: [Range<Position>?] = []
  /// Why the first of those was lost; nil where none was.
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

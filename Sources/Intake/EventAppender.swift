// Where drafts of events go: this process's own writer, or another process that holds it.
package import Ledger

/// Takes drafts and makes them durable, in the order in which they were submitted.
package protocol EventAppender {
  associatedtype Ticket

  /// Hands over drafts that are appended together. It returns before they are durable, and waits only
  /// for room.
  func submit(_ drafts: [EventDraft]) throws(LedgerError) -> Ticket
  /// Waits until the submitted drafts are durable, and says where they stand.
  func positions(of ticket: Ticket) throws(LedgerError) -> Range<Position>
  /// Waits until all that was submitted is durable.
  func flush() throws(LedgerError)
}

extension LedgerWriter: EventAppender {
  package func positions(of ticket: AppendTicket) throws(LedgerError) -> Range<Position> {
    let result = try wait(for: ticket)
    return result.firstPosition..<(result.firstPosition + result.count)
  }
}

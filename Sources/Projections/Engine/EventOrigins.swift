// Where events come from that were put together, perhaps from several ledgers, and are folded as if they were of one.
package import Ledger

/// Knows the events of a fold by their positions in the ledgers that they come from.
package protocol EventOrigins: AnyObject {
  /// The position in the fold of what an event names by a position of its own ledger; nil if the fold does not have it.
  func position(named position: Int, by event: EventLine) -> Position?
  /// The position in the fold of an event at a position of the ledger that another event of the fold is of; nil if the
  /// fold does not have it.
  func position(named position: Int, inLedgerOf event: Position) -> Position?
  /// How the details of exceptions name an event of the fold.
  func text(of position: Position) -> String
}

// Appends a command's events with its own writer or through the server that holds the ledger.
import Intake
import Ledger
import Server

/// Appends events, by its own writer or through the server.
enum LedgerAppender: EventAppender {
  case own(LedgerWriter)
  case server(RemoteAppender)

  enum Ticket {
    case own(AppendTicket)
    case server(RemoteAppender.Ticket)
  }

  func submit(_ drafts: [EventDraft]) throws(LedgerError) -> Ticket {
    switch self {
    case .own(let writer): .own(try writer.submit(drafts))
    case .server(let server): .server(try server.submit(drafts))
    }
  }

  func positions(of ticket: Ticket) throws(LedgerError) -> Range<Position> {
    switch (self, ticket) {
    case (.own(let writer), .own(let ticket)): return try writer.positions(of: ticket)
    case (.server(let server), .server(let ticket)): return try server.positions(of: ticket)
    default:
      throw LedgerError(
        .invalidInput, operation: "append", object: "ticket",
        cause: "it belongs to another appender")
    }
  }

  func outcome(of tickets: [Ticket]) -> AppendOutcome {
    switch self {
    case .own(let writer):
      writer.outcome(
        of: tickets.compactMap { if case .own(let ticket) = $0 { ticket } else { nil } })
    case .server(let server):
      server.outcome(
        of: tickets.compactMap { if case .server(let ticket) = $0 { ticket } else { nil } })
    }
  }

  func flush() throws(LedgerError) {
    switch self {
    case .own(let writer): try writer.flush()
    case .server(let server): try server.flush()
    }
  }

  /// Appends events in one frame; they are durable when it returns.
  func append(_ drafts: [EventDraft]) throws(LedgerError) -> Range<Position> {
    try positions(of: submit(drafts))
  }

  /// Appends one event of the current version; returns its position when it is durable.
  func append(_ type: EventType, _ data: [UInt8]) throws(LedgerError) -> Position {
    try append([EventDraft(type: type.rawValue, version: type.currentVersion, data: data)])
      .lowerBound
  }

  /// Makes submitted events durable, and closes the writer or the session.
  func close() throws(LedgerError) {
    switch self {
    case .own(let writer): try writer.close()
    case .server(let server): try server.close()
    }
  }
}

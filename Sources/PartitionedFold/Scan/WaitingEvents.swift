// Events that were read and wait to be written: what follows may show that a receipt is not needed, and join components.
import Ledger

/// One event of a chunk.
struct WaitingEvent {
  /// The event's line in its chunk.
  let offset: Int
  let byteCount: Int
  let recordedAtMs: Int64
  /// Nil for a declaration.
  let node: Int?
  /// Where the base64 of an upload's receipt begins in its line; 0 for other events, and where a redaction took it.
  let receiptOffset: Int
  /// Whether it is an upload with a receipt, or with what a redaction kept of it.
  let hasReceipt: Bool
}

/// A chunk's lines, copied.
struct WaitingChunk {
  let bytes: [UInt8]
  let firstPosition: Position
  let events: [WaitingEvent]
}

// The body of a response, with each large value stored once; and the times of the newest replies.
import Base
import Ledger
package import Revenue

/// The bytes of one response. Large values that occur several times are stored once, so a response may be much longer
/// than the memory it takes.
package struct ResponseBody: Equatable, Sendable {
  /// Where a shared value is inserted: after this many bytes of the text.
  package struct Place: Equatable, Sendable {
    package var textByteCount: Int
    package var value: Int

    package init(textByteCount: Int, value: Int) {
      (self.textByteCount, self.value) = (textByteCount, value)
    }
  }

  fileprivate let text: [UInt8]
  fileprivate let values: [[UInt8]]
  fileprivate let places: [Place]
  /// The number of bytes that are sent.
  package let byteCount: Int
  /// Its size in memory, in bytes.
  package let heldByteCount: Int

  /// A body without shared values.
  package init(_ text: [UInt8]) { self.init(text: text, values: [], places: []) }

  /// - Parameter places: in the order of the text; each names one of the values.
  package init(text: [UInt8], values: [[UInt8]], places: [Place]) {
    precondition(
      places.allSatisfy { $0.textByteCount <= text.count && values.indices.contains($0.value) },
      "a shared value is within the text")
    self.text = text
    self.values = values
    self.places = places
    byteCount = places.reduce(text.count) { $0 + values[$1.value].count }
    heldByteCount =
      values.reduce(text.count) { $0 + $1.count } + places.count * MemoryLayout<Place>.stride
  }

  /// All of it, copied.
  package var bytes: [UInt8] {
    if places.isEmpty { return text }
    return [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      var reader = ResponseBodyReader(self)
      count = reader.read(into: UnsafeMutableRawBufferPointer(buffer))
    }
  }
}

/// Reads a body from front to back.
package struct ResponseBodyReader: Sendable {
  private let body: ResponseBody
  /// Alternates between pieces of text and shared values; the text begins.
  private var part = 0
  private var partOffset = 0

  package init(_ body: ResponseBody) { self.body = body }

  /// Fills a buffer with as many bytes as remain; 0 at the end.
  package mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    var filled = 0
    while filled < buffer.count, part <= 2 * body.places.count {
      let isText = part.isMultiple(of: 2)
      let place = part / 2
      let source = isText ? body.text : body.values[body.places[place].value]
      let start = isText && place > 0 ? body.places[place - 1].textByteCount : 0
      let end =
        isText && place < body.places.count ? body.places[place].textByteCount : source.count
      let count = min(end - start - partOffset, buffer.count - filled)
      source.withUnsafeBytes { source in
        let first = start + partOffset
        UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<filled + count])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[first..<first + count]))
      }
      filled += count
      partOffset += count
      if start + partOffset == end { (part, partOffset) = (part + 1, 0) }
    }
    return filled
  }
}

// MARK: - Times of final replies

/// Rules out a recent reply for most receipts without a query of the database. Of a fixed size: receipts share entries,
/// so the time of an entry may be too late, but never too early.
package final class ResponseTimes: Sendable {
  private static let placeCount = 1 << 16
  /// Epoch milliseconds of the newest reply for an entry's receipts.
  private let times = Monitor([Int64](repeating: .min, count: placeCount))

  package init() {}

  /// Records a final reply for a receipt.
  package func note(_ receiptID: Text, atMs: Int64) {
    let place = Self.place(receiptID)
    times.withLock { $0[place] = max($0[place], atMs) }
  }

  /// Records that any receipt may have had a reply until a time.
  package func noteAll(atMs: Int64) {
    times.withLock { times in
      for place in times.indices { times[place] = max(times[place], atMs) }
    }
  }

  /// Whether a receipt may have had a reply since a time.
  package func mayHold(_ receiptID: Text, since notBeforeMs: Int64) -> Bool {
    let place = Self.place(receiptID)
    return times.withLock { $0[place] } >= notBeforeMs
  }

  private static func place(_ receiptID: Text) -> Int {
    Int(truncatingIfNeeded: receiptID.placeHash() & UInt64(placeCount - 1))
  }

  // MARK: Replies folded elsewhere

  /// How many of the newest verifications are searched for a reply.
  private static let lookBackMax = 10_000

  /// Loads from a database the times for events that were not folded here.
  /// - Parameter lastEventAtMs: the time of the last of these events.
  func noteAll(of database: Database, lastEventAtMs: Int64?) throws(DatabaseError) {
    let newest = try database.prepare(
      """
      SELECT count(*), max(occurred_at_ms) FILTER (WHERE reply_position IS NOT NULL) FROM
      (SELECT occurred_at_ms, reply_position FROM verifications ORDER BY position DESC LIMIT ?)
      """)
    newest.bind(1, Self.lookBackMax)
    guard try newest.step() else { return }
    if let atMs = newest.optionalInteger(1) {
      noteAll(atMs: atMs)
    } else if newest.integer(0) == Self.lookBackMax, let lastEventAtMs {
      noteAll(atMs: lastEventAtMs)
    }
  }
}

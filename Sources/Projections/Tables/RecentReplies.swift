// The table `recent_replies`: what the newest replies show, for uploads that use them again.
import AppStore
import Base
import CZlib
import Ledger
package import Revenue

/// Keeps the newest final reply of each receipt while an upload may use it again: the log would inflate a whole block.
package final class RecentReplies {
  /// How long after it was given a reply may be used again, in milliseconds.
  package static let usableMs: Int64 = 86_400_000
  /// The number of new replies in memory after which a fold from nothing writes them.
  private static let addedCountMax = 16_384

  private struct Added {
    let receipt: Int32
    let recordedAtMs: Int64
    let content: [UInt8]
  }

  private let database: Database
  private let rows: RowWriter
  private let isFresh: Bool
  /// Keeps the replies that are used again, for the answers; nil where nothing is answered.
  private let recent: RecentEvents?
  /// Replies recorded before are not kept, because the fold's last event is much later.
  private let firstMs: Int64
  /// Whether the table may have rows.
  private var hasRows: Bool
  private var added: [Position: Added] = [:]
  private var removed: [(position: Position, receipt: Int32)] = []
  private let packing = ReplyPacking()
  private lazy var select = Result { () throws(DatabaseError) in
    try database.prepare("SELECT content FROM recent_replies WHERE position = ? AND receipt = ?")
  }
  private lazy var insert = Result { () throws(DatabaseError) in
    try database.prepare("INSERT INTO recent_replies VALUES(?, ?, ?, ?)")
  }
  private lazy var delete = Result { () throws(DatabaseError) in
    try database.prepare("DELETE FROM recent_replies WHERE position = ? AND receipt = ?")
  }
  private lazy var selectOldest = Result { () throws(DatabaseError) in
    try database.prepare("SELECT position, recorded_at_ms FROM recent_replies ORDER BY position")
  }
  private lazy var deleteOldest = Result { () throws(DatabaseError) in
    try database.prepare("DELETE FROM recent_replies WHERE position < ?")
  }

  init(
    _ database: Database, _ rows: RowWriter, isFresh: Bool, _ recent: RecentEvents?,
    firstMs: Int64
  ) {
    (self.database, self.rows, self.recent) = (database, rows, recent)
    (self.isFresh, self.firstMs) = (isFresh, firstMs)
    hasRows = !isFresh
  }

  /// Keeps the reply of an event as the newest final one of a receipt. That of a version 1 notification is not kept: it
  /// is rare, and counts only together with its notification.
  func add(_ held: HeldReply, ofReceipt number: Int32, recordedAtMs: Int64) {
    guard let bytes = held.bytes, !held.isNotified, recordedAtMs >= firstMs,
      held.givenAtMs >= recordedAtMs - Self.usableMs, let content = packing.packed(bytes)
    else { return }
    added[held.position] = Added(receipt: number, recordedAtMs: recordedAtMs, content: content)
  }

  /// Forgets the reply of an event if it is kept for this receipt, which has a newer one.
  func remove(at position: Position, ofReceipt number: Int32) {
    if added[position]?.receipt == number {
      added[position] = nil
    } else if hasRows {
      removed.append((position, number))
    }
  }

  /// Calls `body` with the reply of the event at a position; returns nil if it is not kept for this receipt.
  func withReply<Result>(
    ofReceipt number: Int32, at position: Position, _ keeper: TextKeeper,
    _ body: (HeldReply) throws(ProjectionError) -> Result
  ) throws(ProjectionError) -> Result? {
    let kept: [UInt8]?
    do throws(DatabaseError) { kept = try reply(ofReceipt: number, at: position) } catch {
      throw .database(error)
    }
    guard let kept else { return nil }
    recent?.keep(reply: kept, at: position)
    return try withText(kept) { (bytes) throws(ProjectionError) in
      keeper.removeAll()
      guard let reply = try? Reply(bytes, keeper) else {
        throw .database(DatabaseError(inconsistency: "a kept reply is not JSON"))
      }
      return try body(HeldReply(reply, keptFrom: position))
    }
  }

  private func reply(
    ofReceipt number: Int32, at position: Position
  ) throws(DatabaseError) -> [UInt8]? {
    if let found = added[position] {
      guard found.receipt == number else { return nil }
      return try withText(found.content) { (content) throws(DatabaseError) in
        try packing.unpacked(content)
      }
    }
    if !hasRows { return nil }
    // Only then another thread may be using the database.
    if isFresh { try rows.drain() }
    let row = try select.get()
    row.bind(1, position)
    row.bind(2, Int(number))
    defer { row.reset() }
    return try row.step() ? try packing.unpacked(row.bytes(0)) : nil
  }

  /// During a fold from nothing, writes the new replies once there are many.
  func storeMany(nowMs: Int64) throws(DatabaseError) {
    if added.count >= Self.addedCountMax { try store(nowMs: nowMs) }
  }

  /// Writes what changed, and removes the replies that no upload can use any more.
  /// - Parameter nowMs: the time of the last event.
  func store(nowMs: Int64) throws(DatabaseError) {
    try rows.drain()
    for (position, number) in removed {
      let row = try delete.get()
      row.bind(1, position)
      row.bind(2, Int(number))
      try row.run()
    }
    removed.removeAll()
    // In the order of positions, which fills the pages of the table.
    for (position, reply) in added.sorted(by: { $0.key < $1.key }) {
      let row = try insert.get()
      row.bind(1, position)
      row.bind(2, Int(reply.receipt))
      row.bind(3, reply.recordedAtMs)
      withText(reply.content) { row.bind(4, blob: $0) }
      try row.run()
      hasRows = true
    }
    added.removeAll()
    if hasRows { try removeOldest(before: nowMs - Self.usableMs) }
  }

  /// Events are recorded in the order of their times, so the oldest replies come first.
  private func removeOldest(before limitMs: Int64) throws(DatabaseError) {
    let rows = try selectOldest.get()
    var end: Position?
    while try rows.step(), try rows.instant(1) < limitMs { end = try rows.ordinal(0) + 1 }
    rows.reset()
    guard let end else { return }
    let delete = try deleteOldest.get()
    delete.bind(1, end)
    try delete.run()
  }
}

/// The reply of a result, if it has one, and the verification that holds it.
struct HeldReply {
  let position: Position
  let reply: Reply?
  /// As sent; nil if the reply comes from `RecentReplies`.
  let bytes: Text?
  /// Whether a version 1 notification brought it.
  let isNotified: Bool
  /// As the verification states it, in epoch milliseconds.
  let occurredAtMs: Int64?
  /// When it was given, in epoch milliseconds.
  let givenAtMs: Int64

  /// - Parameter event: contains `result`.
  init(_ result: ReceiptVerifiedView, _ reply: Reply?, _ event: EventLine) {
    position = event.position
    self.reply = reply
    bytes = result.reply
    isNotified = result.notification != nil
    occurredAtMs = result.occurredAtMs
    givenAtMs = result.occurredAtMs ?? event.recordedAtMs
  }

  init(_ reply: Reply, keptFrom position: Position) {
    self.position = position
    self.reply = reply
    (bytes, isNotified, occurredAtMs, givenAtMs) = (nil, false, nil, .min)
  }
}

// MARK: - What is kept of a reply

/// Shortens replies to what the fold and the client API read of them, and compresses each by itself, with a text that
/// most of them repeat. Used by one thread at a time.
package final class ReplyPacking {
  /// What `deflate` may refer to: members in their usual order, the commonest last.
  private static let dictionary: [UInt8] = {
    func dates(_ name: String) -> String {
      #""\#(name)":"2026-01-01 00:00:00 Etc/GMT","\#(name)_ms":"1790000000000","#
        + #""\#(name)_pst":"2026-01-01 00:00:00 America/Los_Angeles","#
    }
    let sale =
      #"{"quantity":"1","product_id":"","transaction_id":"","original_transaction_id":"","#
      + dates("purchase_date") + dates("original_purchase_date")
    let flags = #""is_trial_period":"false","#
    let owner = #""in_app_ownership_type":"PURCHASED""#
    let text =
      #"true","app_account_token":"","promotional_offer_id":"","offer_code_ref_name":"","#
      + dates("grace_period_expires_date") + #""is_in_billing_retry_period":"1","#
      + dates("cancellation_date") + #""cancellation_reason":"0"},"# + sale
      + dates("expires_date") + #""web_order_line_item_id":""#
      + #"","# + flags + #""is_in_intro_offer_period":"false","# + owner
      + #","subscription_group_identifier":"","pending_renewal_info":[{"expiration_intent":"1","#
      + #""auto_renew_product_id":"","product_id":"","original_transaction_id":"","#
      + #""auto_renew_status":"1"}]},"latest_receipt_info":["#
      + #"{"status":0,"environment":"Production","receipt":{"bundle_id":"com.example","#
      + #""request_date_ms":"1790000000000","in_app":["# + sale + flags + owner + "},"
      + sale + flags + owner + "}]}}"
    return Array(text.utf8)
  }()
  private static let level: Int32 = 6

  private let deflater = ZStream {
    czlib_deflate_init_raw($0, level)
  } end: {
    deflateEnd($0)
  }
  private let inflater = ZStream {
    czlib_inflate_init_raw($0)
  } end: {
    inflateEnd($0)
  }

  package init() {}

  /// Whether a column holds packed replies. Versions of zlib may pack differently: what they hold is compared.
  static func packs(_ column: String, of table: String) -> Bool {
    table == "recent_replies" && column == "content"
  }

  /// Nil if the reply is not one JSON value.
  package func packed(_ reply: Text) -> [UInt8]? {
    guard let text = try? Self.shortened(reply) else { return nil }
    let stream = deflater.start
    precondition(deflateReset(stream) == Z_OK, "a compressor that was not made")
    let capacity = Int(deflateBound(stream, UInt(text.count)))
    return withText(text) { text in
      Self.withDictionary { deflateSetDictionary(stream, $0, $1) }
      return [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
        deflater.set(text, buffer)
        let result = deflate(stream, Z_FINISH)
        precondition(result == Z_STREAM_END, "a compressed text is larger than zlib states")
        count = capacity - Int(stream.pointee.avail_out)
      }
    }
  }

  /// What `packed` was given, shortened.
  package func unpacked(_ content: Text) throws(DatabaseError) -> [UInt8] {
    let stream = inflater.start
    // Ten times is usual; whatever one more round does not hold is damaged, as is what no event could hold.
    for factor in [16, 1040] where content.count <= ledgerLineByteCountMax {
      precondition(inflateReset(stream) == Z_OK, "a decompressor that was not made")
      Self.withDictionary { inflateSetDictionary(stream, $0, $1) }
      let capacity = min(factor * content.count, ledgerLineByteCountMax)
      var isWhole = false
      let text = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
        inflater.set(content, buffer)
        isWhole = inflate(stream, Z_FINISH) == Z_STREAM_END
        count = capacity - Int(stream.pointee.avail_out)
      }
      if isWhole { return text }
    }
    throw DatabaseError(inconsistency: "a kept reply cannot be decompressed")
  }

  private static func withDictionary(_ body: (UnsafePointer<UInt8>?, UInt32) -> Int32) {
    let result = dictionary.withUnsafeBufferPointer { body($0.baseAddress, UInt32($0.count)) }
    precondition(result == Z_OK, "a dictionary that zlib refuses")
  }

  /// A reply without the receipt in base64 and, unless its receipt is the purchase itself, without what `Reply` does
  /// not read of it.
  private static func shortened(_ reply: Text) throws(JSONError) -> [UInt8] {
    let isLegacy = try Reply(reply, TextKeeper()).isLegacy
    return try copied(reply) { (key, cursor) throws(JSONError) in
      if key == "latest_receipt" || key == "latest_expired_receipt" { return nil }
      let value = try cursor.readRaw()
      guard key == "receipt", !isLegacy else { return Array(value) }
      return try copied(value) { (key, cursor) throws(JSONError) in
        for kept in receiptMembers where key == kept { return Array(try cursor.readRaw()) }
        return nil
      }
    }
  }

  private static let receiptMembers: [StaticString] = [
    "in_app", "bundle_id", "bid", "request_date_ms", "request_date", "request_date_pst",
  ]

  /// An object with the values that `value` gives; members without one are left out. Any other value unchanged.
  private static func copied(
    _ json: Text,
    _ value: (JSONString, inout JSONCursor) throws(JSONError) -> [UInt8]?
  ) throws(JSONError) -> [UInt8] {
    var cursor = JSONCursor(json)
    guard try cursor.kind() == .object else { return Array(json) }
    var copy = [UInt8(ascii: "{")]
    copy.reserveCapacity(json.count)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      guard let value = try value(key, &cursor) else {
        try cursor.skipValue()
        continue
      }
      if copy.count > 1 { copy.append(UInt8(ascii: ",")) }
      copy.append(UInt8(ascii: "\""))
      copy += key.raw
      copy += Array("\":".utf8)
      copy += value
    }
    try cursor.expectEnd()
    copy.append(UInt8(ascii: "}"))
    return copy
  }
}

/// A stream of zlib at an address that stays: it points to itself.
private final class ZStream {
  let start: UnsafeMutablePointer<z_stream>
  private let end: (UnsafeMutablePointer<z_stream>) -> Int32

  init(
    _ begin: (UnsafeMutablePointer<z_stream>) -> Int32,
    end: @escaping (UnsafeMutablePointer<z_stream>) -> Int32
  ) {
    start = .allocate(capacity: 1)
    start.initialize(to: z_stream())
    self.end = end
    guard begin(start) == Z_OK else { fatalError("zlib: out of memory") }
  }

  deinit {
    _ = end(start)
    start.deallocate()
  }

  func set(_ input: Text, _ output: UnsafeMutableBufferPointer<UInt8>) {
    start.pointee.next_in = UnsafeMutablePointer(
      mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
    start.pointee.avail_in = UInt32(input.count)
    start.pointee.next_out = output.baseAddress
    start.pointee.avail_out = UInt32(output.count)
  }
}

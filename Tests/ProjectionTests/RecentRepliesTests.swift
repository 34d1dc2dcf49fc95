// What the projections keep of recent replies, and that the figures and responses do not depend on it.
import AppStore
import Base
import Ledger
import Projections
import TestSupport
import Testing

@Suite("Recent replies") struct RecentRepliesTests {
  // MARK: What is kept of one

  /// What the fold and the client API read of a reply.
  private static func facts(_ text: [UInt8]) throws -> [String] {
    try text.withUnsafeBytes { bytes in
      let reply = try Reply(bytes, TextKeeper())
      func string(_ text: JSONBytes?) -> String {
        text.map { String(decoding: $0, as: UTF8.self) } ?? "-"
      }
      var facts = [
        "\(reply.status ?? -1) \(string(reply.environment)) \(string(reply.bundleID))",
        "\(reply.requestDateMs ?? -1) \(reply.isLegacy) \(reply.isRetryable as Bool?)",
      ]
      for row in reply.rows { facts.append("\(row.source) \(string(row.object))") }
      for renewal in reply.renewals {
        facts.append(
          "\(string(renewal.originalTransactionID)) \(string(renewal.autoRenewProductID)) "
            + "\(renewal.isAutoRenewing as Bool?) \(string(renewal.expirationIntent)) "
            + "\(renewal.gracePeriodEndMs ?? -1) \(renewal.isOutermost)")
      }
      return facts
    }
  }

  @Test(
    "what is kept of a reply says the same",
    arguments: [
      #"{}"#, #"[]"#, #"null"#, #""text""#, #"{"status":21003}"#, #" { "status" : 0 , "a":[1] } "#,
      #"{"status":21010,"is-retryable":false,"is_retryable":"1","exception":"x"}"#,
      #"{"receipt":{"in_app":null,"bid":"b","product_id":"p","transaction_id":"1"}}"#,
      #"{"status":0,"receipt":{"bid":"b","product_id":"p","transaction_id":"1","#
        + #""unique_identifier":"x","purchase_date_ms":"1400000000000"},"auto_renew_status":1,"#
        + #""latest_receipt":"QUJD"}"#,
      #"{"status":21006,"receipt":{"bid":"b","product_id":"p","transaction_id":"1"},"#
        + #""latest_expired_receipt_info":{"product_id":"p","transaction_id":"2"},"auto_renew_status":0}"#,
      #"{"receipt":{"bundle_id":"a","bundle_id":"b","in_app":[{"product_id":"p\u0031","#
        + #""\u0074ransaction_id":"1"}],"download_id":7,"request_date":"2026-01-01 00:00:00 Etc/GMT"},"environment":"Production"}"#,
      #"{"pending_renewal_info":[{"original_transaction_id":"1","auto_renew_status":"1","#
        + #""grace_period_expires_date_ms":"1790000000000"}],"#
        + #""latest_receipt_info":[{"product_id":"p","web_order_line_item_id":"3"},7],"receipt":{"in_app":[],"bid":"x"}}"#,
    ])
  func says(reply: String) throws {
    let packing = ReplyPacking()
    let content = try #require(Array(reply.utf8).withUnsafeBytes { packing.packed($0) })
    let text = try content.withUnsafeBytes { try packing.unpacked($0) }
    try expectEqual(Self.facts(text), Self.facts(Array(reply.utf8)))
    #expect(!String(decoding: text, as: UTF8.self).contains(#""latest_receipt":"#))
  }

  @Test("a reply much larger than its compressed form is read back")
  func large() throws {
    let packing = ReplyPacking()
    let large = reply(rows: (0..<2000).map { _ in row("1") }).bytes
    let content = try #require(large.withUnsafeBytes { packing.packed($0) })
    let text = try content.withUnsafeBytes { try packing.unpacked($0) }
    try expectEqual(Self.facts(text), Self.facts(large))
  }

  @Test("damaged content is an error")
  func damaged() throws {
    let packing = ReplyPacking()
    var content = try #require(reply(row("1")).bytes.withUnsafeBytes { packing.packed($0) })
    content.removeLast(3)
    #expect(throws: DatabaseError.self) {
      _ = try content.withUnsafeBytes { try packing.unpacked($0) }
    }
    #expect(reply(row("1")).bytes.dropLast().withUnsafeBytes { packing.packed($0) } == nil)
  }

  // MARK: The table

  /// Uploads of a few receipts that come again many times: with a reply, by an earlier one, with refunds and renewals
  /// between, and some replies older than a day.
  private static func history(seed: UInt64, stepCount: Int) -> [TestEvent] {
    var random = SeededRandom(seed: seed)
    var replies: [(receipt: Int, position: Int)] = []
    var steps: [TestEvent] = []
    var position = 0
    for step in 0..<stepCount {
      let receipt = Int.random(in: 0..<4, using: &random)
      let hour = Int.random(in: 10..<24, using: &random)
      let time = "2026-01-\(Int.random(in: 0..<4, using: &random) > 0 ? 31 : 30)T\(hour):00:00Z"
      let user = "u\(Int.random(in: 0..<3, using: &random))"
      let name = "receipt \(receipt)"
      let metadata = shorthand("\(1 + step % 3).00")
      let own = replies.filter { $0.receipt == receipt || step % 11 == 0 }
      if let earlier = own.randomElement(using: &random), Int.random(in: 0..<3, using: &random) > 0
      {
        steps.append(.upload(user: user, metadata: metadata, at: time, receipt: name))
        steps.append(.reuse(earlier.position, for: position, at: time))
        position += 2
        continue
      }
      var members: Members = [:]
      if step % 4 == 3 {
        members = ["cancellation_date_ms": JSONText(stringLiteral: String(ms(time)))]
      }
      let rows = (0...(step % 3)).map { renewal in
        row(
          "\(receipt)\(renewal)", of: "\(receipt)0",
          line: receipt % 2 == 0 ? nil : "9\(receipt)\(renewal)",
          on: "2026-01-0\(1 + renewal)", members)
      }
      let isRejected = step % 13 == 12
      steps.append(
        .upload(
          isRejected ? ["status": 21003] : reply(rows: rows, requested: time), user: user,
          metadata: metadata, at: time, receipt: name, outcome: isRejected ? .invalid : .valid,
          status: isRejected ? 21003 : 0))
      replies.append((receipt, position + 1))
      position += 2
    }
    return steps
  }

  /// The receipts whose newest final reply is their own, and was given and recorded within a day; and that reply.
  private static let expected = """
    SELECT v.position || ' ' || r.id FROM receipts r
    JOIN verifications v ON v.position = r.answer_position AND v.receipt = r.id
    WHERE v.occurred_at_ms >= 1769817600000 AND v.position = (
      SELECT max(w.position) FROM verifications w
      WHERE w.receipt = r.id AND w.position = w.reply_position)
    ORDER BY v.position
    """

  private static func lines(_ sql: String, _ database: Database) throws -> [String] {
    let rows = try database.prepare(sql)
    var lines: [String] = []
    while try rows.step() { lines.append(rows.text(0)) }
    return lines
  }

  @Test("a receipt's newest reply is kept while it is recent")
  func newest() throws {
    let fixture = try LedgerFixture()
    let steps: [(TestEvent, kept: [String])] = [
      (.upload(reply(row("1")), at: "2026-01-31T12:00:00Z"), ["1"]),
      (.upload(reply(row("2")), at: "2026-01-30T12:00:00Z", receipt: "b"), ["1"]),
      (.reuse(1, for: 2, at: "2026-02-01"), ["1"]),
      (.verify(0, reply(row("1")), at: "2026-01-31T13:00:00Z"), ["5"]),
      (.verify(0, reply(row("1")), at: "2026-01-30T13:00:00Z"), []),
    ]
    for (step, kept) in steps {
      try fixture.append([step])
      let rows = "SELECT position FROM recent_replies"
      try expectEqual(Self.lines(rows, fixture.current()), kept)
      try expectEqual(Self.lines(rows, fixture.rebuilt()), kept)
    }
  }

  @Test(
    "caught up in pieces, live or rebuilt, the same replies are kept",
    arguments: 1...6 as ClosedRange<UInt64>)
  func pieces(seed: UInt64) throws {
    let steps = Self.history(seed: seed, stepCount: 40)
    let whole = try LedgerFixture()
    try whole.append(steps)
    let rebuilt = try whole.rebuilt()
    let tables = try rebuilt.dump()
    let kept = try Self.lines(
      "SELECT position || ' ' || receipt FROM recent_replies ORDER BY position", rebuilt)
    // A receipt that returned to an earlier reply keeps none.
    #expect(try Set(kept).isSubset(of: Self.lines(Self.expected, rebuilt)))
    var random = SeededRandom(seed: seed)
    let growing = try LedgerFixture()
    let live = try LiveProjections(growing.directory)
    var rest = steps[...]
    while !rest.isEmpty {
      let piece = Int.random(in: 1...7, using: &random)
      try growing.append(Array(rest.prefix(piece)))
      rest = rest.dropFirst(piece)
      if Bool.random(using: &random) { _ = try growing.current() } else { try live.catchUp() }
    }
    let current = try growing.current()
    for (mine, theirs) in zip(try current.dump(), tables) { expectEqual(mine, theirs) }
    // Whether the fold has just read a reply, the table keeps it or the log holds it: the responses are the same.
    try live.catchUp()
    func answers(_ projections: LiveProjections) throws -> [ClientReceipt?] {
      try (0..<growing.eventCount).map { try projections.answer(upload: $0) }
    }
    let answered = try answers(live)
    try expectEqual(answers(LiveProjections(growing.directory)), answered)
    try Database(path: current.path, mode: .write).execute("DELETE FROM recent_replies")
    try expectEqual(answers(LiveProjections(growing.directory)), answered)
    #expect(answered.contains { $0?.body.bytes.isEmpty == false })
  }

  @Test("replies that another version of zlib packed are the same for a comparison; others are not")
  func packedOtherwise() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(reply(row("1")), at: "2026-01-31T12:00:00Z")])
    let current = try fixture.current()
    let database = try Database(path: current.path, mode: .write)
    let row = try database.prepare("SELECT content FROM recent_replies")
    #expect(try row.step())
    let text = try ReplyPacking().unpacked(row.bytes(0))
    row.reset()
    for (text, isSame) in [(text, true), (text + [0x20], false)] {
      // A block of RFC 1951 that is stored as it is.
      let size = UInt16(text.count)
      let sizes = [UInt8(size & 0xFF), UInt8(size >> 8), UInt8(~size & 0xFF), UInt8(~size >> 8)]
      let update = try database.prepare("UPDATE recent_replies SET content = ?")
      try ([1] + sizes + text).withUnsafeBytes { bytes in
        update.bind(1, blob: bytes)
        try update.run()
      }
      let comparison = try #require(try fixture.projector().compare(.tables))
      expectEqual(comparison.isEmpty, isSame)
    }
  }
}

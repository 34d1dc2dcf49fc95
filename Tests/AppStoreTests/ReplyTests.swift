// Replies of the App Store by their shapes, values read leniently, and bytes that are not a reply.
import AppStore
import Base
import TestSupport
import Testing

/// A reply's content as text that outlives it.
private struct ReplyWords: Equatable {
  var status: Int64?
  var environment: String?
  var bundleID: String?
  var requestDateMs: Int64?
  var isLegacy: Bool
  var isRetryable: Bool?
  /// `source:transaction` of each row.
  var rows: [String]

  init(_ bytes: [UInt8]) throws {
    let keeper = TextKeeper()
    self = try bytes.withUnsafeBytes { raw in
      let reply = try Reply(raw, keeper)
      return ReplyWords(reply)
    }
  }

  private init(_ reply: Reply) {
    func text(_ bytes: JSONBytes?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
    status = reply.status
    environment = text(reply.environment)
    bundleID = text(reply.bundleID)
    requestDateMs = reply.requestDateMs
    isLegacy = reply.isLegacy
    isRetryable = reply.isRetryable
    rows = reply.rows.map { "\($0.source.rawValue):\(text($0.transactionID) ?? "-")" }
  }
}

@Suite struct ReplyTests {
  // MARK: Shapes

  @Test(
    arguments: [
      ("what is no object", JSONText.array([]), [String]()), ("an empty object", [:], []),
      ("a number", 5, []), ("a unified reply", reply(row("1"), row("2")), ["1:1", "1:2"]),
      (
        "latest rows in an array come first, wherever they stand",
        ["receipt": ["in_app": [row("1")]], "latest_receipt_info": [row("2"), row("3")]],
        ["0:2", "0:3", "1:1"]
      ),
      (
        "a latest row alone, and an expired one",
        ["latest_expired_receipt_info": row("3"), "latest_receipt_info": row("2")], ["0:2", "3:3"]
      ),
      (
        "a flat receipt stands between",
        [
          "latest_expired_receipt_info": row("3"), "receipt": row("1"),
          "latest_receipt_info": row("2"),
        ], ["0:2", "2:1", "3:3"]
      ),
      ("a receipt with in_app is not flat", ["receipt": row("1", ["in_app": []])], []),
      ("a null in_app is none", ["receipt": row("1", ["in_app": .null])], ["2:1"]),
      ("an in_app that is no array holds no rows", ["receipt": ["in_app": row("1")]], []),
      ("what is no object is no row", ["receipt": ["in_app": [1, "x", .null, [], true]]], []),
      ("expired rows in an array are none", ["latest_expired_receipt_info": [row("1")]], []),
      ("a receipt that is no object", ["receipt": "x", "latest_receipt_info": 7], []),
      (
        "keys written with escapes",
        JSONText(raw: #"{"receipt":{"in\u005fapp":[{"transaction\u005fid":"\u0031"}]}}"#), ["1:1"]
      ),
    ] as [(String, JSONText, [String])])
  func rowsComeInTheOrderOfTheirSources(
    _ situation: String, _ reply: JSONText, _ expected: [String]
  ) throws {
    try expectEqual(ReplyWords(reply.bytes).rows, expected, "\(situation)")
  }

  @Test(
    arguments: [
      ("0", 0), (#""21006""#, 21006), ("null", nil), (#""""#, nil), ("true", nil), ("0.0", nil),
      ("1e3", nil), ("99999999999999999999", nil), ("[]", nil), (#""-1""#, nil), ("-1", -1),
    ] as [(String, Int64?)])
  func aStatusIsAnIntegerOrAStringOfDigits(_ text: String, _ expected: Int64?) throws {
    try expectEqual(ReplyWords(Array("{\"status\":\(text)}".utf8)).status, expected)
  }

  @Test(
    arguments: [
      (#"{}"#, nil), (#"{"is_retryable":true}"#, true), (#"{"is-retryable":"1"}"#, true),
      (#"{"is_retryable":0}"#, false), (#"{"is-retryable":"false"}"#, false),
      (#"{"is_retryable":null}"#, nil),
      (#"{"is_retryable":"True"}"#, true), (#"{"is_retryable":"0"}"#, false),
      (#"{"is_retryable":""}"#, nil), (#"{"is_retryable":{}}"#, nil),
      (#"{"is_retryable":"perhaps"}"#, nil), (#"{"is-retryable":2}"#, nil),
      (#"{"is_retryable":false,"is-retryable":true}"#, true),
      (#"{"is-retryable":true,"is_retryable":0}"#, true),
      (#"{"is_retryable":false,"is-retryable":null}"#, false),
    ] as [(String, Bool?)])
  func whetherToRetryIsReadInBothSpellings(_ text: String, _ expected: Bool?) throws {
    try expectEqual(ReplyWords(Array(text.utf8)).isRetryable, expected)
  }

  @Test(
    arguments: [
      (#"{"receipt":{"bundle_id":"a","bid":"b"}}"#, "a"), (#"{"receipt":{"bid":"b"}}"#, "b"),
      (#"{"receipt":{"bid":"b","bundle_id":""}}"#, "b"), (#"{"receipt":{}}"#, nil),
      (#"{"bundle_id":"a"}"#, nil), (#"{"receipt":{"bundle_id":"\u0061"}}"#, "a"),
    ] as [(String, String?)])
  func theBundleIsThatOfTheReceipt(_ text: String, _ expected: String?) throws {
    try expectEqual(ReplyWords(Array(text.utf8)).bundleID, expected)
  }

  @Test(arguments: [#"{"receipt":{"bundle_id":"a"}}"#, #"{"status":21003}"#, "[]"])
  func theBidOfItsNotificationComesFirst(_ text: String) throws {
    try Array(text.utf8).withUnsafeBytes { bytes in
      try Array(#"{"bid":"n"}"#.utf8).withUnsafeBytes { body in
        let reply = try Reply(
          JSONBytes(bytes), TextKeeper(), notification: JSONBytes(body))
        expectEqual(reply.bundleID.map { String(decoding: $0, as: UTF8.self) }, "n")
      }
    }
  }

  @Test(
    arguments: [
      ("\"1448129867409\"", 1_448_129_867_409), ("1448129867409", 1_448_129_867_409),
      ("\"253402300799999\"", 253_402_300_799_999), ("\"253402300800000\"", nil), ("\"\"", nil),
      ("\"2015-11-21\"", nil), ("1.5", nil),
    ] as [(String, Int64?)])
  func aDateIsOneThatCanBeWritten(_ text: String, _ expected: Int64?) throws {
    let bytes = Array("{\"receipt\":{\"request_date_ms\":\(text)}}".utf8)
    try expectEqual(ReplyWords(bytes).requestDateMs, expected)
  }

  @Test(
    "readable dates replace missing milliseconds, those in GMT before those of Los Angeles",
    arguments: [
      (#"{"purchase_date":"2011-08-02 15:08:02 Etc/GMT"}"#, 1_312_297_682_000),
      (#"{"purchase_date":"2011-08-02 08:08:02 America/Los_Angeles"}"#, 1_312_297_682_000),
      (#"{"purchase_date_pst":"2011-08-02 08:08:02 America/Los_Angeles"}"#, 1_312_297_682_000),
      (
        #"{"purchase_date_pst":"2011-08-02 09:00:00 America/Los_Angeles","purchase_date":"2011-08-02 15:08:02 Etc/GMT"}"#,
        1_312_297_682_000
      ),
      (#"{"purchase_date":"2011-08-02 15:08:02 Etc/GMT","purchase_date_ms":"1000"}"#, 1_000),
      (#"{"purchase_date_ms":1000,"purchase_date":"2011-08-02 15:08:02 Etc/GMT"}"#, 1_000),
      (#"{"purchase_date":"some day"}"#, nil), (#"{"purchase_date":1312297682000}"#, nil),
      (#"{"purchase_date":null,"purchase_date_pst":""}"#, nil),
    ] as [(String, Int64?)])
  func readableDates(_ row: String, _ expected: Int64?) throws {
    for name in ["purchase_date", "original_purchase_date", "cancellation_date", "expires_date"] {
      // A legacy reply has the milliseconds of an expiry in `expires_date`.
      if name == "expires_date", row.contains(":1312297682000") { continue }
      let renamed = row.replacing("purchase_date", with: name)
      let bytes = Array(
        "{\"latest_receipt_info\":[\(renamed)],\"receipt\":{\"bid\":\"a\",\(renamed.dropFirst())}"
          .utf8)
      let keeper = TextKeeper()
      try bytes.withUnsafeBytes { raw in
        let reply = try Reply(raw, keeper)
        expectEqual(reply.rows.count, 2)
        for row in reply.rows {
          let found =
            switch name {
            case "purchase_date": row.purchaseDateMs
            case "original_purchase_date": row.originalPurchaseDateMs
            case "expires_date": row.expiresAtMs
            default: row.cancellationDateMs
            }
          expectEqual(found, expected, "\(renamed)")
        }
      }
    }
    let request = row.replacing("purchase_date", with: "request_date")
    let words = try ReplyWords(Array("{\"receipt\":\(request)}".utf8))
    expectEqual(words.requestDateMs, expected, "\(request)")
    let grace = row.replacing("purchase_date", with: "grace_period_expires_date")
    let keeper = TextKeeper()
    try Array("{\"pending_renewal_info\":[\(grace)]}".utf8).withUnsafeBytes { raw in
      let reply = try Reply(raw, keeper)
      expectEqual(reply.renewals[0].gracePeriodEndMs, expected, "\(grace)")
    }
  }

  // MARK: Values

  @Test(
    arguments: [
      (#""a""#, "a", nil, false), (#""1""#, "1", 1, true), ("1", "1", 1, true),
      (#""true""#, "true", nil, true), ("true", nil, nil, true), ("false", nil, nil, false),
      (#""""#, nil, nil, false), ("null", nil, nil, false), ("1.0", nil, nil, false),
      (#""05""#, "05", 5, false), ("12345678901234567890", "12345678901234567890", nil, false),
      (#""TRUE""#, "TRUE", nil, false), ("[1]", nil, nil, false), ("{}", nil, nil, false),
      (#"" 1""#, " 1", nil, false), ("-3", "-3", -3, false), (#""-3""#, "-3", nil, false),
      (#""\u0031""#, "1", 1, true),
    ] as [(String, String?, Int64?, Bool)])
  func valuesAreReadLeniently(
    _ text: String, _ id: String?, _ integer: Int64?, _ flag: Bool
  ) throws {
    let keeper = TextKeeper()
    try Array(text.utf8).withUnsafeBytes { bytes in
      var cursor = JSONCursor(bytes)
      let value = try keeper.read(&cursor)
      expectEqual(value.id.map { String(decoding: $0, as: UTF8.self) }, id)
      expectEqual(value.integer, integer)
      expectEqual(value.flag, flag)
    }
  }

  // MARK: Recorded replies

  private struct Recorded: Sendable, CustomStringConvertible {
    var description: String
    var status: Int64
    var environment: String?
    var isLegacy: Bool
    var requestDateMs: Int64?
    var rowCounts: [Int]
  }

  private static let recorded = [
    Recorded(
      description: "unified", status: 0, environment: "Sandbox", isLegacy: false,
      requestDateMs: 1_448_129_867_409, rowCounts: [35, 7, 0, 0]),
    Recorded(
      description: "transaction-subscription", status: 0, environment: nil, isLegacy: true,
      requestDateMs: nil, rowCounts: [1, 0, 1, 0]),
    Recorded(
      description: "transaction-21006", status: 21006, environment: nil, isLegacy: true,
      requestDateMs: nil, rowCounts: [0, 0, 1, 1]),
  ]

  @Test(
    .enabled(if: Fixtures.folder != nil, "no ../shared/fixtures here"),
    arguments: recorded)
  private func recordedRepliesAreReadWhole(_ expected: Recorded) throws {
    let bytes = try Fixtures.bytes("replies/\(expected.description).json")
    let words = try ReplyWords(bytes)
    expectEqual(words.status, expected.status)
    expectEqual(words.environment, expected.environment)
    expectEqual(words.bundleID, "com.mbaasy.ios.demo")
    expectEqual(words.isLegacy, expected.isLegacy)
    expectEqual(words.requestDateMs, expected.requestDateMs)
    let counts = (0..<4).map { source in words.rows.count { $0.hasPrefix("\(source):") } }
    expectEqual(counts, expected.rowCounts)
    #expect(!words.rows.contains { $0.hasSuffix("-") })
  }

  // MARK: Damage

  private static let sample = reply(
    row("1", line: "7", ["is_trial_period": true, "cancellation_reason": "\u{1F600}\\\"x"]),
    latest: [row("2"), [:], .null], requested: "2026-01-05",
    also: ["pending_renewal_info": [["a": JSONText(raw: "-1.5e3")]]]
  ).bytes

  @Test func noPrefixOfAReplyCrashes() {
    for count in Self.sample.indices {
      // A part may be read or refused, as long as reading ends.
      _ = try? ReplyWords(Array(Self.sample[..<count]))
    }
    #expect(throws: Never.self) { try ReplyWords(Self.sample) }
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func noDamagedReplyCrashes(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    for _ in 0..<200 {
      var bytes = Self.sample
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes.remove(at: place)
        default: bytes.insert(random.pick(Array("\"{}[],:\\0-".utf8)), at: place)
        }
      }
      // Damaged JSON never reaches a fold; damage that leaves valid JSON must be read.
      let isJSON = (try? JSONValue(bytes)) != nil
      let words = try? ReplyWords(bytes)
      #expect(!isJSON || words != nil, "seed \(seed): \(String(decoding: bytes, as: UTF8.self))")
    }
  }

  @Test func deepNestingEnds() {
    for text in [
      String(repeating: "[", count: 100_000), String(repeating: #"{"receipt":"#, count: 50_000),
    ] {
      #expect(throws: (any Error).self) { try ReplyWords(Array(text.utf8)) }
      #expect(throws: (any Error).self) {
        try ReplyWords(Array(("{\"latest_receipt_info\":" + text).utf8))
      }
    }
  }
}

// Archives in other formats than the import's: their lines, and the messages about the rest.
import Base
import Foundation
import Intake
import Ledger
import TestSupport
import Testing

@Suite("Archives") struct ArchiveTests {
  private let sign = SignedSample.app

  /// The lines of an archive, with `FILE:RECORD` of each; a fault stands for a record without a
  /// line.
  private func lines(
    _ paths: [String], _ options: ArchiveOptions, in directory: TemporaryDirectory
  ) throws -> [String] {
    let lines = try ArchiveLines(paths, options, stop: StopFlag())
    var result: [String] = []
    while let line = try lines.next() {
      let place = try #require(lines.place)
      let name = place.input.replacing(directory.path(""), with: "")
      switch line {
      case .whole(_, let bytes): result.append(String(decoding: bytes, as: UTF8.self))
      case .tooLong: result.append("\(name):\(place.line): too long")
      case .unreadable(_, let problem): result.append("\(name):\(place.line): \(problem)")
      }
    }
    return result
  }

  private func lines(
    _ files: [(String, String)], _ options: ArchiveOptions
  ) throws -> [String] {
    let directory = try TemporaryDirectory()
    for (name, content) in files { _ = try directory.write(name, content) }
    return try lines(files.map { directory.path($0.0) }, options, in: directory)
  }

  private func map(_ text: String) throws -> TableMap {
    try TableMap.parse(text).get()
  }

  @Test(
    "a folder's receipts come in the order of their names; links and hidden files are skipped"
  )
  func receipts() throws {
    let directory = try TemporaryDirectory()
    let folder = directory.path("receipts")
    try FileManager.default.createDirectory(
      atPath: "\(folder)/old", withIntermediateDirectories: true)
    let base64 = Sample.receipt()
    _ = try directory.write(
      "receipts/b.txt", base64.prefix(8) + "\r\n" + base64.dropFirst(8) + "\n")
    _ = try directory.write("receipts/a.bin", [0x30, 0x03, 0x02, 0x01, 0x80])
    _ = try directory.write("receipts/old/c.plist", "{\"signature\" = \"AAAA\";}")
    _ = try directory.write("receipts/d.txt", [0xFF, 0xFE])
    _ = try directory.write("receipts/e.txt", "")
    _ = try directory.write("receipts/.hidden", "AAAA")
    try FileManager.default.createSymbolicLink(
      atPath: "\(folder)/link", withDestinationPath: "\(folder)/b.txt")
    let found = try lines([folder], ArchiveOptions(.receipts), in: directory)
    expectEqual(
      found,
      [
        #"{"marketplace":"itunes","receipt":"MAMCAYA="}"#,
        #"{"marketplace":"itunes","receipt":"\#(base64)"}"#,
        "receipts/d.txt:1: is neither base64 text nor a receipt file",
        "receipts/e.txt:1: is empty", "receipts/link:1: is a link, which is not followed",
        #"{"marketplace":"itunes","receipt":"\#(Sample.base64("{\"signature\" = \"AAAA\";}"))"}"#,
      ])
    let link = directory.path("other")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder)
    #expect(throws: Failure.self) {
      _ = try lines([link], ArchiveOptions(.receipts), in: directory)
    }
  }

  @Test("replies bring their receipt with them: alone, in an array, or one a line") func replies()
    throws
  {
    let reply = #"{"status":0,"environment":"Sandbox","latest_receipt":"AAAA"}"#
    let line =
      #"{"marketplace":"itunes","receipt":"AAAA","verification":{"reply":\#(reply)}}"#
    let pretty = "{\n  \"status\": 0,\n  \"latest_receipt\": \"AAAA\"\n}"
    let found = try lines(
      [
        ("a.json", reply), ("b.json", "[\(reply), {\"status\":0}]"),
        ("c.ndjson", "\(reply)\n\n{\"status\":\n7\n"), ("d.json", pretty),
      ], ArchiveOptions(.replies, environment: "Sandbox"))
    try #require(found.count == 7)
    #expect(found[0] == line && found[1] == line && found[3] == line)
    #expect(found[2].hasPrefix("b.json:2: has no latest_receipt"))
    #expect(found[4].hasPrefix("c.ndjson:3: is not JSON"))
    expectEqual(found[5], "c.ndjson:4: is not a JSON object")
    expectEqual(
      found.last,
      #"{"marketplace":"itunes","receipt":"AAAA","verification":{"endpoint":"sandbox","#
        + #""reply":{"status":0,"latest_receipt":"AAAA"}}}"#)
  }

  @Test(
    "signed transactions come as text, pages or lists; the environment is given where they name none"
  )
  func transactions() throws {
    let named = try sign.transaction()
    let nameless = try sign.transaction("2", ["environment": nil])
    let found = try lines(
      [
        ("a.txt", "\(named)\n\(nameless)\n"),
        ("b.json", #"{"signedTransactions":["\#(named)"],"hasMore":false}"#),
        ("c.json", #"["\#(named)",{"other":1}]"#), ("d.txt", "hello\n"),
      ], ArchiveOptions(.transactions, environment: "Sandbox"))
    expectEqual(
      found,
      [
        sign.line([named]), sign.line([nameless], #""environment":"Sandbox""#), sign.line([named]),
        sign.line([named]),
        "c.json:2: has none of signedTransactions, signedTransactionInfo, signed_transactions",
        "d.txt:1: is neither JSON nor a signed object (JWS)",
      ])
  }

  @Test("notifications of both versions are accepted, without the password of version 1")
  func notifications()
    throws
  {
    let text = try sign.notification()
    let bare =
      #"{"notification_type":"RENEWAL","password":"s3","unified_receipt":{"password":"s3"}}"#
    let found = try lines(
      [
        ("a.json", #"{"signedPayload":"\#(text)"}"#),
        ("b.ndjson", "\(text)\n\(bare)\n{\"notification_v1\":\(bare),\"occurred_at\":5}\n"),
        ("c.json", #"{"notificationHistory":[{"signedPayload":"\#(text)","sendAttempts":[]}]}"#),
      ], ArchiveOptions(.notifications))
    let kept = #"{"notification_type":"RENEWAL","unified_receipt":{}}"#
    expectEqual(
      found,
      [
        sign.line(notification: text), sign.line(notification: text), kept,
        #"{"notification_v1":\#(kept),"occurred_at":5}"#, sign.line(notification: text),
      ])
  }

  @Test("a table's columns become the parts of lines") func tables() throws {
    let columns = try map(
      "receipt=blob,user_identifier=uid,country_code=cc,occurred_at=created,price,currency,product_id=sku"
    )
    let line =
      #"{"marketplace":"itunes","receipt":"AAAA","user_identifier":"7","country_code":"DE","#
      + #""occurred_at":"2021-03-04T05:06:07.123Z","metadata":{"prices":[{"product_id":"pro","#
      + #""price":"9.99","currency":"EUR"}]}}"#
    let csv = """
      id,blob,uid,cc,created,price,currency,sku
      1,AAAA,7,DE,2021-03-04 05:06:07.123456,9.99,EUR,pro
      2,\\x000000,,,1614834367,,,
      3,,7,DE,,,,
      4,"AA
      AA",7,,1614834367000,4.99,EUR,
      5,"A"A,7,,,,,
      6,AAAA,,,2021-03-04 05:06:07+02,,,
      """
    try expectEqual(
      lines([("t.csv", csv)], ArchiveOptions(.csv, columns: columns)),
      [
        line,
        #"{"marketplace":"itunes","receipt":"AAAA","occurred_at":1614834367000}"#,
        "t.csv:4: has nothing in blob",
        #"{"marketplace":"itunes","receipt":"AAAA","user_identifier":"7","#
          + #""occurred_at":1614834367000,"metadata":{"price":"4.99","currency":"EUR"}}"#,
        "t.csv:7: is not CSV: text between a closing quote and the next comma",
        #"{"marketplace":"itunes","receipt":"AAAA","occurred_at":"2021-03-04T05:06:07+02:00"}"#,
      ])
    let row =
      #"{"id":1,"blob":"AAAA","uid":7,"cc":"DE","created":"2021-03-04 05:06:07.123456","#
      + #""price":"9.99","currency":"EUR","sku":"pro"}"#
    let json = ArchiveOptions(.json, columns: columns)
    try expectEqual(lines([("t.json", "[\(row)]")], json), [line])
    try expectEqual(
      lines([("t.ndjson", "\(row)\n7\n{\"blob\":null}\n")], json),
      [
        line, "t.ndjson:2: is not a JSON object", "t.ndjson:3: has nothing in blob",
      ])
    try expectEqual(
      lines([("u.csv", "a,b\n1,2\n")], ArchiveOptions(.csv, columns: columns)),
      [
        "u.csv:1: has no column blob, cc, created, currency, price, sku, uid"
      ])
  }

  @Test("a reply in a table may have its receipt in it") func replyInTable() throws {
    let options = ArchiveOptions(
      .json, columns: try map("reply,verified_at=at,endpoint=host"), environment: "Production")
    let reply = #"{"status":0,"latest_receipt":"AAAA"}"#
    let quoted = reply.replacing("\"", with: "\\\"")
    let row = #"{"reply":"\#(quoted)","at":1700000000000,"host":"SANDBOX"}"#
    try expectEqual(
      lines([("t.json", row)], options),
      [
        #"{"marketplace":"itunes","receipt":"AAAA","verification":{"occurred_at":1700000000000,"#
          + #""endpoint":"sandbox","reply":\#(reply)}}"#
      ])
  }

  @Test("a table may hold signed transactions, notifications of both versions, and metadata")
  func otherPartsOfATable() throws {
    let columns = try map(
      "signed_transaction=t,environment=e,notification=n,notification_v1=v,metadata=m")
    let rows = [
      #"{"t":"a.b.c","e":"Sandbox","m":{"price":"1"}}"#, #"{"t":["a.b.c","d.e.f"]}"#,
      #"{"n":"a.b.c"}"#, #"{"v":{"password":"secret","auto_renew_status":"true"}}"#, #"{"v":7}"#,
    ]
    try expectEqual(
      lines([("t.ndjson", rows.joined(separator: "\n"))], ArchiveOptions(.json, columns: columns)),
      [
        #"{"marketplace":"itunes","signed_transactions":["a.b.c"],"environment":"Sandbox","#
          + #""metadata":{"price":"1"}}"#,
        #"{"marketplace":"itunes","signed_transactions":["a.b.c","d.e.f"]}"#,
        #"{"marketplace":"itunes","notification":"a.b.c"}"#,
        #"{"marketplace":"itunes","notification_v1":{"auto_renew_status":"true"}}"#,
        "t.ndjson:5: notification_v1 is not a JSON object",
      ])
  }

  @Test("an invalid map is refused with its fault")
  func maps() {
    let cases = [
      ("moon=x", "must name parts of a line: "), ("receipt=", "names no column for receipt"),
      ("receipt=a,receipt=b", "names receipt twice"), ("user_identifier=u", "names none of "),
      ("receipt=a,metadata=m,price=p", "gives both metadata and parts of a price"),
      ("", "must name"),
    ]
    for (text, fault) in cases {
      guard case .failure(let error) = TableMap.parse(text) else {
        Issue.record("\(text) is a map")
        continue
      }
      #expect(error.clause.hasPrefix(fault), "\(text)")
    }
  }

  @Test("a dry run appends nothing and counts what would be imported") func dryRun() throws {
    let directory = try TemporaryDirectory()
    let content = [
      Sample.line(#""user_identifier":"7","metadata":{"price":"1","currency":"EUR"}"#),
      Sample.recorded(transaction: 2), "{}",
      sign.line([try sign.transaction("1", ["bundleId": "\"b\""])]),
      sign.line(notification: try sign.notification()),
    ].joined(separator: "\n")
    let path = try directory.write("import.ndjson", content)
    var run = try ImportRun.signed()
    run.options.isDryRun = true
    let importer = Importer(
      try ImportInput.openAll([path], spoolFolder: nil, stop: run.stop), into: run.appender,
      families: run.families, known: run.known, verifier: run.checker,
      signedObjects: run.signedObjects, options: run.options, stop: run.stop,
      nowMs: { Sample.nowMs }, onProblem: { _ in })
    let summary = importer.run()
    let census = importer.census
    #expect(run.appender.submissions.isEmpty)
    #expect((summary.lines, summary.refused, summary.uploads) == (5, 1, 0))
    #expect(census.receiptsWithoutReply == 1 && census.receiptsWithReply == 1)
    #expect(census.signedTransactions == 1 && census.notifications == 1)
    expectEqual(census.unregistered, ["b": 1])
    expectEqual(census.environments, ["": 1, "Production": 3])
    #expect((census.withoutUser, census.withoutCountry, census.withoutPrice) == (2, 3, 2))
  }

  @Test("an archive is imported as its lines, and a second import appends nothing")
  func imported()
    throws
  {
    let directory = try TemporaryDirectory()
    _ = try directory.write("a.txt", Sample.receipt())
    _ = try directory.write("b.txt", "*")
    let run = ImportRun()
    var problems: [ImportProblem] = []
    func summary() throws -> ImportSummary {
      let input = try ImportInput(
        archive: [directory.path("a.txt"), directory.path("b.txt")], ArchiveOptions(.receipts),
        stop: run.stop)
      let importer = Importer(
        [input], into: run.appender, families: run.families, known: run.known,
        verifier: run.checker, signedObjects: run.signedObjects, options: run.options,
        stop: run.stop, nowMs: { Sample.nowMs }, onProblem: { problems.append($0) })
      return importer.run()
    }
    let first = try summary()
    #expect((first.uploads, first.refused) == (1, 1))
    expectEqual(problems.map(\.line), [1])
    expectEqual(problems[0].input, directory.path("b.txt"))
    let digest = try #require(run.appender.events[0].data["line_sha256"]?.stringValue)
    run.known.digests = [
      try #require(Array(digest.utf8).withUnsafeBytes { SHA256Digest(hex: $0) })
    ]
    try expectEqual(summary().known, 1)
  }
}

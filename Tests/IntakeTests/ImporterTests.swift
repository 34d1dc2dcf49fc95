// Whole imports: known lines, app families, strictness, signatures, interruption, failures.
import AppStore
import Base
import Foundation
import Intake
import Ledger
import TestSupport
import Testing

@Suite struct ImporterTests {
  private func ids(_ run: ImportRun, _ key: String) -> [JSONValue?] {
    run.appender.events.map { $0.data[key] }
  }

  // MARK: Known lines

  @Test func aKnownLineAppendsNothing() throws {
    let run = ImportRun()
    let line = Sample.line()
    run.known.digests = [Array(line.utf8).withUnsafeBytes { SHA256.hash($0) }]
    let (summary, _) = try run(Array("\(line)\r\n\(Sample.line(transaction: 2))\n".utf8))
    expectEqual(summary.known, 1)
    expectEqual(summary.uploads, 1)
    expectEqual(summary.exitCode, .done)
    expectEqual(run.appender.events[0].data["line"], .number("2"))
  }

  @Test func aLineThatStandsTwiceIsImportedOnce() throws {
    let run = ImportRun()
    let lines = (0..<2000).map { Sample.line(transaction: $0 % 700) }
    let (summary, _) = try run(Array(lines.joined(separator: "\n").utf8))
    expectEqual(summary.uploads, 700)
    expectEqual(summary.known, 1300)
    expectEqual(Set(ids(run, "line_sha256").compactMap { $0?.stringValue }).count, 700)
  }

  @Test func aRefusedLineIsNotKnown() throws {
    let bad = Sample.line(#""country_code":"UK""#)
    let (summary, _) = try ImportRun()(lines: bad, bad)
    expectEqual(summary.refused, 2)
    expectEqual(summary.known, 0)
  }

  // MARK: App families

  @Test func anAppIsRegisteredBeforeItsFirstUpload() throws {
    var run = ImportRun()
    run.families.bundles = []
    run.options.registersApps = true
    let (summary, _) = try run(
      lines: Sample.recorded(), Sample.recorded(transaction: 2),
      #"{"receipt":"AAAA","verification":{"endpoint":"sandbox","reply":{"status":0,"receipt":{"bid":"b"}}}}"#
    )
    expectEqual(summary.registered, 2)
    expectEqual(summary.uploads, 3)
    expectEqual(
      run.appender.submissions.map { $0.map(\.type) },
      [
        ["app.registered", "receipt.uploaded", "receipt.verified"],
        ["receipt.uploaded", "receipt.verified"],
        ["app.registered", "receipt.uploaded", "receipt.verified"],
      ])
    let events = run.appender.events.map(\.data)
    expectEqual(events[0]["name"], .string(Sample.bundleID))
    expectEqual(events[0]["bundle_ids"], .array([.string(Sample.bundleID)]))
    expectEqual(events[1]["app_family_id"], events[0]["app_family_id"])
    expectEqual(events[3]["app_family_id"], events[0]["app_family_id"])
    expectEqual(events[2]["upload"], .number("1"))
    expectEqual(events[4]["upload"], .number("3"))
    expectEqual(events[5]["bundle_ids"], .array([.string("b")]))
    expectEqual(events[7]["upload"], .number("6"))
    #expect(UUID16(events[0]["app_family_id"]?.stringValue ?? "") != nil)
  }

  @Test func aBadLineRegistersNothing() throws {
    var run = ImportRun()
    run.families.bundles = []
    run.options.registersApps = true
    let (summary, _) = try run(lines: Sample.line(#""country_code":"UK""#))
    expectEqual(summary.registered, 0)
    #expect(run.appender.events.isEmpty)
  }

  @Test func aLineWithoutABundleIDIsBadAndRegistersNothing() throws {
    var run = ImportRun()
    run.families.bundles = [""]
    for registersApps in [false, true] {
      run.options.registersApps = registersApps
      let (summary, problems) = try run(
        lines: #"{"receipt":"AAAA","verification":{"endpoint":"sandbox","reply":{"status":0}}}"#,
        #"{"receipt":"AAAA","verification":{"endpoint":"sandbox","reply":{"status":21003,"receipt":{"bid":""}}}}"#
      )
      expectEqual(summary.refused, 2)
      expectEqual(summary.registered, 0)
      expectEqual(
        problems.flatMap(\.reasons).map(\.description),
        Array(repeating: "receipt has no bundle id, so it belongs to no app", count: 2))
    }
    #expect(run.appender.events.isEmpty)
  }

  // MARK: Replies of another receipt

  @Test(
    arguments: [
      // (the reply's receipt, the problem, the same with --accept-mismatch)
      (#"{"bundle_id":"com.example.app","in_app":[{"transaction_id":"1"}]}"#, nil, nil),
      (#"{"bundle_id":"com.example.app","in_app":[]}"#, nil, nil),
      (
        #"{"bundle_id":"com.example.app","in_app":[{"transaction_id":"7","original_transaction_id":1}]}"#,
        nil, nil
      ),
      (#"{"bundle_id":"com.example.app","in_app":[{"product_id":"coins"}]}"#, nil, nil),
      (
        #"{"bundle_id":"com.example.app","in_app":[{"transaction_id":"7"},{"web_order_line_item_id":"1"}]}"#,
        "transactions", nil
      ),
      (#"{"bid":"com.example.app","transaction_id":"2"}"#, "transactions", nil),
      (#"{"bundle_id":"com.example.sister","in_app":[{"transaction_id":"1"}]}"#, nil, nil),
      (#"{"bundle_id":"com.example.other","in_app":[{"transaction_id":"1"}]}"#, "bundle", "bundle"),
      (#"{"bundle_id":"com.example.other","in_app":[]}"#, "bundle", "bundle"),
      (#"{"in_app":[{"transaction_id":"1"}]}"#, nil, nil),
      (#"{"in_app":[{"transaction_id":"7","original_transaction_id":"1"}]}"#, nil, nil),
      (#"{"in_app":[{"transaction_id":"7"}]}"#, "nameless", "nameless"),
      (#"{"in_app":[{"web_order_line_item_id":"0"}]}"#, "nameless", "nameless"),
      (#"{"in_app":[]}"#, "nameless", "nameless"),
    ] as [(String, String?, String?)])
  func aRecordedReplyMustBeAboutItsReceipt(
    _ receipt: String, _ expected: String?, _ accepted: String?
  ) throws {
    let words = [
      "bundle": "verification.reply is not about the receipt's app",
      "nameless":
        "verification.reply names no bundle id and shows none of the receipt's transactions",
      "transactions":
        "verification.reply shows none of the receipt's transactions (--accept-mismatch imports it anyway)",
    ]
    for status in [0, 21006] {
      let reply = #"{"status":\#(status),"environment":"Production","receipt":\#(receipt)}"#
      for (accepts, problem) in [(false, expected), (true, accepted)] {
        var run = ImportRun()
        run.families.bundles = [Sample.bundleID, "com.example.sister"]
        run.options.acceptsMismatch = accepts
        let (summary, problems) = try run(lines: Sample.recorded(reply: reply))
        expectEqual(summary.uploads, (problem == nil ? 1 : 0))
        expectEqual(summary.exitCode, problem == nil ? .done : .partlyDone)
        expectEqual(
          problems.flatMap(\.reasons).map(\.description),
          [problem.flatMap { words[$0] }].compactMap(\.self))
        if problem == nil {
          expectEqual(run.appender.events[1].data["mismatch"]?.stringValue, (expected ?? "none"))
        }
      }
    }
  }

  @Test func aReplyThatGivesNoSaleIsNotCompared() throws {
    let reply = #"{"status":21010,"environment":"Production","receipt":{"bundle_id":"other"}}"#
    let run = ImportRun()
    let (summary, _) = try run(lines: Sample.recorded(reply: reply))
    expectEqual(summary.uploads, 1)
    #expect(run.appender.events[1].data["mismatch"] == nil)
  }

  @Test func theSameReceiptHasTheSameIDAgain() throws {
    let run = ImportRun()
    _ = try run(lines: Sample.line(), Sample.line(#""user_identifier":"2""#))
    expectEqual(run.appender.submissions.count, 2)
    expectEqual(ids(run, "receipt_id")[0], ids(run, "receipt_id")[2])
  }

  // MARK: Warnings

  @Test func theMisspelledUserIsTakenWithAWarning() throws {
    let run = ImportRun()
    let (summary, problems) = try run(
      lines: Sample.line(#""user_identifer":"7""#),
      Sample.line(#""user_identifer":"7","user_identifier":"8""#, transaction: 2),
      Sample.line(#""user_identifier":"8","user_identifer":"7""#, transaction: 3))
    expectEqual(summary.uploads, 3)
    expectEqual(summary.warnings, 1)
    expectEqual(summary.exitCode, .partlyDone)
    expectEqual(problems.map(\.severity), [.warning])
    #expect(
      problems[0].description.hasSuffix(
        ":1: warning: user_identifer was read as user_identifier"))
    let users = ids(run, "user_identifier").compactMap { $0?.stringValue }
    expectEqual(users, ["7", "8", "8"])
  }

  @Test func aMisspelledUserBesideTheRightOneIsSaidToBeLeftOut() throws {
    let (summary, problems) = try ImportRun()(
      lines: Sample.line(#""user_identifer":"7","user_identifier":"8""#))
    expectEqual(summary.uploads, 1)
    expectEqual(problems.count, 1)
    #expect(
      problems.first?.description.hasSuffix(
        ":1: warning: user_identifer was ignored: user_identifier is present too") == true)
  }

  @Test func anEnvironmentThatReportsLeaveOutIsWarnedOfOnce() throws {
    func reply(_ environment: String) -> String {
      Sample.reply.replacing("Production", with: environment)
    }
    let (summary, problems) = try ImportRun()(
      lines: Sample.recorded(reply: reply("Sandbox")),
      Sample.recorded(reply: reply("PROD"), transaction: 2),
      Sample.recorded(reply: reply("PROD"), transaction: 3))
    expectEqual(summary.uploads, 3)
    expectEqual(problems.count, 1)
    #expect(
      problems.first?.description.hasSuffix(
        ":2: warning: verification.reply.environment \"PROD\" is neither Production nor Sandbox: "
          + "reports show its sales only with --environment") == true)
  }

  @Test func anUnknownPropertyIsWarnedOfOnce() throws {
    let run = ImportRun()
    let (summary, problems) = try run(
      lines: Sample.line(#""x\u001by":1,"a":2"#), Sample.line(#""a":{}"#),
      Sample.recorded(#""a":[],"a":1"#.replacingOccurrences(of: #","a":1"#, with: "")))
    expectEqual(summary.uploads, 3)
    expectEqual(summary.warnings, 3)
    expectEqual(problems.flatMap(\.reasons).map(\.field), ["x\u{FFFD}y", "a", "verification.a"])
  }

  @Test func anUnknownPropertyThatLooksLikeASecretIsNotShown() throws {
    let (_, problems) = try ImportRun()(
      lines: Sample.line("\"rlt_Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZmdoaWo\":1"))
    expectEqual(problems.flatMap(\.reasons).map(\.field), ["[47 characters, not shown]"])
  }

  @Test func endlessUnknownPropertiesAreNotAllReported() throws {
    let names = (0..<500).map { #""p\#($0)":1"# }.joined(separator: ",")
    let (summary, problems) = try ImportRun()(lines: Sample.line(names))
    expectEqual(summary.uploads, 1)
    expectEqual(problems.flatMap(\.reasons).count, 101)
    expectEqual(
      problems[0].reasons.last?.description, "further unknown properties are not reported")
  }

  // MARK: Signatures

  @Test(
    arguments: [
      // (has a recorded reply, checks signatures, verdict, authorities and outcomes, warnings)
      (false, false, LocalVerification.valid, ["local valid"], 0),
      (false, false, .signatureInvalid, ["local invalid signature_invalid"], 1),
      (
        false, false, .timeOnly("certificate_expired"), ["local unreachable certificate_expired"], 0
      ),
      (true, false, .signatureInvalid, ["app_store valid"], 0),
      (true, true, .valid, ["local valid", "app_store valid"], 0),
      (true, true, .signatureInvalid, ["local invalid signature_invalid"], 1),
      (
        true, true, .timeOnly("certificate_expired"),
        ["local unreachable certificate_expired", "app_store valid"], 0
      ),
    ] as [(Bool, Bool, LocalVerification, [String], Int)])
  func signaturesAreCheckedWhereTheyMustBe(
    _ isRecorded: Bool, _ checks: Bool, _ verdict: LocalVerification, _ expected: [String],
    _ warnings: Int
  ) throws {
    for isStrict in [false, true] {
      var run = ImportRun()
      run.checker.verdict = verdict
      run.options.checksSignatures = checks
      run.options.isStrict = isStrict
      let (summary, problems) = try run(lines: isRecorded ? Sample.recorded() : Sample.line())
      let results = run.appender.events.dropFirst().map { event in
        ["authority", "outcome", "reason"].compactMap { event.data[$0]?.stringValue }
          .joined(separator: " ")
      }
      expectEqual(results, expected)
      #expect(ids(run, "upload").dropFirst().allSatisfy { $0 == .number("0") })
      expectEqual(run.appender.submissions.count, 1)
      expectEqual(summary.uploads, 1)
      expectEqual(summary.warnings, warnings)
      expectEqual(problems.count, warnings)
      expectEqual(summary.exitCode, warnings > 0 ? .partlyDone : .done)
    }
  }

  @Test func whatCannotBeReadIsEvidenceWhereSignaturesAreChecked() throws {
    var run = ImportRun()
    run.options.checksSignatures = true
    let (summary, problems) = try run(
      lines: #"{"receipt":"AAAA","verification":{"reply":\#(Sample.reply)}}"#)
    expectEqual(summary.uploads, 1)
    expectEqual(run.appender.events.map(\.type), ["receipt.uploaded", "receipt.verified"])
    expectEqual(run.appender.events[1].data["outcome"], .string("invalid"))
    #expect(
      problems[0].description.hasSuffix(
        ":1: warning: receipt has an invalid signature and was imported as evidence; "
          + "its recorded reply was ignored"))
  }

  // MARK: Strict

  @Test func strictAppendsNothingForOneBadLine() throws {
    var run = ImportRun()
    run.options.isStrict = true
    let (summary, problems) = try run(
      lines: Sample.line(), "nonsense", Sample.line(#""country_code":"UK""#))
    expectEqual(problems.map(\.line), [2, 3])
    expectEqual(summary.refused, 2)
    expectEqual(summary.uploads, 0)
    #expect(summary.isRefusedAsWhole)
    expectEqual(summary.exitCode, .failed)
    #expect(run.appender.submissions.isEmpty)
  }

  @Test func strictAppendsAllWhereAllIsGood() throws {
    var run = ImportRun()
    run.options.isStrict = true
    run.options.registersApps = true
    run.families.bundles = []
    let (summary, problems) = try run(
      lines: Sample.line(#""user_identifer":"7""#), Sample.line(transaction: 2),
      Sample.line(transaction: 2))
    expectEqual(summary.uploads, 2)
    expectEqual(summary.known, 1)
    expectEqual(summary.lines, 3)
    expectEqual(summary.registered, 1)
    expectEqual(summary.positions, 0...4)
    expectEqual(summary.warnings, 1)
    expectEqual(problems.count, 1)
    #expect(!summary.isRefusedAsWhole)
  }

  // MARK: Early ends

  @Test func anInterruptedImportKeepsWhatWasSubmitted() throws {
    let run = ImportRun()
    run.appender.onSubmit = { [stop = run.stop, appender = run.appender] in
      if appender.submissions.count == 3 { stop.set() }
    }
    let lines = (0..<10).map { Sample.line(transaction: $0) }
    let (summary, _) = try run(Array(lines.joined(separator: "\n").utf8))
    #expect(summary.isInterrupted)
    expectEqual(summary.uploads, 3)
    expectEqual(summary.positions, 0...5)
    expectEqual(summary.exitCode, .interrupted)
    #expect(summary.failure == nil)
  }

  @Test(arguments: [true, false]) func whatCannotBeLookedUpIsNeitherKnownNorNew(
    _ failsOnLines: Bool
  ) throws {
    var run = ImportRun()
    run.options.registersApps = true
    if failsOnLines { run.known.failing = run.stop } else { run.families.failing = run.stop }
    let (summary, problems) = try run(lines: Sample.line())
    #expect(run.appender.submissions.isEmpty)
    #expect(problems.isEmpty)
    #expect(summary.isInterrupted)
    let counts = [summary.lines, summary.known, summary.refused, summary.registered]
    #expect(counts.allSatisfy { $0 == 0 })
  }

  @Test func aLedgerThatTakesNoMoreEndsTheImport() throws {
    let run = ImportRun()
    run.appender.failsAfter = 2
    let lines = (0..<10).map { Sample.line(transaction: $0) }
    let (summary, _) = try run(Array(lines.joined(separator: "\n").utf8))
    expectEqual(summary.uploads, 2)
    expectEqual(summary.positions, 0...3)
    expectEqual(summary.failure?.description, "append: log: the disk is full")
    expectEqual(summary.exitCode, .failed)
  }

  // MARK: Progress

  @Test func progressCountsBytesLinesAndUploads() throws {
    let directory = try TemporaryDirectory()
    let lines = (0..<100).map { Sample.line(transaction: $0) }.joined(separator: "\n")
    let paths = [
      try directory.write("a.ndjson", lines),
      try directory.write("b.ndjson.gz", Gzip.member(Array("\(Sample.line())\n{}\n".utf8))),
    ]
    let stop = StopFlag()
    let inputs = try ImportInput.openAll(paths, spoolFolder: nil, stop: stop)
    var seen: [ImportProgress] = []
    let importer = Importer(
      inputs, into: FakeAppender(), families: FakeFamilies(), known: FakeKnownLines(),
      verifier: FakeChecker(), signedObjects: SignedObjectVerifier(), options: ImportOptions(),
      stop: stop, onProblem: { _ in },
      onProgress: { seen.append($0) })
    let summary = importer.run()
    let last = try #require(seen.last)
    #expect(seen.count >= 2)
    expectEqual(last.readBytes, last.totalBytes)
    expectEqual(last.lines, 102)
    expectEqual(last.uploads, 100)
    expectEqual(summary.known, 1)
    expectEqual(summary.refused, 1)
    for (earlier, later) in zip(seen, seen.dropFirst()) {
      #expect(earlier.readBytes <= later.readBytes)
      #expect(earlier.lines <= later.lines)
    }
  }
}

/// Imports into a real ledger, read back from its log.
@Suite struct LedgerImportTests {
  /// All event lines of a ledger.
  private func lines(of path: String) throws -> [JSONValue] {
    let reader = try LogReader(try LedgerDirectory.open(path: path))
    var lines: [JSONValue] = []
    try reader.read(from: 0) { chunk in
      for line in Array(chunk.bytes).split(separator: 0x0A) {
        lines.append(try JSONValue(Array(line)))
      }
      return true
    }
    return lines
  }

  private func importLines(
    _ text: String, to path: String, known: FakeKnownLines = FakeKnownLines()
  ) throws -> ImportSummary {
    let directory = try TemporaryDirectory()
    let stop = StopFlag()
    let inputs = try ImportInput.openAll(
      [try directory.write("import", text)], spoolFolder: nil, stop: stop)
    let writer = try LedgerWriter.open(try LedgerDirectory.open(path: path))
    var options = ImportOptions()
    options.registersApps = true
    let importer = Importer(
      inputs, into: writer, families: FakeFamilies(bundles: []), known: known,
      verifier: FakeChecker(), signedObjects: SignedObjectVerifier(), options: options, stop: stop,
      onProblem: { _ in })
    let summary = importer.run()
    try writer.close()
    return summary
  }

  @Test func eventsStandInTheLogWithTheirReferences() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/ledger"
    _ = try LedgerDirectory.create(path: path, origin: "test")
    let text = (0..<1000).map { Sample.recorded(transaction: $0) + "\n" }.joined()
    let summary = try importLines(text, to: path)
    #expect(summary.failure == nil)
    expectEqual(summary.uploads, 1000)
    expectEqual(summary.positions, 0...2000)
    let events = try lines(of: path)
    expectEqual(events.count, 2001)
    expectEqual(events[0]["type"], .string("app.registered"))
    for index in stride(from: 1, to: 2001, by: 2) {
      expectEqual(events[index]["type"], .string("receipt.uploaded"))
      expectEqual(events[index + 1]["type"], .string("receipt.verified"))
      expectEqual(events[index + 1]["data"]?["upload"], .number(String(index)))
    }
    let known = FakeKnownLines()
    for line in text.split(separator: "\n") {
      known.digests.insert(Array(line.utf8).withUnsafeBytes { SHA256.hash($0) })
    }
    let again = try importLines(text, to: path, known: known)
    expectEqual(again.known, 1000)
    #expect(again.positions == nil)
    try expectEqual(lines(of: path).count, 2001)
  }

  @Test func aLineOfAlmost16MiBIsTaken() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/ledger"
    _ = try LedgerDirectory.create(path: path, origin: "test")
    let filler = String(repeating: "x", count: (16 << 20) - 4096)
    let summary = try importLines(
      Sample.recorded(
        reply: #"{"status":21005,"environment":"Production","filler":"\#(filler)"}"#), to: path)
    #expect(summary.failure == nil)
    expectEqual(summary.uploads, 1)
    try expectEqual(lines(of: path).count, 3)
  }

  @Test func aReplyThatFitsNoEventIsRefused() throws {
    let start = Sample.line(transaction: 7).count
    let filler = String(repeating: "x", count: (16 << 20) - start - 120)
    let line = Sample.recorded(
      #""endpoint":"sandbox""#, reply: #"{"receipt":{"bid":"b"},"filler":"\#(filler)"}"#,
      transaction: 7)
    #expect(line.utf8.count <= 16 << 20)
    let receiptless = line.replacingOccurrences(of: Sample.receipt(transaction: 7), with: "AAAA")
    let padding = String(repeating: "x", count: (16 << 20) - receiptless.utf8.count)
    let longest = receiptless.replacingOccurrences(
      of: #""filler":""#, with: #""filler":"\#(padding)"#)
    expectEqual(longest.utf8.count, 16 << 20)
    var run = ImportRun()
    run.options.registersApps = true
    let (summary, problems) = try run(lines: longest)
    expectEqual(summary.refused, 1)
    #expect(problems[0].description.hasSuffix(":1: is too large for an event of 16 MiB"))
  }

  @Test func whatIsKeptAfterALostUploadCountsToo() throws {
    var run = ImportRun()
    run.families.bundles = []
    run.options.registersApps = true
    // The first submission registers the app; the last one here is the third to be lost.
    run.appender.lost = [0, 3, 9]
    let lines = (0..<10).map { Sample.line(transaction: $0) }
    let (summary, _) = try run(Array(lines.joined(separator: "\n").utf8))
    expectEqual(summary.uploads, 7)
    expectEqual(summary.registered, 0)
    expectEqual(summary.positions, 3...18)
    expectEqual(summary.failure?.description, "append: log: the sync failed")
    expectEqual(summary.exitCode, .failed)
  }

  @Test func aFullDisksImportCountsWhatTheLogHolds() throws {
    let storage = FaultyStorage()
    let directory = try LedgerDirectory.create(
      path: "/ledger", origin: "full.example", storage: storage)
    storage.setFaults(.init())
    let files = try TemporaryDirectory()
    let text = (0..<3000).map { Sample.line(transaction: $0) + "\n" }.joined()
    let stop = StopFlag()
    let inputs = try ImportInput.openAll(
      [try files.write("import", text)], spoolFolder: nil, stop: stop)
    let writer = try LedgerWriter.open(directory)
    var submitted = 0
    let importer = Importer(
      inputs, into: writer, families: FakeFamilies(), known: FakeKnownLines(),
      verifier: FakeChecker(), signedObjects: SignedObjectVerifier(), options: ImportOptions(),
      stop: stop, onProblem: { _ in },
      onProgress: { progress in
        submitted = progress.uploads
        if submitted > 700 { storage.setFaults(.init(isFull: true)) }
      })
    let summary = importer.run()
    storage.setFaults(.init())
    try? writer.close()
    let reader = try LogReader(try LedgerDirectory.open(path: "/ledger", storage: storage))
    #expect(reader.damage == nil)
    #expect(summary.failure != nil)
    // An upload and its local verification.
    expectEqual(summary.uploads * 2, reader.head.size)
    expectEqual(summary.positions, 0...(reader.head.size - 1))
    #expect(summary.uploads < submitted)
  }

  @Test func countsGoBackToWhatIsDurable() throws {
    let run = ImportRun()
    run.appender.isDurableBefore = 600
    let text = (0..<1000).map { Sample.line(transaction: $0) + "\n" }.joined()
    let (summary, _) = try run(Array(text.utf8))
    expectEqual(summary.uploads, 300)
    expectEqual(summary.positions, 0...599)
    expectEqual(summary.failure?.description, "append: log: the sync failed")
    expectEqual(summary.exitCode, .failed)
  }
}

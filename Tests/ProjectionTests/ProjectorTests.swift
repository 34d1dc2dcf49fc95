// Generations of the projections: what is discarded, what is cleaned up, what readers keep.
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct ProjectorTests {
  private static let two: [TestEvent] = [
    .upload(reply(row("1")), metadata: shorthand("2.00")),
    .upload(reply(row("2")), metadata: shorthand("3.00"), receipt: "b"),
  ]

  private static func gross(_ fixture: LedgerFixture, _ database: Database) throws -> [String] {
    let words = try ReportWords("revenue units,gross")
    return words.rows(of: try fixture.csv(words.request, from: database))
  }

  /// A ledger with two uploads and projections of both.
  private static func folded() throws -> LedgerFixture {
    let fixture = try LedgerFixture()
    try fixture.append(two)
    try expectEqual(gross(fixture, fixture.current()), ["2,5.00"])
    return fixture
  }

  /// The files of generations, without the WAL files of the one in use.
  private static func generations(_ fixture: LedgerFixture) -> [String] {
    let name = try? fixture.projector().existing()?.path.split(separator: "/").last
    return fixture.projectionNames.filter { $0 != "\(name ?? "")-wal" && $0 != "\(name ?? "")-shm" }
  }

  private static func replaceLog(of fixture: LedgerFixture, by other: LedgerFixture) throws {
    try FileManager.default.removeItem(atPath: fixture.path + "/log")
    try FileManager.default.copyItem(atPath: other.path + "/log", toPath: fixture.path + "/log")
  }

  @Test func whatAnotherProcessFoldedMeanwhileIsNoLoss() throws {
    let fixture = try Self.folded()
    let early = try fixture.projector()
    try fixture.append([.upload(reply(row("3")), metadata: shorthand("1.00"), receipt: "c")])
    let path = try fixture.current().path
    // Since the reader opened the log, the log and the projections have grown.
    let database = try early.current()
    try expectEqual(Self.gross(fixture, database), ["3,6.00"])
    expectEqual(database.path, path)
    expectEqual(fixture.notices, [])
  }

  @Test func whoeverFoldsAtOnceFoldsTheSame() async throws {
    let fixture = try LedgerFixture()
    _ = try fixture.current()
    let directory = fixture.directory
    var generator = HistoryGenerator(seed: 7)
    // Like several commands while a server appends: each reads the log and folds what it sees.
    try await withThrowingTaskGroup(of: [String].self) { group in
      for _ in 0..<3 {
        group.addTask {
          var notices: [String] = []
          for _ in 0..<12 {
            let projector = Projector(
              try LogReader(directory), observer: .init(notice: { notices.append($0) }))
            _ = try projector.current(isFrugal: true)
          }
          return notices
        }
      }
      for _ in 0..<12 { try fixture.append(generator.steps(5)) }
      for try await notices in group { expectEqual(notices, []) }
    }
    let caughtUp = try fixture.current().dump()
    expectEqual(fixture.notices, [])
    try expectEqual(fixture.rebuilt().dump(), caughtUp)
  }

  @Test func whatIsUpToDateStays() throws {
    let fixture = try Self.folded()
    try expectEqual(Self.gross(fixture, fixture.current()), ["2,5.00"])
    #expect(fixture.notices.isEmpty)
    expectEqual(Self.generations(fixture), ["1.sqlite", "lock"])
  }

  @Test(arguments: [
    "UPDATE projections SET version = version + 1 WHERE name = 'sales'",
    "UPDATE projections SET version = 0 WHERE name = 'users'",
    "DELETE FROM projections WHERE name = 'journal'",
    "INSERT INTO projections VALUES('another', 1, '')",
    // A table or a view changed without a new version, or made before definitions were recorded.
    "UPDATE projections SET definition = 'other' WHERE name = 'sales'",
    "ALTER TABLE projections DROP COLUMN definition",
    "DROP TABLE projections", "DROP TABLE progress",
  ])
  func aDatabaseOfOtherVersionsIsRebuiltAndSaid(_ sql: String) throws {
    let fixture = try Self.folded()
    try Database(path: fixture.path + "/projections/1.sqlite", mode: .write).execute(
      sql + "; DELETE FROM sales")
    #expect(try fixture.projector().existing() == nil)
    try expectEqual(Self.gross(fixture, fixture.current()), ["2,5.00"])
    expectEqual(
      fixture.notices, ["the projections belong to another version of this program: rebuilding"])
    expectEqual(Self.generations(fixture), ["2.sqlite", "lock"])
  }

  /// Logs that differ from the folded one, and the message for each.
  enum OtherLog: CaseIterable {
    case longer, asLong, shorter, empty

    var steps: [TestEvent] {
      let changed = TestEvent.upload(reply(row("1")), metadata: shorthand("2.01"))
      switch self {
      case .longer:
        return [
          changed, ProjectorTests.two[1],
          .upload(reply(row("3")), metadata: shorthand("4.00"), receipt: "c"),
        ]
      case .asLong: return [changed, ProjectorTests.two[1]]
      // A beginning of what was folded: a backup restored over a newer ledger.
      case .shorter: return [ProjectorTests.two[0]]
      case .empty: return []
      }
    }

    var finding: String {
      switch self {
      case .longer, .asLong: "their history differs from the log's up to position 4"
      case .shorter:
        "they had folded 4 events, but the log holds 2: events are missing from its end"
      case .empty: "they had folded 4 events, but the log holds 0: events are missing from its end"
      }
    }
  }

  private static func conflict(_ body: () throws -> Void) throws -> HistoryConflict? {
    do { try body() } catch ProjectionError.anotherHistory(let conflict) { return conflict }
    return nil
  }

  @Test(arguments: OtherLog.allCases)
  func projectionsOfAnotherHistoryStopWhateverUsesThem(_ log: OtherLog) throws {
    let fixture = try Self.folded()
    let other = try LedgerFixture()
    try other.append(log.steps)
    try Self.replaceLog(of: fixture, by: other)
    let link = fixture.path + "/projections.sqlite"
    let inUse = try FileManager.default.destinationOfSymbolicLink(atPath: link)
    for isOfOtherVersion in [false, true] {
      if isOfOtherVersion {
        try Database(path: fixture.path + "/projections/1.sqlite", mode: .write).execute(
          "UPDATE projections SET version = version + 1 WHERE name = 'sales'")
      }
      let attempts: [(Projector) throws -> Void] = [
        { _ = try $0.current() }, { _ = try $0.current(isFrugal: true) }, { try $0.rebuild() },
        { _ = try $0.books(at: 0) },
        { _ in _ = try LiveProjections(fixture.directory) },
      ]
      for (index, attempt) in attempts.enumerated() {
        let conflict = try Self.conflict { try attempt(try fixture.projector()) }
        expectEqual(conflict?.finding, log.finding, "attempt \(index)")
      }
    }
    // They are left as they are, as evidence.
    expectEqual(fixture.notices, [])
    expectEqual(fixture.projectionNames.filter { $0.hasSuffix(".sqlite") }, ["1.sqlite"])
    try expectEqual(FileManager.default.destinationOfSymbolicLink(atPath: link), inUse)
    try fixture.projector().rebuild(acceptsHistory: true)
    #expect(try fixture.projector().historyConflict() == nil)
    try expectEqual(fixture.current().dump(), other.current().dump())
  }

  @Test func projectionsOfThisHistoryOrNoneThatCanBeReadAreNoConflict() throws {
    let fixture = try Self.folded()
    #expect(try fixture.projector().historyConflict() == nil)
    try fixture.append([.upload(reply(row("3")), metadata: shorthand("4.00"), receipt: "c")])
    #expect(try fixture.projector().historyConflict() == nil)
    try Database(path: fixture.path + "/projections/1.sqlite", mode: .write).execute(
      "DROP TABLE progress")
    #expect(try fixture.projector().historyConflict() == nil)
    #expect(try LedgerFixture().projector().historyConflict() == nil)
  }

  @Test func signedHeadsAreCarriedFromOneGenerationToTheNext() throws {
    let fixture = try Self.folded()
    let root = try LogReader(fixture.directory).head.root
    #expect(try Projector.rememberedHeads(fixture.directory) == nil)
    // Without projections this has no effect.
    try LedgerFixture().projector().remember(SignedHeads(count: 1, size: 4, root: root))
    let heads = SignedHeads(count: 3, size: 4, root: root)
    try fixture.projector().remember(heads)
    // An older value changes nothing.
    try fixture.projector().remember(SignedHeads(count: 1, size: 2, root: root))
    try expectEqual(Projector.rememberedHeads(fixture.directory), heads)
    try fixture.projector().rebuild()
    try expectEqual(Projector.rememberedHeads(fixture.directory), heads)
    let snapshot = try fixture.createSnapshot()
    #expect(try fixture.projector().verify(snapshot) == nil)
    try fixture.projector().restore(snapshot)
    try expectEqual(Projector.rememberedHeads(fixture.directory), heads)
    #expect(try fixture.projector().compare(.tables)?.isEmpty == true)
    try fixture.projector().rebuild(acceptsHistory: true)
    #expect(try Projector.rememberedHeads(fixture.directory) == nil)
  }

  /// What may happen to a file, and whether the projections are read before they are caught up.
  enum Damage: CaseIterable {
    case empty, text, halfOfIt, pagesOverwritten, gone, linkGone
  }

  @Test(arguments: Damage.allCases)
  func damagedProjectionsAreRebuilt(_ damage: Damage) throws {
    let fixture = try Self.folded()
    let path = fixture.path + "/projections/1.sqlite"
    let url = URL(fileURLWithPath: path)
    var content = try Data(contentsOf: url)
    switch damage {
    case .empty: try Data().write(to: url)
    case .text: try Data("no database at all, but long enough for a header".utf8).write(to: url)
    case .halfOfIt: try content.prefix(content.count / 2).write(to: url)
    case .pagesOverwritten:
      content.replaceSubrange(
        8192..<content.count, with: Data(repeating: 0xA5, count: content.count - 8192))
      try content.write(to: url)
    case .gone: try FileManager.default.removeItem(atPath: path)
    case .linkGone: try FileManager.default.removeItem(atPath: fixture.path + "/projections.sqlite")
    }
    // Folding meets damage that reading the progress would not.
    try fixture.append([.upload(reply(row("3")), metadata: shorthand("4.00"), receipt: "c")])
    try expectEqual(Self.gross(fixture, fixture.current()), ["3,9.00"])
    try expectEqual(fixture.current().integer("SELECT count(*) FROM uploads"), 3)
  }

  /// Other programs may write to the file: a contradiction is an error with advice, never a crash.
  @Test(arguments: [
    "DELETE FROM sales WHERE id = (SELECT max(id) FROM sales)",
    "INSERT INTO later_lines VALUES(77, 1, 1, 0, 2, '', -1, NULL, 100000, 0, 1, 0, NULL)",
    "INSERT INTO later_lines VALUES(0, 1, 1, 0, 2, '', -9223372036854775808, 0, 100000, 0, 1, 0, NULL)",
    "INSERT INTO later_lines VALUES(0, 1, 9, 0, 2, '', -1, NULL, 100000, 0, 1, 0, NULL)",
    "DELETE FROM sale_figures", "UPDATE sale_figures SET id = id + 1",
    "UPDATE sale_figures SET records = zeroblob(51)",
    "UPDATE sale_figures SET records = substr(records, 1, 50)",
    "UPDATE sale_figures SET records = CAST(records || records AS BLOB)",
  ])
  func salesThatDoNotFitTheirJournalAreAnError(_ tampering: String) throws {
    let fixture = try Self.folded()
    try Database(path: fixture.path + "/projections/1.sqlite", mode: .write).execute(tampering)
    for report in [ReportKind.revenue, .journal, .sales, .exceptions, .users] {
      #expect {
        try fixture.csv(ReportRequest(report), from: fixture.current())
      } throws: {
        [
          "projections: the sales do not match their journal; 'ledgerctl rebuild' rebuilds them from the log",
          "projections: reading the projections: column line has a value that this program never writes",
        ].contains("\($0)")
      }
    }
  }

  @Test func whatInterruptedBuildsLeftIsCleanedUp() throws {
    let fixture = try Self.folded()
    for name in ["7.sqlite.building", "7.sqlite.building-journal"] {
      try Data("left".utf8).write(to: URL(fileURLWithPath: fixture.path + "/projections/" + name))
    }
    try FileManager.default.createSymbolicLink(
      atPath: fixture.path + "/projections.sqlite.new", withDestinationPath: "nowhere")
    try expectEqual(Self.gross(fixture, fixture.current()), ["2,5.00"])
    try expectEqual(Self.gross(fixture, fixture.rebuilt()), ["2,5.00"])
    expectEqual(Self.generations(fixture), ["2.sqlite", "lock"])
    #expect(!FileManager.default.fileExists(atPath: fixture.path + "/projections.sqlite.new"))
  }

  @Test func whatIsNoGenerationIsLeftAloneWhateverItsNameBeginsWith() throws {
    let fixture = try Self.folded()
    let others = [
      "9223372036854775807.sqlite", "99999999999999999999.sqlite", "1000000000.sqlite",
      "1.sqlite.backup", "1.sqlite-old", "1.sqlite.building.old", "007.sqlite", "+8.sqlite",
      "copy.building", "3.sqlite.gz",
    ]
    for name in others {
      try Data("kept".utf8).write(to: URL(fileURLWithPath: fixture.path + "/projections/" + name))
    }
    try expectEqual(Self.gross(fixture, fixture.current()), ["2,5.00"])
    try expectEqual(Self.gross(fixture, fixture.rebuilt()), ["2,5.00"])
    expectEqual(Self.generations(fixture), (["2.sqlite", "lock"] + others).sorted())
  }

  @Test func afterTheLastNumberGenerationsAreCountedFromTheFirst() throws {
    let fixture = try Self.folded()
    try Data("left".utf8).write(
      to: URL(fileURLWithPath: fixture.path + "/projections/999999999.sqlite"))
    try fixture.projector().rebuild()
    expectEqual(Self.generations(fixture), ["2.sqlite", "lock"])
    try expectEqual(Self.gross(fixture, fixture.current()), ["2,5.00"])
  }

  @Test func aGenerationThatCannotBePutInUseIsRemoved() throws {
    let fixture = try Self.folded()
    let link = fixture.path + "/projections.sqlite"
    try FileManager.default.removeItem(atPath: link)
    try FileManager.default.createDirectory(atPath: link, withIntermediateDirectories: false)
    for _ in 0..<2 {
      #expect {
        try fixture.projector().current()
      } throws: {
        "\($0)" == "link: projections.sqlite: is a directory"
      }
      let left = fixture.projectionNames.filter { !$0.hasPrefix("1.sqlite-") }
      expectEqual(left, ["1.sqlite", "lock"])
      #expect(throws: (any Error).self) {
        try FileManager.default.attributesOfItem(atPath: link + ".new")
      }
    }
    try FileManager.default.removeItem(atPath: link)
    try expectEqual(Self.gross(fixture, fixture.current()), ["2,5.00"])
    expectEqual(Self.generations(fixture), ["2.sqlite", "lock"])
  }

  @Test func aReaderKeepsTheGenerationThatItOpened() throws {
    let fixture = try Self.folded()
    let old = try #require(try fixture.projector().existing())
    try expectEqual(Self.gross(fixture, old), ["2,5.00"])
    try fixture.append([.upload(reply(row("3")), metadata: shorthand("4.00"), receipt: "c")])
    let new = try fixture.rebuilt()
    try expectEqual(Self.gross(fixture, new), ["3,9.00"])
    try expectEqual(Self.gross(fixture, old), ["2,5.00"])
    #expect(try fixture.projector().existing()?.path.hasSuffix("/2.sqlite") == true)
  }

  @Test func anInterruptedRebuildLeavesTheGenerationInUse() throws {
    let fixture = try Self.folded()
    let projector = Projector(
      try LogReader(fixture.directory), observer: Projector.Observer(isCancelled: { true }))
    #expect {
      try projector.rebuild()
    } throws: { error in
      if case ProjectionError.interrupted = error { true } else { false }
    }
    expectEqual(Self.generations(fixture), ["1.sqlite", "lock"])
    try expectEqual(Self.gross(fixture, fixture.current()), ["2,5.00"])
  }

  @Test func anInterruptedCatchUpLeavesNothingBehind() throws {
    let fixture = try Self.folded()
    try fixture.append([.upload(reply(row("3")), metadata: shorthand("4.00"), receipt: "c")])
    let projector = Projector(
      try LogReader(fixture.directory), observer: Projector.Observer(isCancelled: { true }))
    #expect(throws: ProjectionError.self) { try projector.current() }
    let left = try #require(try fixture.projector().existing())
    try expectEqual(Report.head(of: left).size, 4)
    try expectEqual(Self.gross(fixture, fixture.current()), ["3,9.00"])
    #expect(fixture.notices.isEmpty)
  }

  @Test func aVerificationOfNoUploadIsAnExceptionWithItsPosition() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.verify(7, reply(row("1")))])
    #expect(
      try fixture.csv(ReportRequest(.exceptions), from: fixture.current())
        .hasSuffix("\nmalformed_event,,,,,,0,receipt.verified upload,,,\n"))
  }

  @Test func aReusedReplyThatIsNoneIsAnExceptionWithItsPosition() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(), .reuse(0, for: 0)])
    #expect(
      try fixture.csv(ReportRequest(.exceptions), from: fixture.current())
        .hasSuffix("\nmalformed_event,,,,,,1,receipt.verified reply_of,,,\n"))
  }
}

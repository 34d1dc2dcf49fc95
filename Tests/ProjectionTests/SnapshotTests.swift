// Saved states of the projections: restored they are the same, and an unsuitable one is never used.
import Base
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite(.bounded) struct SnapshotTests {
  /// A ledger with a snapshot after 20 steps, and 10 more steps.
  struct Case {
    let fixture: LedgerFixture
    let snapshotSize: Int

    init(seed: UInt64) throws {
      var generator = HistoryGenerator(seed: seed)
      let steps = generator.steps(30)
      fixture = try LedgerFixture(blockByteCount: 4 << 10)
      try fixture.append(Array(steps[..<20]))
      _ = try fixture.current()
      snapshotSize = fixture.eventCount
      try fixture.append(Array(steps[20...]))
      _ = try fixture.createSnapshot(at: snapshotSize)
    }

    var folder: String { fixture.path + "/snapshots" }
    var snapshot: Snapshot {
      get throws { try #require(fixture.projector().snapshots.snapshots.first) }
    }
    var dataPath: String { get throws { folder + "/" + (try snapshot.header.file) } }
    var headerPath: String {
      get throws { try dataPath.replacingOccurrences(of: ".sqlite", with: ".json") }
    }

    func loseProjections() throws {
      try FileManager.default.removeItem(atPath: fixture.path + "/projections")
      try FileManager.default.removeItem(atPath: fixture.path + "/projections.sqlite")
    }

    func edit(_ path: String, _ change: (inout Data) -> Void) throws {
      var data = try Data(contentsOf: URL(fileURLWithPath: path))
      change(&data)
      try data.write(to: URL(fileURLWithPath: path))
    }

    /// - Parameter isVouchedFor: whether the log has an event that vouches for the file then.
    func editDatabase(isVouchedFor: Bool = true, _ change: (String) throws -> Void) throws {
      try SnapshotTests.rewrite(try snapshot, in: folder, isVouchedFor ? fixture : nil, change)
    }

    func editDatabase(isVouchedFor: Bool = true, _ statement: String) throws {
      try editDatabase(isVouchedFor: isVouchedFor) {
        try Database(path: $0, mode: .write).execute(statement)
      }
    }

    func editHeader(_ text: String, _ other: String) throws {
      try edit(headerPath) { data in
        data = Data(String(decoding: data, as: UTF8.self).replacing(text, with: other).utf8)
      }
    }
  }

  /// Changes the database inside a snapshot and its header accordingly, as if it had been saved so.
  /// - Parameter vouching: where to append an event that vouches for the changed file, though not for its rows; nil
  ///   leaves the old event.
  static func rewrite(
    _ snapshot: Snapshot, in folder: String, _ vouching: LedgerFixture?,
    _ change: (String) throws -> Void
  ) throws {
    let header = snapshot.header
    let file = URL(fileURLWithPath: "\(folder)/\(header.file)")
    try change(file.path)
    let database = try Data(contentsOf: file)
    let headerFile = URL(fileURLWithPath: "\(folder)/\(digits(header.size)).json")
    let digest = database.withUnsafeBytes { SHA256.hash($0) }
    var text = String(decoding: try Data(contentsOf: headerFile), as: UTF8.self)
    if let vouching {
      let created = SnapshotCreated(
        size: header.size, root: header.root,
        projections: header.projectionVersions.map { .init(name: $0.name, version: $0.version) },
        contentSHA256: SHA256Digest(0, 0, 0, 0),
        fileSHA256: (try salt(in: text) + digest.bytes).withUnsafeBytes { SHA256.hash($0) })
      let draft = EventDraft(type: "snapshot.created", version: 1, data: created.data)
      let position = try vouching.append(drafts: [draft])
      text = text.replacing("\"event\":\(header.event)\n", with: "\"event\":\(position)\n")
    }
    text =
      text
      .replacing(header.sha256.hex, with: digest.hex)
      .replacing("\"bytes\":\(header.byteCount)", with: "\"bytes\":\(database.count)")
    try Data(text.utf8).write(to: headerFile)
  }

  private static func salt(in header: String) throws -> [UInt8] {
    let members = try JSONSerialization.jsonObject(with: Data(header.utf8)) as? [String: Any]
    let text = try #require(members?["salt"] as? String)
    return [UInt8](try #require(Data(base64Encoded: text)))
  }

  static func digits(_ size: Int) -> String {
    let digits = "\(size)"
    return String(repeating: "0", count: 20 - digits.count) + digits
  }

  private static let reports = [
    "revenue --by period,country,product,basis --environment all", "journal --environment all",
    "sales --environment all", "exceptions --environment all", "receipts --environment all",
    "users --environment all",
  ]

  @Test(arguments: 1...3 as ClosedRange<UInt64>)
  func exportsAreTheSameRebuiltCaughtUpAndRestored(seed: UInt64) throws {
    let test = try Case(seed: seed)
    let fixture = test.fixture
    func exports(_ database: Database) throws -> [String] {
      try Self.reports.flatMap { words in
        let request = try ReportWords(words).request
        return [
          try fixture.csv(request, from: database), try fixture.json(request, from: database),
        ]
      }
    }
    let caughtUp = try fixture.current()
    let (exported, dumped) = (try exports(caughtUp), try caughtUp.dump())
    let rebuilt = try fixture.rebuilt()
    try expectEqual(exports(rebuilt), exported)
    try expectEqual(rebuilt.dump(), dumped)
    try test.loseProjections()
    try fixture.projector().restore(try test.snapshot)
    try expectEqual(fixture.projector().status()?.position, fixture.eventCount)
    let restored = try fixture.current()
    try expectEqual(exports(restored), exported)
    try expectEqual(restored.dump(), dumped)
    let past = try fixture.projector().books(at: fixture.eventCount)
    try expectEqual(exports(past), exported)
    expectEqual(fixture.notices, [])
    // A restored generation continues like any other.
    var generator = HistoryGenerator(seed: seed + 100)
    try fixture.append(generator.steps(3))
    let goneOn = try fixture.current().dump()
    try expectEqual(goneOn, fixture.rebuilt().dump())
  }

  @Test func anySnapshotIsAnSQLiteDatabase() throws {
    let test = try Case(seed: 6)
    let file = try Data(contentsOf: URL(fileURLWithPath: test.dataPath))
    expectEqual(file.count, (try test.snapshot.header.byteCount))
    expectEqual(file.prefix(15), Data("SQLite format 3".utf8))
    let database = try Database(path: try test.dataPath, mode: .read)
    try expectEqual(database.dump(), test.fixture.projector().books(at: test.snapshotSize).dump())
  }

  /// What may be wrong with a snapshot, and the message about it.
  enum Damage: String, CaseIterable, CustomTestStringConvertible {
    case bitFlipped, cutShort, grown, gone, bytesSwapped, otherDigest, otherLength, otherVersion,
      otherDefinition, withoutDefinitions, unknownProjection, otherLedger, otherRoot, moreEvents,
      headerNoJSON, headerOfAnotherVersion, headerOfEarlierVersion, compressed, rowEdited,
      rowsOtherThanVouchedFor, eventUnnamed, eventBeyond, eventOfOtherType, otherSalt,
      headerCutShort, savedDamaged, savedWithoutTable, savedWithoutIndex,
      savedWithOtherColumns, savedOfOtherEvents

    var testDescription: String { rawValue }

    var cause: String {
      switch self {
      case .bitFlipped, .bytesSwapped: "its file is damaged"
      case .cutShort, .grown, .otherLength: "bytes, but its header says"
      case .gone: "its file is missing"
      case .otherVersion: "another version of this program: sales 99, here"
      case .otherDefinition, .withoutDefinitions:
        "another version of this program: other tables, indexes or views"
      case .unknownProjection: "another version of this program: extras unknown here"
      case .otherLedger: "another ledger"
      case .otherRoot: "'frontier' is missing or invalid in its header"
      case .moreEvents: "its header's size does not match its name"
      case .headerNoJSON, .headerCutShort: "is not JSON"
      case .headerOfAnotherVersion: "does not have version 3"
      case .headerOfEarlierVersion, .compressed: "an earlier version of this program made it"
      case .rowEdited: "it is not the snapshot that the event at position"
      case .rowsOtherThanVouchedFor: "its rows differ from those that the event vouches for"
      case .eventUnnamed: "'event' is missing or invalid in its header"
      case .eventBeyond: "the log has no event at position 9999 to vouch for it"
      case .eventOfOtherType: "the event at position 0 does not vouch for any snapshot"
      case .otherSalt, .otherDigest: "it is not the snapshot that the event at position"
      case .savedDamaged: "its database is damaged"
      case .savedWithoutTable: "its database has no table sales"
      case .savedWithoutIndex: "its database has no index sales_key"
      case .savedWithOtherColumns: "its database has a different table sales"
      case .savedOfOtherEvents: "its database does not match its header"
      }
    }

    func apply(to test: Case) throws {
      let path = try test.dataPath
      let header = try test.snapshot.header
      switch self {
      case .bitFlipped: try test.edit(path) { $0[$0.count / 2] ^= 4 }
      case .bytesSwapped: try test.edit(path) { $0.swapAt(16, 17) }
      case .cutShort: try test.edit(path) { $0.removeLast() }
      case .grown: try test.edit(path) { $0.append(0) }
      case .gone: try FileManager.default.removeItem(atPath: path)
      case .otherDigest:
        try test.editHeader(header.sha256.hex, String(repeating: "0", count: 64))
      case .otherLength:
        try test.editHeader(
          "\"bytes\":\(header.byteCount)", "\"bytes\":\(header.byteCount + 1)")
      case .otherVersion:
        let version = try #require(header.projectionVersions.first { $0.name == "sales" }).version
        try test.editHeader("\"sales\":\(version)", "\"sales\":99")
      case .otherDefinition:
        try test.editHeader("\"views\":\"", "\"views\":\"0")
      case .withoutDefinitions:
        try test.editHeader("\"definitions\":", "\"remarks\":")
      case .unknownProjection:
        try test.editHeader("\"projections\":{", "\"projections\":{\"extras\":1,")
      case .otherLedger: try test.editHeader(header.ledgerID, String(header.ledgerID.reversed()))
      case .otherRoot:
        try test.editHeader("\"root\":\"\(Base64.text(header.root.bytes))\"", "\"root\":\"AAAA\"")
      case .moreEvents:
        let name = try test.headerPath
        try FileManager.default.moveItem(
          atPath: name, toPath: name.replacingOccurrences(of: ".json", with: "0.json"))
      case .headerNoJSON: try Data("{".utf8).write(to: URL(fileURLWithPath: test.headerPath))
      case .headerOfAnotherVersion: try test.editHeader("\"snapshot\":3", "\"snapshot\":4")
      case .headerOfEarlierVersion: try test.editHeader("\"snapshot\":3", "\"snapshot\":1")
      case .compressed:
        let process = try Process.run(URL(fileURLWithPath: "/bin/gzip"), arguments: [path])
        process.waitUntilExit()
        try test.edit(try test.headerPath) { data in
          let text = String(decoding: data, as: UTF8.self)
            .replacing("\"snapshot\":3", with: "\"snapshot\":2")
          data = Data(text.replacing(header.file, with: header.file + ".gz").utf8)
        }
      case .rowEdited:
        try test.editDatabase(isVouchedFor: false, "UPDATE sales SET unit_price_micros = 1")
      case .rowsOtherThanVouchedFor:
        try test.editDatabase("UPDATE sales SET unit_price_micros = 1")
      case .eventUnnamed: try test.editHeader("\"event\":", "\"incident\":")
      case .eventBeyond: try test.editHeader("\"event\":\(header.event)", "\"event\":9999")
      case .eventOfOtherType: try test.editHeader("\"event\":\(header.event)", "\"event\":0")
      case .otherSalt:
        let header = try Data(contentsOf: URL(fileURLWithPath: test.headerPath))
        let text = String(decoding: header, as: UTF8.self)
        let salt = try #require(text.firstRange(of: "\"salt\":\"")).upperBound
        let start = String(text[salt...].prefix(8))
        try test.editHeader(start, String(start.reversed()))
      case .headerCutShort: try test.edit(try test.headerPath) { $0 = $0.prefix(100) }
      case .savedDamaged: try test.editDatabase { try Database.damage("sales", in: $0) }
      case .savedWithoutTable: try test.editDatabase("DROP TABLE sales")
      case .savedWithoutIndex: try test.editDatabase("DROP INDEX sales_key")
      case .savedWithOtherColumns:
        try test.editDatabase("ALTER TABLE sales RENAME quantity TO pieces")
      case .savedOfOtherEvents:
        try test.editDatabase("UPDATE progress SET position = position - 1")
      }
    }
  }

  @Test(arguments: Damage.allCases)
  func aSnapshotThatDoesNotFitIsNotUsedAndTheReasonIsSaid(_ damage: Damage) throws {
    let test = try Case(seed: 7)
    let fixture = test.fixture
    try test.loseProjections()
    try damage.apply(to: test)
    let projector = try fixture.projector()
    let store = projector.snapshots
    if let snapshot = store.snapshots.first {
      let verdict = try projector.verify(snapshot)
      #expect(verdict?.contains(damage.cause) == true, "\(verdict ?? "usable")")
      // Only `verify` checks whether the database was whole when it was saved, and its rows: an event vouches for the
      // file.
      if [.savedDamaged, .rowsOtherThanVouchedFor].contains(damage) { return }
      #expect {
        try projector.restore(snapshot)
      } throws: { error in
        guard case ProjectionError.snapshot(_, let cause)? = error as? ProjectionError else {
          return false
        }
        return cause == verdict
      }
    } else {
      #expect(store.unreadable.first?.cause.contains(damage.cause) == true)
    }
    // Nothing was put in use, and earlier books are made without it.
    #expect(try projector.status() == nil)
    let books = try projector.books(at: test.snapshotSize)
    let said = fixture.notices
    // A snapshot that claims later events cannot serve for these books.
    if damage != .moreEvents {
      #expect(said.count == 1 && said[0].contains(damage.cause), "\(said)")
    }
    _ = try fixture.rebuilt()
    try expectEqual(books.dump(), fixture.projector().books(at: test.snapshotSize).dump())
    // It is removed, whatever was wrong.
    _ = try projector.snapshots.prune { _ in [] }
    try expectEqual(FileManager.default.contentsOfDirectory(atPath: test.folder), ["lock"])
  }

  @Test func theEventThatVouchesForASnapshotTellsNothingOfItsContent() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 11)
    try fixture.append(generator.steps(10))
    _ = try fixture.current()
    let size = fixture.eventCount
    let events = try (0..<2).map { _ in
      let snapshot = try fixture.createSnapshot(at: size)
      #expect(try fixture.projector().verify(snapshot) == nil)
      let line = try LogReader(fixture.directory).event(at: snapshot.header.event)
      return try line.withUnsafeBytes {
        try SnapshotCreated(data: try #require(EventLine($0)).data)
      }
    }
    // The same rows in the same file, with other digests each time.
    #expect(events[0].size == size && events[0].root == events[1].root)
    #expect(events[0].contentSHA256 != events[1].contentSHA256)
    #expect(events[0].fileSHA256 != events[1].fileSHA256)
    // They change nothing in the books.
    try expectEqual(fixture.current().dump(), fixture.rebuilt().dump())
  }

  @Test func withoutItsEventNoSnapshotIsMade() throws {
    let test = try Case(seed: 12)
    struct Refused: Error {}
    #expect(throws: (any Error).self) {
      _ = try test.fixture.projector().createSnapshot { _ in throw Refused() }
    }
    try expectEqual(FileManager.default.contentsOfDirectory(atPath: test.folder).count, 3)
    try expectEqual(test.fixture.projector().snapshots.snapshots.count, 1)
  }

  @Test func aSnapshotOfAnotherHistoryIsNotUsed() throws {
    let test = try Case(seed: 8)
    var generator = HistoryGenerator(seed: 9)
    // The same ledger by its id, but with other events.
    let other = try LedgerFixture(blockByteCount: 4 << 10)
    try other.append(generator.steps(40))
    try FileManager.default.copyItem(atPath: test.folder, toPath: other.path + "/snapshots")
    let projector = try other.projector()
    let snapshot = try #require(projector.snapshots.snapshots.first)
    expectEqual(projector.unfitness(of: snapshot), "its history differs from the log's")
    let short = try LedgerFixture(blockByteCount: 4 << 10)
    try short.append(generator.steps(2))
    try FileManager.default.copyItem(atPath: test.folder, toPath: short.path + "/snapshots")
    try expectEqual(
      short.projector().unfitness(of: snapshot),
      "it holds \(test.snapshotSize) events, but the log \(short.eventCount)")
  }

  @Test func whatAnInterruptedSaveLeftIsRemoved() throws {
    let test = try Case(seed: 10)
    let data = Data([1])
    try data.write(to: URL(fileURLWithPath: test.folder + "/00000000000000000001.json.building"))
    // A database without its header does not count.
    try data.write(to: URL(fileURLWithPath: test.folder + "/00000000000000000001.sqlite"))
    let projector = try test.fixture.projector()
    let size = test.fixture.eventCount
    _ = try test.fixture.createSnapshot()
    expectEqual(projector.snapshots.snapshots.map(\.header.size), [test.snapshotSize, size])
    let removed = try projector.snapshots.prune { $0.suffix(1) }.removed
    expectEqual(removed, [SnapshotTests.digits(test.snapshotSize)])
    try expectEqual(FileManager.default.contentsOfDirectory(atPath: test.folder).count, 3)
  }
}

// Rows on their way into the database: they are written as added, on either thread.
import Foundation
import Revenue
import TestSupport
import Testing

import Projections

@Suite struct RowWriterTests {
  private static func database(_ temporary: TemporaryDirectory) throws -> Database {
    let database = try Database(path: temporary.path("rows.sqlite"), mode: .create)
    try database.execute(
      """
      CREATE TABLE one(id INTEGER PRIMARY KEY, text TEXT, bytes BLOB, number INTEGER);
      CREATE TABLE other(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
      """)
    return database
  }

  private static func lines(_ sql: String, _ database: Database) throws -> [String] {
    let rows = try database.prepare(sql)
    var result: [String] = []
    while try rows.step() { result.append(rows.text(0)) }
    return result
  }

  @Test(arguments: [false, true])
  func everyKindOfValueIsWrittenAsItWasAdded(isThreaded: Bool) throws {
    let temporary = try TemporaryDirectory()
    let database = try Self.database(temporary)
    let arena = TextArena()
    let rows = RowWriter(database, arena, isThreaded: isThreaded)
    let target = try rows.target("INSERT INTO one", valueCount: 4)
    let cases: [(text: String?, bytes: [UInt8]?, number: Int64?)] = [
      (nil, nil, nil), ("", [], 0), ("ü🎈", [0, 255], .max), ("a", [1], .min),
      (String(repeating: "x", count: 1_000_000), Array(repeating: 7, count: 300_000), -1),
    ]
    for (id, value) in cases.enumerated() {
      rows.begin(target)
      rows.add(id)
      if let text = value.text {
        withText(text) {
          id.isMultiple(of: 2) ? rows.add(kept: arena.keep($0)) : rows.add(text: $0)
        }
      } else {
        rows.add(text: nil)
      }
      if let bytes = value.bytes {
        withText(bytes) { rows.add(blob: $0) }
      } else {
        rows.add(blob: nil)
      }
      rows.add(value.number)
      try rows.end()
    }
    try rows.drain()
    let found = try database.prepare(
      "SELECT text, bytes, number, typeof(text), typeof(bytes) FROM one ORDER BY id")
    for value in cases {
      #expect(try found.step())
      expectEqual(found.optionalText(0), value.text)
      #expect(value.bytes == nil ? found.isNull(1) : Array(found.bytes(1)) == value.bytes)
      expectEqual(found.optionalInteger(2), value.number)
      expectEqual(found.text(3), (value.text == nil ? "null" : "text"))
      expectEqual(found.text(4), (value.bytes == nil ? "null" : "blob"))
    }
    #expect(try !found.step())
  }

  @Test(arguments: [false, true])
  func ofRowsWithOneKeyTheLastStays(isThreaded: Bool) throws {
    let temporary = try TemporaryDirectory()
    let database = try Self.database(temporary)
    let rows = RowWriter(database, TextArena(), isThreaded: isThreaded)
    let one = try rows.target("INSERT OR REPLACE INTO one(id, number)", valueCount: 2)
    let other = try rows.target("INSERT OR REPLACE INTO other", valueCount: 2)
    // More than fits in a batch, the two tables in turn.
    for number in 0..<20_000 {
      rows.begin(one)
      rows.add(number % 7000)
      rows.add(number)
      try rows.end()
      rows.begin(other)
      rows.add(number % 100)
      withText("\(number)") { rows.add(text: $0) }
      try rows.end()
    }
    try rows.drain()
    try expectEqual(database.integer("SELECT count(*) FROM one WHERE number % 7000 = id"), 7000)
    try expectEqual(database.integer("SELECT min(number) FROM one"), 13_000)
    try expectEqual(
      Self.lines("SELECT text FROM other ORDER BY id", database), (19_900..<20_000).map(String.init)
    )
  }

  @Test(arguments: [false, true])
  func aRowThatIsThereChangesWhereItStands(isThreaded: Bool) throws {
    let temporary = try TemporaryDirectory()
    let database = try Self.database(temporary)
    let rows = RowWriter(database, TextArena(), isThreaded: isThreaded)
    let target = try rows.target(
      upserting: "one(id, text, number)", valueCount: 3, key: "id", changing: ["number"])
    // Twice in one batch, and again in later ones.
    for number in 0..<20_000 {
      rows.begin(target)
      rows.add(number / 2 % 3000)
      withText("first \(number)") { rows.add(text: $0) }
      rows.add(number)
      try rows.end()
    }
    try rows.drain()
    try expectEqual(database.integer("SELECT count(*) FROM one"), 3000)
    try expectEqual(
      database.integer("SELECT count(*) FROM one WHERE text = 'first ' || (2 * id)"), 3000)
    try expectEqual(
      database.integer("SELECT count(*) FROM one WHERE number % 6000 = 2 * id + 1"), 3000)
    try expectEqual(database.integer("SELECT min(number) FROM one"), 14_001)
  }

  @Test(arguments: [false, true])
  func aStatementThatIsNoneIsAnErrorAtTheLatestWhenAllIsWaitedFor(isThreaded: Bool) throws {
    let temporary = try TemporaryDirectory()
    let database = try Self.database(temporary)
    let rows = RowWriter(database, TextArena(), isThreaded: isThreaded)
    #expect(throws: DatabaseError.self) {
      rows.begin(try rows.target("INSERT INTO nothing", valueCount: 1))
      rows.add(1)
      try rows.end()
      try rows.drain()
    }
  }

  @Test func whatNobodyWaitsForIsGivenUpAndTheDatabaseIsFree() throws {
    let temporary = try TemporaryDirectory()
    let database = try Self.database(temporary)
    do {
      let rows = RowWriter(database, TextArena(), isThreaded: true)
      let target = try rows.target("INSERT INTO one(id)", valueCount: 1)
      for id in 0..<200_000 {
        rows.begin(target)
        rows.add(id)
        try rows.end()
      }
    }
    // Whole batches, without the last one.
    let count = try #require(try database.integer("SELECT count(*) FROM one"))
    #expect(count % 8192 == 0 && count < 200_000)
  }

  @Test(arguments: [false, true])
  func statementsRunBehindTheRowsThatWereBegunBefore(isThreaded: Bool) throws {
    let temporary = try TemporaryDirectory()
    let database = try Self.database(temporary)
    let rows = RowWriter(database, TextArena(), isThreaded: isThreaded)
    let target = try rows.target("INSERT INTO one(id)", valueCount: 1)
    for id in 0..<3 {
      rows.begin(target)
      rows.add(id)
      try rows.end()
    }
    try rows.execute("UPDATE one SET number = 1")
    rows.begin(target)
    rows.add(3)
    try rows.end()
    try rows.drain()
    try expectEqual(database.integer("SELECT count(*) FROM one WHERE number = 1"), 3)
    try expectEqual(database.integer("SELECT count(*) FROM one"), 4)
  }

  @Test(arguments: [false, true])
  func statementsOnOneTableKeepTheirOrder(isThreaded: Bool) throws {
    let temporary = try TemporaryDirectory()
    let database = try Self.database(temporary)
    let rows = RowWriter(database, TextArena(), isThreaded: isThreaded)
    let insert = try rows.target("INSERT INTO one(id, number)", valueCount: 2)
    let add = try rows.target(
      reading: "UPDATE one SET number = number * 2 + c1 FROM row_batch WHERE id = c0",
      valueCount: 2, inOrderWith: insert, isSingle: true)
    let remove = try rows.target(
      reading: "DELETE FROM one WHERE id IN (SELECT c0 FROM row_batch)", valueCount: 1,
      inOrderWith: insert)
    var random = SeededRandom(seed: 5)
    var expected: [Int: Int] = [:]
    for _ in 0..<3000 {
      let id = Int.random(in: 0..<20, using: &random)
      if let number = expected[id] {
        let isRemoved = Bool.random(using: &random)
        expected[id] = isRemoved ? nil : (number * 2 + id) % 1000
        rows.begin(isRemoved ? remove : add)
        rows.add(id)
        if !isRemoved { rows.add((number * 2 + id) % 1000 - number * 2) }
      } else {
        expected[id] = 1
        rows.begin(insert)
        rows.add(id)
        rows.add(1)
      }
      try rows.end()
    }
    try rows.drain()
    let lines = expected.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
    try expectEqual(Self.lines("SELECT id || ' ' || number FROM one ORDER BY id", database), lines)
    #expect(!lines.isEmpty)
  }

  @Test(arguments: [false, true])
  func aRowThatTheTableRefusesIsAnErrorAtTheLatestWhenAllIsWaitedFor(isThreaded: Bool) throws {
    let temporary = try TemporaryDirectory()
    let database = try Self.database(temporary)
    let rows = RowWriter(database, TextArena(), isThreaded: isThreaded)
    let target = try rows.target("INSERT INTO other", valueCount: 2)
    #expect(throws: DatabaseError.self) {
      for id in 0..<50_000 {
        rows.begin(target)
        rows.add(id)
        rows.add(text: nil)
        try rows.end()
      }
      try rows.drain()
    }
  }
}

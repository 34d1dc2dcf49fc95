// Index entries by hash and records by number: lookups find what was stored.
import Revenue
import TestSupport
import Testing

@Suite struct HashIndexTests {
  @Test(arguments: [1, 2, 3] as [UInt64])
  func placesAreThoseOfADictionary(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let arena = TextArena()
    let (table, texts) = (HashIndex(), ChunkedArray<Text>())
    var expected: [[UInt8]: Int] = [:]
    for _ in 0..<5000 {
      let key = (0..<Int.random(in: 0...20, using: &random)).map { _ in
        UInt8.random(in: 0...2, using: &random)
      }
      withText(key) { key in
        let found = table.find(key.placeHash()) { texts[$0].equals(key) }
        expectEqual(found, expected[Array(key)])
        if found != nil { return }
        table.insert(key.placeHash(), texts.count)
        expected[Array(key)] = texts.count
        texts.append(arena.keep(key))
      }
    }
    #expect(texts.count == expected.count && texts.count > 2048)
  }

  @Test func whatHasOneHashIsToldApartByWhatItIs() {
    let table = HashIndex()
    for place in 0..<200 { table.insert(7, place) }
    for place in 0..<200 { expectEqual(table.find(7) { $0 == place }, place) }
    #expect(table.find(7) { $0 == 200 } == nil)
    #expect(table.find(8) { _ in true } == nil)
  }

  @Test func recordsStayWhatTheyWereWhileOthersAreAdded() {
    let records = ChunkedArray<Int>()
    for number in 0..<40_000 {
      records.append(number)
      if number.isMultiple(of: 3) { records.update(number / 3) { $0 += 1_000_000 } }
    }
    expectEqual(records.count, 40_000)
    for number in records.indices {
      expectEqual(records[number], (number <= 39_999 / 3 ? number + 1_000_000 : number))
    }
  }
}

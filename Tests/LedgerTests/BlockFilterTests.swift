// Blocks that a reader does not want are skipped by their headers.
import Foundation
import Ledger
import TestSupport
import Testing

@Suite struct BlockFilterTests {
  private static func positions(
    _ fixture: LedgerFixture, workers: Int, isWanted: @escaping BlockFilter
  ) throws -> [Int] {
    var result: [Int] = []
    try LogReader(fixture.directory).read(from: 0, workers: workers, isWanted: isWanted) { chunk in
      try chunk.forEachEvent { result.append($0.position) }
      return true
    }
    return result
  }

  @Test(arguments: [0, 2]) func onlyWantedBlocksAreHandedOutWhole(workers: Int) throws {
    let fixture = try LedgerFixture()
    try fixture.fill(120)
    #expect(fixture.segmentNames.count > 2)
    let all = try Self.positions(fixture, workers: workers) { _ in true }
    expectEqual(all, Array(0..<120))
    let tail = try Self.positions(fixture, workers: workers) { _ in false }
    // Tails have no headers; their events come last.
    #expect(tail == Array((120 - tail.count)..<120) && tail.count < 120)
    let wanted = try Self.positions(fixture, workers: workers) { $0.contains(7) || $0.contains(60) }
    #expect(wanted.contains(7) && wanted.contains(60) && wanted.count < 60)
    #expect(wanted == wanted.sorted() && Set(wanted).count == wanted.count)
  }

  @Test(arguments: [0, 2]) func whatIsPassedOverIsNotRead(workers: Int) throws {
    let fixture = try LedgerFixture()
    try fixture.fill(60)
    let name = try #require(fixture.segmentNames.first)
    var bytes = try fixture.content(name)
    // In the compressed bytes of the first block, after the segment's opening.
    let members = bytes.indices.filter { Array(bytes[$0...].prefix(3)) == [0x1F, 0x8B, 0x08] }
    bytes[try #require(members.dropFirst(2).first) - 20] ^= 0x40
    try fixture.write(bytes, to: name)
    #expect(throws: LedgerError.self) {
      try Self.positions(fixture, workers: workers) { _ in true }
    }
    let later = try Self.positions(fixture, workers: workers) { $0.contains(59) }
    #expect(later.contains(59))
  }
}

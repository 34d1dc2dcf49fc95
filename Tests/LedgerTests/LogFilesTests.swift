// The files that a reader lists, and the search for the first event of a time.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite("A reader lists the log's files and finds times")
struct LogFilesTests {
  /// Options with a clock that advances by each event's own number of milliseconds, sometimes 0.
  private func options(_ stepsMs: [Int64]) -> WriterOptions {
    var options = LedgerFixture.smallOptions()
    let clock = Monitor((timeMs: Int64(1_000_000), index: 0))
    options.clock = {
      clock.withLock { state in
        if state.index < stepsMs.count { state.timeMs += stepsMs[state.index] }
        state.index += 1
        return state.timeMs
      }
    }
    return options
  }

  @Test("The files are contiguous and hold every event", arguments: [0, 1, 7, 60])
  func files(_ count: Int) throws {
    let fixture = try LedgerFixture()
    try fixture.fill(count)
    let files = try LogReader(fixture.directory).files()
    var position = 0
    for file in files {
      expectEqual(file.firstPosition, position)
      position += file.eventCount
      let content = try fixture.content(String(file.name.dropFirst("log/".count)))
      expectEqual(file.sizeBytes, content.count)
    }
    expectEqual(position, count)
    expectEqual(
      files.map { String($0.name.dropFirst("log/".count)) },
      fixture.segmentNames
        + fixture.tailNames)
    expectEqual(files.count { $0.kind == .open }, 1)
  }

  @Test("The first event at or after a time agrees with a linear search", arguments: 0..<6)
  func firstPosition(_ seed: Int) throws {
    var random = SeededRandom(seed: UInt64(seed))
    let stepsMs = (0..<40).map { _ in Int64.random(in: 0...3, using: &random) }
    let fixture = try LedgerFixture()
    try fixture.fill(stepsMs.count, options: options(stepsMs))
    let times = try fixture.lines().map { line in
      try line.withUnsafeBytes { try #require(EventLine($0)).recordedAtMs }
    }
    let reader = try LogReader(fixture.directory)
    let last = try #require(times.last)
    for timeMs in (times[0] - 2)...(last + 2) {
      let expected = times.firstIndex { $0 >= timeMs } ?? times.count
      try expectEqual(reader.firstPosition(recordedFromMs: timeMs), expected, "time \(timeMs)")
    }
    try expectEqual(reader.firstPosition(recordedFromMs: .max), times.count)
    try expectEqual(reader.firstPosition(recordedFromMs: .min), 0)
  }

  @Test("An empty log has no event of any time")
  func empty() throws {
    let fixture = try LedgerFixture()
    let reader = try LogReader(fixture.directory)
    try expectEqual(reader.firstPosition(recordedFromMs: 0), 0)
    expectEqual(reader.tornTailByteCount, 0)
    withExtendedLifetime(fixture) {}
  }
}

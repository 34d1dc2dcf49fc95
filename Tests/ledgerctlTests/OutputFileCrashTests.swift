// Reports as files, with a crash at every call: the old report or the new one.
import TestSupport
import Testing

import Commands

@Suite struct OutputFileCrashTests {
  private static let path = "/out/report.csv"
  private static let old = [UInt8](repeating: UInt8(ascii: "o"), count: 3000)
  private static let new = [UInt8](repeating: UInt8(ascii: "n"), count: 100_000)

  private static func write(_ storage: FaultyStorage) throws {
    let file = try OutputFile(path: path, outside: nil, storage: storage)
    try file.output.write(new)
    try file.output.writeLine("end")
    try file.commit()
  }

  private static func report(_ storage: FaultyStorage) -> String {
    guard storage.paths.contains(path) else { return "none" }
    return String(decoding: storage.content(path), as: UTF8.self)
  }

  private static func folder(_ name: String) -> FaultyStorage {
    let storage = FaultyStorage()
    storage.place("/out/\(name)", old)
    return storage
  }

  @Test(arguments: ["report.csv", "another.csv"])
  func aCrashAtEveryCallLeavesTheOldReportOrTheNewOne(_ there: String) throws {
    let operation = CrashedOperation(
      "write a report next to \(there)", prepare: { Self.folder(there) }, run: Self.write,
      state: Self.report)
    let result = try operation.problems()
    #expect(result.problems.isEmpty, "\(result.problems.map { $0.prefix(200) }.prefix(5))")
    print("crash points tried: \(result.pointCount) (\(operation.name))")
  }

  @Test func nothingIsLeftOfAReportThatFails() throws {
    let storage = Self.folder("report.csv")
    storage.setFaults(.init(isFull: true))
    #expect(throws: (any Error).self) { try Self.write(storage) }
    expectEqual(storage.paths, [Self.path])
    expectEqual(storage.openFileCount, 0)
  }
}

// A crash while a small file is replaced: the old content or the new, never anything else.
import Foundation
import Ledger
import TestSupport
import Testing

@Suite("Replacing a file")
struct ReplaceFileTests {
  private static let old = Array(repeating: UInt8(ascii: "o"), count: 3000)
  private static let new = Array(repeating: UInt8(ascii: "n"), count: 5000)

  private func prepared() throws -> (storage: FaultyStorage, folder: Folder) {
    let storage = try CrashRig.newLedger()
    let folder = try Folder(path: "/ledger", storage: storage)
    try folder.replaceFile("config.json", with: Self.old)
    return (storage, folder)
  }

  @Test(
    "A crash at every call leaves the old file or the new one",
    arguments: 1...8 as ClosedRange<UInt64>)
  func everyCall(_ seed: UInt64) throws {
    let whole = try prepared()
    whole.storage.setFaults(.init())
    try whole.folder.replaceFile("config.json", with: Self.new)
    for call in 1...whole.storage.callCount + 1 {
      let (storage, folder) = try prepared()
      storage.setFaults(.init(crashAtCall: call))
      let isDone = (try? folder.replaceFile("config.json", with: Self.new)) != nil
      let found = storage.afterCrash(seed: seed &+ UInt64(call) << 8).content("/ledger/config.json")
      #expect(found == Self.new || !isDone && found == Self.old)
    }
  }

  @Test("A call that fails leaves the old file, and nothing else", arguments: [EIO, ENOSPC])
  func everyFailure(_ code: Int32) throws {
    let whole = try prepared()
    whole.storage.setFaults(.init())
    try whole.folder.replaceFile("config.json", with: Self.new)
    let callCount = whole.storage.callCount
    for ordinal in 1...callCount {
      let (storage, folder) = try prepared()
      storage.setFaults(.init(failCall: .init(ordinal: ordinal, code: code)))
      let isDone = (try? folder.replaceFile("config.json", with: Self.new)) != nil
      storage.setFaults(.init())
      let found = storage.content("/ledger/config.json")
      // Where the last sync fails, the new name is there already.
      #expect(!isDone)
      #expect(found == Self.old || ordinal == callCount && found == Self.new)
      #expect(try !folder.names().contains("config.json.new"))
    }
  }
}

// Changes of config.json that crash at every call.
import Ledger
import Server
import TestSupport
import Testing

@Suite("config.json: crashes")
struct ConfigurationCrashTests {
  private static let family = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"

  private static func file(_ storage: FaultyStorage) throws -> ConfigurationFile {
    ConfigurationFile(try LedgerDirectory.open(path: "/ledger", storage: storage))
  }

  private static func newLedger() throws -> FaultyStorage {
    let storage = FaultyStorage()
    _ = try LedgerDirectory.create(path: "/ledger", origin: "crash.example", storage: storage)
    return storage
  }

  private static func withToken() throws -> FaultyStorage {
    let storage = try newLedger()
    _ = try file(storage).addToken(appFamilyID: family)
    return storage
  }

  private static func tokens(_ storage: FaultyStorage) throws -> String {
    let tokens = try file(storage).read().tokens
    return "\(tokens.count) tokens, \(tokens.count { $0.revokedAtMs != nil }) revoked"
  }

  private static let operations: [CrashedOperation] = [
    .init(
      "create config.json", prepare: newLedger,
      run: { _ = try file($0).addToken(appFamilyID: family) }, state: tokens),
    .init(
      "replace config.json", prepare: withToken,
      run: { _ = try file($0).addToken(appFamilyID: family) }, state: tokens),
    .init(
      "revoke a token", prepare: withToken,
      run: { storage in
        let file = try file(storage)
        for token in try file.read().tokens { _ = try file.revokeToken(id: token.id) }
      }, state: tokens),
  ]

  @Test("a crash at every call leaves the old configuration or the new one")
  func everyCall() throws {
    for operation in Self.operations {
      let result = try operation.problems()
      #expect(result.problems.isEmpty, "\(result.problems.prefix(5))")
      print("crash points tried: \(result.pointCount) (\(operation.name))")
    }
  }
}

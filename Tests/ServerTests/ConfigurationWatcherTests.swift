// config.json while a server runs: what takes effect, and what is told.
import HTTPClient
import Foundation
import Glibc
import Ledger
import Server
import TestSupport
import Testing

@Suite(.bounded) struct ConfigurationWatcherTests {
  /// What a watcher reported. The tests call it directly while its own thread runs too.
  private final class Told: @unchecked Sendable {
    private let lock = NSLock()
    private var changes: [Configuration] = []
    private var problems: [ConfigurationError] = []

    private var recoveries = 0

    func addRecovery() { lock.withLock { recoveries += 1 } }
    var recoveryCount: Int { lock.withLock { recoveries } }
    func add(_ change: Configuration) { lock.withLock { changes.append(change) } }
    func add(_ problem: ConfigurationError) { lock.withLock { problems.append(problem) } }
    var changeCount: Int { lock.withLock { changes.count } }
    var lastProblem: String? { lock.withLock { problems.last?.problems.first?.cause } }
    var problemCount: Int { lock.withLock { problems.count } }
  }

  private func watcher(_ ledger: ConfiguredLedger, _ told: Told) throws -> ConfigurationWatcher {
    try ConfigurationWatcher(
      ledger.directory, onChange: { told.add($0) }, onProblem: { told.add($0) },
      onRecovery: { told.addRecovery() })
  }

  @Test func aChangeTakesEffectByItself() throws {
    let ledger = try ConfiguredLedger()
    let told = Told()
    let watcher = try watcher(ledger, told)
    defer { watcher.stop() }
    let kept = try ledger.file.addToken(appFamilyID: ConfigurationSample.family).kept
    #expect(eventually { watcher.current.tokens == [kept] })
    expectEqual(told.changeCount, 1)
  }

  @Test func aBadFileIsToldOnceAndTheGoodOneStays() throws {
    let ledger = try ConfiguredLedger()
    try ledger.write(#"{"app_store":{"calls_max":7}}"#)
    let told = Told()
    let watcher = try watcher(ledger, told)
    defer { watcher.stop() }
    try ledger.write(#"{"app_store":{"calls_max":0}}"#)
    for _ in 0..<3 { watcher.check() }
    expectEqual(told.problemCount, 1)
    expectEqual(watcher.current.appStore.clientOptions.callsMax, 7)
    try ledger.write(#"{"app_store":{"calls_max":8}}"#)
    watcher.check()
    expectEqual(watcher.current.appStore.clientOptions.callsMax, 8)
    try FileManager.default.removeItem(atPath: ledger.file.path)
    for _ in 0..<3 { watcher.check() }
    expectEqual(watcher.current.appStore.clientOptions.callsMax, 8)
    expectEqual(told.problemCount, 2)
    expectEqual(told.changeCount, 1)
  }

  @Test func aFileThatIsAsItWasAgainIsToldOnce() throws {
    let ledger = try ConfiguredLedger()
    try ledger.write(#"{"app_store":{"calls_max":7}}"#)
    let told = Told()
    let watcher = try watcher(ledger, told)
    defer { watcher.stop() }
    watcher.check()
    expectEqual(told.recoveryCount, 0)
    try ledger.write("[]")
    watcher.check()
    expectEqual(told.recoveryCount, 0)
    try ledger.write(#"{"app_store":{"calls_max":7}}"#)
    for _ in 0..<3 { watcher.check() }
    expectEqual(told.recoveryCount, 1)
    expectEqual(told.changeCount, 0)
  }

  @Test(
    "a link that replaces the file, or appears, is reported",
    arguments: [true, false])
  func link(_ hadFile: Bool) throws {
    let ledger = try ConfiguredLedger()
    if hadFile { try ledger.write(#"{"app_store":{"calls_max":7}}"#) }
    let told = Told()
    let watcher = try watcher(ledger, told)
    defer { watcher.stop() }
    watcher.check()
    unlink(ledger.file.path)
    try #require(symlink("missing.json", ledger.file.path) == 0)
    for _ in 0..<3 { watcher.check() }
    // The watcher's own thread may have looked in between.
    #expect(told.problemCount >= 1)
    expectEqual(told.lastProblem, ConfigurationSample.linkCause)
    expectEqual(
      watcher.current.appStore.clientOptions.callsMax,
      (hadFile ? 7 : Configuration().appStore.clientOptions.callsMax))
  }

  @Test func aNamedFileThatIsMendedTakesEffect() throws {
    let ledger = try ConfiguredLedger()
    let told = Told()
    let watcher = try watcher(ledger, told)
    defer { watcher.stop() }
    try ledger.write(#"{"trust":{"transaction_intermediates":[{"file":"a.der"}]}}"#)
    watcher.check()
    expectEqual(told.problemCount, 1)
    try ledger.write(ConfigurationSample.intermediate, "a.der")
    watcher.check()
    expectEqual(watcher.current.trust.transactionIntermediates.count, 1)
  }

  @Test func aBadFileAtTheStartIsAnError() throws {
    let ledger = try ConfiguredLedger()
    try ledger.write("[]")
    #expect(throws: ConfigurationError.self) { try ConfigurationWatcher(ledger.directory) }
  }
}

// Tokens that could be stored but not shown.
import Base
import Foundation
import Glibc
import Ledger
import Server
import TestSupport
import Testing

import Commands

@Suite struct TokenTests {
  @Test func aTokenThatCanNeitherBePrintedNorRevokedIsNamed() throws {
    let temporary = try TemporaryDirectory("token-tests")
    let directory = try LedgerDirectory.create(
      path: temporary.path("ledger"), origin: "example.com/token")
    let file = ConfigurationFile(directory)
    let kept = try file.addToken(appFamilyID: "0e7c2f4a-9a0b-4c5d-8e6f-112233445566").kept
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
    let failure = withdrawToken(
      kept.id, from: file,
      because: OutputError.writeFailed(object: "standard output", code: ENOSPC))
    expectEqual(
      failure.cause,
      """
      it could not be printed: standard output: no space left on device; it could not be revoked \
      either (read \(file.path): other users can read or write it, and it holds secrets: run chmod 600); \
      run 'ledgerctl token revoke \(kept.id)'
      """)
    expectEqual(failure.object, kept.id)
    expectEqual(failure.exitCode, .failed)
  }
}

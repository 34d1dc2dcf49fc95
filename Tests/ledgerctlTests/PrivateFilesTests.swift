// Receipts are secrets: whatever the umask, only the owner may read a ledger's files.
import TestSupport
import Testing

@Suite(.bounded) struct PrivateFilesTests {
  @Test func onlyTheOwnerMayReadALedgersFiles() throws {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      """
      umask 0 && ledgerctl init ledger --origin example.com/private >made &&
      echo 'date,base,quote,rate' >rates.csv && echo '2026-01-02,EUR,USD,1.1' >>rates.csv &&
      ledgerctl rates import rates.csv --ledger ledger >made && ledgerctl rebuild --ledger ledger >made &&
      ledgerctl export revenue --ledger ledger --manifest -o made.csv &&
      ledgerctl key create --ledger ledger >made && ledgerctl checkpoint --ledger ledger >made
      """)
    expectEqual(made.exitCode, 0, "\(made.diagnostics)")
    #expect(try sandbox.run("find ledger -name '*.sqlite' -type f").output.isEmpty == false)
    try expectEqual(sandbox.run("find ledger ! -type l -perm /077").output, "")
  }

  @Test func keyThatOthersCanReadDoesNotSign() throws {
    let sandbox = try Sandbox()
    let refused = try sandbox.run(
      """
      ledgerctl init ledger --origin example.com/private >made &&
      ledgerctl key create --ledger ledger >made && chmod g+r ledger/keys/*.key &&
      ledgerctl checkpoint --ledger ledger
      """)
    #expect(refused.exitCode == 1 && refused.output == "")
    #expect(refused.diagnostics.contains("other users can read or write it"))
    #expect(!refused.diagnostics.contains("PRIVATE"))
    try expectEqual(
      sandbox.run("chmod 600 ledger/keys/*.key && ledgerctl checkpoint --ledger ledger")
        .exitCode, 0)
  }
}

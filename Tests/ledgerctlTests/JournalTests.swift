// The priority of each line for systemd's journal.
import TestSupport
import Testing

@Suite(.bounded) struct JournalTests {
  @Test func linesOfTheJournalHaveTheirLevel() throws {
    let sandbox = try Sandbox()
    let outcome = try sandbox.run(
      """
      ledgerctl init shop --origin example.com/shop >made
      stream() { : >$1; stat -c %d:%i $1; }
      JOURNAL_STREAM=$(stream none) ledgerctl status --ledger none 2>>none
            export JOURNAL_STREAM=$(stream err)
      ledgerctl serve --ledger shop --listen 127.0.0.1:0 2>>err & server=$!
      until grep -q listening err; do sleep 0.05; done
      (umask 077; echo '{"tokens":3}' >shop/config.json)
      until grep -q config err; do sleep 0.05; done; kill $server; wait $server
      JOURNAL_STREAM=$(stream moved) ledgerctl status --ledger none 2>elsewhere
      JOURNAL_STREAM=1:2:3 ledgerctl status --ledger none 2>>elsewhere
      cut -c 1-20 none; cut -c 1-29 err; cut -c 1-16 elsewhere
      """)
    expectEqual(
      outcome.output,
      """
      <3>ledgerctl: open l
      <6>ledgerctl: serve: listenin
      <3>ledgerctl: serve: read sho
      <6>ledgerctl: serve: stopping
      ledgerctl: open 
      ledgerctl: open 

      """)
  }
}

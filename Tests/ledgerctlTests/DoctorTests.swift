// `doctor` finds each planted trouble and nothing else, and is silent on sound ledgers.
import Base
import Erasure
import Foundation
import Glibc
import Ledger
import Projections
import Server
import TestSupport
import Testing

import Commands

/// A trouble, how it is planted, and when and where the ledger is examined.
private struct Planted: Sendable, CustomTestStringConvertible {
  let check: DoctorCheck
  /// Shell, with the ledger in `L` and its app family's id in `$ID`.
  var shell = ""
  var plant: (@Sendable (LedgerDirectory, _ family: String) throws -> Void)?
  /// How long after now the clock is.
  var laterMs: Int64 = 0
  var freeByteCount = 1 << 40
  var needsRoot = false
  var testDescription: String { "\(check.rawValue): \(shell.prefix(60))" }

  init(
    _ check: DoctorCheck, _ shell: String = "", laterDays: Int64 = 0, laterMs: Int64 = 0,
    freeByteCount: Int = 1 << 40, needsRoot: Bool = false,
    plant: (@Sendable (LedgerDirectory, _ family: String) throws -> Void)? = nil
  ) {
    (self.check, self.shell, self.plant, self.needsRoot) = (check, shell, plant, needsRoot)
    self.laterMs = laterMs + laterDays * 86_400_000
    self.freeByteCount = freeByteCount
  }
}

private func append(_ events: [TestEvent], _ directory: LedgerDirectory) throws {
  let writer = try LedgerWriter.open(directory)
  for event in events { _ = try writer.append(event.drafts) }
  try writer.close()
}

/// An upload with a good signature, about which the App Store answered with a status.
private func appendWaitingUpload(
  _ directory: LedgerDirectory, atMs: Int64, status: Int64
) throws {
  guard case .upload(var upload) = TestEvent.pending(.unified(.init("7001"))) else { return }
  upload.occurredAtMs = atMs
  var verification = VerificationPlan(
    upload: try LogReader(directory).head.size, occurredAtMs: atMs, reply: .none)
  verification.outcome = .unreachable
  verification.status = status
  try append([.upload(upload), .verified(verification)], directory)
}

/// Events that no projection needs.
private func appendEvents(_ count: Int, _ directory: LedgerDirectory) throws {
  let writer = try LedgerWriter.open(directory)
  _ = try writer.append(
    (0..<count).map { _ in EventDraft(type: "test.nothing", version: 1, data: Array("{}".utf8)) })
  try writer.close()
}

private func store(
  _ directory: LedgerDirectory, _ family: String,
  _ change: (inout WebhookState, Configuration.Webhook) -> Void
) throws {
  let webhook = try #require(try ConfigurationFile(directory).read().apps[family]?.webhook)
  let files = WebhookFiles(directory)
  try files.removeRequest(of: family)
  var state = WebhookState(next: .init(try LogReader(directory).head.size))
  change(&state, webhook)
  try files.store(state, of: family)
}

/// A request that waits, as of now.
private func request(_ directory: LedgerDirectory) throws -> ErasureRecord {
  let record = ErasureRecord(
    .position(0), reason: "test", requestedAtMs: Timestamp.now(), isUrgent: false)
  try ErasureQueue(directory).add(record)
  return record
}

private let webhook = "ledgerctl app edit $ID --webhook http://127.0.0.1:1/hook >out 2>&1"
private let copy =
  #"mkdir -m 700 copy; printf '{"replication":{"target":"file://%s/copy"}}' "$PWD" >L/config.json"#

private let plantedTroubles: [Planted] = [
  // Files
  Planted(.writableByOthers, "chmod g+w L/heads"),
  Planted(.writableByOthers, "chmod g+w L/log"),
  Planted(.writableByOthers, "chmod o+w L"),
  Planted(.readableByOthers, "chmod 755 L"),
  Planted(.secretExposed, "echo '{}' >L/config.json; chmod 644 L/config.json"),
  Planted(.secretExposed, "chmod g+r L/keys/*.key"),
  Planted(.foreignOwner, "chown 12345 L/heads", needsRoot: true),
  Planted(.linkInLedger, "mv L/heads heads; ln -s ../heads L/heads"),
  Planted(.linkInLedger, "mv L/log log; ln -s ../log L/log"),
  Planted(.linkInLedger, "mkfifo L/config.json; chmod 600 L/config.json"),
  Planted(.diskFull, freeByteCount: 63 << 20),
  Planted(.diskSpace, freeByteCount: 64 << 20),
  // Clock, log, keys
  Planted(.clockBehindLog, laterMs: -60_000),
  Planted(.identityUnusable, "rm L/ledger.json"),
  Planted(.identityUnusable, "echo '{}' >L/ledger.json"),
  Planted(.formatNewer, #"sed -i 's/"format_version":1/"format_version":9/' L/ledger.json"#),
  Planted(.mergeUnfinished, ": >L/merging"),
  Planted(.logDamaged, "rm L/log/00000000000000000000.jsonl.gz"),
  Planted(.logDamaged, "printf x | dd of=$(ls L/log/tail-*) bs=1 seek=100 conv=notrunc 2>out"),
  Planted(.logDamaged, "rm -r L/log"),
  Planted(.signedHeadMissing, #"sed -i -E 's/"size": *[0-9]+/"size":99/' L/heads"#),
  Planted(.signedHeadMissing, "rm L/checkpoints/*"),
  Planted(.signedHeadMissing, "echo damaged >L/heads"),
  Planted(.signingKeyUnusable, "for key in L/keys/*.key; do echo damaged >$key; done"),
  Planted(.signingKeyMissing, "rm L/keys/*.key"),
  Planted(.checkpointLate, "ledgerctl app edit $ID --name Store >out", laterDays: 36),
  Planted(
    .erasureKeyMissing,
    "ledgerctl redact --user anna --reason test --yes >out; rm L/keys/lines.hmac"),
  // Projections
  Planted(.projectionsMissing, "rm -r L/projections*"),
  Planted(
    .projectionsDamaged,
    "dd if=/dev/zero of=L/$(readlink L/projections.sqlite) bs=4096 seek=2 count=40 conv=notrunc 2>out"
  ),
  Planted(
    .projectionsOfOtherHistory,
    "cp -a L/log log; ledgerctl app edit $ID --name Store >out; rm -r L/log; mv log L/log"),
  Planted(
    .projectionsOutdated,
    "sqlite3 L/$(readlink L/projections.sqlite) 'UPDATE projections SET version = 1 WHERE name = \"sales\"'"
  ),
  Planted(.projectionsBehind) { directory, _ in try appendEvents(10_001, directory) },
  Planted(
    .snapshotUnusable, "ledgerctl snapshot create >out; truncate -s -1 L/snapshots/*.sqlite"),
  // Configuration
  Planted(.configInvalid, #"echo '{"tokns":[]}' >L/config.json"#),
  Planted(.configInvalid, "echo '{' >L/config.json"),
  Planted(
    .appStoreKeyUnusable,
    #"printf '{"apps":{"%s":{"server_api":{"issuer_id":"i","key_id":"k","private_key_file":"key.p8"}}}}' $ID >L/config.json"#
  ),
  Planted(
    .configUnknownFamily,
    #"echo '{"apps":{"0e7c2f4a-9a0b-4c5d-8e6f-112233445566":{}}}' >L/config.json"#),
  Planted(.sharedSecretRefused) { directory, _ in
    try appendWaitingUpload(directory, atMs: Timestamp.now(), status: 21004)
  },
  Planted(
    .uploadTokenMissing,
    "ledgerctl token create --app $ID -o token 2>out; ledgerctl token revoke $(grep -o 'tk-[0-9a-f]*' out | head -1) >out"
  ),
  Planted(
    .serverDied,
    "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('L/ledger.sock')\"; chmod 600 L/ledger.sock"
  ),
  // Copy
  Planted(
    .copyTakenOver,
    #"echo '{"reason":"fenced","step":3,"epoch":2,"at":"2026-01-01T00:00:00.000Z"}' >L/standby.json"#
  ),
  Planted(.copyUnreachable, copy + "; ledgerctl replicate >out; rm -r copy"),
  Planted(.copyNotBegun, copy),
  Planted(
    .copyBehind,
    copy
      + "; ledgerctl replicate >out; mv L/config.json .; ledgerctl app edit $ID --name Store >out; mv config.json L",
    laterMs: 90_000),
  Planted(.copyNotFoundWhole, copy + "; ledgerctl replicate >out", laterDays: 3),
  // Webhooks
  Planted(.webhookCursorMissing, webhook + "; rm L/webhooks/*"),
  Planted(.webhookCursorMissing, webhook + "; rm L/webhooks/*; echo x >L/webhooks/$ID.json"),
  Planted(.webhookDisabled, webhook) { directory, family in
    try store(directory, family) { state, webhook in
      state.disabled = .init(atMs: 0, cause: .gone, webhookSHA256Hex: webhook.sha256Hex)
    }
  },
  Planted(.webhookFailing, webhook) { directory, family in
    try store(directory, family) { state, _ in
      state.failingSinceMs = Timestamp.now() - 3_700_000
      state.lastFailure = "status 500"
    }
  },
  Planted(.webhookBehind, webhook) { directory, family in
    try store(directory, family) { _, _ in }
    try appendEvents(1001, directory)
  },
  // Erasures
  Planted(.erasuresWait, laterDays: 3) { directory, _ in _ = try request(directory) },
  Planted(.erasureFailed) { directory, _ in
    let failure = ErasureError.refused(object: "event", cause: "it holds no personal data")
    try ErasureQueue(directory).finish(request(directory), .failure(failure))
  },
  Planted(.erasureInterrupted) { directory, _ in
    let writer = try RedactionFileWriter(directory, pass: .random())
    try writer.finish()
    try writer.commit()
  },
  Planted(.erasureUnfinished) { directory, _ in
    let opening = DataRedacted.Opening(request: .random(), scope: .user, reason: "test")
    _ = try LineHMACKey.made(directory)
    let writer = try LedgerWriter.open(directory.allowingRedactions())
    _ = try writer.append([EventDraft(.dataRedacted, DataRedacted.opening(opening).data)])
    try writer.close()
  },
  Planted(
    .erasedDataBack,
    """
    cp -a L/log log; ledgerctl redact --user anna --reason test --yes >out
    zcat L/log/*.gz >/dev/null; ls L/log >names
    """
  ) { directory, _ in
    // An event that lists the first line, which is whole.
    let reader = try LogReader(directory)
    let next = reader.head.size
    let digest = reader.head.root
    let opening = DataRedacted.Opening(request: .random(), scope: .position, reason: "test")
    let listing = DataRedacted.Listing(
      erasure: next, part: 1, partCount: 1, reason: "test",
      lines: [.init(position: 0, digest: digest)])
    let writer = try LedgerWriter.open(directory)
    _ = try writer.append([
      EventDraft(.dataRedacted, DataRedacted.opening(opening).data),
      EventDraft(.dataRedacted, DataRedacted.listing(listing).data),
    ])
    try writer.close()
  },
  // Figures
  Planted(.verificationLate) { directory, _ in
    try appendWaitingUpload(directory, atMs: Timestamp.now() - 7_300_000, status: 21005)
  },
  Planted(.bundleNotRegistered) { directory, _ in
    guard case .upload(var plan) = TestEvent.pending(.unified()) else { return }
    plan.bundle = "com.example.unknown"
    plan.verification?.outcome = .invalid
    plan.verification?.reason = "bundle_id_mismatch"
    try append([.upload(plan)], directory)
  },
  Planted(
    .productNotDeclared,
    #"""
    ledgerctl app edit $ID --product pro.lifetime=non_consumable >out
    line 2 2019-06-01T10:00:00Z "$(row gems 7001 7001 2019-06-01T09:59:00Z)" ',"country_code":"US","metadata":{"price":"1","currency":"USD"}' | ledgerctl import - >out
    """#),
  Planted(
    .appsUnmerged,
    "ledgerctl app add --name shop --bundle-id com.example.other >out; ledgerctl app list >out"),
  Planted(
    .appsUnmerged,
    """
    ledgerctl app edit $ID --app-apple-id 1234 >out
    ledgerctl app add --name Other --bundle-id com.example.other --app-apple-id 1234 >out; ledgerctl app list >out
    """),
  Planted(
    .salesUnpriced,
    #"line 2 2019-05-05T20:00:00Z "$(row pro.lifetime 1006 1006 2019-05-05T19:00:00Z)" '' | ledgerctl import - >out"#
  ),
  Planted(
    .ratesStale,
    #"printf 'date,base,quote,rate\n2010-01-04,EUR,USD,1.4\n' >old.csv; ledgerctl rates import old.csv >out"#
  ),
  Planted(
    .settlementIncomplete,
    #"""
    { printf 'Start Date\tEnd Date\tVendor Identifier\tQuantity\tPartner Share\tExtended Partner Share\tPartner Share Currency\tSales or Return\tProduct Type Identifier\tCountry Of Sale\tCustomer Price\tCustomer Currency\n'
      printf '12/30/2018\t02/02/2019\tpro.lifetime\t1\t6.99\t6.99\tEUR\tS\tFI1\tDE\t9.99\tEUR\n'
      printf 'Total_Rows\t1\n'; } >85012345_0119_EU.txt
    ledgerctl settlement import 85012345_0119_EU.txt >out
    """#),
]

@Suite(.bounded) struct DoctorTests {
  /// A sandbox with the sound ledger `L`: an app, a sale with a price, a key, a checkpoint of all.
  private static func sound() throws -> (Sandbox, family: String) {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      #"""
      set -e; . "$SHOP"; umask 077; export LEDGER_DIR=L; ledgerctl init L --origin example.com/shop >out
      ledgerctl app add --name Shop --bundle-id com.example.shop >family
      shop_history | head -n 1 | ledgerctl import - >out; ledgerctl key create >out; ledgerctl checkpoint >out
      ledgerctl app list >out
      """#)
    try #require(made.exitCode == 0, "\(made.diagnostics)")
    let family = try String(contentsOfFile: sandbox.path + "/family", encoding: .utf8)
    return (sandbox, family.trimmingCharacters(in: .whitespacesAndNewlines))
  }

  private static func run(_ sandbox: Sandbox, _ family: String, _ shell: String) throws {
    let outcome = try sandbox.run(
      ". \"$SHOP\"; umask 077; export LEDGER_DIR=L; ID=\(family)\n" + shell)
    #expect(outcome.diagnostics.isEmpty, "\(outcome.diagnostics)")
  }

  private static func examine(
    _ path: String, laterMs: Int64 = 0, freeByteCount: Int = 1 << 40
  ) throws -> Examination {
    var surroundings = DoctorSurroundings()
    surroundings.nowMs = { Timestamp.now() + laterMs }
    surroundings.freeByteCount = { _ in freeByteCount }
    return Examination(path, root: try Folder(path: path), surroundings)
  }

  /// What was found, and what could not be examined although nothing that was found explains it.
  private static func troubles(_ examination: Examination) -> [String] {
    let unexplained = examination.obstacles.filter { $0.value.trouble == nil }
    return Set(examination.findings.map(\.check.rawValue)).sorted()
      + unexplained.map { "unknown \($0.key.rawValue): \($0.value.cause)" }.sorted()
  }

  @Test(arguments: plantedTroubles)
  fileprivate func plantedTroubleIsFoundAndNoOther(_ planted: Planted) throws {
    if planted.needsRoot, geteuid() != 0 { return }
    let (sandbox, family) = try Self.sound()
    let path = sandbox.path + "/L"
    if !planted.shell.isEmpty { try Self.run(sandbox, family, planted.shell) }
    if let plant = planted.plant {
      try plant(LedgerDirectory.open(path: path), family)
      // Checks of figures see what is folded.
      let folded: Set<DoctorCheck> = [
        .erasedDataBack, .sharedSecretRefused, .verificationLate, .bundleNotRegistered,
      ]
      if folded.contains(planted.check) {
        try Self.run(sandbox, family, "ledgerctl app list >out")
      }
    }
    let examination = try Self.examine(
      path, laterMs: planted.laterMs, freeByteCount: planted.freeByteCount)
    expectEqual(
      Self.troubles(examination), [planted.check.rawValue], "\(examination.findings)")
    expectEqual(examination.verdict, planted.check.row.verdict)
    expectEqual(examination.exitCode, planted.check.row.verdict == .error ? .failed : .partlyDone)
  }

  @Test func everyCheckHasAPlantedTrouble() {
    // The clock's is planted below.
    let planted = Set(plantedTroubles.map(\.check)).union([.clockOffAppStore])
    for check in DoctorCheck.allCases { #expect(planted.contains(check), "\(check)") }
  }

  /// Ledgers in which nothing is wrong: shell that makes one of the sound `L`, and examines it.
  private static let soundLedgers: [(name: String, shell: String)] = [
    ("an app, a sale and a checkpoint", "ledgerctl doctor"),
    ("no event", "ledgerctl init E --origin example.com/e >out; ledgerctl doctor --ledger E"),
    (
      "a server that runs",
      """
      ledgerctl serve --listen 127.0.0.1:0 2>log & for try in $(seq 600); do grep -qs listening log && break; sleep 0.1; done
      ledgerctl app add --name Other --bundle-id com.example.other >out
      ledgerctl doctor; echo $?; kill $!; wait $!; ledgerctl doctor
      """
    ),
    ("a copy", copy + "; ledgerctl replicate >out; ledgerctl doctor"),
    (
      "a ledger on standby",
      copy
        + """
        ; ledgerctl replicate >out; ledgerctl restore --from "file://$PWD/copy" R >out; cp L/config.json R
        ledgerctl doctor --ledger R
        """
    ),
    ("a webhook", webhook + "; ledgerctl doctor"),
    (
      "tokens and secrets",
      """
      ledgerctl token create --app $ID -o token 2>out; ledgerctl token revoke $(grep -o 'tk-[0-9a-f]*' out | head -1) >out
      ledgerctl token create --app $ID -o token 2>out; echo secret | ledgerctl config set-shared-secret --app $ID >out
      ledgerctl doctor
      """
    ),
    ("a snapshot", "ledgerctl snapshot create >out; ledgerctl doctor"),
    (
      "an erased user",
      "ledgerctl redact --user anna --reason test --yes >out; ledgerctl doctor"
    ),
    (
      "a merged ledger",
      "ledgerctl merge L -o M --until $(date -u +%FT%T.%3NZ) >out; ledgerctl app list --ledger M >out; ledgerctl doctor --ledger M"
    ),
    (
      "rates and prices",
      #"""
      printf 'date,base,quote,rate\n2019-01-04,EUR,USD,1.4\n' >rates.csv; ledgerctl rates import rates.csv >out
      ledgerctl doctor
      """#
    ),
  ]

  @Test(arguments: soundLedgers.map(\.name)) func soundLedgerHasNoTrouble(_ name: String) throws {
    let shell = try #require(Self.soundLedgers.first { $0.name == name }).shell
    let (sandbox, family) = try Self.sound()
    let outcome = try sandbox.run(
      ". \"$SHOP\"; umask 077; export LEDGER_DIR=L; ID=\(family)\n" + shell)
    let line = "sound: \(DoctorCheck.allCases.count) checks\n"
    let expected = shell.contains("echo $?") ? "\(line)0\n\(line)" : line
    expectEqual(outcome, Outcome(output: expected, diagnostics: "", exitCode: 0))
  }

  /// What they hold needs a person, but nothing of them is broken.
  @Test(arguments: try EarlierLedgerTests.versions())
  func ledgerOfAnEarlierVersionHasNoOtherTroubles(_ version: String) throws {
    let sandbox = try EarlierLedgerTests().ledger(of: version)
    _ = try sandbox.run("ledgerctl rebuild --ledger ledger")
    let examination = try Self.examine(sandbox.path + "/ledger")
    let known = ["checkpoint_late", "product_not_declared", "rates_stale", "sales_unpriced"]
    expectEqual(Self.troubles(examination).filter { !known.contains($0) }, [])
  }

  @Test func examinedLedgerIsUnchanged() throws {
    let (sandbox, family) = try Self.sound()
    let list =
      "find L -printf '%p %y %m %s %i %T@ %C@\\n' | sort; find L -type f | sort | xargs sha256sum"
    try Self.run(
      sandbox, family,
      """
      ledgerctl snapshot create >out; ledgerctl redact --user anna --reason test --yes >out; \(webhook)
      ledgerctl app list >out; rm -f L/projections/*-shm L/projections/*-wal
      { \(list); } >before; ledgerctl doctor >out; ledgerctl doctor --json >out; { \(list); } >after; cmp before after
      """)
  }

  @Test func jsonHasEachCheckAndNothingSecret() throws {
    let (sandbox, family) = try Self.sound()
    try Self.run(
      sandbox, family,
      """
      ledgerctl token create --app $ID -o token 2>out; echo topsecret | ledgerctl config set-shared-secret --app $ID >out
      \(webhook); rm L/webhooks/*; ledgerctl redact --user anna --reason test --later --yes >out; rm L/keys/*.key
      """)
    let outcome = try sandbox.run("ledgerctl doctor --json --ledger L; echo $?")
    #expect(outcome.output.hasSuffix("\n1\n"), "\(outcome)")
    let json =
      try JSONSerialization.jsonObject(
        with: Data(outcome.output.dropLast(2).utf8)) as? [String: Any]
    expectEqual(json?["verdict"] as? String, "error")
    let checks = try #require(json?["checks"] as? [[String: Any]])
    expectEqual(
      checks.compactMap { $0["id"] as? String }, DoctorCheck.allCases.map(\.rawValue))
    let wrong = checks.filter { $0["verdict"] as? String != "ok" }
    expectEqual(
      wrong.compactMap { $0["id"] as? String }, ["signing_key_missing", "webhook_cursor_missing"])
    for check in wrong { #expect(check["command"] as? String != nil) }
    let text = try sandbox.run("ledgerctl doctor --ledger L; cat token").output
    let secrets = ["topsecret", "whsec", "anna", "127.0.0.1", String(text.suffix(44).prefix(20))]
    for secret in secrets {
      #expect(!outcome.output.contains(secret) && !text.dropLast(48).contains(secret), "\(secret)")
    }
  }

  /// What the App Store sends, and the verdict.
  private static let dates: [(header: String?, status: Int, verdict: DoctorVerdict)] = [
    ("now", 401, .ok), ("now", 200, .ok), ("Sun, 06 Nov 1994 08:49:37 GMT", 404, .warning),
    ("yesterday", 200, .unknown), (nil, 200, .unknown),
  ]

  @Test(arguments: dates.indices) func clockIsComparedWithTheAppStores(_ index: Int) throws {
    let (header, status, verdict) = Self.dates[index]
    let (sandbox, family) = try Self.sound()
    let now = try sandbox.run("date -u '+%a, %d %b %Y %H:%M:%S GMT'").output.dropLast()
    let server = try ScriptedServer { _ in
      let date = header == "now" ? String(now) : header
      return .respond(status, Array("{}".utf8), headers: date.map { ["Date: \($0)"] } ?? [])
    }
    try Self.run(
      sandbox, family,
      """
      echo '{"app_store":{"server_api_production_url":"http://127.0.0.1:\(server.port)"}}' >L/config.json
      """)
    let outcome = try sandbox.run("ledgerctl doctor --app-store --ledger L; echo $?")
    server.stop()
    #expect(outcome.output.hasSuffix(verdict == .ok ? "checks\n0\n" : "\n3\n"), "\(outcome)")
    let word = "\(verdict.rawValue)  clock_off_app_store: "
    expectEqual(outcome.output.contains(word), verdict != .ok, "\(outcome)")
  }

  @Test func appStoreThatDoesNotAnswerIsNamed() throws {
    let (sandbox, family) = try Self.sound()
    try Self.run(
      sandbox, family,
      #"echo '{"app_store":{"server_api_production_url":"http://127.0.0.1:1"}}' >L/config.json"#)
    let outcome = try sandbox.run("ledgerctl doctor --app-store --ledger L")
    expectEqual(outcome.exitCode, 3)
    #expect(outcome.output.contains("the App Store: it does not answer"), "\(outcome)")
  }

  @Test func dateOfHTTPIsRead() {
    expectEqual(HTTPDate.milliseconds("Sun, 06 Nov 1994 08:49:37 GMT"), 784_111_777_000)
    expectEqual(HTTPDate.milliseconds("Sun,06Nov199408:49:37GMT"), 784_111_777_000)
    for text in ["", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT"] {
      expectEqual(HTTPDate.milliseconds(text), nil)
    }
  }

  @Test func limitsAreThoseOfTheAlertRules() throws {
    let rules = try String(
      contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../examples/alerts.yaml"), encoding: .utf8)
    let expressions = [
      "receipt_ledger_clock_set_back_seconds[1h]) > \(DoctorLimits.clockSeconds)",
      "receipt_ledger_projection_lag_events > \(DoctorLimits.projectionEventCount)",
      "receipt_ledger_webhook_lag_events > \(DoctorLimits.webhookEventCount)",
      "receipt_ledger_erasures_waiting[\(DoctorLimits.erasureWaitDays)d]) > 0",
      "receipt_ledger_verification_queue_oldest_seconds > \(DoctorLimits.verificationSeconds)",
      "receipt_ledger_replication_lag_seconds > \(DoctorLimits.copyLagSeconds)",
      "receipt_ledger_replication_whole_timestamp_seconds > \(DoctorLimits.copyNotWholeDays) * 86400",
    ]
    for expression in expressions { #expect(rules.contains(expression + "\n"), "\(expression)") }
  }

  @Test func documentHasTheTable() throws {
    let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../docs/doctor.md")
    let text = try String(contentsOf: page, encoding: .utf8)
    let rows = text.split(separator: "\n").filter { $0.hasPrefix("| `") }.map(String.init)
    let expected = DoctorCheck.allCases.map { check in
      let row = check.row
      return "| `\(check.rawValue)` | \(row.verdict.rawValue) | \(row.meaning) | `\(row.command)` |"
    }
    expectEqual(rows, expected)
    #expect(text.contains("`sound: \(expected.count) checks`"))
  }
}

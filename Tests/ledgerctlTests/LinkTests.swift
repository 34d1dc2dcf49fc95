// Links planted in a ledger are not followed, and their targets stay unchanged.
import Glibc
import TestSupport
import Testing

@Suite(.bounded) struct LinkTests {
  /// A link in the place of one of the ledger's files or folders.
  struct Planted: Sendable, CustomTestStringConvertible {
    let name: String
    /// Shell that plants it; `$V` is a file of the caller's and `$D` a directory.
    let planting: String
    let command: String
    /// The expected error; nil if the link is removed and the command succeeds.
    var refusal: String? = "it is a symbolic link, which is not followed inside a ledger"
    var testDescription: String { name }

    static let all: [Planted] = [
      .init(name: "config.lock", planting: "ln -s $V L/config.lock", command: "$TOKEN"),
      .init(name: "lock", planting: "rm L/lock; ln -s $V L/lock", command: "$ADD"),
      .init(name: "lock, for reading", planting: "rm L/lock; ln -s $V L/lock", command: "status"),
      .init(name: "keys", planting: "ln -s $D L/keys", command: "key create"),
      .init(
        name: "keys/lock", planting: "mkdir L/keys; ln -s $V L/keys/lock", command: "key create"),
      .init(
        name: "checkpoints", planting: "ledgerctl key create; ln -s $D L/checkpoints",
        command: "checkpoint"),
      .init(name: "snapshots", planting: "ln -s $D L/snapshots", command: "snapshot create"),
      .init(
        name: "snapshots/lock", planting: "mkdir L/snapshots; ln -s $V L/snapshots/lock",
        command: "snapshot create"),
      .init(
        name: "projections", planting: "rm -r L/projections*; ln -s $D L/projections",
        command: "rebuild"),
      .init(
        name: "projections/lock", planting: "rm -f L/projections/lock; ln -s $V L/projections/lock",
        command: "rebuild"),
      .init(
        name: "projections/past",
        planting: "rm -rf L/projections/past; ln -s $D L/projections/past",
        command: "export revenue --as-of 0"),
      .init(
        name: "a generation",
        planting: "G=L/$(readlink L/projections.sqlite); rm $G*; ln -s $V $G",
        command: "export revenue"),
      .init(name: "log", planting: "mv L/log moved; ln -s ../moved L/log", command: "status"),
      .init(
        name: "log, for writing", planting: "mv L/log moved; ln -s ../moved L/log", command: "$ADD"),
      .init(name: "config.json", planting: "ln -s $V L/config.json", command: "config check"),
      .init(
        name: "config.json that leads nowhere", planting: "ln -s nowhere L/config.json",
        command: "config check"),
      .init(
        name: "the next tail", planting: "ln -s $V L/log/tail-00000000000000000002.log",
        command: "$ADD"),
      .init(
        name: "a segment", planting: "rm L/log/*.gz; ln -s $V L/log/00000000000000000000.jsonl.gz",
        command: "audit"),
      .init(
        name: "ledger.json", planting: "mv L/ledger.json moved; ln -s ../moved L/ledger.json",
        command: "status"),
      .init(
        name: "ledger.json.new", planting: "ln -s $V L/ledger.json.new", command: "key create",
        refusal: nil),
      .init(
        name: "config.json.new", planting: "ln -s $V L/config.json.new", command: "$TOKEN",
        refusal: nil),
      .init(
        name: "a segment that is being made",
        planting: "ln -s $V L/log/00000000000000000001.jsonl.gz.new", command: "$ADD",
        refusal: nil),
      .init(
        name: "projections.sqlite", planting: "ln -sfn $V L/projections.sqlite",
        command: "export revenue", refusal: nil),
      .init(
        name: "projections.sqlite, by the name of a generation",
        planting: "cp $V $D/1.sqlite; ln -sfn $D/1.sqlite L/projections.sqlite",
        command: "export revenue", refusal: nil),
      .init(
        name: "projections.sqlite.new", planting: "ln -s $V L/projections.sqlite.new",
        command: "rebuild", refusal: nil),
      .init(
        name: "a pipe as config.json", planting: "mkfifo L/config.json", command: "config check",
        refusal: "it is not a regular file"),
    ]
  }

  /// A ledger with an app and projections; if root runs the tests, it belongs to another user.
  private static let ledger = """
    ledgerctl init L --origin example.com/links >out && export LEDGER_DIR=L &&
    app=$(ledgerctl app add --name Shop --bundle-id com.example.shop) && echo $app >app &&
    ledgerctl app add --name Second --bundle-id com.example.second >out &&
    ledgerctl rebuild >out && mkdir victims &&
    echo secret >victim && chmod 640 victim && echo other >victims/file &&
    { test $(id -u) != 0 || { chown 65534:65534 . && chown -R 65534:65534 L; }; } &&
    V=$PWD/victim D=$PWD/victims TOKEN="token create --app $app" \
    ADD='app add --name Other --bundle-id com.example.other'
    """
  private static let look =
    "cat victim victims/file && stat -c '%u %g %a' victim victims victims/file && ls victims"

  @Test(arguments: Planted.all)
  func aPlantedLinkIsNotFollowed(_ planted: Planted) throws {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      """
      \(Self.ledger) && { \(planted.planting); } >out && { \(Self.look); } >before &&
      printf '%s\\n' "ledgerctl \(planted.command)" >command && chmod +x command
      """)
    try #require(made.exitCode == 0, "\(made.diagnostics)")
    let outcome = try sandbox.run("export LEDGER_DIR=L; timeout 60 sh ./command")
    if let refusal = planted.refusal {
      expectEqual(outcome.exitCode, 1, "\(outcome)")
      #expect(outcome.diagnostics.contains(refusal), "\(outcome)")
    } else {
      expectEqual(outcome.exitCode, 0, "\(outcome)")
    }
    let after = try sandbox.run("{ \(Self.look); } | cmp - before")
    expectEqual(after.exitCode, 0, "\(after)")
  }

  @Test func aLinkToTheLedgerItselfIsFollowed() throws {
    let sandbox = try Sandbox()
    let outcome = try sandbox.run(
      """
      \(Self.ledger) && mkdir -p far/away && ln -s L one && ln -s ../../one far/away/two &&
      export LEDGER_DIR=far/away/two && ledgerctl $ADD >out && ledgerctl export revenue >out &&
      ledgerctl snapshot create >out && ledgerctl $TOKEN >out 2>&1 && ledgerctl audit >out &&
      ledgerctl key create >out && ledgerctl checkpoint >out
      """)
    expectEqual(outcome.exitCode, 0, "\(outcome)")
  }

  /// Other users can write to a file or folder of the ledger.
  @Test(arguments: [
    (".", "status"), (".", "serve --listen 127.0.0.1:0"), (".", "audit"), (".", "export revenue"),
    ("log", "status"), ("keys", "status"), ("snapshots", "serve --listen 127.0.0.1:0"),
    ("checkpoints", "audit"), ("projections", "status"), ("ledger.json", "status"),
    ("lock", "status"), ("config.json", "status"), ("config.lock", "status"),
    ("log/00000000000000000000.jsonl.gz", "status"), ("log/tail-*.log", "audit"),
    ("$(readlink L/projections.sqlite)", "export revenue"),
  ])
  func filesThatOthersMayWriteAreRefused(_ place: String, _ command: String) throws {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      """
      \(Self.ledger) && mkdir -m 700 L/keys L/snapshots L/checkpoints &&
      { test $(id -u) != 0 || chown 65534:65534 L/*; } && ledgerctl $TOKEN >out 2>&1 &&
      chmod \(place == "." ? "0777" : "g+w") L/\(place)
      """)
    try #require(made.exitCode == 0, "\(made)")
    let refused = try sandbox.run("timeout 60 ledgerctl \(command) --ledger L </dev/null")
    expectEqual(refused.exitCode, 1, "\(refused)")
    #expect(
      refused.diagnostics.contains("other users can write to it"), "\(refused)")
    let advice = "chmod -R go-w L"
    #expect(refused.diagnostics.contains("'\(advice)'"))
    let mended = try sandbox.run("\(advice) && ledgerctl status --ledger L >out")
    expectEqual(mended.exitCode, 0, "\(mended)")
  }

  @Test func initRefusesADirectoryThatOthersMayWriteTo() throws {
    let sandbox = try Sandbox()
    let refused = try sandbox.run(
      "mkdir -m 775 shop; ledgerctl init shop --origin example.com/shop")
    expectEqual(refused.exitCode, 1)
    #expect(refused.diagnostics.contains("other users can write to it"))
    #expect(try sandbox.run("ls -A shop; stat -c %a shop").output == "775\n")
    #expect(
      try sandbox.run("ln -s shop link; chmod 755 shop; ledgerctl init link --origin a.example")
        .exitCode == 0)
  }

  // MARK: Root

  /// Whatever root makes in the ledger of another user belongs to that user.
  @Test(.enabled("only root can act as another user") { geteuid() == 0 })
  func rootActsAsTheLedgersOwner() throws {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      """
      \(Self.ledger) && export LEDGER_DIR=L &&
      ledgerctl $TOKEN >out 2>&1 && ledgerctl key create >>out && ledgerctl checkpoint >>out &&
      printf 'date,base,quote,rate\n2026-01-02,EUR,USD,1.1\n' | ledgerctl rates import - >>out &&
      ledgerctl snapshot create >>out && ledgerctl rebuild >>out && ledgerctl export sales >>out &&
      ledgerctl export sales --as-of 0 >>out && ledgerctl config check >>out || echo failed
      ledgerctl redact --user nobody --reason test --yes >>out 2>&1
      find L ! -user 65534 -o ! -group 65534
      """)
    expectEqual(made.output, "", "\(made)")
    // The owner can continue with all of it.
    let continued = try sandbox.run(
      """
      export LEDGER_DIR=L; owner='setpriv --reuid 65534 --regid 65534 --clear-groups'
      $owner ledgerctl token create --app $(cat app) >>out 2>&1 && $owner ledgerctl snapshot create >>out &&
      $owner ledgerctl checkpoint >>out && $owner ledgerctl rebuild >>out && $owner ledgerctl audit >>out
      """)
    expectEqual(continued.exitCode, 0, "\(continued)")
  }

  @Test(.enabled("only root can act as another user") { geteuid() == 0 })
  func rootMakesALedgerInAnothersDirectoryAsThatUser() throws {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      """
      chown 65534:65534 . && mkdir -m 700 shop && chown 65534:65534 shop &&
      ledgerctl init shop --origin a.example >out &&
      find shop ! -user 65534 -o ! -group 65534
      """)
    expectEqual(made, Outcome(output: "", diagnostics: "", exitCode: 0))
  }

  @Test(.enabled("only root can act as another user") { geteuid() == 0 })
  func rootIsToldWhyTheOwnerCannotWriteItsFile() throws {
    let sandbox = try Sandbox()
    let refused = try sandbox.run(
      """
      \(Self.ledger) && mkdir -m 700 own &&
      ledgerctl export sales --format csv -o own/sales.csv --ledger L
      """)
    expectEqual(refused.exitCode, 1)
    #expect(refused.diagnostics.contains("own/sales.csv: permission denied\n"), "\(refused)")
    #expect(refused.diagnostics.hasSuffix(", the ledger's owner\n"), "\(refused)")
    let unreachable = try sandbox.run(
      "mkdir -m 700 deep && mv L deep && ledgerctl status --ledger deep/L")
    expectEqual(unreachable.exitCode, 1)
    #expect(unreachable.diagnostics.contains("cannot open it: permission denied"), "\(unreachable)")
  }

  // MARK: -o

  @Test(arguments: [
    "export revenue --format csv -o", "export revenue --format csv --manifest -o", "checkpoint -o",
    "prove 0 -o", "diff --since 0 --until 1 --format csv -o", "help --markdown -o", "$TOKEN -o",
    "serve --listen 127.0.0.1:0 --access-log",
  ])
  func noCommandWritesIntoALedger(_ command: String) throws {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      """
      \(Self.ledger) && ledgerctl key create >out && ledgerctl checkpoint -o head && ln -s L there &&
      ln -s L/ledger.json to-file && ln -s L/projections deep && cp L/ledger.json before &&
      echo "$TOKEN" >token && printf '%s\\n' "ledgerctl \(command) \\"\\$1\\"" >command
      """)
    try #require(made.exitCode == 0, "\(made)")
    let paths = [
      "L/ledger.json", "L/log/../ledger.json", "there/ledger.json", "to-file", "./L//ledger.json",
      "$PWD/L/ledger.json", "L/report.csv", "L/log/tail-00000000000000000000.log", "deep/1.sqlite",
      "L/projections/new", "L/keys/new",
    ]
    for path in paths {
      let refused = try sandbox.run("export LEDGER_DIR=L; timeout 60 sh ./command \(path)")
      expectEqual(refused.exitCode, 1, "\(path): \(refused)")
      #expect(
        refused.diagnostics.contains("it is inside a ledger's directory"), "\(path): \(refused)")
    }
    let outcome = try sandbox.run(
      """
      cmp before L/ledger.json && test ! -e L/report.csv && test ! -e L/keys/new &&
      export LEDGER_DIR=L && ledgerctl audit >out && ledgerctl token list
      """)
    #expect(outcome.exitCode == 0 && outcome.output == "No tokens.\n", "\(outcome)")
    // The same from inside the ledger's directory.
    let inside = try sandbox.run("cd L && unset LEDGER_DIR; sh ../command report.csv")
    #expect(inside.diagnostics.contains("it is inside a ledger's directory"), "\(inside)")
  }
}

// No command prints a secret that is given as any of its arguments.
import Foundation
import Server
import TestSupport
import Testing

@Suite(.bounded) struct SecretArgumentTests {
  private static let key =
    "receipts.example/ledger1+ad516c7e+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
  private static let id = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"

  private static let secrets = [
    TokenText.make(),
    Data(
      "{\n\"signature\" = \"A8bQ+/x\";\n\"purchase-info\" = \"\(String(repeating: "ewoJ", count: 90))\";\n}"
        .utf8
    )
    .base64EncodedString(),
    "eyJhbGciOiJFUzI1NiIsIng1YyI6WyJNSUlFTURDQ0E3YWdBd0lCQWdJUWFQb1BsZHZwU29FSDBsQnJqRFB2OWpBS0JnZ3EifQ."
      + "eyJ0cmFuc2FjdGlvbklkIjoiMjAwMDAwMDQ4MDY2MjA2MCJ9.Q8_kP2-vYx7aB3mN9cLw1ZsR5tEh0uJo6iGdFq4XrTk",
    "b7c1f0a94e2d4f7c8a1b3c5d7e9f0a1b", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  ]

  /// The other arguments that a command needs: positional ones, then options.
  private static let needs: [String: ([String], [String: String])] = [
    "init": (["new"], ["--origin": "example.com/new"]),
    "app add": ([], ["--name": "A", "--bundle-id": "com.example.other"]),
    "token create": ([], ["--app": id]), "config set-shared-secret": ([], ["--app": id]),
    "token revoke": (["tk-0"], [:]), "import": (["empty"], [:]), "prices import": (["empty"], [:]),
    "rates import": (["empty"], [:]), "show": (["0"], [:]), "history": (["u"], [:]),
    "verify": (["empty"], [:]), "snapshot prune": ([], ["--keep": "1"]),
    "export": (["revenue"], ["--format": "csv"]), "diff": ([], ["--from": "0", "--format": "csv"]),
    "prove": (["0"], [:]), "audit proof": (["empty"], ["--key": key]),
    "audit consistency": (["empty"], ["--key": key]), "audit report": (["empty"], [:]),
    "audit": ([], ["--checkpoint": "empty"]), "serve": ([], ["--listen": "127.0.0.1:0"]),
    "rebuild": ([], ["--check": ""]),
  ]

  /// Every command with its positional arguments and the options that take a value, as the reference lists them.
  private static func commands() throws -> [(name: String, positionals: Int, options: [String])] {
    let reference = try Sandbox().run("ledgerctl help --markdown").output
    return reference.components(separatedBy: "\n## ").dropFirst().compactMap { section in
      let lines = section.split(separator: "\n").map(String.init)
      let name = lines.first ?? ""
      guard section.contains("```\nledgerctl \(name)") else { return nil }
      let usage = section.components(separatedBy: "```")[1]
      let options = usage.matches(of: /(--[a-z-]+) [A-Za-z]/).map { String($0.output.1) }
      let positionals = lines.filter { $0.hasPrefix("- `") && !$0.hasPrefix("- `-") }
      return (name, positionals.count, options)
    }
  }

  /// Command lines of the shell that have the secret, `$S`, in every place of a command.
  private static func lines() throws -> [String] {
    var lines = [
      #""$S""#, #""--$S""#, #"--"$S"=x"#, #"-x"$S""#, #"help "$S""#, #"--ledger "$S" status"#,
      #"status --ledger="$S""#, #"status "$S""#, #"prices "$S""#, #"export "$S" --format csv"#,
    ]
    let commands = try commands()
    #expect(commands.count > 30)
    #expect(commands.reduce(0) { $0 + $1.options.count } > 40)
    // Last: other commands print what was registered.
    for command in commands.filter({ $0.name != "app add" })
      + commands.filter({ $0.name == "app add" })
    {
      let (arguments, options) = needs[command.name] ?? ([], [:])
      func line(_ positionals: [String], without option: String = "") -> String {
        let rest = options.filter { $0.key != option }.sorted { $0.key < $1.key }
          .map { $0.value.isEmpty ? $0.key : "\($0.key) \($0.value)" }
        return ([command.name] + positionals + rest).joined(separator: " ")
      }
      for option in command.options {
        lines.append(line(arguments, without: option) + #" \#(option) "$S""#)
        lines.append(line(arguments, without: option) + #" \#(option)="a,$S""#)
      }
      for place in 0..<command.positionals {
        lines.append(line(arguments.prefix(place) + [#""$S""#]))
        lines.append(line(arguments.prefix(place) + [#""folder/$S""#]))
      }
      lines.append(line(arguments) + #" "$S""#)
      lines.append(line(arguments) + #" --"$S""#)
    }
    return lines
  }

  @Test(arguments: secrets) func noCommandPrintsASecretInPlaceOfAnArgument(_ secret: String) throws
  {
    let sandbox = try Sandbox()
    try Data(secret.utf8).write(to: URL(fileURLWithPath: sandbox.path + "/secret"))
    let calls = try Self.lines().map { line in
      // The name of an existing file would not be a secret.
      """
      echo '== \(line)'; timeout -s INT \(line.hasPrefix("serve") ? 1 : 60) ledgerctl \(line) </dev/null 2>&1
      rm -rf -- "$S" "a,$S" "folder/$S" "$S.manifest.json" new 2>/dev/null
      """
    }
    let script = """
      S=$(cat secret); rm secret; mkdir folder; : > empty
      ledgerctl init ledger --origin example.com/secrets >made; export LEDGER_DIR=ledger
      ledgerctl app add --name Shop --bundle-id com.example.shop >made

      """
    let outcome = try sandbox.run(script + calls.joined(separator: "\n"))
    let bytes = Array(secret.utf8)
    let windows = Set(
      (0...bytes.count - 8).map { String(decoding: bytes[$0..<$0 + 8], as: UTF8.self) })
    for answer in (outcome.output + outcome.diagnostics).components(separatedBy: "== ").dropFirst()
    {
      let shown = windows.filter { answer.contains($0) }
      #expect(shown.isEmpty, "\(answer)")
    }
    #expect(outcome.output.contains("characters, not shown]"))
  }

  @Test(arguments: [
    // (the setting, the command, what is shown)
    ("", "verify receipts/history-of-2024-11-22.b64", "receipts/history-of-2024-11-22.b64"),
    (
      "mkdir b7c1f0a94e2d4f7c8a1b3c5d7e9f0a1b", "import b7c1f0a94e2d4f7c8a1b3c5d7e9f0a1b",
      "read: b7c1f0a94e2d4f7c8a1b3c5d7e9f0a1b: is a directory"
    ),
    (
      "mkdir b7c1f0a94e2d4f7c8a1b3c5d7e9f0a1b",
      "import b7c1f0a94e2d4f7c8a1b3c5d7e9f0a1b/uploads.ndjson",
      "open: b7c1f0a94e2d4f7c8a1b3c5d7e9f0a1b/uploads.ndjson: no such file"
    ),
    (
      "mkdir known", "import known/b7c1f0a94e2d4f7c8a1b3c5d7e9f0a1b",
      "open: known/[32 characters, not shown]: no such file"
    ),
    (
      "", "status --ledger ledgers/of-the-year-2024/receipts-of-all-of-our-apps",
      "ledgers/of-the-year-2024/receipts-of-all-of-our-apps"
    ),
    (
      "", "replay --from the-day-before-the-day-after-tomorrow",
      "--from the-day-before-the-day-a…: "
    ),
    ("", "an-argument-of-exactly-thirty", "ledgerctl: an-argument-of-exactly-t…: unknown command"),
  ]) func nonSecretsAreShown(_ setting: String, _ command: String, _ shown: String) throws {
    let outcome = try Sandbox().run(
      "ledgerctl init ledger --origin example.com/shown >made; export LEDGER_DIR=ledger\n"
        + "\(setting)\nledgerctl \(command)")
    #expect(outcome.diagnostics.contains(shown), "\(outcome.diagnostics)")
  }
}

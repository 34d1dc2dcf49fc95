// `completions`: what shells complete command lines with.

let completionsCommand = Command(
  "completions", summary: "Write completions for a shell",
  details: [
    "Writes a script for `bash`, `zsh` or `fish`, with which the shell completes commands, options, their accepted "
      + "values, files, folders and time zones. It is made from the table that parsing and help are made from.",
    "In bash: `source <(ledgerctl completions bash)`; to keep it, write it to "
      + "`~/.local/share/bash-completion/completions/ledgerctl`. In zsh: write it to `_ledgerctl` in a folder of "
      + "`fpath`, before `compinit` runs. In fish: write it to `~/.config/fish/completions/ledgerctl.fish`. The "
      + "Debian package and `script/install` put all three in place.",
  ],
  positionals: [
    Positional("SHELL", allowed: CompletionShell.allCases.map(\.rawValue), help: "the shell")
  ],
  options: [Option("output", short: "o", value: .init("FILE"), help: "write to FILE")],
  examples: [
    Example(
      "ledgerctl completions fish -o ledgerctl.fish", "Write the completions for fish to a file")
  ],
  usesLedger: false
) { invocation, context in
  let shell = CompletionShell(rawValue: invocation.positionals[0]) ?? .bash
  try withDestination(invocation.outputPath, context) {
    try writeCompletions(for: shell, to: $0)
  }
  return .done
}

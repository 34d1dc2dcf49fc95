// `completions`: the shells' scripts, and the words that they complete command lines with.
import Base
import Glibc
import Ledger
import Projections

/// The shells that completions are written for.
enum CompletionShell: String, CaseIterable, Sendable {
  case bash, zsh, fish
}

let completionsCommand = Command(
  "completions", summary: "Write completions for a shell",
  details: [
    "The shell asks the program for commands, options and values, and for apps, products, countries and "
      + "currencies of the ledger that the line names.",
    "In bash: `source <(ledgerctl completions bash)`, or write the script to "
      + "`~/.local/share/bash-completion/completions/ledgerctl`. In zsh: write it to `_ledgerctl` in a folder of "
      + "`fpath`, before `compinit` runs. In fish: write it to `~/.config/fish/completions/ledgerctl.fish`. The "
      + "Debian package and `script/install` install all three.",
  ],
  positionals: [
    Positional("SHELL", allowed: CompletionShell.allCases.map(\.rawValue), help: "the shell")
  ],
  options: [Option("output", short: "o", value: .init("FILE"), help: "write to FILE")],
  examples: [
    Example(
      "ledgerctl completions fish -o ledgerctl.fish",
      "Write the completions for fish to a file")
  ],
  usesLedger: false
) { invocation, context in
  let shell = CompletionShell(rawValue: invocation.positionals[0]) ?? .bash
  try withDestination(invocation.outputPath, context) { try $0.write(shell.script) }
  return .done
}

/// The command that the shells' scripts run: `ledgerctl __complete SHELL WORD…`. Prints `files`, `folders`, `words` or
/// `list`, then the possible completions of the last word, one per line. Never fails, and ends within a second.
func complete(_ arguments: [String], _ context: Context) {
  // With a slow disk or a large ledger, offer nothing rather than make the user wait.
  signal(SIGALRM) { _ in _exit(0) }
  alarm(1)
  guard let shell = arguments.first.flatMap(CompletionShell.init(rawValue:)) else { return }
  var (line, cut) = (Array(arguments.dropFirst()), 0)
  if shell == .bash { (line, cut) = joined(line) }
  let completer = Completer(line)
  var text: String
  var choices: [CompletionChoice] = []
  switch completer.offer({ known($0, completer.ledgerPath, context) }) {
  case .files: text = "files\n"
  case .folders: text = "folders\n"
  case .words(let words): (text, choices) = ("words\n", words)
  case .list(let words):
    text = "list\n"
    let before = completer.typed.prefix(through: completer.typed.lastIndex(of: ",") ?? nil)
    let given = before.split(separator: ",").map(String.init)
    choices = words.filter { !given.contains($0.word) }.map { (before + $0.word, $0.meaning) }
  }
  for choice in choices where choice.word.hasPrefix(completer.typed) {
    switch shell {
    // Bash replaces only what follows the last point at which it split the word.
    case .bash: text += (completer.prefix + choice.word).dropFirst(cut)
    case .zsh:
      text += choice.word.replacing(":", with: "\\:")
      if !choice.meaning.isEmpty { text += ":\(visible(choice.meaning))" }
    case .fish: text += "\(completer.prefix)\(choice.word)\t\(visible(choice.meaning))"
    }
    text += "\n"
  }
  try? context.output.write(text)
  try? context.output.flush()
}

/// Bash splits words at `=` and `:`, which are parts of ours.
/// - Returns: the words, and how many characters of the last one precede its last piece.
private func joined(_ pieces: [String]) -> (words: [String], cut: Int) {
  func isBreak(_ piece: String) -> Bool {
    !piece.isEmpty && piece.allSatisfy { $0 == "=" || $0 == ":" }
  }
  var (words, cut, isGlued): ([String], Int, Bool) = ([], 0, false)
  for piece in pieces {
    if !words.isEmpty, isGlued || isBreak(piece) {
      cut = words[words.count - 1].count + (isBreak(piece) ? piece.count : 0)
      words[words.count - 1] += piece
    } else {
      cut = 0
      words.append(piece)
    }
    isGlued = isBreak(piece)
  }
  return (words, cut)
}

/// Names in the existing projections: nothing is folded, and unreadable projections give no names.
private func known(
  _ names: KnownNames, _ ledgerPath: String?, _ context: Context
) -> [CompletionChoice] {
  do {
    guard let path = context.ledgerPathIfAny(given: ledgerPath) else { return [] }
    let reader = try LogReader(try context.openLedger(path: path))
    let projector = Projector(reader, observer: .init(), projections: .ofProgram)
    guard let database = try projector.existing() else { return [] }
    return try names.all(in: database).map { ($0.name, $0.meaning) }
  } catch { return [] }
}

extension String {
  /// The text up to an index and with its character; empty without an index.
  fileprivate func prefix(through index: Index?) -> String {
    index.map { String(self[...$0]) } ?? ""
  }
}

extension CompletionShell {
  /// The script that the shell reads.
  fileprivate var script: String {
    switch self {
    case .bash:
      #"""
      # Completions of ledgerctl for bash, written by 'ledgerctl completions bash'.
      _ledgerctl() {
        local kind current=${COMP_WORDS[COMP_CWORD]}
        {
          read -r kind
          mapfile -t COMPREPLY
        } < <("${COMP_WORDS[0]}" __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
        if [[ $current == [=:]* ]]; then current=''; fi
        case $kind in
          files | folders)
            compopt -o filenames 2>/dev/null
            if [[ $kind == files ]]; then kind=-f; else kind=-d; fi
            mapfile -t COMPREPLY < <(compgen "$kind" -- "$current")
            ;;
          # After a word may come a comma.
          list) compopt -o nospace 2>/dev/null ;;
        esac
      }

      complete -F _ledgerctl ledgerctl

      """#
    case .zsh:
      #"""
      #compdef ledgerctl
      # Completions of ledgerctl for zsh, written by 'ledgerctl completions zsh'.
      _ledgerctl() {
        local kind
        local -a typed choices
        typed=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
        choices=("${(@f)$("${(Q)words[1]}" __complete zsh "$typed[@]" 2>/dev/null)}")
        kind=$choices[1]
        shift choices
        if [[ $PREFIX == --*=* ]]; then compset -P '*='; fi
        case $kind in
          (files) _files ;;
          (folders) _directories ;;
          # After a word may come a comma.
          (list) _describe value choices -S '' ;;
          (words) _describe word choices ;;
        esac
      }

      # Read as a function of fpath, this file is the function itself.
      if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
        _ledgerctl "$@"
      else
        compdef _ledgerctl ledgerctl
      fi

      """#
    case .fish:
      #"""
      # Completions of ledgerctl for fish, written by 'ledgerctl completions fish'.
      function __ledgerctl_complete
          set -l typed (commandline -opc)
          set -l current (commandline -ct)
          set -l choices ($typed[1] __complete fish $typed[2..-1] "$current" 2>/dev/null)
          set -l option (string match -r -- '^--[^=]*=' "$current")
          set -l path (string replace -- "$option" '' "$current")
          switch "$choices[1]"
              case files
                  printf "$option%s\n" (__fish_complete_path "$path")
              case folders
                  printf "$option%s\n" (__fish_complete_directories "$path" '')
              case '*'
                  printf '%s\n' $choices[2..-1]
          end
      end

      complete -c ledgerctl -f -a '(__ledgerctl_complete)'

      """#
    }
  }
}

// Completions for zsh.

/// The script that zsh reads, as the file `_ledgerctl` of a folder in its `fpath`.
func zshCompletions(_ table: CommandTable) -> String {
  let places = table.places
  var text = """
    #compdef ledgerctl
    # Completions of ledgerctl for zsh, written by 'ledgerctl completions zsh'.

    # Sets next to the words that may follow the words of a command, each with what it stands for.
    _ledgerctl_next() {
      next=()
      case $1 in

    """
  for place in places where !place.next.isEmpty {
    let entries = place.next.map { singleQuoted("\($0.word):\($0.summary)") }
    text += "    (\(singleQuoted(place.name)))\n      next=(\n"
    text += entries.map { "        \($0)\n" }.joined() + "      ) ;;\n"
  }
  text += """
      esac
    }

    # Sets specifications to the options and arguments of a command, as _arguments takes them.
    _ledgerctl_specifications() {
      specifications=()
      case $1 in

    """
  for place in places {
    text += "    (\(singleQuoted(place.name)))\n      specifications=(\n"
    text += specifications(of: place).map { "        \($0)\n" }.joined() + "      ) ;;\n"
  }
  return text + "  esac\n}\n\n" + zshFunctions
}

private func specifications(of place: CompletionPlace) -> [String] {
  var lines = place.options.map(specification)
  // Words of a command come before its arguments, and no command has both.
  if !place.next.isEmpty {
    lines.append(singleQuoted("1:command:->command"))
  } else {
    for (index, positional) in place.positionals.enumerated() {
      let number = positional.isRepeated ? "*" : "\(index + 1)"
      let separator = positional.arity == .optional ? "::" : ":"
      lines.append(
        singleQuoted("\(number)\(separator)\(positional.name):\(positional.offer.zsh)"))
    }
  }
  return lines
}

private func specification(_ option: Option) -> String {
  let names = option.typed
  var text = ""
  // Without a group of names that exclude each other, an option may be given again.
  if option.isRepeatable {
    text = singleQuoted("*")
  } else if names.count > 1 {
    text = singleQuoted("(\(names.joined(separator: " ")))")
  }
  // A value follows a long name after = or as the next word, and a short one as the next word alone.
  let typed = names.map { name in
    option.value == nil ? name : name.hasPrefix("--") ? name + "=" : name
  }
  text += typed.count > 1 ? "{\(typed.joined(separator: ","))}" : typed[0]
  var ending = "[\(escaped(option.brief))]"
  if let value = option.value { ending += ":\(escaped(value.name)):\(value.offer.zsh)" }
  return text + singleQuoted(ending)
}

private func escaped(_ text: String) -> String {
  var escaped = ""
  for character in text {
    if "\\[]:".contains(character) { escaped.append("\\") }
    escaped.append(character)
  }
  return escaped
}

extension CompletionOffer {
  fileprivate var zsh: String {
    switch self {
    // One space: a message instead of files.
    case .nothing: " "
    case .files: "_files"
    case .folders: "_directories"
    case .zones: "_time_zone"
    case .commands: "->command"
    case .words(let words): "(\(words.joined(separator: " ")))"
    case .list(let words): "_sequence compadd - \(words.joined(separator: " "))"
    }
  }
}

/// What does not depend on the commands.
private let zshFunctions = #"""
  _ledgerctl() {
    local context curcontext=$curcontext state state_descr line command='' word
    local -A opt_args
    local -a next specifications
    local -i index=2 count=0
    # The words of the command; --ledger may stand before and between them.
    while ((index < CURRENT)); do
      word=$words[index]
      if [[ $word == --ledger ]]; then
        ((index += 2))
        continue
      elif [[ $word == --ledger=* ]]; then
        ((index += 1))
        continue
      fi
      _ledgerctl_next "$command"
      ((${next[(I)$word:*]})) || break
      command+=${command:+ }$word
      ((index += 1))
    done
    # The value of --ledger itself is not a command's business.
    ((index > CURRENT)) && index=CURRENT-1
    words=(ledgerctl "${(@)words[index,-1]}")
    ((CURRENT -= index - 2))
    _ledgerctl_specifications "$command"
    _arguments -C -S $specifications && return 0
    if [[ $state == command ]]; then
      # In 'help app add' the words are arguments.
      if [[ $command == help ]]; then command=${(j: :)${(@)words[2,CURRENT-1]:#-*}}; fi
      _ledgerctl_next "$command"
      ((${#next})) && _describe -t commands command next && return 0
    fi
    return 1
  }

  # Read as a function of fpath, this file is the function itself.
  if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _ledgerctl "$@"
  else
    compdef _ledgerctl ledgerctl
  fi

  """#

// Completions for bash.

/// The script that bash reads.
func bashCompletions(_ table: CommandTable) -> String {
  let places = table.places
  var text = """
    # Completions of ledgerctl for bash, written by 'ledgerctl completions bash'.

    # Sets words to those that may follow the words of a command.
    _ledgerctl_words() {
      words=''
      case $1 in

    """
  for place in places where !place.next.isEmpty {
    text += "    \(singleQuoted(place.name))) words=\(joined(place.next.map(\.word))) ;;\n"
  }
  text += """
      esac
    }

    # Sets words to the options of a command.
    _ledgerctl_options() {
      words=''
      case $1 in

    """
  for place in places {
    let names = place.options.flatMap(\.typed)
    text += "    \(singleQuoted(place.name))) words=\(joined(names)) ;;\n"
  }
  text += """
      esac
    }

    # Sets offer to what an option of a command takes, and to nothing if it takes no value. An argument is asked for
    # by its number.
    _ledgerctl_offer() {
      offer=''
      case $1 in

    """
  for place in places { text += offers(of: place) }
  return text + "  esac\n}\n\n" + bashFunctions
}

private func offers(of place: CompletionPlace) -> String {
  var text = ""
  for option in place.options {
    guard let value = option.value else { continue }
    let keys = option.typed.map { singleQuoted("\(place.name) \($0)") }
    text += "    \(keys.joined(separator: " | "))) offer=\(singleQuoted(value.offer.bash)) ;;\n"
  }
  for (index, positional) in place.positionals.enumerated() {
    let key = singleQuoted("\(place.name) \(positional.isRepeated ? "" : "\(index + 1)")")
    text += "    \(key)\(positional.isRepeated ? "[1-9]*" : ""))"
    text += " offer=\(singleQuoted(positional.offer.bash)) ;;\n"
  }
  return text
}

private func joined(_ words: [String]) -> String { singleQuoted(words.joined(separator: " ")) }

extension CompletionOffer {
  fileprivate var bash: String {
    switch self {
    case .nothing: "anything"
    case .files: "files"
    case .folders: "folders"
    case .zones: "zones"
    case .commands: "commands"
    case .words(let words): "words " + words.joined(separator: " ")
    case .list(let words): "list " + words.joined(separator: " ")
    }
  }
}

/// What does not depend on the commands.
private let bashFunctions = #"""
  # Sets line to the words before the cursor, the last one as far as it is typed. Bash cuts words at = and :, which
  # are parts of ours: they are put together again.
  _ledgerctl_line() {
    local breaks=$1 index word glue=''
    line=()
    for ((index = 1; index <= COMP_CWORD; index++)); do
      word=${COMP_WORDS[index]}
      if [[ -n $breaks && ${#line[@]} -gt 0 && ($word == [$breaks]* || -n $glue && -n $word) ]]; then
        line[-1]+=$word
      elif [[ -z $glue || ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]]; then
        line+=("$word")
      fi
      glue=''
      if [[ -n $breaks && $word == *[$breaks] ]]; then glue=1; fi
    done
  }

  # Sets command, arguments and option (one whose value is missing) by the words before the last.
  _ledgerctl_read() {
    local word words offer
    for word in "${line[@]:0:${#line[@]}-1}"; do
      if [[ -n $option ]]; then
        option=''
      elif [[ -n $ended || $word == - || $word != -* ]]; then
        _ledgerctl_words "$command"
        if ((${#arguments[@]} == 0)) && [[ " $words " == *" $word "* ]]; then
          command+=${command:+ }$word
        else
          arguments+=("$word")
        fi
      elif [[ $word == -- ]]; then
        ended=1
      elif [[ $word != *=* ]]; then
        _ledgerctl_offer "$command $word"
        if [[ -n $offer ]]; then option=$word; fi
      fi
    done
  }

  # Sets COMPREPLY to what of the offer begins as the given text does.
  _ledgerctl_reply() {
    local text=$1 before='' choice zone
    case $offer in
      files | folders)
        compopt -o filenames 2>/dev/null
        local kind=-f
        if [[ $offer == folders ]]; then kind=-d; fi
        mapfile -t COMPREPLY < <(compgen "$kind" -- "$text")
        ;;
      zones)
        mapfile -t COMPREPLY < <(
          while IFS=$'\t' read -r _ _ zone _; do
            if [[ $zone == "$text"* ]]; then printf '%s\n' "$zone"; fi
          done < <(printf '\t\tUTC\n'; grep -v '^#' /usr/share/zoneinfo/zone1970.tab 2>/dev/null)
        )
        ;;
      'words '*)
        mapfile -t COMPREPLY < <(compgen -W "${offer#words }" -- "$text")
        ;;
      'list '*)
        # After a word may come a comma.
        compopt -o nospace 2>/dev/null
        if [[ $text == *,* ]]; then before=${text%,*},; fi
        for choice in ${offer#list }; do
          if [[ ,$before != *",$choice,"* && $before$choice == "$text"* ]]; then
            COMPREPLY+=("$before$choice")
          fi
        done
        ;;
    esac
  }

  _ledgerctl() {
    local breaks=${COMP_WORDBREAKS//[^=:]/} IFS=$' \t\n'
    local line=() command='' arguments=() option='' ended='' words='' offer='' current cut
    _ledgerctl_line "$breaks"
    _ledgerctl_read
    COMPREPLY=()
    current=${line[-1]}
    _ledgerctl_words "$command"
    if [[ -n $option ]]; then
      _ledgerctl_offer "$command $option"
    elif [[ -z $ended && $current == --*=* ]]; then
      _ledgerctl_offer "$command ${current%%=*}"
      current=${current#*=}
    elif [[ -z $ended && $current == -* && $current != - ]]; then
      _ledgerctl_options "$command"
      offer="words $words"
    elif [[ -n $words ]] && ((${#arguments[@]} == 0)); then
      offer="words $words"
    else
      _ledgerctl_offer "$command $((${#arguments[@]} + 1))"
      if [[ $offer == commands ]]; then
        _ledgerctl_words "${arguments[*]}"
        offer="words $words"
      fi
    fi
    _ledgerctl_reply "$current"
    # Bash replaces only what follows the last place at which it cut the word.
    if [[ -n $breaks && $current == *[$breaks]* ]]; then
      cut=${current%"${current##*["$breaks"]}"}
      COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    fi
  }

  complete -F _ledgerctl ledgerctl

  """#

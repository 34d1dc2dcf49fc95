// Completions for fish.

/// The script that fish reads.
func fishCompletions(_ table: CommandTable) -> String {
  let places = table.places
  var text = """
    # Completions of ledgerctl for fish, written by 'ledgerctl completions fish'.

    # Prints the words that may follow the words of a command, each with what it stands for.
    function __ledgerctl_next -a command
        switch "$command"

    """
  for place in places where !place.next.isEmpty {
    text += "        case \(fishQuoted(place.name))\n            printf '%s\\t%s\\n'"
    text += place.next.map {
      " \\\n                \($0.word) \(fishQuoted($0.summary))"
    }.joined()
    text += "\n"
  }
  let valued = places.flatMap { place in
    place.options.filter { $0.value != nil }.flatMap(\.typed).map {
      fishQuoted("\(place.name) \($0)")
    }
  }
  text += "    end\nend\n\n# Options that take a value, each behind its command.\n"
  text += "set -g __ledgerctl_valued"
  for option in valued { text += " \\\n    \(option)" }
  text += "\n\n" + fishFunctions
  for place in places { text += completions(of: place) }
  return text
}

private func completions(of place: CompletionPlace) -> String {
  let at = "complete -c ledgerctl -n "
  let name = place.name.isEmpty ? #"\"\""# : "'\(place.name)'"
  var text = "\n# \(place.name.isEmpty ? "ledgerctl" : place.name)\n"
  if !place.next.isEmpty {
    text += at + "\"__ledgerctl_at \(name) -eq 0\" -a \"(__ledgerctl_next \(name))\"\n"
  } else {
    for (index, positional) in place.positionals.enumerated() {
      let test = positional.isRepeated ? "-ge \(index)" : "-eq \(index)"
      text += at + "\"__ledgerctl_at \(name) \(test)\" \(positional.offer.fishArgument)\n"
    }
  }
  for option in place.options {
    let short = option.short.map { " -s \($0)" } ?? ""
    let value = option.value.map { " " + $0.offer.fishValue } ?? ""
    text += at + "\"__ledgerctl_at \(name)\" -l \(option.name)\(short)\(value)"
    text += " -d \(fishQuoted(option.brief))\n"
  }
  return text
}

/// In fish, a backslash escapes within single quotes.
private func fishQuoted(_ text: String) -> String {
  var quoted = ""
  for character in text {
    if "\\'".contains(character) { quoted.append("\\") }
    quoted.append(character)
  }
  return "'\(quoted)'"
}

extension CompletionOffer {
  /// For an argument; files are not offered unless asked for.
  fileprivate var fishArgument: String {
    switch self {
    case .files: "-F"
    case .nothing: "-f"
    default: "-a \(fishQuoted(fishChoices))"
    }
  }

  /// For the value of an option.
  fileprivate var fishValue: String {
    switch self {
    case .files: "-r -F"
    case .nothing: "-x"
    default: "-x -a \(fishQuoted(fishChoices))"
    }
  }

  private var fishChoices: String {
    switch self {
    case .nothing, .files: ""
    case .folders: "(__fish_complete_directories)"
    case .zones: "(__ledgerctl_zones)"
    case .commands: "(__ledgerctl_help)"
    case .words(let words): words.joined(separator: " ")
    case .list(let words): "(__ledgerctl_list \(words.joined(separator: " ")))"
    }
  }
}

/// What does not depend on the commands.
private let fishFunctions = #"""
  # Prints the command before the cursor, then its arguments, a line each.
  function __ledgerctl_read
      set -l tokens (commandline -opc)
      set -e tokens[1]
      set -l command ''
      set -l arguments
      set -l option ''
      set -l ended 0
      for token in $tokens
          if test -n "$option"
              set option ''
          else if test $ended = 0 -a "$token" = --
              set ended 1
          else if test $ended = 0; and string match -q -- '-?*' $token
              if contains -- "$command $token" $__ledgerctl_valued
                  set option $token
              end
          else if test (count $arguments) -eq 0
                  and contains -- $token (__ledgerctl_next "$command" | string split -f1 \t)
              set command (string trim -- "$command $token")
          else
              set -a arguments $token
          end
      end
      printf '%s\n' "$command" $arguments
  end

  # Whether the cursor is in this command; with a comparison, whether so many arguments are before it.
  function __ledgerctl_at -a command
      set -l read (__ledgerctl_read)
      test "$read[1]" = "$command"; or return 1
      set -q argv[3]; or return 0
      test (math (count $read) - 1) $argv[2] $argv[3]
  end

  # Prints words that may continue a list: what is typed up to its last comma, and one of those not in it.
  function __ledgerctl_list
      set -l before (string match -r -- '^.*,' (commandline -ct | string replace -r -- '^--[^=]*=' ''))
      set -l given (string split , -- "$before")
      for word in $argv
          contains -- $word $given; or echo "$before$word"
      end
  end

  # Prints the words that may follow those that help was given.
  function __ledgerctl_help
      set -l read (__ledgerctl_read)
      set -e read[1]
      __ledgerctl_next "$read"
  end

  # Prints the names of time zones.
  function __ledgerctl_zones
      echo UTC
      string match -v '#*' </usr/share/zoneinfo/zone1970.tab 2>/dev/null | string split -f3 \t
  end

  complete -c ledgerctl -f

  """#

// Shortens untrusted text for messages, without secrets and without characters that control a terminal.

package enum PrintableText {
  /// At most `count` characters (Unicode scalars) of a text, with control and format characters replaced. A
  /// text that looks like a secret is replaced entirely.
  package static func shortened(_ text: some StringProtocol, to count: Int = 64) -> String {
    if SecretText.isLikely(text) { return SecretText.substitute(text) }
    var result = ""
    for (index, scalar) in text.unicodeScalars.prefix(count + 1).enumerated() {
      if index == count {
        result.unicodeScalars.append("\u{2026}")
        break
      }
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator:
        result.unicodeScalars.append("\u{FFFD}")
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

// Foreign text in messages: short, no secret, and without anything that a terminal would act upon.

package enum PrintableText {
  /// At most `count` characters (Unicode scalars) of a text, control and format characters replaced; none of one
  /// that looks like a secret.
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

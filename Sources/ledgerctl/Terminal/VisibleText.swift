// Escapes external text for a terminal and measures its width.

/// `text` with control characters, marks that change the reading direction and the like written as escapes, so
/// that a hostile string can neither control a terminal nor break a line. At most `limit` scalars are kept.
package func visible(_ text: some StringProtocol, limit: Int = .max) -> String {
  var result = String.UnicodeScalarView()
  for (index, scalar) in text.unicodeScalars.enumerated() {
    if index == limit {
      result.append("…")
      break
    }
    switch scalar {
    case "\n": result.append(contentsOf: "\\n".unicodeScalars)
    case "\r": result.append(contentsOf: "\\r".unicodeScalars)
    case "\t": result.append(contentsOf: "\\t".unicodeScalars)
    case _ where isDangerous(scalar):
      let digits = String(scalar.value, radix: 16, uppercase: true)
      result.append(contentsOf: "\\u{\(digits)}".unicodeScalars)
    default: result.append(scalar)
    }
  }
  return String(result)
}

private func isDangerous(_ scalar: Unicode.Scalar) -> Bool {
  if scalar.value < 0x7F { return scalar.value < 0x20 }
  switch scalar.properties.generalCategory {
  case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: return true
  // The joiners shape emoji and scripts; they control nothing.
  case .format: return scalar.value != 0x200C && scalar.value != 0x200D
  default: return false
  }
}

/// The columns that `text` occupies in a terminal: combining marks count 0, wide characters 2.
package func widthColumns(_ text: String) -> Int {
  var width = 0
  for scalar in text.unicodeScalars { width += widthColumns(scalar) }
  return width
}

private func widthColumns(_ scalar: Unicode.Scalar) -> Int {
  if scalar.value < 0x300 { return 1 }
  switch scalar.properties.generalCategory {
  case .nonspacingMark, .enclosingMark, .format: return 0
  default: break
  }
  // Blocks that East Asian terminals draw two columns wide, and emoji.
  switch scalar.value {
  case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
    0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1FAFF,
    0x20000...0x3FFFD:
    return 2
  default: return 1
  }
}

/// `text` cut to `limit` columns; the last one is then an ellipsis.
package func truncated(_ text: String, toColumns limit: Int) -> String {
  guard widthColumns(text) > limit, limit > 0 else { return limit > 0 ? text : "" }
  var result = String.UnicodeScalarView()
  var width = 0
  for scalar in text.unicodeScalars {
    let next = widthColumns(scalar)
    if width + next > limit - 1 { break }
    result.append(scalar)
    width += next
  }
  result.append("…")
  return String(result)
}

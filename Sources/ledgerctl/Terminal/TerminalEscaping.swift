// Escapes external text so that it cannot control a terminal or show a secret.
import Base
import Glibc
import Intake
import Server

/// UTF-8 `bytes` in which control characters, except line feeds and tabs, and marks that change the reading direction
/// are written as JSON escapes. The program's own bold text is kept. A file or a pipe gets the bytes unchanged.
package func harmlessBytes(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
  var result: [UInt8] = []
  result.reserveCapacity(bytes.count)
  var index = 0
  while index < bytes.count {
    let byte = bytes[index]
    if byte == 0x1B, let style = boldSequences.first(where: { starts(bytes, index, with: $0) }) {
      result.append(contentsOf: style)
      index += style.count
    } else if byte < 0x20, byte != 0x0A, byte != 0x09 {
      append(escapeOf: UInt16(byte), to: &result)
      index += 1
    } else if byte == 0x7F {
      append(escapeOf: 0x7F, to: &result)
      index += 1
    } else if byte == 0xC2, index + 1 < bytes.count, (0x80...0x9F).contains(bytes[index + 1]) {
      append(escapeOf: UInt16(bytes[index + 1]), to: &result)
      index += 2
    } else if byte == 0xE2, index + 2 < bytes.count, isDirectional(bytes, index) {
      append(
        escapeOf: 0x2000 | UInt16(bytes[index + 1] & 0x3F) << 6 | UInt16(bytes[index + 2] & 0x3F),
        to: &result)
      index += 3
    } else {
      result.append(byte)
      index += 1
    }
  }
  return result
}

private let boldSequences: [[UInt8]] = [Array("\u{1B}[1m".utf8), Array("\u{1B}[0m".utf8)]

private func starts(_ bytes: UnsafeRawBufferPointer, _ index: Int, with text: [UInt8]) -> Bool {
  bytes[index...].prefix(text.count).elementsEqual(text)
}

/// U+202A to U+202E, and U+2066 to U+2069.
private func isDirectional(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> Bool {
  switch bytes[index + 1] {
  case 0x80: (0xAA...0xAE).contains(bytes[index + 2])
  case 0x81: (0xA6...0xA9).contains(bytes[index + 2])
  default: false
  }
}

private func append(escapeOf unit: UInt16, to result: inout [UInt8]) {
  let digits = Array("0123456789abcdef".utf8)
  result.append(contentsOf: "\\u".utf8)
  for shift in [12, 8, 4, 0] { result.append(digits[Int(unit >> UInt16(shift)) & 0xF]) }
}

// MARK: - Escapes and width

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

// MARK: - Arguments in messages

/// What messages show of an argument or a path: never anything that looks like a secret.
enum ShownArgument {
  /// The number of characters shown of an invalid argument.
  private static let lengthMax = 24

  /// An invalid argument in the form for messages.
  static func text(_ argument: some StringProtocol) -> String {
    hiddenPart(of: String(argument)) == nil
      ? visible(argument, limit: lengthMax) : SecretText.substitute(argument)
  }

  /// A whole path, except for what looks like a secret.
  static func path(_ path: String) -> String {
    guard let part = hiddenPart(of: path) else { return visible(path) }
    return visible(path.dropLast(part.count)) + SecretText.substitute(part)
  }

  /// The part of an argument that must not be shown; nil if all of it may be. The name of an existing file or folder
  /// is not a secret, and neither are the existing folders of the path of a new file. A token is never shown, even if
  /// a file has that name: an earlier run may have created it by mistake.
  static func hiddenPart(of argument: String) -> String? {
    guard SecretText.isLikely(argument) else { return nil }
    if argument.utf8.count >= Int(PATH_MAX) { return argument }
    if argument.contains(TokenText.prefix) { return argument }
    if access(argument, F_OK) == 0 { return nil }
    var end = argument.endIndex
    while let slash = argument[..<end].lastIndex(of: "/") {
      let folder = argument[...slash]
      if access(String(folder), F_OK) == 0 {
        let rest = argument[folder.endIndex...]
        return SecretText.isLikely(rest) ? String(rest) : nil
      }
      end = slash
    }
    return argument
  }
}

/// The arguments of this run that must not appear on standard error. Errors quote paths as they were given, from many
/// layers; every line passes through here.
struct HiddenArguments: Sendable {
  private struct Hidden {
    let bytes: [UInt8]
    let substitute: [UInt8]
  }

  /// An error may quote only the beginning of an argument.
  private static let recognizedBytes = 16
  private let hidden: [Hidden]

  /// Checks the arguments before the command does anything.
  init(_ arguments: [String]) {
    var hidden: [Hidden] = []
    for argument in arguments {
      for part in Self.parts(of: argument) {
        guard let secret = ShownArgument.hiddenPart(of: part) else { continue }
        // Errors escape control characters and show paths without a trailing slash.
        for form in Set([secret, visible(secret)]) {
          var bytes = Array(form.utf8)
          while bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
          guard bytes.count >= Self.recognizedBytes else { continue }
          hidden.append(Hidden(bytes: bytes, substitute: Array(SecretText.substitute(secret).utf8)))
        }
      }
    }
    self.hidden = hidden.sorted { $0.bytes.count > $1.bytes.count }
  }

  /// The argument itself, the text on either side of an equals sign, and the parts between commas.
  private static func parts(of argument: String) -> [String] {
    var parts = [argument]
    if let equals = argument.firstIndex(of: "=") {
      parts.append(String(argument[argument.index(after: equals)...]))
    }
    if let equals = argument.lastIndex(of: "=") { parts.append(String(argument[..<equals])) }
    if argument.contains(",") { parts += argument.split(separator: ",").map(String.init) }
    return parts
  }

  /// The text without the hidden arguments and their beginnings.
  func removed(from text: String) -> String {
    if hidden.isEmpty { return text }
    let bytes = Array(text.utf8)
    var result: [UInt8] = []
    var index = 0
    while index < bytes.count {
      let rest = bytes[index...]
      if let found = hidden.first(where: {
        rest.starts(with: $0.bytes.prefix(Self.recognizedBytes))
      }) {
        result += found.substitute
        index += zip(rest, found.bytes).prefix { $0 == $1 }.count
      } else {
        result.append(bytes[index])
        index += 1
      }
    }
    return String(decoding: result, as: UTF8.self)
  }
}

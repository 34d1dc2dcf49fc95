// Which parts of the command line messages may show: never what looks like a secret.
import Glibc
import Intake
import Server

/// What messages show of an argument or a path.
enum ShownArgument {
  /// The number of characters shown of an invalid argument.
  private static let lengthMax = 24

  /// An invalid argument, as a message may show it.
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
    var place = 0
    while place < bytes.count {
      let rest = bytes[place...]
      if let found = hidden.first(where: {
        rest.starts(with: $0.bytes.prefix(Self.recognizedBytes))
      }) {
        result += found.substitute
        place += zip(rest, found.bytes).prefix { $0 == $1 }.count
      } else {
        result.append(bytes[place])
        place += 1
      }
    }
    return String(decoding: result, as: UTF8.self)
  }
}

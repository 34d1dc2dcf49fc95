// What may be shown of the command line: never what looks like a secret, wherever it stands.
import Glibc
import Intake
import Server

/// Decides what messages show of an argument, a path included.
enum ShownArgument {
  /// So many characters of an argument that was not understood are shown.
  private static let lengthMax = 24

  /// An argument that was not understood, as a message may show it.
  static func text(_ argument: some StringProtocol) -> String {
    hiddenPart(of: String(argument)) == nil
      ? visible(argument, limit: lengthMax) : SecretText.substitute(argument)
  }

  /// A path, whole, but for what looks like a secret.
  static func path(_ path: String) -> String {
    guard let part = hiddenPart(of: path) else { return visible(path) }
    return visible(path.dropLast(part.count)) + SecretText.substitute(part)
  }

  /// What of an argument must not be shown; nil where all may be. What exists under a name is a file or folder and no
  /// secret, and so are the folders that lead to one that is still to be made. A token is never shown: it may have
  /// been given in the place of a name just before.
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

/// The arguments of a run that no line on standard error may hold. Errors name files and folders as they were
/// given, through many layers; all of them pass here.
struct HiddenArguments: Sendable {
  private struct Hidden {
    let bytes: [UInt8]
    let substitute: [UInt8]
  }

  /// An error may quote a beginning alone.
  private static let recognizedBytes = 16
  private let hidden: [Hidden]

  /// Looks at the arguments as they are before the command does anything.
  init(_ arguments: [String]) {
    var hidden: [Hidden] = []
    for argument in arguments {
      for part in Self.parts(of: argument) {
        guard let secret = ShownArgument.hiddenPart(of: part) else { continue }
        // Errors show control characters as escapes, and paths without a slash at the end.
        for form in Set([secret, visible(secret)]) {
          var bytes = Array(form.utf8)
          while bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
          guard bytes.count >= Self.recognizedBytes else { continue }
          hidden.append(
            Hidden(bytes: bytes, substitute: Array(SecretText.substitute(secret).utf8)))
        }
      }
    }
    self.hidden = hidden.sorted { $0.bytes.count > $1.bytes.count }
  }

  /// The argument itself, and what stands on either side of an equals sign or between commas.
  private static func parts(of argument: String) -> [String] {
    var parts = [argument]
    if let equals = argument.firstIndex(of: "=") {
      parts.append(String(argument[argument.index(after: equals)...]))
    }
    if let equals = argument.lastIndex(of: "=") { parts.append(String(argument[..<equals])) }
    if argument.contains(",") { parts += argument.split(separator: ",").map(String.init) }
    return parts
  }

  /// The text without them, and without their beginnings.
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

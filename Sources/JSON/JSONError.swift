// What can be wrong with a JSON text, and where.

/// A fault in a JSON text. It names a place and a cause, never the text itself, which may hold secrets.
@frozen
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of faults.
  @frozen
  public enum Cause: String, Sendable {
    case unexpectedEnd = "unexpected end"
    case unexpectedByte = "unexpected byte"
    case invalidNumber = "invalid number"
    case invalidEscape = "invalid escape sequence"
    case loneSurrogate = "unpaired surrogate"
    case controlCharacter = "unescaped control character in a string"
    case invalidUTF8 = "invalid UTF-8"
    case tooDeep = "nested too deeply"
    case duplicateKey = "duplicate key"
    case trailingBytes = "unexpected bytes after the end"
    case wrongKind = "a value of the wrong type"
  }

  /// What is wrong.
  public let cause: Cause
  /// Place of the fault, in bytes from the beginning of the text.
  public let offsetBytes: Int

  /// A fault at a place.
  @inlinable
  public init(_ cause: Cause, at offsetBytes: Int) {
    self.cause = cause
    self.offsetBytes = offsetBytes
  }

  /// Cause and place, for people.
  public var description: String { "\(cause.rawValue) at byte \(offsetBytes)" }
}

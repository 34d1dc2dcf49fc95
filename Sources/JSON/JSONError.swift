// The errors that a JSON text can contain, and their location.

/// An error in a JSON text. It gives a position and a cause, never the text itself, which may contain
/// secrets.
@frozen
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of errors.
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
  /// Position of the error, in bytes from the start of the text.
  public let offsetBytes: Int

  /// Creates an error at an offset.
  @inlinable
  public init(_ cause: Cause, at offsetBytes: Int) {
    self.cause = cause
    self.offsetBytes = offsetBytes
  }

  /// Cause and position, for people.
  public var description: String { "\(cause.rawValue) at byte \(offsetBytes)" }
}

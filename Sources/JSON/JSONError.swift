// What can be wrong with a JSON text, and where.

/// A fault in a JSON text. It names a place and a cause, never the text itself, which may hold secrets.
@frozen
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of faults.
  @frozen
  public enum Cause: String, Sendable {
    case unexpectedEnd = "it ends too early"
    case unexpectedByte = "a byte that does not belong there"
    case invalidNumber = "a number that is not written as JSON writes one"
    case invalidEscape = "an escape that JSON does not know"
    case loneSurrogate = "half of a surrogate pair"
    case controlCharacter = "a control character inside a string"
    case invalidUTF8 = "bytes that are not UTF-8"
    case tooDeep = "more levels than are allowed"
    case duplicateKey = "a key that stands twice in one object"
    case trailingBytes = "bytes after its end"
    case wrongKind = "a value of another kind than expected"
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
  public var description: String { "\(cause.rawValue), at byte \(offsetBytes)" }
}

// Properties of standard output and standard error as terminals.
import Glibc

/// A standard descriptor that may be a terminal.
struct Terminal: Sendable {
  /// Whether it is a terminal.
  let isTerminal: Bool
  /// Whether bold text may be written: a terminal, and neither NO_COLOR nor TERM=dumb.
  let hasStyle: Bool
  private let descriptor: Int32

  init(descriptor: Int32) {
    self.descriptor = descriptor
    isTerminal = isatty(descriptor) == 1
    hasStyle =
      isTerminal && environmentValue("NO_COLOR") == nil && environmentValue("TERM") != "dumb"
  }

  /// The terminal's width in columns; nil if there is no terminal or its width is unknown.
  var widthColumns: Int? {
    guard isTerminal else { return nil }
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// `text` in bold, if the terminal has styles.
  func bold(_ text: String) -> String { hasStyle ? "\u{1B}[1m\(text)\u{1B}[0m" : text }
}

/// The value of an environment variable; an empty one counts as not set.
func environmentValue(_ name: String) -> String? {
  guard let pointer = getenv(name), pointer.pointee != 0 else { return nil }
  return String(cString: pointer)
}

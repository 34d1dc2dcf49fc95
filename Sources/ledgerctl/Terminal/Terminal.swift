// What is known of the terminals that standard output and standard error may be.
import Glibc

/// One of the standard descriptors, seen as a terminal.
struct Terminal: Sendable {
  /// Whether there is a terminal at all.
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

  /// The terminal's width in columns, nil where there is no terminal or it does not say.
  var widthColumns: Int? {
    guard isTerminal else { return nil }
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// `text` in bold where that is possible.
  func bold(_ text: String) -> String { hasStyle ? "\u{1B}[1m\(text)\u{1B}[0m" : text }
}

/// The value of an environment variable; an empty one counts as not set.
func environmentValue(_ name: String) -> String? {
  guard let pointer = getenv(name), pointer.pointee != 0 else { return nil }
  return String(cString: pointer)
}

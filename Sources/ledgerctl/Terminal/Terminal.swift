// Properties of terminals; secrets and small files as input; formats of counts, sizes, digests and times.
import Base
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
  var widthColumns: Int? { dimension(\.ws_col) }

  /// How many lines the terminal shows; nil if there is no terminal or its height is unknown.
  var lineCount: Int? { dimension(\.ws_row) }

  private func dimension(_ path: KeyPath<winsize, UInt16>) -> Int? {
    var size = winsize()
    guard isTerminal, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size[keyPath: path] > 0
    else { return nil }
    return Int(size[keyPath: path])
  }

  /// `text` in bold, if the terminal has styles.
  func bold(_ text: String) -> String { hasStyle ? "\u{1B}[1m\(text)\u{1B}[0m" : text }
}

/// The value of an environment variable; an empty one counts as not set.
func environmentValue(_ name: String) -> String? {
  guard let pointer = getenv(name), pointer.pointee != 0 else { return nil }
  return String(cString: pointer)
}

// MARK: - Secrets

/// Reads a secret from standard input: piped, or typed at a terminal without echo. Secrets are not arguments because
/// command lines appear in process lists and shell histories.
enum SecretInput {
  private static let byteCountMax = 4096

  /// The bytes read, without the line end; from a terminal, one line.
  /// - Parameter prompt: shown only on a terminal.
  static func read(prompt: String, _ context: Context) throws -> [UInt8] {
    var bytes: [UInt8]
    if isatty(STDIN_FILENO) == 1 {
      context.diagnostics.write(prompt)
      bytes = try withoutEcho { try readAll(context, isLine: true) }
      context.diagnostics.write("\n")
    } else {
      bytes = try readAll(context, isLine: false)
    }
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    return bytes
  }

  private static func readAll(_ context: Context, isLine: Bool) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 1024)
    while true {
      try context.interruption.check()
      let count = Glibc.read(STDIN_FILENO, &piece, piece.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw Failure(operation: "read", object: "standard input", systemError: errno)
      }
      bytes += piece[..<count]
      if bytes.count > byteCountMax {
        throw Failure(
          operation: "read", object: "standard input",
          cause: "it is longer than \(byteCountMax) bytes")
      }
      if count == 0 || isLine && bytes.last == UInt8(ascii: "\n") { return bytes }
    }
  }

  private static func withoutEcho<Result>(_ body: () throws -> Result) throws -> Result {
    var shown = termios()
    guard tcgetattr(STDIN_FILENO, &shown) == 0 else { return try body() }
    var hidden = shown
    hidden.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden)
    defer { tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown) }
    return try body()
  }
}

// MARK: - Small files

/// The whole content of a file named on the command line (a checkpoint, a proof, a manifest) of at most `byteCountMax`
/// bytes; `-` is standard input.
func readSmallFile(_ path: String, byteCountMax: Int = 1 << 20) throws(Failure) -> [UInt8] {
  let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { throw Failure(operation: "read", object: path, systemError: errno) }
  defer { if descriptor != STDIN_FILENO { close(descriptor) } }
  do throws(SmallFileError) {
    return try SmallFile.read(descriptor, byteCountMax: byteCountMax)
  } catch {
    if case .system(let error) = error {
      throw Failure(operation: "read", object: path, systemError: error.code)
    }
    throw Failure(operation: "read", object: path, cause: error.cause)
  }
}

// MARK: - Formats and arguments

/// `1 event`, `2 events`.
func counted(_ count: Int, _ noun: String, _ plural: String? = nil) -> String {
  "\(count) \(count == 1 ? noun : plural ?? noun + "s")"
}

/// `12,345`.
func grouped(_ count: Int) -> String {
  var digits = Array(String(count.magnitude))
  for place in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: place) }
  return (count < 0 ? "-" : "") + String(digits)
}

/// `17 B`, `1.5 MiB`, rounded down.
package func sizeText(_ byteCount: Int) -> String {
  let names = ["B", "KiB", "MiB", "GiB", "TiB"]
  var (whole, rest, index) = (byteCount, 0, 0)
  while whole >= 1024, index + 1 < names.count {
    (rest, whole, index) = (whole % 1024, whole / 1024, index + 1)
  }
  return index == 0 ? "\(whole) B" : "\(whole).\(rest * 10 / 1024) \(names[index])"
}

extension SHA256Digest {
  /// In base64, as in checkpoints.
  var base64: String { Base64.text(bytes) }
}

/// A UUID in lower case; nil if `text` is not one.
func uuidText(_ text: String) -> String? { UUID16(text)?.description }

/// A position: only decimal digits, within the range of `Int`.
func positionValue(_ text: String) -> Int? {
  guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
  return Int(text)
}

extension Invocation {
  /// The day that an option names. A position or a time gets a hint if the command accepts these in another option.
  func day(_ name: String) throws(UsageError) -> CivilDate? {
    guard let text = value(name) else { return nil }
    if let day = try? CivilDate(parsing: text) { return day }
    var cause = "is not a date, as in 2026-03-14"
    let options = ["as-of", "since", "until"].filter { option in
      command.options.contains { $0.name == option }
    }
    if PointInTime(text) != nil, !options.isEmpty {
      cause += "; a point in time is for \(alternatives(options.map { "--\($0)" }))"
    }
    throw wrong(name, text, cause)
  }
}

/// A time in the format of all output: `2026-01-02T03:04:05.678Z`.
func timeText(_ epochMs: Int64) -> String { Timestamp.text(ms: epochMs) }

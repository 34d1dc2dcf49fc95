// Reads a secret from standard input: piped, or typed at a terminal without echo.
import Glibc

/// Reads secrets. They are not arguments because command lines appear in process lists and shell histories.
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

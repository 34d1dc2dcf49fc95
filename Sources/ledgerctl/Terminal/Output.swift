// Buffered writing to a descriptor, without C's own buffers.
package import Base
import Glibc
package import Ledger
import Server

/// Why output could not be written.
package enum OutputError: ReportableError, Equatable {
  /// The reader closed the pipe, as `head` does: not an error for the user.
  case closedPipe
  /// The system call failed, with its `errno`.
  case writeFailed(object: String, code: Int32)

  package var exitCode: ExitCode { self == .closedPipe ? .done : .failed }
  package func lines(for command: String) -> [String] {
    switch self {
    case .closedPipe: []
    case .writeFailed(let object, let code): ["write: \(object): \(systemErrorText(code))"]
    }
  }
}

/// A buffer for a descriptor or file that it does not own. The owner must flush it at the end.
package final class Output {
  private static let capacityBytes = 64 * 1024
  /// Sends all bytes; returns 0 or the `errno`.
  private let send: (UnsafeRawBufferPointer) -> Int32
  private let name: String
  private let isTerminal: Bool
  private var buffer: [UInt8] = []
  /// Shows what is longer than the terminal. The buffer then grows until it is flushed.
  var pager: Pager?
  /// Receives the bytes as they leave the buffer.
  var observer: ((UnsafeRawBufferPointer) -> Void)?
  /// Whether any bytes have left the buffer, so that `discard` cannot remove them.
  private(set) var hasWritten = false

  /// - Parameter name: its name in errors.
  package init(descriptor: Int32, name: String) {
    send = { writeAll($0, to: descriptor) }
    self.name = name
    isTerminal = isatty(descriptor) == 1
  }

  /// Writes to a file from its beginning.
  package init(file: StorageFile, name: String) {
    var offset = 0
    send = { bytes in
      do throws(LedgerError) { try file.write(bytes, offsetBytes: offset) } catch {
        return error.code
      }
      offset += bytes.count
      return 0
    }
    self.name = name
    isTerminal = false
  }

  func write(_ text: some StringProtocol) throws(OutputError) {
    buffer.append(contentsOf: text.utf8)
    if buffer.count >= Self.capacityBytes, pager == nil { try flush() }
  }

  package func write(_ bytes: [UInt8]) throws(OutputError) {
    buffer.append(contentsOf: bytes)
    if buffer.count >= Self.capacityBytes, pager == nil { try flush() }
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(OutputError) {
    buffer.append(contentsOf: bytes)
    if buffer.count >= Self.capacityBytes, pager == nil { try flush() }
  }

  func writeLine() throws(OutputError) { try write("\n") }

  package func writeLine(_ text: some StringProtocol) throws(OutputError) {
    buffer.append(contentsOf: text.utf8)
    buffer.append(UInt8(ascii: "\n"))
    if buffer.count >= Self.capacityBytes, pager == nil { try flush() }
  }

  /// Drops what the buffer still holds.
  func discard() { buffer.removeAll(keepingCapacity: true) }

  package func flush() throws(OutputError) {
    if !buffer.isEmpty { hasWritten = true }
    let code = buffer.withUnsafeBytes { bytes in
      observer?(bytes)
      if isTerminal {
        return harmlessBytes(bytes).withUnsafeBytes { bytes in
          pager?.show(bytes) == true ? 0 : send(bytes)
        }
      }
      return send(bytes)
    }
    // Also after an error: a failed write is not repeated.
    buffer.removeAll(keepingCapacity: true)
    switch code {
    case 0: return
    case EPIPE: throw .closedPipe
    default: throw .writeFailed(object: name, code: code)
    }
  }
}

/// Writes all bytes, waiting if the descriptor does not block; returns 0 or the `errno`.
func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
  var written = 0
  while written < bytes.count {
    let count = Glibc.write(
      descriptor, bytes.baseAddress?.advanced(by: written), bytes.count - written)
    if count > 0 {
      written += count
    } else if count < 0, errno == EAGAIN {
      var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      _ = poll(&request, 1, -1)
    } else if count < 0, errno != EINTR {
      return errno
    }
  }
  return 0
}

/// Standard error, unbuffered. Errors of writing to it are ignored: there is nowhere to report them.
struct Diagnostics: Sendable {
  /// Arguments that it never shows.
  let hidden: HiddenArguments
  /// Whether systemd's journal reads it, which understands a level in front of a line (sd-daemon(3)).
  private let isJournal = isJournalStream(STDERR_FILENO)

  func write(_ text: String) {
    var text = hidden.removed(from: text)
    text.withUTF8 { _ = writeAll(UnsafeRawBufferPointer($0), to: STDERR_FILENO) }
  }

  func writeLine(_ text: String, _ level: LogLevel = .information) {
    write((isJournal ? "<\(level.rawValue)>" : "") + text + "\n")
  }
}

/// Whether a descriptor is the stream to the journal that `JOURNAL_STREAM` names (systemd.exec(5)). A child process
/// inherits the variable, but may write elsewhere.
private func isJournalStream(_ descriptor: Int32) -> Bool {
  var status = stat()
  guard let stream = environmentValue("JOURNAL_STREAM"), fstat(descriptor, &status) == 0 else {
    return false
  }
  return stream == "\(status.st_dev):\(status.st_ino)"
}

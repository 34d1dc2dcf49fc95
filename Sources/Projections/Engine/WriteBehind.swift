// Writes a growing file to disk early, so that the final sync has little left to write.
import CLinux
import Glibc

/// Starts writing a file's content to disk from time to time, without waiting.
final class WriteBehind {
  /// How many times it starts, over the whole work.
  private static let partCount = 16

  private let descriptor: Int32
  private var partsDone = 0

  /// Nil if the file cannot be opened; the final sync then writes everything.
  init?(_ path: String) {
    descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    if descriptor < 0 { return nil }
  }

  deinit { close(descriptor) }

  /// Records how much of the work on the file is done.
  func advance(to doneCount: Int, of totalCount: Int) {
    let parts = totalCount > 0 ? doneCount * Self.partCount / totalCount : 0
    guard parts > partsDone else { return }
    partsDone = parts
    // It does not report failed writes; the final sync does.
    clinux_start_writing(descriptor)
  }
}

// A growing file on its way to disk, so that the sync in the end finds little left to write.
import CLinux
import Glibc

/// Starts writing a file's content to disk now and then, without waiting.
final class WriteBehind {
  /// So often while all of it is made.
  private static let partCount = 16

  private let descriptor: Int32
  private var partsDone = 0

  /// Nil where the file can't be opened: the sync in the end then does it all.
  init?(_ path: String) {
    descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    if descriptor < 0 { return nil }
  }

  deinit { close(descriptor) }

  /// Notes how much of the work that fills the file is done.
  func advance(to doneCount: Int, of totalCount: Int) {
    let parts = totalCount > 0 ? doneCount * Self.partCount / totalCount : 0
    guard parts > partsDone else { return }
    partsDone = parts
    // It tells nothing of writes that fail: the sync in the end does.
    clinux_start_writing(descriptor)
  }
}

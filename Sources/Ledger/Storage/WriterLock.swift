// The writer's lock: flock on a file that is never replaced.
import Base
import Glibc

/// Holds the lock as long as the value lives; the system releases it when the process ends.
final class WriterLock: Sendable {
  /// How long a reader may hold the lock to sync what a dead writer left (`LogReader`).
  private static let readerWaitMs: Int64 = 5000
  private static let writerAttemptsMax = 3

  private let file: StorageFile
  /// Where the writer publishes the durable position.
  let mark: DurableMark

  /// Acquires the lock. Throws `locked` with the holder's process id if another writer has it. If a reader has it,
  /// which is brief, waits.
  init(_ directory: LedgerDirectory) throws(LedgerError) {
    let file = try directory.openFile(
      Format.lockName, .readWriteOrCreate, errorName: directory.fullPath(Format.lockName))
    try Self.take(file, directory)
    self.file = file
    mark = DurableMark(file)
    // The process id tells others which process holds the lock. The previous writer's published position stays valid:
    // what was durable stays durable.
    var lines = LockContent.processLine(getpid())
    if (try? file.lockContent().position) == nil { lines += LockContent.positionLine(0) }
    try? file.write(lines, offsetBytes: 0)
  }

  deinit {
    try? file.write(LockContent.processLine(0), offsetBytes: 0)
    file.unlock()
  }

  private static func take(
    _ file: StorageFile, _ directory: LedgerDirectory
  ) throws(LedgerError) {
    let deadlineMs = MonotonicClock.nowMs() + readerWaitMs
    var attempts = 0
    while try !file.lock() {
      attempts += 1
      let holder = try file.lockContent().processID
      // A reader that has just acquired the lock may not have erased a dead writer's process id yet.
      let isWriter = holder.map(isAlive) ?? false
      if isWriter && attempts >= writerAttemptsMax || MonotonicClock.nowMs() >= deadlineMs {
        throw LedgerError(
          .locked, operation: "open for writing", object: directory.path,
          cause: holder.map { "locked by process \($0)" } ?? "locked by another process")
      }
      usleep(1000)
    }
  }

  /// Whether a process with this id exists.
  static func isAlive(_ processID: Int32) -> Bool { kill(processID, 0) == 0 || errno == EPERM }
}

/// Where a writer publishes how far the log is durable.
final class DurableMark: Sendable {
  private let file: StorageFile
  /// A position that could not be published; nil if none is missing. Readers go no further than the last published
  /// one, so a writer must try again even if nothing more is appended.
  private let missing = Monitor<Position?>(nil)

  init(_ file: StorageFile) { self.file = file }

  /// Whether the newest position could not be published.
  var isBehind: Bool { missing.withLock { $0 != nil } }

  /// Publishes that all events before a position are synced. One thread at a time may publish.
  func publish(_ position: Position) {
    do throws(LedgerError) {
      try file.write(
        LockContent.positionLine(position), offsetBytes: LockContent.positionOffsetBytes)
      missing.withLock { $0 = nil }
    } catch { missing.withLock { $0 = position } }
  }

  /// Tries again to publish a position that could not be.
  func publishAgain() {
    if let position = missing.withLock({ $0 }) { publish(position) }
  }
}

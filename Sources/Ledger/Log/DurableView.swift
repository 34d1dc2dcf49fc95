// Finds which events are on disk: the writer publishes it; without a writer, the reader syncs the log.
import Base
import Glibc

/// A reader's open lock file.
final class ReaderLock {
  /// Nil if there is none that this process may open.
  let file: StorageFile?
  let isWritable: Bool

  init(_ directory: LedgerDirectory) {
    if let file = try? directory.openFile(Format.lockName, .readWrite) {
      self.file = file
      isWritable = true
    } else {
      file = (try? directory.openFileIfPresent(Format.lockName)) ?? nil
      isWritable = false
    }
  }
}

extension LogReader {
  /// How long to wait for another reader, or for a writer that has not identified itself.
  private static let holderWaitMs: Int64 = 5000

  /// Reads only what is certain to be on disk.
  ///
  /// A writer publishes the position up to which it has synced. While the lock is held, nothing beyond that position
  /// is read: the writer's sync may have failed, after which a sync by this process would succeed without writing
  /// anything. If the lock is free, the reader acquires it, rewrites and syncs the end of the log, and publishes the
  /// position.
  func refreshDurably() throws(LedgerError) {
    guard let file = lockFile.file else {
      isSettled = false
      return try refresh(upTo: .max)
    }
    let deadlineMs = MonotonicClock.nowMs() + Self.holderWaitMs
    while true {
      let known = try file.lockContent().position
      if let known {
        try refresh(upTo: known)
        isSettled = true
        // A shorter log is not the one whose position was published.
        if !state.isLimited, state.size >= known { return }
      }
      if try file.lock() {
        defer { file.unlock() }
        return try makeDurable(file)
      }
      let content = try file.lockContent()
      if let holder = content.processID, WriterLock.isAlive(holder) {
        // A writer of an older program publishes nothing; `syncTails` is then the only way.
        isSettled = content.position != nil
        return try refresh(upTo: content.position ?? .max)
      }
      if MonotonicClock.nowMs() >= deadlineMs {
        isSettled = true
        return try refresh(upTo: content.position ?? 0)
      }
      usleep(1000)
    }
  }

  /// Makes everything in the log durable and reads it. The caller holds the lock, so no writer is active.
  private func makeDurable(_ file: StorageFile) throws(LedgerError) {
    isSettled = false
    guard lockFile.isWritable else { return try refresh(upTo: .max) }
    // A dead writer's process id must not be mistaken for that of a lasting holder.
    try? file.write(LockContent.processLine(0), offsetBytes: 0)
    let known = try file.lockContent().position
    try refresh(upTo: .max)
    // Nothing may be derived from a damaged log.
    guard damage == nil, try writeAgain(from: known.map { $0 > state.size ? 0 : $0 } ?? 0)
    else { return }
    isSettled = true
    DurableMark(file).publish(state.size)
  }

  /// Rewrites the frames of the newest tail from a position on, unchanged, and syncs them: after a failed sync, the
  /// system may treat pages as clean that are not on disk. False if the file is not writable.
  private func writeAgain(from position: Position) throws(LedgerError) -> Bool {
    guard let tail = state.tails.last, tail.endPosition > position, !tail.isEmpty
    else { return true }
    guard let file = try? directory.openFile(tail.name, .readWrite) else { return false }
    let offsetBytes = tail.places[tail.index(holding: max(position, tail.first))].offsetBytes
    let bytes = ByteBuffer()
    guard
      try file.readWhole(
        tail.endOffsetBytes - offsetBytes, offsetBytes: offsetBytes, into: bytes)
    else { throw tail.damage("it was truncated") }
    try file.write(bytes.bytes, offsetBytes: offsetBytes)
    try file.syncData()
    try directory.syncLogDirectory()
    return true
  }
}

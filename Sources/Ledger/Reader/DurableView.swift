// How a reader knows which events are on disk: by the writer's word or, where there is no writer, by its own sync.
import Base
import Glibc

/// The lock's file as a reader has it open.
final class ReaderLock {
  /// Nil where there is none that this process may open.
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

  /// Reads what is on disk for certain.
  ///
  /// A writer publishes the position up to which it has synced. Nothing beyond it is read while the lock is held:
  /// its sync may have failed, after which a sync of this process would succeed without writing anything. If the
  /// lock is free, the reader takes it: the end of the log is written again and synced, and the position is published.
  func refreshDurably() throws(LedgerError) {
    guard let file = lockFile.file else {
      isSettled = false
      return try look(upTo: .max)
    }
    let deadlineMs = MonotonicClock.nowMs() + Self.holderWaitMs
    while true {
      let known = try file.lockContent().position
      if let known {
        try look(upTo: known)
        isSettled = true
        // A log that is shorter is not the one of which the position was said.
        if !state.isLimited, state.size >= known { return }
      }
      if try file.lock() {
        defer { file.unlock() }
        return try settle(file)
      }
      let content = try file.lockContent()
      if let holder = content.processID, WriterLock.isAlive(holder) {
        // A writer of an older program publishes nothing: then `syncTails` is the only way.
        isSettled = content.position != nil
        return try look(upTo: content.position ?? .max)
      }
      if MonotonicClock.nowMs() >= deadlineMs {
        isSettled = true
        return try look(upTo: content.position ?? 0)
      }
      usleep(1000)
    }
  }

  /// Reads everything and makes it durable. The caller holds the lock, so no writer is active.
  private func settle(_ file: StorageFile) throws(LedgerError) {
    isSettled = false
    guard lockFile.isWritable else { return try look(upTo: .max) }
    // What a dead writer left there must not be taken for a holder that stays.
    try? file.write(LockContent.processLine(0), offsetBytes: 0)
    let known = try file.lockContent().position
    try look(upTo: .max)
    // Nothing is derived from a log that is not whole.
    guard damage == nil, try writeAgain(from: known.map { $0 > state.size ? 0 : $0 } ?? 0)
    else { return }
    isSettled = true
    DurableMark(file).publish(state.size)
  }

  /// Writes the frames of the newest tail from a position on again, unchanged, and syncs them: after a failed
  /// sync the system may call clean what is not on disk. False where nothing may be written.
  private func writeAgain(from position: Position) throws(LedgerError) -> Bool {
    guard let tail = state.tails.last, tail.endPosition > position, !tail.isEmpty
    else { return true }
    guard let file = try? directory.openFile(tail.name, .readWrite) else { return false }
    let offsetBytes = tail.places[tail.place(holding: max(position, tail.first))].offsetBytes
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

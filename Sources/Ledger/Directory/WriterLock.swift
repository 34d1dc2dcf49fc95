// The lock of the one writer: flock on a file that is never replaced.
import Glibc

/// Held as long as the value lives; the system lets go of it when the process ends.
final class WriterLock: Sendable {
  private let file: StorageFile

  /// Takes the lock; throws `locked` with the holder's process id if another has it.
  init(_ directory: LedgerDirectory) throws(LedgerError) {
    let file = try directory.openFile(
      Format.lockName, .readWriteOrCreate, errorName: directory.fullPath(Format.lockName))
    let isMine = try file.lock()
    guard isMine else {
      let holder = try WriterLock.holder(file)
      throw LedgerError(
        .locked, operation: "open for writing", object: directory.path,
        cause: holder.map { "locked by process \($0)" } ?? "locked by another process")
    }
    // The process id is for the message only: nothing depends on its being there or on disk.
    try? file.truncate(sizeBytes: 0)
    try? file.write(Array("\(getpid())\n".utf8), offsetBytes: 0)
    self.file = file
  }

  deinit { file.unlock() }

  private static func holder(_ file: StorageFile) throws(LedgerError) -> Int? {
    let content = ByteBuffer(capacity: 64)
    content.count = try file.read(into: content.storage, offsetBytes: 0)
    return Int(String(decoding: content.bytes.prefix { $0 != 0x0A }, as: UTF8.self))
  }
}

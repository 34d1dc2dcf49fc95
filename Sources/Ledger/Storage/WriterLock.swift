// The writer's lock, flock on a file that is never replaced; the published durable position; a test append.
import Base
import CDeflate
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
    try Self.acquire(file, directory)
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

  private static func acquire(
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
  /// A position that could not be published; nil if there is none. Readers stop at the last published one, so a writer
  /// must try again even if nothing more is appended.
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

// MARK: - The lock file

/// The content of the lock file: two lines of fixed width, so that one write replaces each in place. They contain the
/// holder's process id (0: none), and the durable position with a CRC-32 of its digits. Docs: format.md, *The lock*.
struct LockContent: Equatable {
  private static let processDigitCount = 10
  private static let positionDigitCount = 20
  static let positionOffsetBytes = processDigitCount + 1
  static let byteCount = positionOffsetBytes + positionDigitCount + 1 + 8 + 1

  /// Nil if no writer has written its id there.
  let processID: Int32?
  /// Every event before this position was synced; nil if the line is missing or torn.
  let position: Position?

  init(_ bytes: UnsafeRawBufferPointer) {
    // Older programs write the process id without padding, and no second line.
    var scanner = ByteScanner(UnsafeRawBufferPointer(rebasing: bytes.prefix { $0 != 0x0A }))
    while scanner.skip("0") {}
    processID = scanner.decimal().flatMap { Int32(exactly: $0) }
    position = Self.position(bytes)
  }

  private static func position(_ bytes: UnsafeRawBufferPointer) -> Position? {
    guard bytes.count >= byteCount, bytes[positionOffsetBytes - 1] == 0x0A,
      bytes[byteCount - 1] == 0x0A
    else { return nil }
    let digits = bytes[positionOffsetBytes..<positionOffsetBytes + positionDigitCount]
    var position = 0
    for digit in digits {
      guard 0x30...0x39 ~= digit, position <= Format.positionMax / 10 else { return nil }
      position = position * 10 + Int(digit - 0x30)
    }
    let line = LockContent.positionLine(position)
    let isSame = line.elementsEqual(bytes[positionOffsetBytes..<byteCount])
    return isSame ? position : nil
  }

  static func processLine(_ processID: Int32) -> [UInt8] {
    digits(Int(processID), count: processDigitCount) + [0x0A]
  }

  static func positionLine(_ position: Position) -> [UInt8] {
    var line = digits(position, count: positionDigitCount)
    let checksum = line.withUnsafeBytes { libdeflate_crc32(0, $0.baseAddress, $0.count) }
    line.reserveCapacity(positionDigitCount + 10)
    line.append(0x20)
    for index in 0..<8 { line.append(Hex.digit(UInt8(checksum >> (28 - 4 * UInt32(index)) & 15))) }
    line.append(0x0A)
    return line
  }

  private static func digits(_ number: Int, count: Int) -> [UInt8] {
    var digits = [UInt8](repeating: 0x30, count: count)
    var rest = number
    for index in digits.indices.reversed() where rest > 0 {
      digits[index] = 0x30 + UInt8(rest % 10)
      rest /= 10
    }
    return digits
  }
}

extension StorageFile {
  /// The content of the lock file. Reads it again if a writer may be replacing it.
  func lockContent() throws(LedgerError) -> LockContent {
    let buffer = ByteBuffer(capacity: 64)
    var content = LockContent(UnsafeRawBufferPointer(start: nil, count: 0))
    for _ in 0..<4 {
      buffer.count = try read(into: buffer.storage, offsetBytes: 0)
      content = LockContent(buffer.bytes)
      if content.position != nil || buffer.count < LockContent.byteCount { break }
    }
    return content
  }
}

// MARK: - Test append

extension LedgerDirectory {
  private static let probeName = "\(Format.logDirectoryName)/probe\(Format.temporarySuffix)"
  private static let probeByteCount = 1 << 20

  /// Checks that there is room for events: writes, syncs and removes a file in the log's directory. Throws the reason
  /// if that fails: no space, no descriptor, a read-only file system. If a crash leaves the file, the next recovery
  /// removes it.
  package func probeAppend() throws(LedgerError) {
    let outcome: Result<Void, LedgerError>
    do throws(LedgerError) {
      let file = try makeFile(Self.probeName)
      let content = [UInt8](repeating: 0, count: Self.probeByteCount)
      try file.write(content, offsetBytes: 0)
      try file.syncData()
      outcome = .success(())
    } catch { outcome = .failure(error) }
    try? unlink(Self.probeName)
    try outcome.get()
  }
}

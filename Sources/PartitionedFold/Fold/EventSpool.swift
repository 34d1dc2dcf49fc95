// A file without a name that holds the lines of folded events, for those that are read again.
import Glibc

/// Appends lines and reads them back.
final class EventSpool {
  private let file: ScratchFile
  private var buffer: [UInt8] = []
  private var writtenByteCount = 0
  private static let capacityBytes = 1 << 20

  init(_ file: ScratchFile) {
    self.file = file
    buffer.reserveCapacity(Self.capacityBytes)
  }

  /// The size so far: the offset of the next line.
  var byteCount: Int { writtenByteCount + buffer.count }

  func append(_ line: UnsafeRawBufferPointer) throws(RulesFailure) {
    if buffer.count + line.count > Self.capacityBytes { try flush() }
    if line.count >= Self.capacityBytes {
      try file.append(line)
      writtenByteCount += line.count
    } else {
      buffer.append(contentsOf: line)
    }
  }

  private func flush() throws(RulesFailure) {
    let pending = buffer
    buffer.removeAll(keepingCapacity: true)
    let result: Result<Void, RulesFailure> = pending.withUnsafeBytes { bytes in
      do throws(RulesFailure) { return .success(try file.append(bytes)) } catch {
        return .failure(error)
      }
    }
    try result.get()
    writtenByteCount += pending.count
  }

  /// The bytes of a range of offsets, which must lie before `byteCount`.
  func read(_ range: Range<Int>) throws(RulesFailure) -> [UInt8] {
    precondition(range.upperBound <= byteCount, "a line that was not appended is read")
    // A line is in the file or in the buffer, never in both.
    if range.lowerBound >= writtenByteCount {
      return Array(
        buffer[range.lowerBound - writtenByteCount..<range.upperBound - writtenByteCount])
    }
    return try file.read(range)
  }
}

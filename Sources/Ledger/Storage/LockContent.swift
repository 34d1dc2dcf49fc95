// The content of the file `lock`: its holder and the durable position.
import Base
import CDeflate
import Glibc

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
    for place in 0..<8 { line.append(Hex.digit(UInt8(checksum >> (28 - 4 * UInt32(place)) & 15))) }
    line.append(0x0A)
    return line
  }

  private static func digits(_ number: Int, count: Int) -> [UInt8] {
    var digits = [UInt8](repeating: 0x30, count: count)
    var rest = number
    for place in digits.indices.reversed() where rest > 0 {
      digits[place] = 0x30 + UInt8(rest % 10)
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

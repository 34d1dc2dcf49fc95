// Gzip in small members whose headers contain their lengths (BGZF): any tool can inflate it, and several threads can
// share the work.
import CDeflate
import Glibc

/// The format of `bgzip`: gzip members of at most 64 KiB, each with its own length in the extra field `BC`,
/// and an empty member at the end.
package enum BlockedGzip {
  /// The content bytes of each member but the last: whole pages of 8 KiB, and a member below 64 KiB even if nothing
  /// can be compressed.
  package static let blockByteCount = 56 << 10
  /// The largest member, in bytes.
  package static let memberByteCountMax = 64 << 10
  /// The empty member that ends a file.
  package static let end: [UInt8] = header + [27, 0, 3, 0] + Array(repeating: 0, count: 8)

  /// Deflate, with an extra field of 6 bytes: `BC`, 2 bytes long.
  private static let header: [UInt8] = [
    0x1F, 0x8B, 8, 4, 0, 0, 0, 0, 0, 0xFF, 6, 0, 0x42, 0x43, 2, 0,
  ]
  fileprivate static let headerByteCount = 18
  fileprivate static let trailerByteCount = 8

  /// The length of the member that begins here; nil if none does or its header is incomplete.
  package static func memberByteCount(_ bytes: UnsafeRawBufferPointer) -> Int? {
    guard bytes.count >= headerByteCount, bytes.prefix(header.count).elementsEqual(header) else {
      return nil
    }
    let count = Int(bytes[16]) + Int(bytes[17]) << 8 + 1
    return count > headerByteCount + trailerByteCount ? count : nil
  }

  fileprivate static func writeHeader(
    _ target: UnsafeMutableRawBufferPointer, memberByteCount count: Int
  ) {
    target.copyBytes(from: header)
    target[16] = UInt8(truncatingIfNeeded: count - 1)
    target[17] = UInt8(truncatingIfNeeded: (count - 1) >> 8)
  }
}

/// Compresses blocks one at a time. Not thread-safe.
package final class BlockedGzipCompressor {
  private let compressor: OpaquePointer

  /// - Parameter level: libdeflate's level, from 1 (fastest) to 12.
  package init(level: Int32) throws(LedgerError) {
    guard let compressor = libdeflate_alloc_compressor(level) else {
      throw .system(ENOMEM, "compress", "blocks")
    }
    self.compressor = compressor
  }

  deinit { libdeflate_free_compressor(compressor) }

  /// Writes the member for a block of 1 to `blockByteCount` bytes and returns its length.
  /// - Parameter target: has room for `memberByteCountMax` bytes.
  package func compress(
    _ block: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) -> Int {
    precondition(1...BlockedGzip.blockByteCount ~= block.count, "a block that is too large")
    precondition(
      target.count >= BlockedGzip.memberByteCountMax, "the target is too small for a member")
    let headerByteCount = BlockedGzip.headerByteCount
    let content = UnsafeMutableRawBufferPointer(rebasing: target[headerByteCount...])
    let count = libdeflate_deflate_compress(
      compressor, block.baseAddress, block.count, content.baseAddress,
      BlockedGzip.memberByteCountMax - headerByteCount - BlockedGzip.trailerByteCount)
    precondition(count > 0, "deflate exceeded its bound for a block")
    let crc32 = libdeflate_crc32(0, block.baseAddress, block.count)
    content.storeBytes(of: crc32.littleEndian, toByteOffset: count, as: UInt32.self)
    content.storeBytes(
      of: UInt32(block.count).littleEndian, toByteOffset: count + 4, as: UInt32.self)
    let total = headerByteCount + count + BlockedGzip.trailerByteCount
    BlockedGzip.writeHeader(target, memberByteCount: total)
    return total
  }
}

/// Inflates members one at a time. Not thread-safe.
package final class BlockedGzipInflater {
  private let decompressor: OpaquePointer

  package init() throws(LedgerError) {
    guard let decompressor = libdeflate_alloc_decompressor() else {
      throw .system(ENOMEM, "inflate", "blocks")
    }
    self.decompressor = decompressor
  }

  deinit { libdeflate_free_decompressor(decompressor) }

  /// Inflates one whole member and returns its content size; nil if it is damaged or its content does not fit.
  package func inflate(
    _ member: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) -> Int? {
    var count = 0
    let result = libdeflate_gzip_decompress(
      decompressor, member.baseAddress, member.count, target.baseAddress, target.count, &count)
    return result == LIBDEFLATE_SUCCESS ? count : nil
  }
}

// Compresses the events of blocks.
import CDeflate

/// The events of a tail, plain and deflated, from which a block is made.
package struct BlockContent {
  let events: ByteBuffer
  let deflated: ByteBuffer

  package init(events: ByteBuffer, deflated: ByteBuffer) {
    self.events = events
    self.deflated = deflated
  }
}

/// Deflates the events of blocks. Not thread-safe.
package final class BlockDeflater {
  private let compressor: OpaquePointer

  /// - Parameter level: libdeflate's level, 1 to 12.
  package init(level: Int32) throws(LedgerError) {
    guard let compressor = libdeflate_alloc_compressor(level) else {
      throw LedgerError(
        .invalidInput, operation: "open for writing", object: "compression level",
        cause: "it is not from 1 to 12")
    }
    self.compressor = compressor
  }

  deinit { libdeflate_free_compressor(compressor) }

  /// The deflated events.
  func deflate(_ events: UnsafeRawBufferPointer) -> ByteBuffer {
    let result = ByteBuffer(capacity: bound(events.count))
    deflate(events, into: result)
    return result
  }

  /// The buffer size that this many event bytes may need when compressed.
  func bound(_ byteCount: Int) -> Int {
    libdeflate_deflate_compress_bound(compressor, byteCount)
  }

  /// Deflates the events into a buffer that has room for them.
  func deflate(_ events: UnsafeRawBufferPointer, into buffer: ByteBuffer) {
    buffer.count = libdeflate_deflate_compress(
      compressor, events.baseAddress, events.count, buffer.base, buffer.capacity)
    precondition(buffer.count > 0, "deflate exceeded its bound")
  }
}

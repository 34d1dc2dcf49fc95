// Deflating the events of tails, on whichever thread has time for it.
import CDeflate
import Threads

/// Deflates the events of blocks. Used by one thread at a time.
final class BlockDeflater {
  private let compressor: OpaquePointer

  /// - Parameter level: libdeflate's, from 1 to 12.
  init(level: Int32) throws(LedgerError) {
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
    let limit = libdeflate_deflate_compress_bound(compressor, events.count)
    let result = ByteBuffer(capacity: limit)
    result.count = libdeflate_deflate_compress(
      compressor, events.baseAddress, events.count, result.base, limit)
    precondition(result.count > 0, "deflate made events larger than its bound")
    return result
  }
}

/// The deflated events of one tail, which the first thread that claims them makes.
final class DeflatedEvents: @unchecked Sendable {
  private enum State {
    case untouched, underWay
    case done(ByteBuffer)
  }

  private let monitor = Monitor(State.untouched, conditionCount: 1)

  /// True for one caller, who then must `finish`.
  func claim() -> Bool {
    monitor.withLock { state in
      guard case .untouched = state else { return false }
      state = .underWay
      return true
    }
  }

  func finish(_ buffer: ByteBuffer) {
    monitor.withLock { $0 = .done(buffer) }
    monitor.broadcast(0)
  }

  /// What was made; nil before that.
  var now: ByteBuffer? {
    monitor.withLock { state in
      if case .done(let buffer) = state { return buffer }
      return nil
    }
  }

  /// Waits for whoever has claimed them.
  func wait() -> ByteBuffer {
    monitor.wait(on: 0) { state in
      if case .done(let buffer) = state { return buffer }
      return nil
    }
  }
}

// The rows of a sheet: compressed while they are written, by a thread of its own.
import Base
import CXlsxWriter
import CZlib
import Glibc
import Ledger

/// Receives the XML of a sheet's rows and compresses it into a file. The library would write them to a file, copy that
/// into another, and compress it at the end: gigabytes on the disk, and twice the time.
final class RowStream {
  private static let pieceSize = 1 << 18

  private let queue = Monitor(PieceQueue(), conditionCount: 2)
  private let compressor: PieceCompressor
  private var thread: WorkerThread?
  private var piece: [UInt8] = []

  /// - Parameter file: where the compressed bytes go, from its beginning.
  init(_ file: StorageFile) throws {
    compressor = try PieceCompressor(file)
    piece.reserveCapacity(Self.pieceSize)
    let loop = CompressionLoop(queue: queue, compressor: compressor)
    thread = try WorkerThread.start { loop.run() }
  }

  deinit { stop() }

  /// A stream for the library. It keeps this value alive until it is closed: the C library writes what is left in a
  /// stream that was not closed when the process ends.
  func open() -> UnsafeMutablePointer<FILE>? {
    let context = Unmanaged.passRetained(self)
    let stream = cxlsx_open_stream(
      context.toOpaque(),
      { context, bytes, count in
        guard let context, let bytes else { return -1 }
        let stream = Unmanaged<RowStream>.fromOpaque(context).takeUnretainedValue()
        stream.add(UnsafeRawBufferPointer(start: bytes, count: count))
        // The library does not look at errors; whoever writes rows asks `check`.
        return count
      },
      { context in
        if let context { Unmanaged<RowStream>.fromOpaque(context).release() }
        return 0
      })
    if stream == nil { context.release() }
    return stream
  }

  private func add(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = rest.prefix(Self.pieceSize - piece.count)
      piece.append(contentsOf: UnsafeRawBufferPointer(rebasing: part))
      rest = rest.dropFirst(part.count)
      if piece.count == Self.pieceSize { handOver() }
    }
  }

  private func handOver() {
    let full = piece
    piece = queue.wait(on: PieceQueue.hasRoom) { state -> [UInt8]? in
      if state.failure != nil || state.isClosed { return [] }
      if state.pieces.count >= PieceQueue.pieceCountMax { return nil }
      state.pieces.append(full)
      return state.spare.popLast() ?? []
    }
    piece.removeAll(keepingCapacity: true)
    piece.reserveCapacity(Self.pieceSize)
    queue.signal(PieceQueue.hasPiece)
  }

  /// Throws if what was written so far could not be kept.
  func check() throws(SpreadsheetError) {
    if let failure = queue.withLock({ $0.failure }) { throw failure }
  }

  /// Compresses the rest. The stream must have been flushed.
  func finish() throws(SpreadsheetError) -> CompressedRows {
    if !piece.isEmpty { handOver() }
    stop()
    try check()
    return try compressor.finish()
  }

  /// Ends the thread; what is written afterwards is lost.
  func stop() {
    queue.withLock { $0.isClosed = true }
    queue.signal(PieceQueue.hasPiece)
    thread?.join()
    thread = nil
  }
}

/// What both threads share.
private struct PieceQueue: Sendable {
  /// Few: compression and writing take turns within a piece or two.
  static let pieceCountMax = 4
  /// The conditions.
  static let (hasPiece, hasRoom) = (0, 1)

  var pieces: [[UInt8]] = []
  /// Pieces that were compressed, to be filled again.
  var spare: [[UInt8]] = []
  var isClosed = false
  var failure: SpreadsheetError?
}

/// The thread that compresses.
private struct CompressionLoop: Sendable {
  let queue: Monitor<PieceQueue>
  let compressor: PieceCompressor

  /// Returns after the last piece, or after a failure.
  func run() {
    while let piece = next() {
      var failure: SpreadsheetError?
      do throws(SpreadsheetError) { try compressor.add(piece) } catch { failure = error }
      queue.withLock { state in
        state.spare.append(piece)
        state.failure = failure
      }
      queue.signal(PieceQueue.hasRoom)
      if failure != nil { return }
    }
  }

  /// The next piece; nil after the last.
  private func next() -> [UInt8]? {
    queue.wait(on: PieceQueue.hasPiece) { state -> [UInt8]?? in
      if !state.pieces.isEmpty { return .some(state.pieces.removeFirst()) }
      return state.isClosed ? .some(nil) : nil
    }
  }
}

/// The compressed rows of a sheet.
struct CompressedRows {
  /// Nil if there is none.
  let file: StorageFile?
  let compressedCount: Int
  /// Before they were compressed.
  let byteCount: Int
  let crc: UInt
}

/// Compresses pieces into a file. Used by one thread at a time: `@unchecked` because the compiler does not see that
/// the writing thread touches it only after it has joined the other.
final class PieceCompressor: @unchecked Sendable {
  /// The library's own level. Lower ones are quicker by a third and make files larger by a third.
  static let level: Int32 = 6
  /// Nil to compress in memory.
  private let file: StorageFile?
  private var memory: [UInt8] = []
  private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  private var output = [UInt8](repeating: 0, count: 1 << 16)
  private var offset = 0
  private var byteCount = 0
  private var crc = crc32(0, nil, 0)

  init(_ file: StorageFile?) throws(SpreadsheetError) {
    self.file = file
    stream.initialize(to: z_stream())
    guard czlib_deflate_init_raw(stream, Self.level) == Z_OK else {
      throw .library(operation: "compress rows", cause: "out of memory")
    }
  }

  deinit {
    deflateEnd(stream)
    stream.deallocate()
  }

  func add(_ piece: [UInt8]) throws(SpreadsheetError) {
    crc = piece.withUnsafeBufferPointer { crc32(crc, $0.baseAddress, UInt32($0.count)) }
    byteCount += piece.count
    try deflate(piece, Z_NO_FLUSH)
  }

  /// Ends at a whole byte, so that another compressed stream may follow.
  func finish() throws(SpreadsheetError) -> CompressedRows {
    try deflate([], Z_SYNC_FLUSH)
    return CompressedRows(file: file, compressedCount: offset, byteCount: byteCount, crc: crc)
  }

  /// Compresses bytes, so that other compressed bytes may follow unless they are the last.
  static func compressed(_ bytes: [UInt8], isLast: Bool) throws(SpreadsheetError) -> [UInt8] {
    let compressor = try PieceCompressor(nil)
    try compressor.deflate(bytes, isLast ? Z_FINISH : Z_SYNC_FLUSH)
    return compressor.memory
  }

  private func deflate(_ piece: [UInt8], _ flush: Int32) throws(SpreadsheetError) {
    try piece.withUnsafeBufferPointer { (input) throws(SpreadsheetError) in
      stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
      stream.pointee.avail_in = UInt32(input.count)
      repeat {
        let count = output.withUnsafeMutableBufferPointer { target in
          stream.pointee.next_out = target.baseAddress
          stream.pointee.avail_out = UInt32(target.count)
          _ = CZlib.deflate(stream, flush)
          return target.count - Int(stream.pointee.avail_out)
        }
        try write(count)
      } while stream.pointee.avail_out == 0
    }
  }

  private func write(_ count: Int) throws(SpreadsheetError) {
    if count == 0 { return }
    guard let file else {
      memory += output[..<count]
      return
    }
    do throws(LedgerError) { try file.write(Array(output[..<count]), offsetBytes: offset) } catch {
      throw .system(operation: "write rows", code: error.code)
    }
    offset += count
  }
}

// Inflates a snapshot on two threads while a third hashes it.
import Base
import Glibc
import Ledger

/// Reads and inflates a snapshot's file once.
final class SnapshotInflater {
  /// Whole members, and the offset of their content.
  private struct Slab: Sendable {
    let bytes: [UInt8]
    let offset: Int
  }

  private struct State {
    var waiting: [Slab] = []
    var isEnded = false
    /// The first failure.
    var failure: ProjectionError?
  }

  private static let (hasWork, hasRoom) = (0, 1)
  private static let slabByteCount = 1 << 20
  private static let depthLimit = 4
  private static let workerCount = 2

  private let snapshot: Snapshot
  private let source: Int32
  private let target: Int32
  private let monitor = Monitor(State(), conditionCount: 2)

  init(_ snapshot: Snapshot, source: Int32, target: Int32) {
    (self.snapshot, self.source, self.target) = (snapshot, source, target)
  }

  private var damage: ProjectionError {
    .snapshot(name: snapshot.name, cause: "its file is damaged")
  }

  /// Reads the whole file. If it throws, discard whatever was written.
  func run(isCancelled: () -> Bool) throws(ProjectionError) {
    var threads: [WorkerThread] = []
    var started: LedgerError?
    do throws(LedgerError) {
      let (monitor, target, damage) = (monitor, target, damage)
      for _ in 0..<Self.workerCount {
        threads.append(try WorkerThread.start { @Sendable in Self.work(monitor, target, damage) })
      }
    } catch { started = error }
    var failure = started.map { ProjectionError.ledger($0) }
    if failure == nil {
      do throws(ProjectionError) { try readAll(isCancelled) } catch { failure = error }
    }
    monitor.withLock { $0.isEnded = true }
    monitor.broadcast(Self.hasWork)
    for thread in threads { thread.join() }
    if let failure { throw failure }
    if let failure = monitor.withLock({ $0.failure }) { throw failure }
    var status = stat()
    guard fstat(target, &status) == 0, Int(status.st_size) == snapshot.header.databaseByteCount
    else { throw damage }
  }

  // MARK: Reading

  private func readAll(_ isCancelled: () -> Bool) throws(ProjectionError) {
    let hasher = SHA256()
    var buffer: [UInt8] = []
    var (byteCount, blockCount) = (0, 0)
    let databaseByteCount = snapshot.header.databaseByteCount
    let wantedBlocks =
      (databaseByteCount + BlockedGzip.blockByteCount - 1) / BlockedGzip.blockByteCount
    while true {
      if isCancelled() { throw .interrupted }
      let kept = buffer.count
      buffer.append(contentsOf: repeatElement(0, count: Self.slabByteCount))
      let added = try fill(&buffer, from: kept)
      buffer.removeLast(buffer.count - kept - added)
      if added == 0 { break }
      buffer.withUnsafeBytes { hasher.update(UnsafeRawBufferPointer(rebasing: $0[kept...])) }
      byteCount += added
      guard byteCount <= snapshot.header.byteCount else { throw damage }
      var (end, count) = (0, 0)
      while let member = member(buffer, at: end), end + member <= buffer.count {
        end += member
        count += 1
      }
      if count == 0 {
        if buffer.count > BlockedGzip.memberByteCountMax { throw damage }
        continue
      }
      // The last member of a file is the empty one.
      guard blockCount + count <= wantedBlocks + 1 else { throw damage }
      try send(Slab(bytes: Array(buffer[..<end]), offset: blockCount * BlockedGzip.blockByteCount))
      blockCount += count
      buffer.removeFirst(end)
    }
    let sha256 = hasher.finish()
    guard buffer.isEmpty, blockCount == wantedBlocks + 1, byteCount == snapshot.header.byteCount,
      sha256 == snapshot.header.sha256
    else { throw damage }
  }

  private func member(_ buffer: [UInt8], at offset: Int) -> Int? {
    buffer.withUnsafeBytes {
      BlockedGzip.memberByteCount(UnsafeRawBufferPointer(rebasing: $0[offset...]))
    }
  }

  private func fill(_ buffer: inout [UInt8], from start: Int) throws(ProjectionError) -> Int {
    while true {
      let count = buffer.withUnsafeMutableBytes {
        read(source, $0.baseAddress?.advanced(by: start), $0.count - start)
      }
      if count >= 0 { return count }
      if errno == EINTR { continue }
      throw .snapshot(
        name: snapshot.name, cause: "its file cannot be read: \(String(cString: strerror(errno)))")
    }
  }

  private func send(_ slab: Slab) throws(ProjectionError) {
    try monitor.wait(on: Self.hasRoom) { (state) throws(ProjectionError) in
      if let failure = state.failure { throw failure }
      if state.waiting.count >= Self.depthLimit { return Void?.none }
      state.waiting.append(slab)
      return ()
    }
    monitor.signal(Self.hasWork)
  }

  // MARK: Inflating

  private static func work(
    _ monitor: Monitor<State>, _ target: Int32, _ damage: ProjectionError
  ) {
    let room = UnsafeMutableRawBufferPointer.allocate(
      byteCount: 16 * BlockedGzip.blockByteCount, alignment: 16)
    defer { room.deallocate() }
    let inflater: BlockedGzipInflater
    do throws(LedgerError) { inflater = try BlockedGzipInflater() } catch {
      return fail(monitor, .ledger(error))
    }
    while true {
      let next: Slab? = monitor.wait(on: hasWork) { state in
        if state.failure != nil { return .some(nil) }
        if !state.waiting.isEmpty { return .some(state.waiting.removeFirst()) }
        return state.isEnded ? .some(nil) : nil
      }
      guard let slab = next else { return }
      monitor.broadcast(hasRoom)
      do throws(ProjectionError) { try write(slab, inflater, room, target, damage) } catch {
        return fail(monitor, error)
      }
    }
  }

  private static func fail(_ monitor: Monitor<State>, _ failure: ProjectionError) {
    monitor.withLock { state in
      if state.failure == nil { state.failure = failure }
    }
    monitor.broadcast(hasRoom)
    monitor.broadcast(hasWork)
  }

  private static func write(
    _ slab: Slab, _ inflater: BlockedGzipInflater, _ room: UnsafeMutableRawBufferPointer,
    _ target: Int32, _ damage: ProjectionError
  ) throws(ProjectionError) {
    var rest = slab.bytes[...]
    var (offset, filled) = (slab.offset, 0)
    while !rest.isEmpty {
      let count: Int? = rest.withUnsafeBytes { bytes in
        guard let member = BlockedGzip.memberByteCount(bytes), member <= bytes.count else {
          return nil
        }
        let inflated = inflater.inflate(
          UnsafeRawBufferPointer(rebasing: bytes[..<member]),
          into: UnsafeMutableRawBufferPointer(
            rebasing: room[filled...].prefix(BlockedGzip.blockByteCount)))
        guard let inflated else { return nil }
        filled += inflated
        return member
      }
      guard let count else { throw damage }
      rest = rest.dropFirst(count)
      if rest.isEmpty || room.count - filled < BlockedGzip.blockByteCount {
        try writeAll(UnsafeRawBufferPointer(rebasing: room[..<filled]), at: offset, target)
        offset += filled
        filled = 0
      }
    }
  }

  private static func writeAll(
    _ bytes: UnsafeRawBufferPointer, at offset: Int, _ target: Int32
  ) throws(ProjectionError) {
    var done = 0
    while done < bytes.count {
      let count = pwrite(
        target, bytes.baseAddress?.advanced(by: done), bytes.count - done, offset + done)
      if count > 0 {
        done += count
      } else if count == 0 || errno != EINTR {
        throw .file(
          operation: "writing", name: "a generation", cause: String(cString: strerror(errno)))
      }
    }
  }
}

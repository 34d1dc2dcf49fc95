// Carries out replication tasks on a thread; several workers may run at once.
import Base
import Ledger

/// Stores and deletes objects. Sendable because each worker is used by one thread.
final class CopyWorker: @unchecked Sendable {
  private static let bufferByteCount = 1 << 20

  let store: any ObjectStore
  private let directory: LedgerDirectory
  let exchange: ReplicationMailbox
  private let retryMsMax: Int
  private let hasher = SHA256()
  private let buffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: CopyWorker.bufferByteCount, alignment: 16)

  init(
    _ store: any ObjectStore, _ directory: LedgerDirectory, _ exchange: ReplicationMailbox,
    retryMsMax: Int
  ) {
    (self.store, self.directory, self.exchange) = (store, directory, exchange)
    self.retryMsMax = retryMsMax
  }

  deinit { buffer.deallocate() }

  func run() {
    while let task = exchange.nextTask() {
      switch task {
      case .upload(let upload):
        guard let result = uploaded(upload) else { return }
        exchange.finish(.uploaded(upload, result))
      case .clean(let cleanup): exchange.finish(.cleaned(cleaned(cleanup)))
      case .sweep(let sweep): exchange.finish(.swept(sweep, found(sweep)))
      }
    }
  }

  // MARK: Storing

  /// Nil if the worker must stop.
  private func uploaded(_ upload: Upload) -> Result<Stored, LedgerError>? {
    var backoff = Backoff()
    while true {
      do {
        return .success(try store(upload))
      } catch let error as ObjectStoreError {
        if error.kind == .cancelled || exchange.isStopping { return nil }
        exchange.failed(.content, error.description, error.kind)
        let wait = min(backoff.next(retryAfterMs: error.retryAfterMs), retryMsMax)
        guard exchange.pause(wait) else { return nil }
      } catch let error as LedgerError {
        return .failure(error)
      } catch { preconditionFailure("an upload throws another error: \(error)") }
    }
  }

  private func store(_ upload: Upload) throws -> Stored {
    switch upload.source {
    case .bytes(let bytes):
      let sha256 = bytes.withUnsafeBytes { SHA256.hash($0) }
      return try store(upload, .bytes(bytes), sha256, bytes.count, upload.stamp)
    case .segment(let first):
      guard let (file, stamp) = try directory.segmentFile(first) else {
        throw LedgerError(
          .inputOutput, operation: "copy segment", object: Format.padded(first),
          cause: "the file was removed meanwhile")
      }
      return try store(upload, file, 0, stamp.byteCount, stamp)
    case .part(let file, let offset, let byteCount):
      return try store(upload, file, offset, byteCount, upload.stamp)
    }
  }

  private func store(
    _ upload: Upload, _ file: StorageFile, _ offset: Int, _ byteCount: Int, _ stamp: FileStamp
  ) throws -> Stored {
    var done = 0
    while done < byteCount {
      let piece = UnsafeMutableRawBufferPointer(
        rebasing: buffer[..<min(buffer.count, byteCount - done)])
      let count = try file.read(into: piece, offsetBytes: offset + done)
      guard count == piece.count else {
        _ = hasher.finish()
        throw LedgerError(
          .inputOutput, operation: "copy", object: file.name, cause: "the file was truncated")
      }
      hasher.update(UnsafeRawBufferPointer(piece))
      done += count
    }
    let sha256 = hasher.finish()
    let body = ObjectBody.file(
      descriptor: file.descriptor, offsetBytes: offset, byteCount: byteCount, sha256: sha256)
    return try withExtendedLifetime(file) {
      try store(upload, body, sha256, byteCount, stamp)
    }
  }

  private func store(
    _ upload: Upload, _ body: ObjectBody, _ sha256: SHA256Digest, _ byteCount: Int,
    _ stamp: FileStamp
  ) throws -> Stored {
    if upload.stored == sha256 {
      return Stored(sha256: sha256, byteCount: byteCount, stamp: stamp, isNew: false)
    }
    try store.put(upload.object.key(sha256), body)
    exchange.succeeded(.content)
    exchange.change { status in
      status.storedObjectCount += 1
      status.storedByteCount += byteCount
    }
    return Stored(sha256: sha256, byteCount: byteCount, stamp: stamp, isNew: true)
  }

  // MARK: Deleting

  /// Deletes what it can; the rest is tried again later.
  private func cleaned(_ cleanup: Cleanup) -> Cleanup {
    var rest = cleanup
    do throws(ObjectStoreError) {
      while let expected = rest.expected.last {
        if try isRight(expected) {
          rest.verified.append(expected)
        } else {
          rest.damaged.append(expected)
        }
        rest.expected.removeLast()
      }
      // What a damaged object replaces is still needed.
      guard rest.damaged.isEmpty else { return rest }
      while let key = rest.keys.last {
        try goOn()
        try store.delete(key)
        rest.keys.removeLast()
      }
      while let step = rest.steps.last {
        try goOn()
        try removeFrames(of: step)
        rest.steps.removeLast()
      }
      exchange.succeeded(.deletions)
    } catch {
      if error.kind != .cancelled, !exchange.isStopping {
        exchange.failed(.deletions, error.description, error.kind)
      }
    }
    return rest
  }

  func goOn() throws(ObjectStoreError) {
    if exchange.isStopping {
      throw ObjectStoreError(
        .cancelled, operation: "delete", object: store.name, cause: "replication ends")
    }
  }

  /// Whether the store returns exactly the expected contents of an object.
  func isRight(_ expected: ExpectedObject) throws(ObjectStoreError) -> Bool {
    var byteCount = 0
    _ = hasher.finish()
    let isThere: Bool
    do throws(ObjectStoreError) {
      isThere = try store.read(expected.key, byteCountMax: expected.byteCountMax) { piece in
        byteCount += piece.count
        hasher.update(piece)
      }
    } catch {
      _ = hasher.finish()
      if error.kind == .tooLarge { return false }
      throw error
    }
    let sha256 = hasher.finish()
    return isThere && byteCount == expected.byteCount ?? byteCount && sha256 == expected.sha256
  }

  /// Rewrites a step with its header alone. That is right whoever owns the sequence now: the frames were superseded by
  /// a step that precedes any other writer's.
  private func removeFrames(of step: SupersededStep) throws(ObjectStoreError) {
    let key = CopyLayout.stepKey(step.number)
    if let header = step.header { return try put(header, key) }
    guard let bytes = try store.get(key, byteCountMax: CopyLayout.stepByteCountMax),
      let stored = Step.parse(bytes), stored.step.number == step.number, stored.frames != nil
    else { return }
    try put(stored.step.header, key)
  }

  private func put(_ header: [UInt8], _ key: String) throws(ObjectStoreError) {
    try store.put(key, .bytes(header))
    exchange.change {
      $0.storedObjectCount += 1; $0.storedByteCount += header.count
    }
  }
}

extension Step {
  /// The header, unless it is long.
  var shortHeader: [UInt8]? {
    guard !isComplete, segments.count + blocks.count < 16 else { return nil }
    let header = self.header
    return header.count <= SupersededStep.headerByteCountMax ? header : nil
  }
}

// MARK: - Numbered work on a few threads

enum ParallelWork {
  private struct State {
    var next = 0
    var error: CopyError?
  }

  /// Calls the body with each number once, in ascending order as threads become free. After an error no further call
  /// begins, and the first error is thrown once all threads have ended.
  static func run(
    _ count: Int, threads: Int, _ body: @escaping @Sendable (Int) throws(CopyError) -> Void
  ) throws(CopyError) {
    let state = Monitor(State())
    let work: @Sendable () -> Void = {
      while true {
        let index = state.withLock { state -> Int? in
          guard state.error == nil, state.next < count else { return nil }
          defer { state.next += 1 }
          return state.next
        }
        guard let index else { return }
        do throws(CopyError) { try body(index) } catch {
          state.withLock { if $0.error == nil { $0.error = error } }
        }
      }
    }
    var workers: [WorkerThread] = []
    for _ in 0..<max(0, min(threads, count) - 1) {
      // The work can be done with fewer threads.
      if let worker = try? WorkerThread(.usual, work) { workers.append(worker) }
    }
    work()
    for worker in workers { worker.join() }
    if let error = state.withLock({ $0.error }) { throw error }
  }
}

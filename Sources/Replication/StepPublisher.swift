// Owns the sequence of steps: reads what is there, and creates the next step until that is decided.
import Base
import Ledger
import ObjectStore

/// A step that was made and is not confirmed yet. Nothing else may use its number until that is decided.
struct PendingStep: Sendable {
  let step: Step
  let header: [UInt8]
  let sha256: SHA256Digest
  /// The header, and the frames.
  let bytes: [UInt8]

  init(_ step: Step, frames: [UInt8]) {
    self.step = step
    header = step.header
    sha256 = header.withUnsafeBytes { SHA256.hash($0) }
    bytes = frames.isEmpty ? header : header + frames
  }
}

/// The calls that decide who owns the sequence. Each may be repeated after an error.
struct StepPublisher {
  enum Opening {
    /// Nil if there is no step yet.
    case opened(ReplicationRecord, CopyState?)
    case ended(ReplicationEnding)
  }

  enum Publication {
    case confirmed
    /// The number is taken by another step of this writer: an earlier process put it there.
    case mustReopen
    case ended(ReplicationEnding)
  }

  enum Failure: Error {
    case store(ObjectStoreError)
    case ledger(LedgerError)
  }

  let store: any ObjectStore
  let directory: LedgerDirectory

  // MARK: Opening

  /// Reads the record and the newest step, and says whether this ledger may go on.
  /// - Parameter isOwner: whether this process has found the copy to be its own before: whoever makes others as the
  ///   same writer is another one then, such as a copied directory.
  func open(_ reader: LogReader, isOwner: Bool) throws(Failure) -> Opening {
    let record = try ledger { () throws(LedgerError) in try ReplicationRecord(of: directory) }
    let sequence = StepSequence(store)
    let state: CopyState?
    do throws(CopyError) {
      if let known = record?.step, try !contains(known) {
        return .ended(.refused(missing(record)))
      }
      state = try sequence.state(knowing: record?.step)
    } catch {
      switch error {
      case .store(let error): throw .store(error)
      case .ledger(let error): throw .ledger(error)
      case .fault(let fault):
        return .ended(.refused("the copy in \(store.name) is damaged: \(fault)"))
      }
    }
    guard let state else { return try openNew(record) }
    guard let record else { return .ended(.contradicted(foreign(state))) }
    if let ending = try ending(record, state, reader) {
      if isOwner, state.newest.epoch == record.epoch {
        return .ended(.fenced(by: ReplicationEnding.ForeignStep(state.newest)))
      }
      return .ended(ending)
    }
    return .opened(record, state)
  }

  private func contains(_ number: Int) throws(CopyError) -> Bool {
    do { return try store.contains(CopyLayout.stepKey(number)) } catch { throw .store(error) }
  }

  private func missing(_ record: ReplicationRecord?) -> String {
    "there is no copy of this ledger in \(store.name) any more, but step \(record?.step ?? 0) was "
      + "confirmed: the target is another one, or was emptied; to begin a new copy, remove the folder "
      + "'\(ReplicationRecord.folderName)' of the ledger"
  }

  private func foreign(_ state: CopyState) -> String {
    state.newest.ledger.description == directory.identity.id.description
      ? "\(store.name) holds a copy of this ledger that this directory has not written; "
        + "'ledgerctl promote' takes it over"
      : "\(store.name) holds a copy of another ledger"
  }

  private func openNew(_ known: ReplicationRecord?) throws(Failure) -> Opening {
    if let known { return .opened(known, nil) }
    let record = ReplicationRecord(
      writer: .random(), epoch: 1, step: nil, sha256: Step.noDigest, size: 0,
      root: Frontier().root)
    // On disk before the first step: after a crash this must still be that step's writer.
    try ledger { () throws(LedgerError) in try record.write(to: directory) }
    return .opened(record, nil)
  }

  /// Why this ledger can't go on from a state; nil if it can.
  private func ending(
    _ record: ReplicationRecord, _ state: CopyState, _ reader: LogReader
  ) throws(Failure) -> ReplicationEnding? {
    let newest = state.newest
    guard newest.ledger.description == directory.identity.id.description else {
      return .contradicted("\(store.name) holds a copy of another ledger")
    }
    if newest.epoch < record.epoch {
      return .contradicted(
        "this ledger was about to take over with epoch \(record.epoch); repeat 'ledgerctl promote'")
    }
    guard newest.epoch == record.epoch, newest.writer == record.writer else {
      return .fenced(by: ReplicationEnding.ForeignStep(newest))
    }
    let size = reader.head.size
    guard state.size <= size else {
      return .contradicted(
        "the copy in \(store.name) holds \(state.size) events, but this disk only \(size); "
          + "'ledgerctl restore' brings them back")
    }
    let root = try ledger { () throws(LedgerError) in try reader.frontier(at: state.size).root }
    guard root == state.root else {
      return .contradicted(
        "the copy in \(store.name) holds \(state.size) other events than this disk")
    }
    return nil
  }

  // MARK: Creating

  /// Tries once to create a step.
  func publish(
    _ pending: PendingStep, as record: ReplicationRecord
  ) throws(ObjectStoreError) -> Publication {
    let key = pending.step.key
    if try store.create(key, .bytes(pending.bytes)) == .stored { return .confirmed }
    // An earlier try may have succeeded.
    guard let bytes = try store.get(key, byteCountMax: CopyLayout.stepByteCountMax) else {
      throw ObjectStoreError(
        .unavailable, operation: "create", object: key,
        cause: "the store says that the key is taken, but has no object there")
    }
    if bytes == pending.bytes { return .confirmed }
    guard let found = Step.parse(bytes)?.step else {
      return .ended(.refused("\(key) in \(store.name) is not a step: who writes there?"))
    }
    if found.epoch == record.epoch, found.writer == record.writer,
      found.previous == pending.step.previous
    {
      return .mustReopen
    }
    return .ended(.fenced(by: ReplicationEnding.ForeignStep(found)))
  }

  private func ledger<Result>(
    _ body: () throws(LedgerError) -> Result
  ) throws(Failure) -> Result {
    do { return try body() } catch { throw .ledger(error) }
  }
}

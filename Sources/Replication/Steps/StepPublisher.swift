// Reads the sequence of steps, and creates the next step until its outcome is known.
import Base
import Ledger

/// A step that was created and is not confirmed yet. Nothing else may use its number until its outcome is known.
struct PendingStep: Sendable {
  let step: Step
  let header: [UInt8]
  let sha256: SHA256Digest
  /// The header and the frames.
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
    /// The state is nil if there is no step yet. If steps were lost, it has the newest one and what is still known to
    /// be named, and the next step must name everything that the copy holds.
    case opened(ReplicationRecord, CopyState?, lost: [CopyFault] = [])
    case ended(ReplicationEnding)
  }

  enum Publication {
    case confirmed
    /// The number is taken by another step of this writer: an earlier process created it.
    case mustReopen
    case ended(ReplicationEnding)
  }

  let store: any ObjectStore
  let directory: LedgerDirectory

  // MARK: Opening

  /// Reads the record and the newest step, and decides whether this ledger may continue the copy.
  /// - Parameter isOwner: whether this process has already found the copy to be its own: steps of the same writer then
  ///   come from another process, such as one with a copied directory.
  func open(_ reader: LogReader, isOwner: Bool) throws(CopyError) -> Opening {
    let record = try ledger { () throws(LedgerError) in try ReplicationRecord(of: directory) }
    let survey: StepSequence.Survey?
    do throws(CopyError) {
      survey = try StepSequence(store).survey(knowing: record?.step)
    } catch {
      guard case .faults(let faults) = error else { throw error }
      return .ended(.refused(damaged(faults)))
    }
    guard var survey else {
      return record?.step == nil ? try openNew(record) : .ended(.refused(missing(record)))
    }
    guard let record else {
      return .ended(
        survey.newest.map { .contradicted(foreign($0.step)) } ?? .refused(damaged(survey.faults)))
    }
    guard
      let newest = survey.newest.map({ ($0.step, $0.sha256) }) ?? confirmed(record, survey.number)
    else { return .ended(.refused(damaged(survey.faults))) }
    if let ending = try ending(record, newest.0, reader) {
      if isOwner, newest.0.epoch == record.epoch {
        return .ended(.fenced(by: ReplicationEnding.ForeignStep(newest.0)))
      }
      return .ended(ending)
    }
    if let known = record.step, known > survey.number {
      survey.faults.append(StepSequence.fault(ofMissing: (survey.number + 1)...known))
    }
    if let state = survey.state, survey.faults.isEmpty { return .opened(record, state) }
    let state = CopyState(newest: newest.0, sha256: newest.1, after: survey.state)
    return .opened(record, state, lost: survey.faults)
  }

  /// A step that can't be read any more, but is known to be this writer's.
  private func confirmed(
    _ record: ReplicationRecord, _ number: Int
  ) -> (Step, SHA256Digest)? {
    guard record.step == number, let ledger = UUID16(directory.identity.id.description) else {
      return nil
    }
    let step = Step(
      number: number, epoch: record.epoch, writer: record.writer, ledger: ledger, atMs: 0,
      previous: Step.noDigest, size: record.size, root: record.root)
    return (step, record.sha256)
  }

  private func damaged(_ faults: [CopyFault]) -> String {
    "the copy in \(store.name) is damaged: \(faults.first?.description ?? "")"
  }

  private func missing(_ record: ReplicationRecord?) -> String {
    "there is no copy of this ledger in \(store.name) any more, but step \(record?.step ?? 0) was "
      + "confirmed: the target is another one, or was emptied; to begin a new copy, remove the folder "
      + "'\(ReplicationRecord.folderName)' of the ledger"
  }

  private func foreign(_ newest: Step) -> String {
    newest.ledger.description == directory.identity.id.description
      ? "\(store.name) holds a copy of this ledger that this directory has not written; "
        + "'ledgerctl promote' takes it over"
      : "\(store.name) holds a copy of another ledger"
  }

  private func openNew(_ known: ReplicationRecord?) throws(CopyError) -> Opening {
    if let known { return .opened(known, nil) }
    let record = ReplicationRecord(
      writer: .random(), epoch: 1, step: nil, sha256: Step.noDigest, size: 0,
      root: Frontier().root)
    // Written before the first step: after a crash, this ledger must still be that step's writer.
    try ledger { () throws(LedgerError) in try record.write(to: directory) }
    return .opened(record, nil)
  }

  /// Why this ledger can't continue from a step; nil if it can.
  private func ending(
    _ record: ReplicationRecord, _ newest: Step, _ reader: LogReader
  ) throws(CopyError) -> ReplicationEnding? {
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
    // The newest confirmed steps may be lost.
    for (copied, copiedRoot) in [(newest.size, newest.root), (record.size, record.root)] {
      guard copied <= size else {
        return .contradicted(
          "the copy in \(store.name) holds \(copied) events, but this disk only \(size); "
            + "'ledgerctl restore' brings them back")
      }
      let root = try ledger { () throws(LedgerError) in try reader.frontier(at: copied).root }
      guard root == copiedRoot else {
        return .contradicted(
          "the copy in \(store.name) holds \(copied) events that differ from those on this disk")
      }
    }
    return nil
  }

  // MARK: Creating

  /// Makes one attempt to create a step.
  func publish(
    _ pending: PendingStep, as record: ReplicationRecord
  ) throws(ObjectStoreError) -> Publication {
    let key = pending.step.key
    if try store.create(key, .bytes(pending.bytes)) == .stored { return .confirmed }
    // An earlier attempt may have succeeded.
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
  ) throws(CopyError) -> Result {
    do { return try body() } catch { throw .ledger(error) }
  }
}

// Reads a copy, its newest state and its files, while its writer may keep running; and the tree of its first events.
import Base
import Ledger

/// Reads a copy. If the writer replaces objects meanwhile, they are read as newer steps name them.
package final class CopySource {
  let store: RetryingStore
  let sequence: StepSequence
  package private(set) var state: CopyState
  /// Whether newer steps are ignored because they are damaged.
  private let isFrozen: Bool

  /// The newest state; nil if there is no copy.
  package convenience init?(_ store: RetryingStore) throws(CopyError) {
    guard let state = try StepSequence(store).state() else { return nil }
    self.init(store, state)
  }

  init(_ store: RetryingStore, _ state: CopyState, isFrozen: Bool = false) {
    (self.store, self.state, self.isFrozen) = (store, state, isFrozen)
    sequence = StepSequence(store)
  }

  /// Reads newer steps; false if there are none.
  @discardableResult
  package func catchUp() throws(CopyError) -> Bool {
    isFrozen ? false : try sequence.catchUp(&state)
  }

  private static let identityByteCountMax = 1 << 20

  /// The bytes of `ledger.json`.
  func identity() throws(CopyError) -> [UInt8] {
    let (key, bytes) = try object(Self.identityByteCountMax) { (.identity, $0.identity) }
    let identity: LedgerIdentity
    do throws(LedgerError) {
      identity = try LedgerIdentity(copied: bytes, path: store.name)
    } catch { throw .ledger(error) }
    guard isOfLedger(identity) else {
      throw .fault(CopyFault(object: key, cause: "it is of another ledger"))
    }
    return bytes
  }

  /// The open work that the newest state names; nil if it names none.
  func work() throws(CopyError) -> OpenWork? {
    guard let first = state.work else { return nil }
    // Once named, open work stays named, even if it is empty.
    let (key, bytes) = try object(OpenWork.byteCountMax) { (.work, $0.work ?? first) }
    guard let work = OpenWork(bytes) else {
      throw .fault(CopyFault(object: key, cause: "it does not have the form of open work"))
    }
    return work
  }

  /// A whole object as the newest state names it, and its key.
  private func object(
    _ byteCountMax: Int, _ named: (CopyState) -> (CopyObject, SHA256Digest)
  ) throws(CopyError) -> (key: String, bytes: [UInt8]) {
    while true {
      let (object, sha256) = named(state)
      let key = object.key(sha256)
      let bytes: [UInt8]?
      do throws(ObjectStoreError) {
        bytes = try store.get(key, byteCountMax: byteCountMax)
      } catch { throw .store(error) }
      guard let bytes else {
        if try catchUp(), named(state).1 != sha256 { continue }
        throw .fault(CopyFault(object: key, cause: "it is missing"))
      }
      guard bytes.withUnsafeBytes({ SHA256.hash($0) }) == sha256 else {
        throw .fault(CopyFault(object: key, cause: "its SHA-256 is not the one in its key"))
      }
      return (key, bytes)
    }
  }

  private func isOfLedger(_ identity: LedgerIdentity) -> Bool {
    identity.id.description == state.newest.ledger.description
  }

  /// Any identity of the ledger that the store has: that of the newest format, with the most keys. A sound copy has
  /// one; an older or newer one may remain where steps are damaged.
  func anyIdentity() throws(CopyError) -> [UInt8]? {
    var found: (bytes: [UInt8], identity: LedgerIdentity)?
    do throws(ObjectStoreError) {
      for entry in try store.list(prefix: CopyLayout.identityPrefix, after: nil) {
        guard entry.byteCount <= Self.identityByteCountMax,
          let bytes = try store.get(entry.key, byteCountMax: Self.identityByteCountMax),
          CopyLayout.identityKey(bytes.withUnsafeBytes { SHA256.hash($0) }) == entry.key,
          let identity = try? LedgerIdentity(copied: bytes, path: store.name),
          isOfLedger(identity)
        else { continue }
        if let known = found?.identity,
          (known.formatVersion, known.publicKeys.count)
            >= (identity.formatVersion, identity.publicKeys.count)
        {
          continue
        }
        found = (bytes, identity)
      }
    } catch { throw .store(error) }
    return found?.bytes
  }

  /// Fetches the files of the copy's first events next to their final names.
  /// - Parameters:
  ///   - size: how many events; by default all.
  ///   - excluded: sizes of checkpoints that are left out.
  /// - Returns: the plan that was carried out, and what the store does not have. Without faults all files of the plan are
  ///   in place, or complete as `NAME.new`.
  func fetch(
    size: Int?, without excluded: Set<Int> = [], _ fetch: CopyFetch,
    into folder: (CopyFile) throws(LedgerError) -> Folder
  ) throws(CopyError) -> (plan: CopyPlan, faults: [CopyFetch.Fault]) {
    while true {
      let plan = try self.plan(size: size)
      let files = plan.files.filter { $0.kind != .checkpoint || !excluded.contains($0.first) }
      let faults = try fetch.fetch(files, into: folder)
      if faults.isEmpty { return (plan, []) }
      // The writer may have replaced them. Then a newer step names their replacements.
      guard try catchUp() else { return (plan, faults) }
      let named = Self.names(try self.plan(size: size))
      if faults.allSatisfy({ named.contains($0.fault.object) }) { return (plan, faults) }
    }
  }

  /// The files of the first events in the known state.
  func plan(size: Int?) throws(CopyError) -> CopyPlan {
    do throws(CopyFault) { return try CopyPlan(state, size: size ?? state.size) } catch {
      throw .fault(error)
    }
  }

  private static func names(_ plan: CopyPlan) -> Set<String> {
    Set(plan.files.flatMap { $0.pieces.map(\.key) })
  }
}

// MARK: - Tree of the fetched files

/// The tree of a copy's first events, from files that were fetched into a log's folder, in place or not yet.
struct CopiedTree {
  private let plan: CopyPlan
  private let log: Folder
  private let ledger: LedgerID

  init(_ plan: CopyPlan, _ log: Folder, _ ledger: LedgerID) {
    (self.plan, self.log, self.ledger) = (plan, log, ledger)
  }

  func frontier(upTo size: Int) throws(LedgerError) -> Frontier {
    var frontier = Frontier()
    let segments = plan.logFiles.filter { $0.kind != .tail }
    // A segment records the tree before it.
    if let segment = segments.last(where: { $0.first < size }) {
      frontier = try opened(segment).frontier(upTo: size, after: nil)
    }
    for tail in plan.logFiles where tail.kind == .tail && tail.first < size {
      frontier = try opened(tail).frontier(upTo: size, after: frontier)
    }
    return frontier
  }

  private func opened(_ file: CopyFile) throws(LedgerError) -> CopiedLogFile {
    let temporary = file.name + Format.temporarySuffix
    let name = try log.status(temporary) == nil ? file.name : temporary
    return CopiedLogFile(
      file.kind == .tail ? .tail : .segment, try log.openFile(name, .readOnly), first: file.first,
      of: ledger)
  }
}

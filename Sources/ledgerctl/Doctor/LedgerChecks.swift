// Checks of `doctor` on the log, the clock, signed heads and keys, the projections and snapshots.
import Base
import Glibc
import Ledger
import Projections
import Server

extension Examination {
  /// How long events may be in no signed head.
  private static let unsignedDays: Int64 = 35
  /// Of larger projections, SQLite does not check every page: that takes as long as reading them.
  private static let checkedByteCount = 256 << 20

  func examineLedger() {
    attempt(.identityUnusable, .formatNewer, .mergeUnfinished, because: Self.accessChecks) {
      do throws(LedgerError) {
        openedLedger = try LedgerDirectory.open(path: path, isForMerge: true)
      } catch {
        switch error.kind {
        case .noLedger, .corruption: report(.identityUnusable, "ledger.json", error.cause)
        case .newerFormat: report(.formatNewer, "ledger.json", error.cause)
        default: throw error
        }
      }
      if try root.status(MergedLedger.markerName) != nil {
        report(.mergeUnfinished, path, "a run was begun and not finished")
      }
    }
    attempt(.logDamaged, because: Self.accessChecks) {
      let directory = try ledger()
      do throws(LedgerError) {
        let reader = try LogReader(directory)
        openedLog = reader
        if let damage = reader.damage { throw damage }
      } catch {
        guard error.kind == .corruption else { throw error }
        report(.logDamaged, error.damage?.file ?? "log", error.cause)
      }
    }
    attempt(.clockBehindLog) {
      let aheadMs = try log().head.lastEventAtMs - nowMs
      if aheadMs > DoctorLimits.clockSeconds * 1000 {
        report(
          .clockBehindLog, "clock", "the newest event is \(DoctorSurroundings.age(aheadMs)) later")
      }
    }
    attempt(.serverDied) {
      let directory = try ledger()
      standby = try Standby(of: directory)
      isServed = try LedgerService.isListening(directory)
      if isServed == false { report(.serverDied, "ledger.sock", "no process listens on it") }
    }
  }

  // MARK: Signed heads and keys

  func examineKeys() {
    attempt(.signedHeadMissing, because: Self.accessChecks) {
      let (reader, directory) = (try wholeLog(), try ledger())
      let store = CheckpointStore(directory)
      do {
        try store.check(reader)
        if let heads = try store.signedHeads(),
          let cause = try store.disagreement(of: heads, reader)
        {
          report(.signedHeadMissing, SignedHeads.fileName, cause)
        }
      } catch let error as LedgerError where error.kind == .corruption {
        report(.signedHeadMissing, error.damage?.file ?? "checkpoints", error.cause)
      }
    }
    attempt(.signingKeyUnusable, .signingKeyMissing, because: Self.accessChecks) {
      let directory = try ledger()
      // Keys are in no copy.
      if standby != nil || directory.identity.publicKeys.isEmpty { return }
      do {
        if try KeyStore(directory).signingKey() == nil {
          report(.signingKeyMissing, "keys", "it holds none of the keys of ledger.json")
        }
      } catch let error as LedgerError where error.kind == .corruption {
        report(.signingKeyUnusable, error.damage?.file ?? "keys", error.cause)
      }
    }
    attempt(.checkpointLate, because: Self.accessChecks + [.signedHeadMissing]) {
      let (reader, directory) = (try wholeLog(), try ledger())
      let signed = try CheckpointStore(directory).sizes().last ?? 0
      guard standby == nil, signed < reader.head.size,
        let firstMs = try reader.event(at: signed).withUnsafeBytes({ EventLine($0)?.recordedAtMs }),
        nowMs - firstMs > Self.unsignedDays * dayMs
      else { return }
      report(
        .checkpointLate, "checkpoints",
        "the newest signed head has \(counted(signed, "event")); the next event is "
          + "\(DoctorSurroundings.age(nowMs - firstMs)) old",
        command: directory.identity.publicKeys.isEmpty
          ? "ledgerctl key create && ledgerctl checkpoint" : nil)
    }
    attempt(.erasureKeyMissing, because: Self.accessChecks) {
      let directory = try ledger()
      if standby == nil, try LineHMACKey.isMissing(directory) {
        report(
          .erasureKeyMissing, LineHMACKey.name,
          "without it, `import` refuses everything, and lines of erased people are not recognised")
      }
    }
  }

  // MARK: Projections

  func examineProjections() {
    attempt(
      .projectionsMissing, .projectionsDamaged, .projectionsOfOtherHistory, .projectionsOutdated,
      .projectionsBehind, because: Self.accessChecks
    ) {
      let reader = try wholeLog()
      do { try examineProjections(reader) } catch {
        guard ErrorReport.isProjectionDamage(error) else { throw error }
        report(.projectionsDamaged, "projections", ErrorReport(error, command: "doctor").cause)
      }
    }
    attempt(.snapshotUnusable, because: Self.accessChecks) {
      // Without projections it would read much of the log.
      guard try database() != nil else { return }
      let projector = projector(try wholeLog())
      let store = projector.snapshots
      for header in store.unreadable where !header.isEarlier {
        report(.snapshotUnusable, "snapshot \(header.name)", header.cause)
      }
      for snapshot in store.snapshots where !projector.isOfAnotherVersion(snapshot) {
        if let cause = projector.unfitness(of: snapshot) {
          report(.snapshotUnusable, "snapshot \(snapshot.name)", cause)
        }
      }
    }
  }

  private func examineProjections(_ reader: LogReader) throws {
    let projector = projector(reader)
    guard let status = try projector.status() else {
      // A ledger on standby makes them when it takes over.
      if reader.head.size > 0, standby == nil {
        report(
          .projectionsMissing, "projections", "the next command that needs them builds them first")
      }
      return
    }
    guard status.isOfThisLog else {
      return report(
        .projectionsOfOtherHistory, "projections",
        status.position > reader.head.size
          ? "they had folded \(counted(status.position, "event")), but the log has \(reader.head.size)"
          : "the log's first \(counted(status.position, "event")) are not those that they folded")
    }
    let database = try projector.existing()
    // Those in use are of the time before an erasure that is being carried out.
    if database == nil, status.counts != nil, reader.redactedLines != nil { return }
    guard status.counts != nil, let database else {
      return report(
        .projectionsOutdated, "projections", "the next command that needs them rebuilds them first")
    }
    if projectionByteCount <= Self.checkedByteCount, let cause = try projector.damage(in: database)
    {
      return report(.projectionsDamaged, "projections", "the database \(cause)")
    }
    currentDatabase = database
    let lag = reader.head.size - status.position
    if lag > DoctorLimits.projectionEventCount {
      report(
        .projectionsBehind, "projections",
        "they lack \(counted(lag, "event")); the next command that needs them folds them first")
    }
  }
}

extension ErrorReport {
  /// What went wrong, in one line without the program's name.
  var cause: String {
    let text = lines.joined(separator: "; ")
    return text.hasPrefix("ledgerctl: ") ? String(text.dropFirst("ledgerctl: ".count)) : text
  }
}

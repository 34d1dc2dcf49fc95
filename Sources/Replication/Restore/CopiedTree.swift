// The tree of a copy's first events, from its fetched files.
import Base
import Ledger

/// The files of a plan that were fetched into a log's folder, in place or not yet.
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
    // A segment knows the tree before it.
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

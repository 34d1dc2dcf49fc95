// Puts fetched files in their places, and cuts the last one where the history is to end.
import Base
import Ledger

/// Gives fetched files their names in a ledger's folders.
struct CopyInstall {
  let log: Folder
  let checkpoints: Folder?
  let ledger: LedgerID

  /// Puts the files of a plan in place, by position; files that are in place already stay. Then the log has no
  /// other segments and tails.
  /// - Parameter without: sizes of checkpoints that were not fetched.
  func install(_ plan: CopyPlan, without excluded: Set<Int> = []) throws(LedgerError) {
    var names: Set<String> = []
    let cutFile = plan.cutFile
    for file in plan.logFiles where file != cutFile {
      try putInPlace(file, in: log)
      names.insert(file.name)
    }
    if let cutFile { names.formUnion(try cut(cutFile, at: plan.size)) }
    if !names.contains(where: { Format.segmentFirst($0) != nil }) {
      let name = Format.segmentName(0)
      try log.replaceFile(name, with: CopiedLogFile.emptyLog(of: ledger))
      names.insert(name)
    }
    try removeOthers(than: names)
    for file in plan.files where file.kind == .checkpoint && !excluded.contains(file.first) {
      if let checkpoints { try putInPlace(file, in: checkpoints) }
    }
    // What was fetched and is of no use after all.
    for name in try checkpoints?.names() ?? [] where name.hasSuffix(Format.temporarySuffix) {
      try checkpoints?.unlink(name)
    }
    try log.sync()
    try checkpoints?.sync()
  }

  private func putInPlace(_ file: CopyFile, in folder: Folder) throws(LedgerError) {
    let temporary = file.name + Format.temporarySuffix
    // Without it the file itself was found whole.
    guard try folder.status(temporary) != nil else { return }
    let handle = try folder.openFile(temporary, .readOnly)
    try handle.changePermissions(file.permissions)
    // It was synced when its last piece had come.
    try folder.rename(temporary, to: file.name, of: handle)
  }

  private func removeOthers(than names: Set<String>) throws(LedgerError) {
    for name in try log.names() where !names.contains(name) {
      let isOfLog =
        Format.segmentFirst(name) != nil || Format.tailFirst(name) != nil
        || name.hasSuffix(Format.temporarySuffix)
      if isOfLog { try log.unlink(name) }
    }
  }

  /// Cuts the last file; returns the names of what is in place then.
  private func cut(_ file: CopyFile, at size: Position) throws(LedgerError) -> [String] {
    let temporary = file.name + Format.temporarySuffix
    if try log.status(temporary) == nil {
      // An earlier run put it in place whole; a closed segment is read-only.
      let whole = try log.openFile(file.name, .readOnly)
      try whole.changePermissions(Format.filePermissions)
      try log.rename(file.name, to: temporary, of: whole)
    }
    let handle = try log.openFile(temporary, .readWrite)
    let isSegment = file.kind != .tail
    let copied = CopiedLogFile(
      isSegment ? .segment : .tail, handle, first: file.first, of: ledger)
    let rest = try copied.cut(before: size)
    var names: [String] = []
    if let rest {
      let name = Format.tailName(rest.first)
      try log.replaceFile(name, with: rest.frames)
      names.append(name)
    }
    if isSegment, rest?.first == file.first, file.first > 0 {
      // No block is left, and the log begins in another segment.
      try log.unlink(temporary)
    } else {
      try handle.changePermissions(Format.filePermissions)
      try log.putInPlace(handle, temporary, as: file.name)
      names.append(file.name)
    }
    return names
  }
}

// Fetches the files of a copy into a ledger's folders: several objects at once, each checked as it arrives.
import Base
import Ledger

/// What a fetch did.
package struct FetchCounts: Sendable, Equatable {
  package var objects = 0
  package var bytes = 0
  /// Objects whose bytes were already in the folder.
  package var kept = 0
  package var keptBytes = 0

  package init() {}
}

/// Fetches files as `NAME.new`. Files that are already in place, and parts of unfinished ones, are kept if their
/// SHA-256 is right.
final class CopyFetch: Sendable {
  /// Called at intervals, by any thread.
  typealias Progress = @Sendable (_ doneBytes: Int, _ totalBytes: Int) -> Void

  private let store: RetryingStore
  private let threadCount: Int
  private let progress: Progress
  private let counts = Monitor(FetchCounts())

  init(
    _ store: RetryingStore, threadCount: Int = 4, progress: @escaping Progress = { _, _ in }
  ) {
    (self.store, self.threadCount, self.progress) = (store, threadCount, progress)
  }

  var total: FetchCounts { counts.withLock { $0 } }

  /// A fault, and the position from which the copy is incomplete because of it.
  struct Fault: Sendable, Equatable {
    let fault: CopyFault
    let position: Position
    let file: String
  }

  /// A file that is being fetched.
  private final class Target: Sendable {
    let file: CopyFile
    let folder: Folder
    private struct State {
      var handle: StorageFile?
      var missing: [Int]
      var isWhole = true
    }
    private let state: Monitor<State>
    /// Whether none of its pieces is there yet.
    private let isNew: Bool

    init(_ file: CopyFile, _ folder: Folder, missing: [Int]) {
      (self.file, self.folder) = (file, folder)
      isNew = missing.count == file.pieces.count
      state = Monitor(State(missing: missing))
    }

    var temporaryName: String { file.name + Format.temporarySuffix }
    var missing: [Int] { state.withLock { $0.missing } }

    /// The file, opened when its first piece is written.
    func opened() throws(LedgerError) -> StorageFile {
      try state.withLock { state throws(LedgerError) in
        if let handle = state.handle { return handle }
        let handle: StorageFile
        if isNew {
          handle = try folder.makeFile(temporaryName)
          try folder.giveNewFileToOwner(handle)
        } else {
          handle = try folder.openFile(temporaryName, .readWrite)
        }
        state.handle = handle
        return handle
      }
    }

    /// Marks a piece as finished; syncs and closes the file after the last one.
    func finish(_ piece: Int, isWhole: Bool) throws(LedgerError) {
      let handle = state.withLock { state -> StorageFile? in
        state.missing.removeAll { $0 == piece }
        if !isWhole { state.isWhole = false }
        guard state.missing.isEmpty else { return nil }
        defer { state.handle = nil }
        return state.isWhole ? state.handle : nil
      }
      guard let handle else { return }
      if let byteCount = file.byteCount, try handle.sizeBytes() > byteCount {
        try handle.truncate(sizeBytes: byteCount)
      }
      try handle.syncData()
    }
  }

  // MARK: Fetching

  /// Fetches what is missing.
  /// - Returns: what the store does not have as the steps describe it; the files concerned are incomplete.
  func fetch(
    _ files: [CopyFile], into folder: (CopyFile) throws(LedgerError) -> Folder
  ) throws(CopyError) -> [Fault] {
    let targets = try prepare(files, folder)
    let work = targets.flatMap { target in target.missing.map { (target, $0) } }
    let totalBytes = files.reduce(0) { $0 + ($1.byteCount ?? 0) }
    let faults = Monitor([Fault]())
    try ParallelWork.run(work.count, threads: threadCount) { [self] index throws(CopyError) in
      let (target, number) = work[index]
      let piece = target.file.pieces[number]
      let fault = try fetch(piece, into: target)
      if let fault {
        faults.withLock {
          $0.append(
            Fault(fault: fault, position: piece.range.lowerBound, file: target.file.name))
        }
      }
      try inLedger { () throws(LedgerError) in
        try target.finish(number, isWhole: fault == nil)
      }
      let total = total
      progress(total.bytes + total.keptBytes, totalBytes)
    }
    return faults.withLock { $0 }.sorted {
      ($0.position, $0.fault.object) < ($1.position, $1.fault.object)
    }
  }

  private func prepare(
    _ files: [CopyFile], _ folder: (CopyFile) throws(LedgerError) -> Folder
  ) throws(CopyError) -> [Target] {
    var folders: [Folder] = []
    for file in files {
      folders.append(try inLedger { () throws(LedgerError) in try folder(file) })
    }
    let targets = Monitor([Int: Target]())
    let opened = folders
    try ParallelWork.run(files.count, threads: threadCount) { [self] index throws(CopyError) in
      let (file, folder) = (files[index], opened[index])
      let found = try inLedger { () throws(LedgerError) -> [Int]? in
        try missing(of: file, folder)
      }
      guard let missing = found else { return }
      targets.withLock { $0[index] = Target(file, folder, missing: missing) }
    }
    return targets.withLock { found in files.indices.compactMap { found[$0] } }
  }

  /// What the store could not provide for a fetch. Changes nothing.
  func faults(
    _ files: [CopyFile], in folder: (CopyFile) -> Folder
  ) throws(CopyError) -> [CopyFault] {
    var needed: [CopyPiece] = []
    for file in files {
      let folder = folder(file)
      let pieces = try inLedger { () throws(LedgerError) -> [Int] in
        if try isInPlace(file, folder) { return [] }
        let temporary = file.name + Format.temporarySuffix
        guard try folder.status(temporary) != nil else { return Array(file.pieces.indices) }
        return try wrongPieces(of: file, folder.openFile(temporary, .readOnly))
      }
      needed += pieces.map { file.pieces[$0] }
    }
    let work = needed
    let faults = Monitor([CopyFault]())
    try ParallelWork.run(work.count, threads: threadCount) { [self] index throws(CopyError) in
      let fault = try CopyReader(store).read(work[index]) { _, _ throws(LedgerError) in }
      if let fault { faults.withLock { $0.append(fault) } }
    }
    return faults.withLock { $0 }.sorted { $0.object < $1.object }
  }

  /// Whether a file has its final name and is complete.
  private func isInPlace(_ file: CopyFile, _ folder: Folder) throws(LedgerError) -> Bool {
    guard let status = try folder.status(file.name), status.kind == .regular,
      status.sizeBytes == file.byteCount ?? status.sizeBytes
    else { return false }
    return try wrongPieces(of: file, folder.openFile(file.name, .readOnly)).isEmpty
  }

  /// The pieces that are missing from `NAME.new`; nil if the file itself is in place and complete.
  private func missing(
    of file: CopyFile, _ folder: Folder
  ) throws(LedgerError) -> [Int]? {
    let temporary = file.name + Format.temporarySuffix
    if try isInPlace(file, folder) {
      countKept(file, file.pieces.indices.map { $0 })
      // A writer may have left a file of this name; it must not replace this one.
      try folder.unlink(temporary)
      return nil
    }
    guard try folder.status(temporary) != nil else { return Array(file.pieces.indices) }
    let handle = try folder.openFile(temporary, .readWrite)
    let wrong = try wrongPieces(of: file, handle)
    countKept(file, file.pieces.indices.filter { !wrong.contains($0) })
    if wrong.isEmpty {
      // An earlier run wanted more of it.
      if let byteCount = file.byteCount, try handle.sizeBytes() > byteCount {
        try handle.truncate(sizeBytes: byteCount)
      }
      // An earlier run may have written it without syncing it.
      try handle.syncData()
    }
    return wrong
  }

  private func countKept(_ file: CopyFile, _ pieces: [Int]) {
    counts.withLock { counts in
      counts.kept += pieces.count
      for piece in pieces { counts.keptBytes += file.pieces[piece].byteCount ?? 0 }
    }
  }

  private func wrongPieces(
    of file: CopyFile, _ handle: StorageFile
  ) throws(LedgerError) -> [Int] {
    let size = try handle.sizeBytes()
    var wrong: [Int] = []
    for (index, piece) in file.pieces.enumerated() {
      let byteCount = piece.byteCount ?? size
      guard piece.offsetBytes <= size, byteCount <= size - piece.offsetBytes,
        try FileHash.sha256(handle, piece.offsetBytes..<piece.offsetBytes + byteCount)
          == piece.sha256
      else {
        wrong.append(index)
        continue
      }
    }
    return wrong
  }

  /// Fetches a piece into its file; returns its fault.
  private func fetch(_ piece: CopyPiece, into target: Target) throws(CopyError) -> CopyFault? {
    var byteCount = 0
    let fault = try CopyReader(store).read(piece) { bytes, offset throws(LedgerError) in
      try target.opened().write(bytes, offsetBytes: piece.offsetBytes + offset)
      byteCount = offset + bytes.count
    }
    if fault == nil {
      counts.withLock { counts in
        counts.objects += 1
        counts.bytes += byteCount
      }
    }
    return fault
  }

  private func inLedger<Result>(
    _ body: () throws(LedgerError) -> Result
  ) throws(CopyError) -> Result {
    do { return try body() } catch { throw .ledger(error) }
  }
}

/// The SHA-256 of a part of a file.
enum FileHash {
  private static let pieceByteCount = 1 << 20

  /// Nil if the file is shorter.
  static func sha256(
    _ file: StorageFile, _ range: Range<Int>
  ) throws(LedgerError) -> SHA256Digest? {
    let hasher = SHA256()
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: min(pieceByteCount, max(range.count, 1)), alignment: 16)
    defer { buffer.deallocate() }
    var offset = range.lowerBound
    while offset < range.upperBound {
      let wanted = UnsafeMutableRawBufferPointer(
        rebasing: buffer[..<min(buffer.count, range.upperBound - offset)])
      let count = try file.read(into: wanted, offsetBytes: offset)
      guard count == wanted.count else { return nil }
      hasher.update(UnsafeRawBufferPointer(wanted))
      offset += count
    }
    return hasher.finish()
  }
}
